"""The library: it is what runs if a compiler is there, it is of this version, and without it everything works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.native import build, library
from tests.hlo.reading import EVERYTHING
from tests.native.states import read

DUMP = Path(__file__).parents[1] / "data" / "cpu" / "scan_fsdp.after.txt"


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Load the library anew, before and after a test."""
    library.load.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    library.load.cache_clear()


def test_the_native_reader_runs_if_a_compiler_is_there(loading: pytest.MonkeyPatch) -> None:
    loading.delenv(library.VARIABLE, raising=False)
    try:
        build.find_compiler()
    except build.BuildError:
        pytest.skip("no C compiler")
    assert library.library() is not None, f"{library.described()}; run python -m hlo_inspect.native.build"


def test_names_and_versions_of_python_and_c_agree() -> None:
    header = (build.SOURCE / "library.h").read_text(encoding="utf-8")
    assert re.findall(r"VERSION = (\d+)", header) == [str(library.VERSION)]
    assert Path(library.PATH) == build.LIBRARY


def test_files_of_c_are_short_and_know_no_opcode() -> None:
    for path in build.SOURCE.iterdir():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 300
        assert max(map(len, text.split("\n"))) <= 128
        if path.name != build.DRIVER:
            assert not re.search(r'"(?:add|fusion|while|constant|parameter|all-reduce|custom-call|calls|to_apply)"', text)


@pytest.mark.parametrize(("setting", "described"), [("0", "reader in Python: HLO_INSPECT_NATIVE is 0"), ("1", "native reader")])
def test_the_version_says_which_reader_runs(
    loading: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], setting: str, described: str
) -> None:
    if setting == "1" and library.library() is None:
        pytest.skip("no library")
    library.load.cache_clear()
    loading.setenv(library.VARIABLE, setting)
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f"({described})\n")


def test_a_library_that_does_not_load_is_one_note(
    loading: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "hlo_core.so"
    broken.write_bytes(b"no library")
    loading.setenv(library.VARIABLE, "1")
    loading.setattr(library, "PATH", str(broken))
    pages = []
    for options in ([], ["-v"]):
        assert run(["summary", str(DUMP), *options]) == 0
        pages.append(capsys.readouterr())
    assert pages[0].err == ""
    assert pages[1].err.startswith("hlo-inspect: note: the library does not load: ")
    assert pages[1].err.count("\n") == 1
    assert read(DUMP.read_bytes(), EVERYTHING, native=True) == read(DUMP.read_bytes(), EVERYTHING, native=False)


def test_without_a_library_the_reader_in_python_runs(loading: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loading.delenv(library.VARIABLE, raising=False)
    loading.setattr(library, "PATH", str(tmp_path / "none"))
    assert library.library() is None
    assert library.described() == "reader in Python: the library is not built"
    assert library.load_fault() is None
