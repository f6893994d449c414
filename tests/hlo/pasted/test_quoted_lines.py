"""Instruction lines without a computation: recognition, contents and locations."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.errors import InputError
from hlo_inspect.report.model import PART_NOTE, Report

REDUCE = "%all-reduce.1 = f32[1024]{0} all-reduce(%p), replica_groups={{0,1,2,3}}, to_apply=%add"
GATHER = (
    "%all-gather.2 = bf16[64,8]{1,0} all-gather(bf16[16,8]{1,0} %p.1), channel_id=3, replica_groups=[2,4]<=[8], "
    "dimensions={0}, use_global_device_ids=true"
)
FUSION = "ROOT %fusion.7 = (f32[8]{0}, f32[4]{0}) fusion(%all-reduce.1, %q), kind=kLoop, calls=%fused_computation.7"
CALL = '%custom-call.4 = f32[16,16]{1,0} custom-call(%a, %b), custom_call_target="__cublas$gemm"'
LINES = (REDUCE, GATHER, FUSION, CALL)


def report_of_quoted_lines(text: str, command: str = "summary") -> Report:
    report = hlo_inspect.inspect(text.encode(), command)
    assert report.facts["module.name"] == "quoted_lines"
    return report


FORMS = {
    "contiguous": "\n".join(LINES),
    "indented": "\n".join(f"      {line}" for line in LINES),
    "without percent": "\n".join(LINES).replace("%", ""),
    "a fence and prose": f"Why?\n\n```\n{REDUCE}\n{GATHER}\n```\n\nand then\n\n~~~ hlo\n{FUSION}\n...\n{CALL}\n~~~\n",
    "ellipses": f"{REDUCE}\n  ...\n{GATHER}\n[...]\n{FUSION}\n…\n{CALL}",
    "a diff": f"@@ -1,4 +1,4 @@\n-  {REDUCE}\n+  {GATHER}\n   {FUSION}\n+  {CALL}",
    "labels": "\n".join(f"     XLA label: {line}\n     Allocation type: HLO temp\n     =====" for line in LINES),
    "in a sentence": f"There is `{REDUCE}`, then `{GATHER}`; after it {FUSION} and, last, `{CALL}`.",
    "a list": "\n".join(f"* {line}" for line in LINES),
    "numbered": "\n".join(f"{number}. `{line}`" for number, line in enumerate(LINES, 1)),
    "a mail": "\n".join(f"> > {line}" for line in LINES),
    "one after the other": " ".join(LINES),
    "with blank lines": "\n\n\n".join(LINES),
    "CRLF": "\r\n".join(LINES),
    "wrapped at commas": "\n".join(LINES).replace("), ", "),\n      "),
    "with comments": "\n".join(f"{line}  // look here" for line in LINES),
    "attributes left out": "\n".join(f"{line}, metadata={{...}}, backend_config=..., ..." for line in LINES),
}


@pytest.mark.parametrize("form", FORMS)
def test_figures_of_quoted_lines(form: str) -> None:
    report = report_of_quoted_lines(FORMS[form])
    facts = report.facts
    assert facts["collectives.count"] == 2
    assert facts["collectives.all-reduce.operand_bytes"] == 1024 * 4
    assert facts["collectives.all-gather.operand_bytes"] == 16 * 8 * 2
    assert (facts["collectives.all-gather.count"], facts["collectives.group_size.4.count"]) == (1, 2)
    assert facts["collectives.wire_bytes"] == 2 * 3 * 4096 // 4 + 3 * 256
    assert (facts["fusions.count"], facts["fusions.kind.kLoop"]) == (1, 1)
    assert (facts["custom_calls.count"], facts["custom_calls.target.__cublas$gemm"]) == (1, 1)
    assert [facts[f"opcode.{name}"] for name in ("all-reduce", "all-gather", "fusion", "custom-call")] == [1, 1, 1, 1]
    assert {finding.rule for finding in report.findings} == {"HI011"}


@pytest.mark.parametrize("form", FORMS)
def test_facts_of_the_whole_module_are_unknown_for_quoted_lines(form: str) -> None:
    report = report_of_quoted_lines(FORMS[form])
    names = {"module.computations", "module.instructions", "module.entry_instructions", "module.devices"}
    names |= {name for name in report.facts if name.startswith(("params.", "outputs.")) or ".executed_" in name}
    assert len(names) > 50
    assert {report.facts[name] for name in names} == {None}
    assert sum(note.startswith(PART_NOTE) for note in report.notes) == 1
    assert not any(note.startswith(tuple(names)) for note in report.notes)


def test_quoted_lines_have_the_line_numbers_of_the_text() -> None:
    text = f"prose\n\n```\n    {REDUCE}\n```\nmore `{GATHER}`\n{CALL}\n"
    report = report_of_quoted_lines(text, "collectives")
    assert [row["line"] for row in report.table("collectives").records()] == [4, 6]
    assert (report.input.first_line, report.input.lines) == (4, 3)


def test_lines_of_one_instruction_are_joined() -> None:
    text = "x\n%a = (f32[2]{0},\n  /*index=1*/f32[3]{0}) all-reduce(%p,\n   %q), replica_groups={{0,1}},\n to_apply=%add\n\ny\n"
    report = report_of_quoted_lines(text, "collectives")
    assert report.facts["collectives.operand_bytes"] == 5 * 4
    assert report.table("collectives").records()[0]["line"] == 2


def test_a_truncated_line_is_counted_and_reported() -> None:
    """XLA truncates the labels of buffers like this. The missing operands are unknown."""
    label = "XLA label: %fusion.1 = u32[64,1]{1,0:T(8,128)} fusion(u32[]{:T(256)} %add.1, u32[]{:T(256)} %add.45646...."
    report = report_of_quoted_lines(f"  {label}\n  Allocation type: HLO temp\n  {REDUCE}\n", "fusions")
    row = report.table("fusions").records()[0]
    assert (row["result_bytes"], row["operand_bytes"]) == (64 * 4, None)
    assert report.facts["collectives.count"] == 1 if "collectives.count" in report.facts else True
    cut = next(finding for finding in report.findings if finding.rule == "HI001")
    assert "is truncated" in cut.message
    assert cut.location is not None and cut.location.line == 1


def test_lines_before_between_and_after_modules_are_partial_modules() -> None:
    module = "HloModule {}\n\nENTRY e {{\n  ROOT p = f32[4]{{0}} parameter(0)\n}}\n\n"
    text = f"{REDUCE}\n{module.format('a')}{GATHER}\n{CALL}\n{module.format('b')}and {FUSION}\n"
    reports = list(hlo_inspect.inspect_all(text.encode(), "summary"))
    names = [report.facts["module.name"] for report in reports]
    assert names == ["quoted_lines", "a", "quoted_lines", "b", "quoted_lines"]
    assert [report.facts["collectives.count"] for report in reports] == [1, 0, 1, 0, 0]
    assert [report.input.first_line for report in reports] == [1, 2, 8, 10, 16]
    assert [report.facts["module.instructions"] for report in reports] == [None, 1, None, 1, None]


@pytest.mark.parametrize(
    "text",
    [
        "x = f32[4] + f32(3)\ny = np.zeros([4])",
        "  %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n  %1 = mhlo.add %0, %0 : tensor<4xf32>",
        '%5 = "stablehlo.all_gather"(%4) {all_gather_dim = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x4xf32>',
        "  %tdims = load ptr, ptr %gep, align 8\n  %3 = fadd float %1, %2",
        "{ lambda ; a:f32[4]. let b:f32[4] = add a 1.0:f32[] in (b,) }",
        "  %3 = f32[2,2]{1,0} aten::add(%2, %1), xla_shape=f32[2,2]{1,0}",
        "  %3 = f32[2,2]{1,0} frobnicate(%2, %1)",
        "  %3 = f99[2,2]{1,0} add(%2, %1)",
        "  %3 = add(f32[2] %2, f32[2] %1)",
        "a : f32[4] = add(b, c)",
        "q == f32[4] add(b, c)",
    ],
)
def test_lines_that_only_look_like_hlo_are_no_module(text: str) -> None:
    with pytest.raises(InputError, match="holds no HLO module"):
        hlo_inspect.inspect(f"{text}\n".encode())


def test_instructions_in_metadata_or_comments_are_no_quoted_lines() -> None:
    text = (
        "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n"
        '  ROOT n = f32[4]{0} negate(p), metadata={op_name="q = f32[4]{0} add(p, p)"}\n  // r = f32[4]{0} add(p, p)\n}\n'
    )
    reports = list(hlo_inspect.inspect_all(text.encode()))
    assert [report.facts["module.instructions"] for report in reports] == [2]


def test_quoted_lines_are_read_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"prose\n{REDUCE}\n{GATHER.replace('), ', '),' + chr(10) + '   ')}\n" * 40
    for size in (50, 333, 1 << 18):
        monkeypatch.setattr("hlo_inspect.hlo.input.source.PIECE_BYTES", size)
        report = report_of_quoted_lines(text, "collectives")
        assert report.facts["collectives.count"] == 80
        assert report.table("collectives").records()[-1]["line"] == 40 * 4 - 1


def test_a_quoted_line_may_have_an_unclosed_bracket() -> None:
    """The rest of the line is no instruction. The next line is one."""
    first = "dot.2 = f32[2]{0} dot(x.1, st{te.1), lhs_contracting_dims={1, rhs_contracting_dims={0}"
    report = report_of_quoted_lines(f"{first}\nadd.3 = f32[2]{{0}} add(x.1, x.2)", "summary")
    assert report.findings[0].message.startswith("this partial module has an instruction line ")
