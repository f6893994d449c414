"""The reports on one source: texts without modules, workload files, names that do not match, and who watches."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.input.inputs import SecondReading
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.inspection import source_reports
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ModuleReports
from hlo_inspect.inspection.source_reports import Item, NoModuleError, SourceReports, listed_names, name_pattern, no_such_module
from hlo_inspect.passes import MODULE_FACTS
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.inspection.samples import NO_MODULE, module

DATA = Path(__file__).parents[1] / "data"
WORKLOAD = DATA / "workloads" / "simai.txt"
ASSIGNMENT = DATA / "xla_dump_to" / "module_0000.jit_step.cpu_after_optimizations-buffer-assignment.txt"


def read(source: str | Path, command: str, module_name: str | None = None) -> list[Item]:
    """Return the items that a command reads of a source."""
    reports = ModuleReports(Request(passes=(command,)))
    return list(SourceReports(command, reports, (command,), module_name, strict=False).read(open_source(source), "a note"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NO_MODULE, "holds no HLO module"),
        ("\n\n", "holds no HLO module: it is empty"),
    ],
)
def test_a_text_without_a_module(text: str, message: str) -> None:
    with pytest.raises(NoModuleError) as caught:
        read(text, "params")
    assert caught.value.message == message


def test_commands_without_workload_facts_refuse_workload_files() -> None:
    """`collectives` and `workload` answer of it; `params` says which command does."""
    for command in ("workload", "collectives"):
        (report,) = read(WORKLOAD, command)
        assert isinstance(report, Report)
        assert report.command == command
        assert "a note" in report.notes
    with pytest.raises(NoModuleError) as caught:
        read(WORKLOAD, "params")
    message = "is a workload file of a network simulator; `params` does not read it, `hlo-inspect workload` does"
    assert caught.value.message == message
    assert caught.value.path == str(WORKLOAD)


def test_facts_that_a_workload_file_does_not_have_are_unanswered() -> None:
    (report,) = read(WORKLOAD, "collectives")
    assert isinstance(report, Report)
    unanswered = {spec.name for spec in report.unanswered}
    answered = {spec.name for spec in report.specs}
    assert "module.num_partitions" in unanswered
    assert unanswered.isdisjoint(answered)


def test_workload_reads_no_modules() -> None:
    with pytest.raises(NoModuleError, match="is not a workload file"):
        read(module("m"), "workload")


def test_modules_of_other_names_are_named() -> None:
    """In the order of the text; the report of `b` has the note on the file."""
    first, report, last = read(module("a") + module("b") + module("c"), "params", "^b$")
    assert (first, last) == ("a", "c")
    assert isinstance(report, Report)
    assert report.module_name == "b"
    assert report.notes[0] == "a note"


class NotingWatcher:
    """Watcher that notes the analyzed modules and the bytes read."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.bytes: list[int] = []

    def reading(self, name: str, read: int) -> None:
        self.bytes.append(read)

    def analysing(self, module: str) -> None:
        self.modules.append(module)


def test_a_watcher_hears_of_analyzed_modules_only() -> None:
    text = module("a") + module("b")
    watcher = NotingWatcher()
    with Inspection(Request(passes=("params",), module="b")) as inspection:
        inspection.watch(watcher)
        assert [report.module_name for report in inspection.reports(text)] == ["b"]
    assert watcher.modules == ["b"]
    assert watcher.bytes == sorted(watcher.bytes)
    assert watcher.bytes[-1] == len(text)


def test_words_of_errors_about_names() -> None:
    """Eight names are listed, each once."""
    assert listed_names(["a", "b", "a"]) == "a, b"
    assert listed_names(map(str, range(9))) == "0, 1, 2, 3, 4, 5, 6, 7, …"
    assert no_such_module("trian", ["train"]) == ("holds no module named like 'trian'; there are: train; did you mean 'train'?")
    assert name_pattern(None) is None
    with pytest.raises(UsageError, match="is not a regular expression"):
        name_pattern("(")


@pytest.mark.parametrize(
    ("command", "strict", "graph"), [("collectives", True, True), ("list", True, False), ("collectives", False, False)]
)
def test_text_from_xla_is_read_with_its_graph_at_once(command: str, *, strict: bool, graph: bool) -> None:
    """Commands without phases read without the graph."""
    if strict:
        pytest.importorskip("jaxlib")
    name = MODULE_FACTS if command == "list" else command
    reports = SourceReports(name, ModuleReports(Request(passes=name, strict=strict)), (), None, strict=strict)
    assert reports._wants.graph is graph


def test_a_file_about_memory_is_a_report_for_memory_alone() -> None:
    (report,) = read(ASSIGNMENT, "memory")
    assert isinstance(report, Report)
    assert report.table("live_at_peak").rows
    with pytest.raises(NoModuleError, match="holds no HLO module"):
        read(ASSIGNMENT, "params")


def test_a_log_of_a_failure_is_a_report_for_memory_alone() -> None:
    log = "Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.\n"
    (report,) = read(log, "memory")
    assert isinstance(report, Report)
    with pytest.raises(NoModuleError, match="holds no HLO module, only XLA's out-of-memory report"):
        read(log, "params")


def test_only_what_asks_for_phases_is_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    again = []

    class CountingReading(SecondReading):
        def module(self, first: Module, number: int) -> Module | None:
            again_read = super().module(first, number)
            again.append(again_read.name if again_read is not None and again_read.wants.graph else "")
            return again_read

    monkeypatch.setattr(source_reports, "SecondReading", CountingReading)
    text = module("m").replace("negate(p)", "all-reduce(p), replica_groups={{0,1}}, to_apply=s")
    for command in ("params", "collectives"):
        read(text, command)
    assert again == ["m"]


def test_a_workload_file_whose_policy_does_not_match_is_named() -> None:
    assert read(WORKLOAD, "workload", "NO_SUCH") == ["HYBRID_TRANSFORMER_FWD_IN_BCKWD"]
    assert isinstance(read(WORKLOAD, "workload", "FWD_IN")[0], Report)


@pytest.mark.parametrize(("count", "is_old"), [(10, False), (30_000, True)])
def test_many_new_objects_are_left_alone_by_quick_collections(count: int, *, is_old: bool) -> None:
    gc.collect()
    gc.unfreeze()
    with source_reports.without_collection():
        assert not gc.isenabled()
        made: list[list[int]] = [[] for _ in range(count)]
    assert gc.isenabled()
    assert any(item is made[0] for item in gc.get_objects(generation=2)) is is_old
    gc.freeze()
    with source_reports.without_collection():
        made += [[] for _ in range(30_000)]
    assert gc.get_freeze_count() > 0, "what the caller has frozen stays so"
    gc.unfreeze()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with source_reports.without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
