"""The bar of a long reading: on a terminal only, after a while, and never with --quiet."""

from __future__ import annotations

import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest

from hlo_inspect.cli import report_stream as inputs
from hlo_inspect.cli.report_stream import ReadingBar
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.request import Request

DATA = Path(__file__).parents[1] / "data"
DUMP = DATA / "cpu/collectives.after.txt"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Not in a fixture: pytest sets its own streams between that and the test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def test_a_long_reading_shows_the_file_its_bytes_and_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(inputs, "_PATIENCE_S", 0)
    size = DUMP.stat().st_size
    with ReadingBar(wanted=True) as bar:
        bar.reading(str(DUMP), size // 2)
        time.sleep(0.5)
        bar.analysing("jit_[bold]step")
        time.sleep(0.5)
    shown = terminal.getvalue()
    assert "collectives.after.txt" in shown
    assert "analyzing jit_[bold]step" in shown
    assert "KiB" in shown


def test_an_analysis_has_a_bar_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read, but the work is not done: 100 % would be wrong."""
    on_terminal(monkeypatch)
    size = DUMP.stat().st_size
    with ReadingBar(wanted=False) as bar:
        bar.reading(str(DUMP), size // 2)
        assert bar._total() == size
        bar.analysing("jit_step")
        assert bar._total() is None
        bar.reading(str(DUMP), size)
        assert bar._total() == size


@pytest.mark.parametrize("wanted", [True, False])
def test_a_short_or_quiet_run_shows_no_bar(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    with ReadingBar(wanted=wanted) as bar:
        bar.reading(str(DUMP), 1)
    assert terminal.getvalue() == ""


def test_off_a_terminal_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(inputs, "_PATIENCE_S", 0)
    with ReadingBar(wanted=True) as bar:
        bar.reading(str(DUMP), 1)
        time.sleep(0.1)
    assert screen.getvalue() == ""


@pytest.mark.parametrize("name", ["cpu/collectives.after.txt"])
def test_an_inspection_says_how_far_it_is(name: str, tmp_path: Path) -> None:
    """It reports bytes of the file, as compressed, and the module when it is read."""
    import gzip

    packed = tmp_path / "dump.gz"
    packed.write_bytes(gzip.compress((DATA / name).read_bytes()))
    for path in (DATA / name, packed):
        calls: list[tuple[str, int | str]] = []

        class Watching:
            def reading(self, name: str, read: int, calls: list[tuple[str, int | str]] = calls) -> None:
                calls.append((name, read))

            def analysing(self, module: str, calls: list[tuple[str, int | str]] = calls) -> None:
                calls.append(("module", module))

        with Inspection(Request("collectives")) as inspection:
            inspection.watch(Watching())
            assert len(list(inspection.reports(path))) == 1
        assert calls == [(str(path), path.stat().st_size), ("module", "jit_step")]


def test_no_library_is_loaded_for_what_is_not_shown() -> None:
    code = "import sys, hlo_inspect.cli.commands.of_pass; print('rich' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
