"""The report of one module: the passes that give its facts and tables."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.errors import UsageError
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ModuleReports, ReportNeeds
from hlo_inspect.passes import MODULE_FACTS, find_pass
from hlo_inspect.report.facts import is_family
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Table
from hlo_inspect.request import Request
from tests.inspection.samples import module

MODULE_TEXT = module("m")
CUT = MODULE_TEXT.rpartition("}")[0]


def report(request: Request, text: str = MODULE_TEXT, needs: ReportNeeds | None = None) -> Report:
    with Inspection(request, needs or ReportNeeds()) as inspection:
        (found_report,) = inspection.reports(text)
    return found_report


def families(found_report: Report) -> set[str]:
    """Return the first words of the names of facts."""
    return {name.partition(".")[0] for name in found_report.facts}


def tables(found_report: Report) -> set[str]:
    return {table.name for table in found_report.tables}


def test_included_passes_give_facts_and_no_tables() -> None:
    """`cost` includes `custom-calls`, whose facts follow its own. Only the pass `custom-calls` has a table of that name."""
    found_report = report(Request(passes=("cost",)))
    of_cost, of_calls = (find_pass(name).specs for name in ("cost", "custom-calls"))
    assert found_report.specs == (*of_cost, *of_calls, *find_pass(MODULE_FACTS).specs)
    assert {spec.name for spec in of_calls if not is_family(spec)} <= found_report.facts.keys()
    assert "custom_calls" in tables(report(Request(passes=("custom-calls",))))
    assert "custom_calls" not in tables(found_report)


def test_also_adds_facts_and_no_tables() -> None:
    """`params` includes the optimizer's facts. `also` adds those of collectives and mesh, without a table."""
    plain, more = report(Request(passes=("params",))), report(Request(passes=("params",), also=("collectives",)))
    assert families(plain) == {"module", "params", "outputs", "optimizer"}
    assert families(more) == {*families(plain), "collectives", "mesh"}
    assert tables(more) == tables(plain)
    assert more.command == "params"
    assert {name: more.facts[name] for name in plain.facts} == dict(plain.facts)


def test_quick_leaves_out_slow_passes() -> None:
    assert families(report(Request(passes=("params",), quick=True))) == {"module", "params", "outputs"}


def test_module_facts_come_first() -> None:
    names = list(report(Request(passes=("params",))).facts)
    is_of_module = [name.startswith("module.") for name in names]
    assert is_of_module == sorted(is_of_module, reverse=True)


def test_only_the_needed_tables_are_built() -> None:
    """`ReportNeeds.tables` receives all tables and returns those to build. Facts stay the same."""
    received: list[str] = []

    def select_outputs(all_tables: Sequence[Table]) -> Sequence[Table]:
        received.extend(table.name for table in all_tables)
        return [table for table in all_tables if table.name == "outputs"]

    whole = report(Request(passes=("params",)))
    part = report(Request(passes=("params",)), needs=ReportNeeds(tables=select_outputs))
    assert received == [table.name for table in whole.tables]
    assert [table.name for table in part.tables] == ["outputs"]
    assert part.facts == whole.facts
    assert tables(report(Request(passes=("params",)), needs=ReportNeeds(tables=lambda _: ()))) == set()


def test_notes_are_left_out_unless_needed() -> None:
    request = Request(passes=("cost",))
    assert any(note.startswith("cost.executed_flops: the module is truncated") for note in report(request, CUT).notes)
    assert report(request, CUT, ReportNeeds(notes=False)).notes == ()


def test_a_truncated_module_has_lower_bounds_and_incomplete_tables() -> None:
    """The truncated text has the negation of 8 elements: 8 FLOPs or more."""
    whole, cut = report(Request(passes=("cost",))), report(Request(passes=("cost",)), CUT)
    assert whole.facts["cost.executed_flops"] == 8
    assert cut.facts["cost.executed_flops"] is None
    assert cut.facts["cost.executed_flops.lower_bound"] == 8
    assert not any(table.lacks_rows for table in whole.tables)
    assert cut.tables
    assert all(table.lacks_rows for table in cut.tables)


def test_a_report_sink_receives_each_report_with_its_context() -> None:
    received: list[tuple[str, str]] = []

    def note_report(found_report: Report, context: Context) -> None:
        received.append((found_report.module_name, context.module.name))

    with Inspection(Request(passes=("params",))) as inspection:
        inspection.set_report_sink(note_report)
        list(inspection.reports(module("a") + module("b")))
    assert received == [("a", "a"), ("b", "b")]


def test_only_time_takes_several_profiles() -> None:
    profiles = ("a100-sxm-80gb", "h100-sxm")
    with pytest.raises(UsageError, match="cost takes one profile; `time` compares several"):
        ModuleReports(Request(passes=("cost",), profile=profiles))
    assert [question.name for question in ModuleReports(Request(passes=("time",), profile=profiles)).chosen] == ["time"]


def test_what_if_needs_a_profile() -> None:
    with pytest.raises(UsageError, match="--what-if needs a hardware profile: name it with --profile"):
        report(Request(passes=("params",), what_if=("peak.bf16=2x",)))
