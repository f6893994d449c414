"""The command `summary` on dumps, by XLA's parser or by hand. Small programs are in tests/cases/passes/summary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.model import Amount, Report
from hlo_inspect.report.page import NO_BREAK, headline_text
from hlo_inspect.report.table import Value, lower_bound
from tests.cases.case import cases_of

DATA = Path(__file__).parents[1] / "data"
TEXT = next(cases_of(Path(__file__).parents[1] / "cases/passes/summary/counts.hlo")).text


def test_the_facts_of_the_other_passes_are_those_of_their_commands() -> None:
    facts = hlo_inspect.inspect(TEXT).facts
    for command in ("params", "fusions", "collectives"):
        own = hlo_inspect.inspect(TEXT, (command,)).facts
        assert {name: facts[name] for name in own if not name.startswith("module.")} == {
            name: value for name, value in own.items() if not name.startswith("module.")
        }


def test_tables_of_a_quick_page() -> None:
    tables = [table.name for table in hlo_inspect.inspect(TEXT, quick=True).tables]
    assert tables == ["buffers", "collectives_by_kind", "collectives_by_axis", "opcodes"]


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


def test_costs_and_optimizer_stand_on_the_page_where_they_run_too() -> None:
    """Two weights of 8x8 float32, their moments, a counter; XLA's own FLOPs."""
    path = DATA / "cpu/adamw_step.after.txt"
    page = hlo_inspect.inspect(path, "summary")
    update = page.table("optimizer_update")
    (row,) = update.rows
    constants = {column.name: value for column, value in zip(update.columns, row, strict=True)}
    assert (constants["rule"], constants["weights"], constants["learning_rate"], constants["weight_decay"]) == (
        "adamw",
        2,
        0.001,
        0.1,
    )
    assert (constants["rate"], constants["weight_bytes"], constants["state_bytes"]) == (None, 2 * 256, 4 * 256 + 4)
    on_page = {column.name for column in update.columns if column.detail < 9}
    assert on_page == {name for name, value in constants.items() if value is not None}
    assert page.facts["cost.flops"] == 8074
    flops = [column.name for column in page.table("cost_by_phase").columns].index("flops")
    by_phase = [row[flops] for row in page.table("cost_by_phase").rows]
    assert sum(figure for figure in by_phase if isinstance(figure, int)) == page.facts["cost.executed_flops"]
    assert page.table("optimizer_update").name not in {table.name for table in hlo_inspect.inspect(path, quick=True).tables}


BY_XLA: dict[str, Any] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
BY_HAND: dict[str, Any] = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))

NOT_YET = ("cost.", "loops.", "mesh.", "optimizer.")
"""Families of figures that no command answers yet."""

WRITTEN_OTHERWISE = ("tpu/", "tpu_jax_0_12/", "jax_0_4_13/")
"""Dumps in which the compiler writes a program's collectives as other kinds than the program calls."""


NAMELESS = {
    "prints/canonical.txt": "operands have no names",
    "prints/fingerprint.txt": "nothing has a name",
    "prints/no_ids.txt": "names have lost their numbers",
}
"""Prints for hashing a module: what they say of names cannot be right, which has to be said."""


def figures(name: str, facts: dict[str, Value]) -> dict[str, Value]:
    """Return the figures of a dump by XLA and by the program's source."""
    program = dict(BY_XLA["programs"].get(Path(name).name.split(".")[0], {}))
    if name.startswith(WRITTEN_OTHERWISE):
        program = {fact: value for fact, value in program.items() if not fact.startswith("collectives.")}
    return {fact: value for fact, value in (program | facts).items() if not fact.startswith(NOT_YET)}


def differences(report: Report, expected: dict[str, Value]) -> dict[str, tuple[Value, Value]]:
    """Return the facts that differ, each with the expected value and that of the report."""
    pairs = {fact: (value, report.facts.get(fact, 0)) for fact, value in expected.items()}
    return {fact: pair for fact, pair in pairs.items() if pair[0] != pair[1]}


def index(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def donations(path: Path, module: int = 0) -> tuple[set[tuple[str, int, str]], set[tuple[int, str]]]:
    """Return aliases as (output, parameter, index in it) and donors as (parameter, index), from the rows of `params`."""
    rows = list(hlo_inspect.inspect_all(path, ("params",)))[module].table("params").records()
    aliased = {(str(r["aliased_output"]), int(r["number"] or 0), str(r["index"])) for r in rows if r["aliased_output"]}
    donated = {(int(r["number"] or 0), str(r["index"])) for r in rows if r["donated"] and not r["aliased_output"]}
    return aliased, donated


@pytest.mark.parametrize("name", sorted(BY_XLA["dumps"]))
def test_compiled_dumps(name: str) -> None:
    facts = BY_XLA["dumps"][name]["facts"]
    report = hlo_inspect.inspect(DATA / name)
    assert differences(report, figures(name, facts)) == {}
    opcodes = {fact for fact in facts if fact.startswith("opcode.")}
    assert {fact for fact, count in report.facts.items() if fact.startswith("opcode.") and count} == opcodes


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_XLA["dumps"].items() if "aliases" in entry))
def test_donations_of_compiled_dumps(name: str) -> None:
    entry = BY_XLA["dumps"][name]
    assert donations(DATA / name) == (
        {(index(output), parameter, index(inside)) for output, parameter, inside in entry["aliases"]},
        {(parameter, index(inside)) for parameter, inside in entry["donors"]},
    )


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if entry["modules"]))
def test_handmade_dumps(name: str) -> None:
    entry = BY_HAND[name]
    reports = list(hlo_inspect.inspect_all(DATA / "handmade" / name))
    assert len(reports) == len(entry["modules"])
    for report, module_facts in zip(reports, entry["modules"], strict=True):
        assert differences(report, {fact: value for fact, value in module_facts.items() if not fact.startswith(NOT_YET)}) == {}
    if "first_lines" in entry:
        assert [report.input.first_line for report in reports] == entry["first_lines"]
    if "aliases" in entry:
        assert donations(DATA / "handmade" / name) == (
            {(index(output), parameter, index(inside)) for output, parameter, inside in entry["aliases"]},
            {(parameter, index(inside)) for parameter, inside in entry.get("donors", [])},
        )


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if not entry["modules"]))
def test_files_without_a_module_are_an_error(name: str) -> None:
    with pytest.raises(hlo_inspect.InputError):
        hlo_inspect.inspect(DATA / "handmade" / name)


BROKEN = {"refuses: broken", "refuses: not one module", "refuses: unknown attributes"}


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if entry["jaxlib"] not in BROKEN))
def test_texts_that_xla_reads_have_no_error(name: str) -> None:
    """Nor has what is only older or newer than the parser at hand."""
    for report in hlo_inspect.inspect_all(DATA / "handmade" / name):
        assert [(f.rule, f.message) for f in report.findings if f.rule.startswith("HI0")] == []
        assert report.facts["module.unparsed_lines"] == 0


@pytest.mark.parametrize("name", sorted(BY_XLA["dumps"].keys() - NAMELESS.keys()))
def test_compiled_dumps_have_no_fault(name: str) -> None:
    report = hlo_inspect.inspect(DATA / name)
    assert [(f.rule, f.message) for f in report.findings if f.rule.startswith("HI0")] == []
    assert report.facts["module.unparsed_lines"] == 0


def lines(report: Report) -> dict[str, str]:
    """Return the first lines of a page by their labels."""
    return {row.label: headline_text(row).replace(NO_BREAK, " ") for row in report.headline}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mixed.before", "several optimizers on 2 weights ("),
        ("torch_muon.before", "adamw on 1 weight, 1 without a recognized rule ("),
    ],
)
def test_the_first_line_names_the_rule_beside_weights_without_one(name: str, said: str) -> None:
    path = DATA / "optimizers" / f"{name}.hlo"
    assert said in lines(hlo_inspect.inspect(path))[""]


def test_a_text_that_is_cut_off_says_so_first_of_all() -> None:
    path = DATA / "handmade" / "cut_off.txt"
    for command in ("summary", "params", "collectives"):
        first = hlo_inspect.inspect(path, command).headline[0]
        assert first.parts == ("TRUNCATED after line 13, inside main: all counts are lower bounds",)
        assert first.severity == "error"


def test_a_text_that_is_cut_off_does_not_say_that_there_are_no_collectives() -> None:
    """The rest of the module may hold some."""
    path = DATA / "cpu" / "adamw_step.after.txt"
    whole = path.read_text(encoding="utf-8")
    cut = whole[: whole.index(" all-reduce")]
    assert lines(hlo_inspect.inspect(cut))["collectives"] == "none before the text ends"
    assert lines(hlo_inspect.inspect(whole))["collectives"].startswith("2 runs")


def test_the_first_lines_of_the_sample(seed_001: Report) -> None:
    """Figures of ../shared/reference/samples.md."""
    first_lines = lines(seed_001)
    assert first_lines[""] == "train step: adamw on 77 weights (61.7 MiB on each of 16 devices, mesh d0=2 d1=8)"
    assert first_lines["compute"].startswith("631.4 GFLOP matmul (14 % recompute), ")
    sent = 2 * 7 * 100_663_296 // 8 / 2**20  # sent by the 12 recomputed all-reduces of 8 devices
    assert first_lines["collectives"] == (
        f"43 runs, 575.5 MiB sent: d1 532.1 MiB, d0 43.4 MiB; recompute 12 runs, {sent:.1f} MiB"
    )
    assert first_lines["memory"] == "arguments 185.2 MiB, 233 of 239 donated (99.96 % of the bytes)"


@pytest.fixture
def seed_001() -> Report:
    path = Path(__file__).parents[3] / "shared/dumps/seeds/001_f260b7b1b8c886c1.txt"
    if not path.exists():
        pytest.skip("the samples are not there")
    return hlo_inspect.inspect(path)


def test_the_time_of_a_step_where_the_text_tells_the_accelerator() -> None:
    """With the costs, and so not with --quick."""
    path = DATA / "tpu/scan_forward.after.txt"
    summary = hlo_inspect.inspect(path, "summary")
    (row,) = [headline for headline in summary.headline if headline.label == "time"]
    step = hlo_inspect.inspect(path, "time").facts["time.step_s"]
    assert isinstance(row.parts[0], Amount)
    assert lower_bound(row.parts[0].value) == step
    assert " a step on tpu-v5e" in row.parts
    assert [
        headline for headline in hlo_inspect.inspect(path, "summary", quick=True).headline if headline.label == "time"
    ] == []
    unmarked = hlo_inspect.inspect(DATA / "gpu/bf16_master.after.txt", "summary")
    assert [headline for headline in unmarked.headline if headline.label == "time"] == []


def test_time_of_a_large_program_is_the_longest_of_flops_bytes_and_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has the collectives' times anyway: a bound by memory that is below theirs would contradict their table."""
    monkeypatch.setattr("hlo_inspect.passes.summary.headline.LARGE_MODULE", 0)
    path = DATA / "cpu/scan_fsdp.after.txt"
    asked: Any = {"profile": "tpu-v5e", "also": ("cost",)}
    (row,) = [headline for headline in hlo_inspect.inspect(path, "summary", **asked).headline if headline.label == "time"]
    facts = hlo_inspect.inspect(path, "time", profile="tpu-v5e").facts
    assert isinstance(row.parts[0], Amount)
    assert lower_bound(row.parts[0].value) == facts["time.collective_s"]
    assert row.parts[-1] == " by collectives alone; `hlo-inspect time` adds the other parts"
