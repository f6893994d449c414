"""Serialized HLO and StableHLO as inputs: the facts are those of the module's text, and bad input is one message."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import zstandard

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from hlo_inspect.xla_worker import Worker
from tests.hlo.input.test_foreign_text import GRAPH, STABLEHLO, XPLANE, message

pytest.importorskip("jaxlib")
hlo: Any = import_module("jaxlib._hlo")

HERE = Path(__file__).parent
DATA = HERE.parent / "data"
FOLDERS = {"cpu": 1, "gpu": 1, "tpu": 1, "jax_0_4_13": 1, "jax_0_5_0": 1, "xla_dump_to": 1, "optimizers": 5}
"""Folders of texts, with the step in which they are taken: the many small optimizers are much alike."""
NO_MODULES = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", "-memory-usage-report.txt")
# XLA's printer writes sugar for this dump's `async-start` and computations.
PRINTED_OTHERWISE = {"gpu/collectives.generic_async.txt"}
TEXTS = sorted(
    name
    for folder, step in FOLDERS.items()
    for path in sorted((DATA / folder).iterdir())[::step]
    if path.suffix in {".txt", ".hlo"} and not path.name.endswith(NO_MODULES)
    if (name := path.relative_to(DATA).as_posix()) not in PRINTED_OTHERWISE
)
LOST = ("module.num_partitions", "module.replica_count", "fingerprint.program", "fingerprint.schedule")
BESIDE = "memory.xla_temp_bytes"
"""A fact of a text beside the module's."""
SMALL = "cpu/sgd_unused.after.txt"


def serialized(name: str) -> bytes:
    """Return the `HloModuleProto` of a dump."""
    data: bytes = hlo.hlo_module_from_text((DATA / name).read_text(encoding="utf-8")).as_serialized_hlo_module_proto()
    return data


def facts(report: Report) -> dict[str, object]:
    return {name: value for name, value in report.facts.items() if name not in (*LOST, BESIDE)}


@pytest.fixture(scope="module")
def inspection() -> Iterator[Inspection]:
    with Inspection(Request([pass_.name for pass_ in PASSES])) as running:
        yield running


def report_of(inspection: Inspection, source: Path | bytes) -> Report:
    (report,) = inspection.reports(source)
    return report


@pytest.mark.parametrize("name", TEXTS)
def test_serialized_hlo_has_the_facts_of_its_text(inspection: Inspection, name: str) -> None:
    report = report_of(inspection, serialized(name))
    assert facts(report) == facts(report_of(inspection, DATA / name))
    for fact in LOST:
        assert report.facts[fact] is None
        assert any(note.startswith(f"{fact}: serialized HLO lacks") for note in report.notes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of `tests/data`, as `lower_programs` writes them."""
    if find_spec("jax") is None:
        pytest.skip("jax is not installed")
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run([sys.executable, str(HERE / "lower_programs.py"), str(folder)], check=True, capture_output=True)
    return folder


class TestProgramsThatJaxLowers:
    @pytest.mark.parametrize(("ending", "text"), [("mlir", "txt"), ("mlirbc", "long.txt")])
    @pytest.mark.parametrize("name", sorted({path.name.partition(".")[0] for path in (DATA / "cpu").iterdir()}))
    def test_stablehlo_has_the_facts_of_the_text(
        self, inspection: Inspection, folder: Path, name: str, ending: str, text: str
    ) -> None:
        report = report_of(inspection, folder / f"{name}.{ending}")
        assert facts(report) == facts(report_of(inspection, folder / f"{name}.{text}"))
        assert [report.facts[fact] for fact in LOST] == [None] * len(LOST)

    def test_a_dump_folder_and_its_serialized_modules_have_the_same_facts(
        self, inspection: Inspection, folder: Path, tmp_path: Path
    ) -> None:
        """A folder of text and serialized modules, and the same without the text."""
        both = report_of(inspection, folder / "dump")
        assert both.input.path.endswith("cpu_after_optimizations.txt")
        shutil.copytree(folder / "dump", tmp_path / "dump", ignore=shutil.ignore_patterns("*.txt"))
        alone = report_of(inspection, tmp_path / "dump")
        assert alone.input.path.endswith("cpu_after_optimizations.hlo.pb")
        assert facts(alone) == facts(both)


def hlo_proto(module: bytes) -> bytes:
    return message((1, module), (3, message((3, message((1, 0), (2, 64))))))


CONTAINERS: dict[str, Callable[[bytes], bytes]] = {
    "HloModuleProto": lambda module: module,
    "HloProto": hlo_proto,
    "HloSnapshot": lambda module: message((1, hlo_proto(module)), (2, message((2, 11))), (4, "cpu")),
    "HloUnoptimizedSnapshot": lambda module: message((1, module), (2, message((1, message((2, 11)))))),
}
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_container(inspection: Inspection, container: str, tmp_path: Path) -> None:
    path = tmp_path / "named_as_you_like"
    path.write_bytes(CONTAINERS[container](serialized(SMALL)))
    assert facts(report_of(inspection, path)) == facts(report_of(inspection, DATA / SMALL))


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_compressed(inspection: Inspection, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.pb.{ending}"
    path.write_bytes(COMPRESSORS[ending](hlo_proto(serialized(SMALL))))
    assert facts(report_of(inspection, path)) == facts(report_of(inspection, DATA / SMALL))


def test_from_python(tmp_path: Path) -> None:
    path = tmp_path / "x.hlo.pb"
    path.write_bytes(hlo_proto(serialized(SMALL)))
    data = path.read_bytes()
    expected = facts(hlo_inspect.inspect(DATA / SMALL))
    with path.open("rb") as opened:
        for given in (path, str(path), data, bytearray(data), memoryview(data), opened, io.BytesIO(data)):
            assert facts(hlo_inspect.inspect(given)) == expected


def test_the_report_says_what_was_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.pb").write_bytes(serialized(SMALL))
    assert run(["params", str(tmp_path / "x.pb")]) == 0
    out = capsys.readouterr().out
    assert "jaxlib converted serialized HLO to HLO text; line numbers refer to that text" in " ".join(out.split())
    assert "partition" not in out.splitlines()[0]


def test_strict_does_not_ask_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = Worker.ask

    def counted(self: Worker, task: str, data: bytes) -> str:
        asked.append(task)
        return ask(self, task, data)

    monkeypatch.setattr(Worker, "ask", counted)
    assert hlo_inspect.inspect(serialized(SMALL), "params", strict=True).facts["params.count"] == 5
    assert asked == ["proto"]


def test_a_large_literal_is_not_printed() -> None:
    values = ", ".join(map(str, range(10_000)))
    text = f"HloModule m\n\nENTRY e {{\n  ROOT c = s32[10000] constant({{{values}}})\n}}\n"
    data = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    assert len(data) > 10_000
    assert hlo_inspect.inspect(data).input.bytes < 500


UNKNOWN_OPCODE = message((1, "m"), (2, "e"), (3, message((1, "e"), (2, message((1, "x"), (2, "frobnicate"), (35, 1))), (6, 1))))
WHOLE = serialized(SMALL)


class TestBadInput:
    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (XPLANE + bytes(10), "is damaged: its planes cannot be read as a profile"),
            (XPLANE, "is a profile without the modules of its programs"),
            (GRAPH + bytes(10), "is a binary file without HLO: it looks like a TensorFlow graph"),
            (bytes(range(256)), "is a binary file without HLO"),
            (WHOLE[:1000], "is serialized HLO, but is truncated; write it again"),
            (hlo_proto(WHOLE)[:-3], "is serialized HLO, but is truncated; write it again"),
            (gzip.compress(WHOLE)[:-30], "cannot be read to its end: Compressed file ended before the end-of-stream marker"),
            (WHOLE + b"\xff" * 12, "is serialized HLO, but is damaged; write it again"),
            (UNKNOWN_OPCODE, "cannot read this serialized HLO: "),
            (UNKNOWN_OPCODE, "(if a newer XLA wrote it: pip install --upgrade jaxlib)"),
            (b"module {\n  func.func @main() {\n", ":2:22: jaxlib "),
            (STABLEHLO.replace(b"return %arg0", b"return %arg1"), ": use of undeclared SSA value name"),
            (STABLEHLO.replace(b"@main", b"@other"), "conversion requires module with `main` function"),
            (b"ML\xefR\x0dMLIR23\0garbage", "cannot convert this MLIR to HLO: "),
        ],
    )
    def test_one_message_and_the_other_inputs_are_read(
        self, data: bytes, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "x.pb"
        path.write_bytes(data)
        assert run(["params", str(path), str(DATA / SMALL)]) == 3
        out, err = capfd.readouterr()
        assert out.startswith("jit_step")
        assert err.startswith(f"hlo-inspect: {path}")
        assert said in err
        assert len(err.splitlines()) == (3 if "^" in err else 1)

    def test_the_place_in_stablehlo_is_shown(self) -> None:
        with pytest.raises(hlo_inspect.InputError) as caught:
            hlo_inspect.inspect(STABLEHLO.replace(b"return %arg0", "return  %ä".encode()))
        assert str(caught.value).splitlines()[1:] == ["      return  %ä : tensor<2xf32>", "              ^"]

    def test_the_other_files_of_a_directory_are_read(self, tmp_path: Path) -> None:
        (tmp_path / "module_0001.a.cpu_after_optimizations.hlo.pb").write_bytes(WHOLE[:500])
        (tmp_path / "module_0002.b.cpu_after_optimizations.hlo.pb").write_bytes(WHOLE)
        reports = hlo_inspect.inspect_all(tmp_path)
        assert next(reports).facts["module.name"] == "jit_step"
        with pytest.raises(hlo_inspect.InputError, match=r"module_0001.*is truncated"):
            next(reports)

    def test_a_process_that_does_not_survive(self) -> None:
        with Inspection(Request("params")) as inspection:
            report_of(inspection, WHOLE)
            inspection._sources.xla.require("the test needs")._process.kill()
            with pytest.raises(hlo_inspect.InputError, match=r"XLA crashed on this input, serialized HLO \(SIGKILL"):
                report_of(inspection, WHOLE)
            assert report_of(inspection, WHOLE).facts["params.count"] == 5
