"""From sources to reports: their order, directories, and errors that do not stop the others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from hlo_inspect.errors import HloInspectError, InputError, UsageError
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.inspection import jobs
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes import MODULE_FACTS, WORKLOAD
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.inspection.samples import NO_MODULE, folder, module

WORKLOAD_FILE = Path(__file__).parents[1] / "data" / "workloads" / "simai.txt"
PARAMS = Request(passes=("params",))


def read(sources: Sequence[Openable], request: Request = PARAMS) -> tuple[list[str], Inspection]:
    """Return the names of modules and the messages of errors in the order in which they come."""
    with Inspection(request) as inspection:
        items = list(inspection.read(sources))
    return [item.module_name if isinstance(item, Report) else item.message for item in items], inspection


def sources(path: Path) -> list[Openable]:
    """Make files of two, one and no modules, a directory of files with and without, and name a missing path."""
    files = folder(path / "files", {"z.txt": module("z1") + module("z2"), "a.txt": module("a"), "none.txt": NO_MODULE})
    mixed = folder(path / "mixed", {"1.txt": module("first"), "2.txt": NO_MODULE, "3.txt": module("third")})
    return [files / "z.txt", files / "absent.txt", files / "none.txt", mixed, files / "a.txt"]


def test_reports_are_in_the_order_of_sources_despite_errors(tmp_path: Path) -> None:
    items, inspection = read(sources(tmp_path))
    assert [*items[:2], *items[4:]] == ["z1", "z2", "first", "third", "a"]
    assert "No such file" in items[2]
    assert items[3] == "holds no HLO module"
    assert inspection.passed_over == [f"{tmp_path / 'mixed' / '2.txt'}: holds no HLO module"]


def test_two_processes_give_the_reports_and_errors_of_one(tmp_path: Path) -> None:
    inputs = sources(tmp_path)
    results = []
    for number in (1, 2):
        with Inspection(Request(passes=("params",), jobs=number)) as inspection:
            results.append((list(inspection.read(inputs)), inspection.passed_over))
    (single, passed_over), (parallel, also_passed_over) = results
    assert [item for item in single if isinstance(item, Report)] == [item for item in parallel if isinstance(item, Report)]
    assert [str(item) for item in single if isinstance(item, HloInspectError)] == [
        str(item) for item in parallel if isinstance(item, HloInspectError)
    ]
    assert [type(item) for item in single] == [type(item) for item in parallel]
    assert passed_over == also_passed_over != []


def test_a_directory_without_modules_is_an_error(tmp_path: Path) -> None:
    """Two files are read. The only error is about the directory."""
    path = folder(tmp_path / "texts", {"1.txt": NO_MODULE, "2.txt": NO_MODULE})
    items, inspection = read([path])
    assert items == ["is a directory without a file that holds an HLO module (2 read)"]
    assert inspection.passed_over == []


def test_a_dump_file_without_a_module_is_an_error(tmp_path: Path) -> None:
    """The name of a dump file promises a module, so such a file is never passed over."""
    name = "module_000{}.m.after_optimizations.txt"
    path = folder(tmp_path / "dump", {name.format(1): NO_MODULE, name.format(2): module("m")})
    items, inspection = read([path])
    assert items == ["holds no HLO module", "m"]
    assert inspection.passed_over == []


def test_an_error_lists_module_names_if_none_matches(tmp_path: Path) -> None:
    path = folder(tmp_path / "texts", {"1.txt": module("train"), "2.txt": module("test")})
    assert read([path], Request(passes=("params",), module="train"))[0] == ["train"]
    (message,), _ = read([path], Request(passes=("params",), module="eval"))
    assert message.startswith("holds no module named like 'eval'; there are: train, test")


def test_an_instruction_must_be_in_one_module_of_a_source() -> None:
    """If no module has it, the error names three modules and counts the fourth."""
    texts = [module(name).replace(" n =", " only =") if name == "d" else module(name) for name in "abcd"]
    assert read(["".join(texts)], Request(passes=("show",), name="only"))[0] == ["d"]
    with Inspection(Request(passes=("show",), name="nowhere")) as inspection:
        (error,) = inspection.read(["".join(texts).replace("only", "n")])
    assert isinstance(error, UsageError)
    assert error.message.count("nowhere") == 3
    assert error.message.endswith("; and 1 more modules")


def test_the_first_error_is_raised_after_all_reports(tmp_path: Path) -> None:
    path = folder(tmp_path / "dump", {f"module_000{n}.{n}.txt": module(f"m{n}") if n != 2 else NO_MODULE for n in (1, 2, 3)})
    names = []
    with Inspection(PARAMS) as inspection, pytest.raises(InputError, match="holds no HLO module"):
        names += [report.module_name for report in inspection.reports(path)]
        pytest.fail("no error")
    with Inspection(PARAMS) as inspection:
        reports = inspection.reports(path)
        assert [next(reports).module_name, next(reports).module_name] == ["m1", "m3"]


def test_an_inspection_needs_a_pass() -> None:
    with pytest.raises(UsageError, match="no pass is named"):
        Inspection(Request(passes=()))


def test_list_reads_workload_files_and_params_does_not() -> None:
    (report,) = Inspection(Request(passes=MODULE_FACTS, also=("summary",))).read([WORKLOAD_FILE])
    assert isinstance(report, Report)
    (error,) = Inspection(Request(passes="params", also=("summary",))).read([WORKLOAD_FILE])
    assert isinstance(error, InputError)


@pytest.mark.parametrize("source", ["-", "file"])
def test_standard_input_is_read_without_other_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    used = []

    class CountingJobs(jobs.Jobs[object, object]):
        def __enter__(self) -> CountingJobs:
            used.append(self)
            return self

    monkeypatch.setattr(jobs, "Jobs", CountingJobs)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(module("m").encode())))
    (tmp_path / "file").write_text(module("m"))
    items, _ = read(["-" if source == "-" else tmp_path / "file"], Request(passes="params", jobs=2))
    assert items == ["m"]
    assert len(used) == (source == "file")


def test_two_processes_give_the_same_reports_of_workload_files() -> None:
    """Workload files have other facts than modules."""
    single, parallel = (list(Inspection(Request(passes=WORKLOAD, jobs=number)).read([WORKLOAD_FILE] * 2)) for number in (1, 2))
    for first, second in zip(single, parallel, strict=True):
        assert isinstance(first, Report)
        assert isinstance(second, Report)
        assert (first.specs, dict(first.facts)) == (second.specs, dict(second.facts))
