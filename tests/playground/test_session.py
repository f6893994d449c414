"""The Python side of the page, without a browser: names of files, sizes, and completions."""

from __future__ import annotations

import bz2
import json
import sys
from pathlib import Path

import pytest

from docs.playground import session
from hlo_inspect.errors import MissingExtraError

DUMP = Path(__file__).parents[1] / "data" / "cpu" / "adamw_step.after.txt"


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a session with the dump in it."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    monkeypatch.setattr(session, "FOLDER", folder)
    monkeypatch.chdir(folder)
    for variable in ("COLUMNS", "COMP_WORDS"):  # the session sets them
        monkeypatch.setenv(variable, "")
    session.open_files([(DUMP.name, str(DUMP))])
    return folder


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("dump.txt", "dump.txt"),
        ("run/module_0001.txt", "run/module_0001.txt"),
        ("../../etc/passwd", "etc/passwd"),
        ("/absolute", "absolute"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("a\0b", "a_b"),
        ("x" * 400 + ".txt", "x" * 196 + ".txt"),
    ],
)
def test_a_name_stays_in_the_folder(name: str, path: str) -> None:
    assert session.safe_path(name) == path


def test_inputs_are_named_as_the_files_are(opened: Path, tmp_path: Path) -> None:
    """Two files of one name are both there, a name that looks like an option is none, and a folder is one input."""
    names = ("a.txt", "a.txt", "-o", "run/one.txt", "run/two.txt")
    answer = json.loads(session.open_files([(name, str(DUMP)) for name in names]))
    assert answer == {"words": ["a.txt", "2-a.txt", "./-o", "run"], "error": ""}
    assert not (opened / DUMP.name).exists()


def test_a_text_that_is_too_large_is_refused_by_its_decompressed_size(
    opened: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DUMP.read_bytes()
    monkeypatch.setattr(session, "LIMIT_BYTES", len(text) * 3 - 1)
    packed = tmp_path / "three.bz2"
    packed.write_bytes(bz2.compress(text * 3))
    assert packed.stat().st_size < len(text)
    refused = json.loads(session.open_files([("three.txt.bz2", str(packed))]))["error"]
    assert refused.startswith("three.txt.bz2: a browser tab has memory for ")
    assert json.loads(session.open_files([("a", str(DUMP)), ("b", str(DUMP))]))["error"] == ""
    packed.write_bytes(bz2.compress(text)[:-20])  # what is damaged, a command says
    assert json.loads(session.open_files([("damaged.bz2", str(packed))]))["error"] == ""


def test_lines_are_completed(opened: Path) -> None:
    def lines(text: str) -> list[str]:
        return [item["line"] for item in json.loads(session.complete(text))]

    assert lines("coll") == ["collect", "collectives"]
    assert lines("hlo-inspect rule HI10")[0].startswith("hlo-inspect rule HI10")
    assert lines("summary ada") == [f"summary {DUMP.name}"]
    assert lines(f"time {DUMP.name} --profile h100-s") == [f"time {DUMP.name} --profile h100-sxm"]
    assert f"top {DUMP.name} --sort flops" in lines(f"top {DUMP.name} --sort ")
    assert lines("summary 'ada") == [f"summary '{DUMP.name}"]


def test_a_line_that_cannot_be_read_is_wrong_usage(opened: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(session.run_line("show 'x", 80, lambda words, share: None)) == {"status": 2, "files": []}
    assert "No closing quotation" in capsys.readouterr().err


def test_a_command_tells_its_progress_and_the_files_that_it_wrote(opened: Path) -> None:
    progress: list[str] = []
    line = f"hlo-inspect params {DUMP.name} -o 'params of it.json' --format json"
    answer = json.loads(session.run_line(line, 80, lambda words, share: progress.append(words)))
    assert answer == {"status": 0, "files": ["params of it.json"]}
    assert progress[0] == f"reading {DUMP.name}"
    assert progress[-1] == "analyzing jit_step"
    again = json.loads(session.run_line(f"params {DUMP.name} --format json", 80, lambda words, share: None))
    assert again["files"] == []


def test_numpy_is_fetched_once_or_its_absence_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [False, True]
    finder = session.NumpyFinder(lambda: answers.pop(0))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    finder.find_spec("numpyx")
    with pytest.raises(MissingExtraError, match="needs numpy"):
        finder.find_spec("numpy")
    assert finder in sys.meta_path
    finder.find_spec("numpy")
    assert finder not in sys.meta_path
    assert answers == []
