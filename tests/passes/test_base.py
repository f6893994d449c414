"""The promises of every pass, on every dump: facts by their specs, reasons for `None`, rows that add up, places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.errors import UsageError
from hlo_inspect.figure import Figure
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import NeededTables, ReportNeeds
from hlo_inspect.passes import MODULE_FACTS, PASSES, all_specs, find_pass
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.facts import exact_name
from hlo_inspect.report.model import FactSpec, Report
from hlo_inspect.report.render_options import RenderOptions, needed_tables, shown_tables
from hlo_inspect.report.table import Plain
from hlo_inspect.request import Request
from tests.tables import column

DATA = Path(__file__).parents[1] / "data"
BY_HAND = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))
MODULES = dict.fromkeys(json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"], 1) | {
    f"handmade/{name}": len(entry["modules"]) for name, entry in BY_HAND.items()
}
"""The number of modules in each dump."""


@cache
def reports(*commands: str) -> list[tuple[str, Report]]:
    """Return the reports of commands on each module of each dump."""
    inspected = []
    for name in MODULES:
        with suppress(hlo_inspect.InputError):
            inspected += [(name, report) for report in hlo_inspect.inspect_all(DATA / name, commands)]
    return inspected


def every_report() -> Iterator[tuple[str, Report]]:
    for pass_ in PASSES:
        yield from ((f"{pass_.name} {name}", report) for name, report in reports(pass_.name))


def promised(fact: str, spec: FactSpec) -> bool:
    """Return True if the spec stands for the fact: the same name, or a family with that member. A bound goes with its fact."""
    fact = exact_name(fact)
    before, bracket, after = re.sub(r"<\w+>", "<>", spec.name).partition("<>")
    if not bracket:
        return fact == spec.name
    member = fact[len(before) : len(fact) - len(after)]
    return f"{before}{member}{after}" == fact and (spec.members is None or member in spec.members)


def added(values: Iterable[Plain]) -> int | None:
    numbers = list(values)
    return None if None in numbers else sum(int(value) for value in numbers if value is not None)


@pytest.mark.parametrize("pass_", list(PASSES), ids=lambda pass_: pass_.name)
def test_each_module_has_a_report(pass_: Pass) -> None:
    assert Counter(name for name, _ in reports(pass_.name)) == Counter(MODULES)


def test_facts_are_those_of_the_specs() -> None:
    wrong = {
        (name, fact)
        for name, report in every_report()
        for fact in report.facts
        if not any(promised(fact, s) for s in report.specs)
    }
    assert wrong == set()


def test_a_lower_bound_stands_beside_an_unknown_fact_only() -> None:
    bounds = {
        (name, fact): report.facts[exact_name(fact)]
        for name, report in every_report()
        for fact in report.facts
        if exact_name(fact) != fact
    }
    assert set(bounds.values()) <= {None}


def test_each_spec_without_a_family_is_a_fact() -> None:
    for name, report in every_report():
        assert (name, {spec.name for spec in report.specs if "<" not in spec.name} - report.facts.keys()) == (name, set())


def absent(report: Report, fact: str) -> str:
    """Return the specification's text for a fact that is absent."""
    return next((spec.absent for spec in report.specs if spec.name == fact), "")


def test_what_is_unknown_has_a_reason() -> None:
    wrong = {
        (name, fact)
        for name, report in every_report()
        for fact, value in report.facts.items()
        if value is None and not any(note.startswith(f"{fact}:") for note in report.notes) and not absent(report, fact)
    }
    assert wrong == set()


def test_tables_are_even_and_typed() -> None:
    types: dict[str, type | tuple[type, ...]] = {"text": str, "bool": bool, "count": int, "bytes": int, "number": (int, float)}
    types |= {"flops": int, "seconds": float, "share": (int, float), "bytes_per_s": float}
    wrong = {
        (name, table.name, column.name, value)
        for name, report in every_report()
        for table in report.tables
        for row in table.rows
        for column, value in zip(table.columns, row, strict=True)
        for part in ((value.least, value.greatest) if isinstance(value, Figure) and column.bounded else (value,))
        if part is not None and not isinstance(part, types[column.unit])
    }
    assert wrong == set()


def test_names_of_tables_and_columns_are_unique_and_the_command_s_own_table_is_first() -> None:
    for _, report in every_report():
        names = [table.name for table in report.tables]
        assert sorted(set(names)) == sorted(names)
        own = {"top": ["kernels"], "memory": ["live_at_peak", "largest_arrays"], "time": ["step", "resources"]}
        if report.command == "time" and report.profile is None:  # the accelerator is unknown
            continue
        assert report.command == "summary" or names[0] in own.get(report.command, [report.command.replace("-", "_")])
        for table in report.tables:
            assert len({column.name for column in table.columns}) == len(table.columns)


def summed(table: str, name: str) -> Callable[[Report], int | None]:
    return lambda report: added(column(report.table(table), name))


def filled(table: str, name: str) -> Callable[[Report], int]:
    return lambda report: sum(value != "" for value in column(report.table(table), name))


@pytest.mark.parametrize(
    ("command", "fact", "of_rows"),
    [
        ("params", "params.leaf_count", filled("params", "number")),
        ("params", "params.bytes", summed("params", "bytes")),
        ("params", "params.donated_count", summed("params", "donated")),
        ("params", "params.aliased_count", filled("params", "aliased_output")),
        ("params", "params.unused_count", summed("params", "unused")),
        ("params", "outputs.count", filled("outputs", "index")),
        ("params", "outputs.bytes", summed("outputs", "bytes")),
        ("params", "outputs.aliased_count", filled("outputs", "aliased_parameter")),
        ("fusions", "fusions.count", filled("fusions", "name")),
        ("fusions", "custom_calls.count", summed("custom_calls_by_target", "count")),
        ("fusions", "fusions.multi_output_count", summed("fusions_by_kind", "multi_output")),
        ("collectives", "collectives.count", summed("collectives_by_kind", "sites")),
        ("collectives", "collectives.operand_bytes", summed("collectives", "operand_bytes")),
        ("collectives", "collectives.result_bytes", summed("collectives", "result_bytes")),
        ("collectives", "collectives.wire_bytes", summed("collectives", "wire_bytes")),
        ("collectives", "collectives.async_count", summed("collectives", "is_async")),
    ],
)
def test_rows_add_up_to_the_facts(command: str, fact: str, of_rows: Callable[[Report], int | None]) -> None:
    reports_with_fact = [(name, report) for name, report in reports(command) if report.facts[fact] is not None]
    assert {name: report.facts[fact] for name, report in reports_with_fact} == {
        name: of_rows(report) for name, report in reports_with_fact
    }


@pytest.mark.parametrize(
    ("family", "total"),
    [
        (r"opcode\..*", "module.instructions"),
        (r"fusions\.kind\..*", "fusions.count"),
        (r"custom_calls\.target\..*", "custom_calls.count"),
        (r"collectives\.(?!send|recv)[a-z-]+\.count", "collectives.count"),
        (r"collectives\.(?!send|recv)[a-z-]+\.operand_bytes", "collectives.operand_bytes"),
    ],
)
def test_families_add_up_to_their_total(family: str, total: str) -> None:
    for name, report in reports("summary"):
        unread = {f"opcode.{opcode}" for opcode in ("exponential",) if name == "handmade/unreadable_lines.txt"}
        members = added(value for fact, value in report.facts.items() if re.fullmatch(family, fact) and fact not in unread)
        assert (name, members) == (name, report.facts[total])


def test_groups_add_up_to_the_collectives_whose_group_is_known() -> None:
    """A permute has no group, and neither has a transfer between two devices."""
    for name, report in reports("collectives"):
        grouped = added(value for fact, value in report.facts.items() if re.fullmatch(r".*group_size\.\d+\.count", fact))
        assert (name, grouped) == (name, sum(size is not None for size in column(report.table("collectives"), "group_size")))


def test_findings_name_the_file_and_a_line_of_it() -> None:
    lines = {name: (DATA / name).read_text(encoding="utf-8").count("\n") + 1 for name in MODULES}
    for pass_ in PASSES:
        for name, report in reports(pass_.name):
            for finding in report.findings:
                assert re.fullmatch(r"HI\d{3}", finding.rule)
                assert finding.location is not None
                assert finding.location.path == str(DATA / name)
                assert 1 <= (finding.location.line or 1) <= lines[name]


@pytest.mark.parametrize("fact", [spec.name for spec in find_pass(MODULE_FACTS).specs])
def test_every_command_says_the_same_of_the_module(fact: str) -> None:
    """A value may be unknown to a command that did not read it, but it does not differ."""
    wrong = {}
    for said in zip(*(reports(pass_.name) for pass_ in PASSES), strict=True):
        values = {report.facts[fact] for _, report in said} - {None}
        if len(values) > 1:
            wrong[said[0][0]] = values
    assert wrong == {}


DUMPS = (
    "cpu/adamw_step.after.txt",
    "cpu/scan_fsdp.before.txt",
    "gpu/collectives.generic_async.txt",
    "handmade/control_flow.txt",
)


@pytest.mark.parametrize("options", [RenderOptions(), RenderOptions(sites=True, top=3, verbose=True)])
@pytest.mark.parametrize("dump", [*DUMPS, "handmade/cut_off.txt", "handmade/hostile_text.txt"])
def test_a_page_of_needed_facts_is_the_page_of_all_facts(dump: str, options: RenderOptions) -> None:
    """Findings and notes are the same: making a row has no other effect."""

    def pages(needed: NeededTables | None) -> list[tuple[object, ...]]:
        rendered: list[tuple[object, ...]] = []
        for pass_ in PASSES:
            with Inspection(Request(pass_.name, profile="h100-sxm"), ReportNeeds(needed)) as inspection, suppress(UsageError):
                for report in inspection.reports(DATA / dump):
                    shown = shown_tables(report, options, for_people=True)
                    rendered.append((pass_.name, shown, report.facts, report.findings, report.notes, report.headline))
        return rendered

    assert pages(partial(needed_tables, options=options)) == pages(None) != []


def test_quick_leaves_out_slow_analyses() -> None:
    """The parameters have no roles, the summary no costs and no optimizer; no pass beside them changes that."""
    dump = DATA / "cpu/adamw_step.after.txt"
    for passes in ("params", ("params", "optimizer")):
        assert set(column(hlo_inspect.inspect(dump, passes, quick=True).table("params"), "role")) == {None}
    assert "weight" in column(hlo_inspect.inspect(dump, "params").table("params"), "role")
    tables = [{table.name for table in hlo_inspect.inspect(dump, quick=quick).tables} for quick in (True, False)]
    assert tables[1] - tables[0] == {"cost_by_phase", "optimizer_update"}


def test_specs_are_promised_once() -> None:
    names = [spec.name for spec in all_specs()]
    assert sorted(names) == sorted(set(names))
    assert all(spec.meaning for spec in all_specs())


@pytest.mark.parametrize("pass_", [find_pass(MODULE_FACTS), *PASSES], ids=lambda pass_: pass_.name)
def test_each_pass_has_a_docstring_and_its_own_name(pass_: Pass) -> None:
    assert pass_.__doc__
    assert pass_.name.replace("-", "").replace("_", "") == type(pass_).__name__.lower()
    assert all(find_pass(name) in PASSES for name in (*pass_.includes, *pass_.unless_quick))


def test_passes_by_name() -> None:
    assert [find_pass(pass_.name) for pass_ in PASSES] == list(PASSES)
    assert find_pass("parameters") is find_pass("params")
    with pytest.raises(hlo_inspect.UsageError, match="no pass 'fusion'; there are: summary, params, fusions, collectives"):
        find_pass("fusion")
