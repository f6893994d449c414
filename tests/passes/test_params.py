"""The command `params`: facts and rows of small entries counted by hand, its findings, and unknown facts."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report

STATE = """HloModule step, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (1, {1}) }

ENTRY %main (w: f32[16,32], pair: (s32[], bf16[64]), mask: pred[100], x: f32[4,2]) -> (f32[16,32], f32[4,2]) {
  %x = f32[4,2]{1,0:T(8,128)S(1)} parameter(3), metadata={op_name="x"}
  %w = f32[16,32]{1,0} parameter(0), sharding={replicated}, metadata={op_name="state[\\'w\\']"}
  %pair = (s32[], bf16[64]{0}) parameter(1)
  %mask = pred[100]{0} parameter(2)
  %scale = bf16[64]{0} get-tuple-element(%pair), index=1
  %step = s32[] get-tuple-element(%pair), index=0
  %new = f32[16,32]{1,0} custom-call(%w, %scale, %step), custom_call_target="update"
  ROOT %out = (f32[16,32]{1,0}, f32[4,2]{1,0:T(8,128)}) tuple(%new, %x)
}
"""


def params(text: str) -> Report:
    return hlo_inspect.inspect(text, ("params",))


def entry(*lines: str, header: str = "") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"HloModule m{header}\n\nENTRY %main {{\n{body}}}\n"


def test_facts() -> None:
    """2048 + 4 + 128 + 100 + 32 bytes go in, 2048 + 32 come out."""
    facts = {name: value for name, value in params(STATE).facts.items() if name.startswith(("params.", "outputs."))}
    assert facts == {
        "params.count": 4,
        "params.leaf_count": 5,
        "params.bytes": 2312,
        "params.aliased_count": 1,
        "params.aliased_bytes": 2048,
        "params.donor_count": 1,
        "params.donor_bytes": 128,
        "params.donated_count": 2,
        "params.donated_bytes": 2176,
        "params.unused_count": 1,
        "params.unused_bytes": 100,
        "outputs.count": 2,
        "outputs.bytes": 2080,
        "outputs.aliased_count": 1,
        "outputs.aliased_bytes": 2048,
    }


def test_the_table_of_parameters() -> None:
    """The rows are leaves by number; a tile of 8x128 makes 4096 bytes of 32."""
    rows = params(STATE).table("params").records()
    columns = (
        "number",
        "index",
        "name",
        "shape",
        "bytes",
        "padded_bytes",
        "memory_space",
        "aliased_output",
        "donated",
        "unused",
    )
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, "{}", "w", "f32[16,32]", 2048, 2048, 0, "{0}", True, False),
        (1, "{0}", "pair", "s32[]", 4, 4, 0, "", False, False),
        (1, "{1}", "pair", "bf16[64]", 128, 128, 0, "", True, False),
        (2, "{}", "mask", "pred[100]", 100, 100, 0, "", False, True),
        (3, "{}", "x", "f32[4,2]", 32, 4096, 1, "", False, False),
    ]
    assert [(row["path"], row["sharding"], row["line"]) for row in rows] == [
        ("state['w']", "{replicated}", 5),
        ("", "", 6),
        ("", "", 6),
        ("", "", 7),
        ("x", "", 4),
    ]
    assert {row["dtype"] for row in rows} == {"f32", "s32", "bf16", "pred"}


def test_the_table_of_outputs() -> None:
    rows = params(STATE).table("outputs").records()
    assert [(row["index"], row["shape"], row["bytes"], row["aliased_parameter"]) for row in rows] == [
        ("{0}", "f32[16,32]", 2048, "0"),
        ("{1}", "f32[4,2]", 32, ""),
    ]


def test_donors_that_are_aliased_count_as_aliased() -> None:
    header = ", input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (0, {}) }"
    facts = params(entry("%p = f32[4]{0} parameter(0)", "ROOT %n = f32[4]{0} negate(%p)", header=header)).facts
    assert (facts["params.aliased_count"], facts["params.donor_count"], facts["params.donated_count"]) == (1, 0, 1)


def test_no_parameters() -> None:
    report = params(entry("ROOT %c = f32[4]{0} constant({1,2,3,4})"))
    assert (report.facts["params.count"], report.facts["params.bytes"], report.facts["outputs.bytes"]) == (0, 0, 16)
    assert report.table("params").rows == ()


def test_parameters_that_could_be_donated_are_a_finding() -> None:
    """The only output fits one of two parameters, so its bytes are at stake: a warning from 1 MiB on."""
    for elements, severity in ((1024, "info"), (1 << 18, "warning")):
        array = f"f32[{elements}]{{0}}"
        lines = (f"%p = {array} parameter(0)", f"%q = {array} parameter(1)", f"ROOT %n = {array} add(%p, %q)")
        (finding,) = params(entry(*lines)).findings
        reported = (finding.rule, finding.severity, finding.subject, finding.stake)
        assert reported == ("HI101", severity, "p", 4 * elements)
    assert finding.message.startswith("parameter 0 is not donated")
    assert str(finding.location) == "<text>:3"


@pytest.mark.parametrize("header", [", input_output_alias={ {}: (0, {}, may-alias) }", ", buffer_donor={ (0, {}) }"])
def test_an_output_that_has_a_buffer_takes_no_donation(header: str) -> None:
    lines = ("%p = f32[1024]{0} parameter(0)", "%q = f32[1024]{0} parameter(1)", "ROOT %n = f32[1024]{0} add(%p, %q)")
    assert params(entry(*lines, header=header)).findings == ()


def test_scalars_and_counters_are_not_worth_a_finding() -> None:
    assert params(entry("%p = f32[255]{0} parameter(0)", "ROOT %n = f32[255]{0} negate(%p)")).findings == ()


def test_an_unused_parameter_is_a_finding() -> None:
    lines = ("%p = f32[4]{0} parameter(0)", "%q = u8[9]{0} parameter(1)", "%r = u8[5]{0} parameter(2)")
    (finding,) = params(entry(*lines, "ROOT %n = f32[4]{0} negate(%p)")).findings
    assert (finding.rule, finding.severity, finding.subject, finding.stake) == ("HI102", "info", "q", 14)
    assert finding.message == "no instruction reads parameters 1 and 2"


def test_an_alias_that_leads_nowhere_is_a_finding() -> None:
    header = ", input_output_alias={ {}: (3, {}, may-alias) }"
    report = params(entry("%p = f32[4]{0} parameter(0)", "ROOT %n = f32[4]{0} negate(%p)", header=header))
    (finding,) = report.findings
    assert (finding.rule, str(finding.location)) == ("HI103", "<text>:1")
    assert "parameter 3" in finding.message


def test_an_unknown_size_has_a_reason() -> None:
    report = params(entry("%p = f32[?,2]{1,0} parameter(0)", "ROOT %n = f32[?,2]{1,0} negate(%p)"))
    unknown = {fact for fact, value in report.facts.items() if value is None and fact.startswith(("params.", "outputs."))}
    assert unknown == {"params.bytes", "outputs.bytes"}
    assert all(any(note.startswith(f"{fact}: ") for note in report.notes) for fact in unknown)
    assert [row["bytes"] for row in report.table("params").records()] == [None]
    assert report.facts["params.count"] == 1


def test_without_the_entry_uses_are_not_known() -> None:
    """The header tells the parameters and outputs, but not which parameters are read."""
    report = params("HloModule m, entry_computation_layout={(f32[4]{0}, s32[])->f32[4]{0}}\n")
    assert (report.facts["params.count"], report.facts["params.bytes"], report.facts["outputs.bytes"]) == (2, 20, 16)
    assert report.facts["params.unused_count"] is None
    assert report.facts["params.unused_bytes"] is None


def test_with_neither_entry_nor_layout_nothing_is_known() -> None:
    facts = params("HloModule m, num_partitions=2\n").facts
    names = ("params.count", "params.leaf_count", "params.bytes", "params.unused_count", "outputs.count", "outputs.bytes")
    assert {name: facts[name] for name in names} == dict.fromkeys(names)


def test_operands_without_names_leave_uses_open() -> None:
    text = entry("%p = f32[4]{0} parameter(0)", "ROOT %n = f32[4]{0} negate(f32[4]{0})")
    report = params(text)
    assert report.facts["params.unused_count"] is None
    assert [finding.rule for finding in report.findings] == ["HI504"]  # and the optimizer cannot be followed


DONATION = ("params.aliased_count", "params.donor_bytes", "params.donated_count", "outputs.aliased_bytes")


def test_an_entry_that_is_cut_off() -> None:
    """The text has one parameter, 4096 bytes, and its first line names none. What the header says is not lost."""
    text = "HloModule m\n\nENTRY %main {\n  %p = f32[1024]{0} parameter(0)\n"
    report = params(text)
    facts = report.facts
    unknown = {"params.count", "params.bytes", "params.unused_count", "outputs.count", "outputs.bytes", *DONATION}
    assert {facts[name] for name in unknown} == {None}
    assert {name: value for name, value in facts.items() if name.endswith(".lower_bound")} == {
        "params.count.lower_bound": 1,
        "params.leaf_count.lower_bound": 1,
        "params.bytes.lower_bound": 4096,
    }
    assert "params.count: the text ends before the end of the entry computation" in report.notes
    assert "outputs.count: the text ends before the result of the entry computation" in report.notes
    (row,) = report.table("params").records()
    assert (row["donated"], row["not_donated_because"]) == (False, "the text ends before the result")
    assert report.table("outputs").title == "Outputs (not in the text)"


@pytest.mark.parametrize(
    "header", ["", 'HloModule m, note="not closed\n\n', "HloModule m, input_output_alias={ {}: (0, {}, may-alias), ? }\n\n"]
)
def test_without_the_whole_header_nothing_tells_what_is_donated(header: str) -> None:
    """An alias that can be read is one at least; nobody is advised to donate."""
    lines = ("%p = f32[1024]{0} parameter(0)", "%q = f32[1024]{0} parameter(1)", "ROOT %n = f32[1024]{0} add(%p, %q)")
    text = entry(*lines).replace("HloModule m\n\n", header)
    report = params(text)
    aliases = header.count("may-alias")
    assert (report.facts["params.count"], report.facts["params.bytes"], report.facts["outputs.bytes"]) == (2, 8192, 4096)
    assert {report.facts[name] for name in DONATION} == {None}
    assert report.facts.get("params.donated_bytes.lower_bound", 0) == 4096 * aliases
    assert "params.aliased_count: the text lacks the part of the header that names donated parameters" in report.notes
    assert [row["donated"] for row in report.table("params").records()] == [True if aliases else None, None]
    assert [row["aliased_parameter"] for row in report.table("outputs").records()] == ["0" if aliases else None]
    assert not {"HI101", "HI505"} & {finding.rule for finding in report.findings}
    (buffers,) = [table for table in hlo_inspect.inspect(text).tables if table.name == "buffers"]
    assert buffers.rows[1][1] is None and buffers.rows[0][1:] == (2, 8192)
