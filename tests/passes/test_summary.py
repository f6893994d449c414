"""The command `summary`: counts as printed, and the facts of the passes that it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data"

TEXT = """HloModule m, num_partitions=2, input_output_alias={ {}: (0, {}, may-alias) }

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[512], q: u8[3]) -> f32[512] {
  %p = f32[512]{0} parameter(0)
  %q = u8[3]{0} parameter(1)
  %n = f32[512]{0} negate(%p)
  %r = f32[512]{0} all-reduce(%n), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%add
  ROOT %m = f32[512]{0} negate(%r)
}
"""


def test_counts_as_printed() -> None:
    facts = hlo_inspect.inspect(TEXT).facts
    assert (facts["module.computations"], facts["module.instructions"], facts["module.entry_instructions"]) == (2, 8, 5)
    opcodes = {name: value for name, value in facts.items() if name.startswith("opcode.")}
    assert opcodes == {"opcode.parameter": 4, "opcode.add": 1, "opcode.negate": 2, "opcode.all-reduce": 1}


def test_the_facts_of_the_other_passes_are_those_of_their_commands() -> None:
    facts = hlo_inspect.inspect(TEXT).facts
    for command in ("params", "fusions", "collectives"):
        own = hlo_inspect.inspect(TEXT, (command,)).facts
        assert {name: facts[name] for name in own if not name.startswith("module.")} == {
            name: value for name, value in own.items() if not name.startswith("module.")
        }
    assert (facts["params.bytes"], facts["params.unused_bytes"], facts["collectives.operand_bytes"]) == (2051, 3, 2048)


def test_tables() -> None:
    report = hlo_inspect.inspect(TEXT)
    assert [table.name for table in report.tables] == [
        "buffers",
        "collectives_by_kind",
        "collectives_by_axis",
        "collectives_by_phase",
        "opcodes",
    ]
    assert report.table("buffers").rows == (
        ("parameters", 2, 2051),
        ("  donated to an output", 1, 2048),
        ("  donated, output open", 0, 0),
        ("  not donated", 1, 3),
        ("  read by nothing", 1, 3),
        ("outputs", 1, 2048),
        ("  in a donated buffer", 1, 2048),
    )
    assert report.table("opcodes").rows[0] == ("parameter", 4)
    assert report.table("opcodes").total == (None, 8)


def test_sugar_counts_as_the_one_instruction_that_stands_there() -> None:
    """The generic form of the same program has two wrapped computations more, each of two instructions."""
    sugar = hlo_inspect.inspect(DATA / "handmade/async_sugar.txt").facts
    generic = hlo_inspect.inspect(DATA / "handmade/async_generic.txt").facts
    assert (sugar["module.computations"], sugar["module.instructions"]) == (2, 13)
    assert (generic["module.computations"], generic["module.instructions"]) == (4, 17)
    assert sugar["opcode.reduce-scatter-start"] == generic["opcode.reduce-scatter"] == 1


@pytest.mark.parametrize("name", ["long", "no_operand_names", "compact_operands", "operand_shapes", "no_percent"])
def test_all_prints_of_a_module_are_the_same_module(name: str) -> None:
    """All hold the 16 computations and 78 instructions that XLA's parser finds in `long`."""
    facts = hlo_inspect.inspect(DATA / f"prints/{name}.txt").facts
    names = ("module.computations", "module.instructions", "module.entry_instructions", "fusions.count", "collectives.count")
    assert [facts[fact] for fact in names] == [16, 78, 24, 10, 7]


def test_an_entry_that_the_text_does_not_hold() -> None:
    report = hlo_inspect.inspect("HloModule m, num_partitions=2\n")
    assert report.facts["module.entry_instructions"] is None
    assert any(note.startswith("module.entry_instructions: ") for note in report.notes)
    assert (report.facts["module.computations"], report.facts["module.instructions"]) == (0, 0)


def test_findings_of_all_passes_the_most_severe_first() -> None:
    text = TEXT.replace(", input_output_alias={ {}: (0, {}, may-alias) }", "").replace("negate(%p)", "negate(%gone)")
    found = [(finding.rule, finding.severity) for finding in hlo_inspect.inspect(text).findings]
    assert found == [("HI008", "error"), ("HI101", "warning"), ("HI102", "info")]


def test_costs_and_optimizer_stand_on_the_page_where_they_run_too() -> None:
    """Two weights of 8x8 float32, their moments, a counter; XLA's own FLOPs."""
    path = DATA / "cpu/adamw_step.after.txt"
    page = hlo_inspect.inspect(path, "summary", also=("cost", "optimizer"))
    update = page.table("optimizer_update")
    (row,) = update.rows
    told = {column.name: value for column, value in zip(update.columns, row, strict=True)}
    assert (told["rule"], told["weights"], told["learning_rate"], told["weight_decay"]) == ("adamw", 2, 0.001, 0.1)
    assert (told["rate"], told["weight_bytes"], told["state_bytes"]) == (None, 2 * 256, 4 * 256 + 4)
    assert page.facts["cost.flops"] == 8074
    flops = [column.name for column in page.table("cost_by_phase").columns].index("flops")
    by_phase = [row[flops] for row in page.table("cost_by_phase").rows]
    assert sum(figure for figure in by_phase if isinstance(figure, int)) == page.facts["cost.executed_flops"]
    assert page.table("optimizer_update").name not in {table.name for table in hlo_inspect.inspect(path).tables}
