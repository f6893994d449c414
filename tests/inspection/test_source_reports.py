"""The reports on one source: texts without modules, workload files, unmatched names, and watchers."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.input import inputs
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
def test_a_text_without_a_module_is_an_error(text: str, message: str) -> None:
    with pytest.raises(NoModuleError) as caught:
        read(text, "params")
    assert caught.value.message == message


def test_commands_without_workload_facts_refuse_workload_files() -> None:
    """`collectives` and `workload` read it. `params` names a command that does."""
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


def test_facts_that_a_workload_file_lacks_are_unanswered() -> None:
    (report,) = read(WORKLOAD, "collectives")
    assert isinstance(report, Report)
    unanswered = {spec.name for spec in report.unanswered}
    answered = {spec.name for spec in report.specs}
    assert "module.num_partitions" in unanswered
    assert unanswered.isdisjoint(answered)


def test_workload_does_not_read_modules() -> None:
    with pytest.raises(NoModuleError, match="is not a workload file"):
        read(module("m"), "workload")


def test_modules_with_another_name_are_yielded_by_name() -> None:
    """Items are in the order of the text. The report of `b` has the note on the file."""
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


def test_a_watcher_is_called_for_analyzed_modules_only() -> None:
    text = module("a") + module("b")
    watcher = NotingWatcher()
    with Inspection(Request(passes=("params",), module="b")) as inspection:
        inspection.watch(watcher)
        assert [report.module_name for report in inspection.reports(text)] == ["b"]
    assert watcher.modules == ["b"]
    assert watcher.bytes == sorted(watcher.bytes)
    assert watcher.bytes[-1] == len(text)


def test_errors_about_module_names() -> None:
    """At most eight names are listed, each once."""
    assert listed_names(["a", "b", "a"]) == "a, b"
    assert listed_names(map(str, range(9))) == "0, 1, 2, 3, 4, 5, 6, 7, …"
    assert no_such_module("trian", ["train"]) == ("holds no module named like 'trian'; there are: train; did you mean 'train'?")
    assert name_pattern(None) is None
    with pytest.raises(UsageError, match="is not a regular expression"):
        name_pattern("(")


@pytest.mark.parametrize(
    ("command", "strict", "graph"), [("collectives", True, True), ("list", True, False), ("collectives", False, False)]
)
def test_strict_reading_has_the_graph_if_the_command_needs_phases(command: str, *, strict: bool, graph: bool) -> None:
    if strict:
        pytest.importorskip("jaxlib")
    name = MODULE_FACTS if command == "list" else command
    reports = SourceReports(name, ModuleReports(Request(passes=name, strict=strict)), (), None, strict=strict)
    assert reports._wants.graph is graph


def test_only_memory_reports_on_a_buffer_assignment() -> None:
    (report,) = read(ASSIGNMENT, "memory")
    assert isinstance(report, Report)
    assert report.table("live_at_peak").rows
    with pytest.raises(NoModuleError, match="holds no HLO module"):
        read(ASSIGNMENT, "params")


def test_only_memory_reports_on_an_out_of_memory_log() -> None:
    log = "Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.\n"
    (report,) = read(log, "memory")
    assert isinstance(report, Report)
    with pytest.raises(NoModuleError, match="holds no HLO module, only XLA's out-of-memory report"):
        read(log, "params")


def test_only_commands_that_need_phases_read_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    names_read_again = []

    class CountingReading(SecondReading):
        def module(self, first: Module, number: int) -> Module | None:
            again_read = super().module(first, number)
            names_read_again.append(again_read.name if again_read is not None and again_read.wants.graph else "")
            return again_read

    monkeypatch.setattr(source_reports, "SecondReading", CountingReading)
    reducing = module("m").replace("negate(p)", "all-reduce(p), replica_groups={{0,1}}, to_apply=s")
    adding = module("m").replace("negate(p)", "add(p, r)").replace("  ROOT", "  r = f32[4] all-reduce(p), to_apply=s\n  ROOT")
    for text in (reducing, adding):
        for command in ("params", "collectives"):
            read(text, command)
    assert names_read_again == ["m"], "a module that adds nothing is no training step"


@pytest.mark.parametrize("name", ["cpu/adamw_step.after.txt", "cpu/scan_fsdp.after.txt", "handmade/async_sugar.txt"])
def test_a_text_of_usual_size_is_read_once_with_the_same_answers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unreadable line that the command does not need changes no answer: such a text is read as small ones are."""
    text = (DATA / name).read_text(encoding="utf-8")
    broken = text.replace("\n  %", "\n  %unreadable !\n  %", 1)
    for number, written in enumerate([text, broken]):
        path = tmp_path / f"{number}.txt"
        path.write_text(written, encoding="utf-8")
        with monkeypatch.context() as patch:
            (selected,) = read(path, "collectives")
            patch.setattr(inputs, "_FAST_BYTES", range(1, 1 << 26))
            (whole,) = read(path, "collectives")
        assert isinstance(selected, Report) and isinstance(whole, Report)
        assert (whole.facts, whole.notes) == (selected.facts, selected.notes)
        assert (whole.findings, [table.rows for table in whole.tables]) == (
            selected.findings,
            [t.rows for t in selected.tables],
        )


def test_a_workload_file_is_named_if_its_policy_does_not_match() -> None:
    assert read(WORKLOAD, "workload", "NO_SUCH") == ["HYBRID_TRANSFORMER_FWD_IN_BCKWD"]
    assert isinstance(read(WORKLOAD, "workload", "FWD_IN")[0], Report)


@pytest.mark.parametrize(("count", "is_old"), [(10, False), (30_000, True)])
def test_many_new_objects_move_to_the_oldest_generation(count: int, *, is_old: bool) -> None:
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


def test_a_disabled_garbage_collector_stays_disabled() -> None:
    gc.disable()
    try:
        with source_reports.without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
