"""Parts of a source outside its analysis: lines that findings name, and names for completion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hlo_inspect.errors import Location
from hlo_inspect.inspection import source_lines
from hlo_inspect.inspection.source_lines import FINDING_LINES, names_like, with_finding_lines
from hlo_inspect.report.model import Finding, Input, Report

LONG = "x" * 401


def report(path: Path | str, *lines: int | None, place: str | None = None) -> Report:
    """Return a report whose findings name lines of a file."""
    place = str(path) if place is None else place
    findings = tuple(Finding("HI001", "warning", "odd", Location(place, line)) for line in lines)
    return Report("params", Input(str(path), 1, 5, 10), {}, findings=findings)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_bytes(f"one\r\ntwo\n\n{LONG}\n{LONG[:-1]}\nlast".encode())
    return tmp_path / "a.txt"


def quoted_lines(result: Report) -> tuple[tuple[object, ...], ...]:
    return tuple(result.table(FINDING_LINES.name).rows)


def test_lines_of_findings_are_quoted_once_in_file_order(file: Path) -> None:
    result = with_finding_lines(report(file, 6, 2, None, 1, 2, 3))
    assert quoted_lines(result) == ((1, "one"), (2, "two"), (3, ""), (6, "last"))
    assert not result.notes


def test_a_long_line_ends_in_an_ellipsis(file: Path) -> None:
    assert quoted_lines(with_finding_lines(report(file, 4, 5))) == ((4, "x" * 400 + "…"), (5, "x" * 400))


def test_only_the_first_lines_are_quoted_and_a_note_counts_the_rest(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_lines, "MOST_LINES", 2)
    assert quoted_lines(with_finding_lines(report(file, 1, 2))) == ((1, "one"), (2, "two"))
    result = with_finding_lines(report(file, 1, 2, 3))
    assert result.notes == ("finding_lines: 1 more line that findings name is not quoted",)
    assert with_finding_lines(report(file, 1, 2, 3, 6)).notes == (
        "finding_lines: 2 more lines that findings name are not quoted",
    )


def test_nothing_is_quoted_if_the_source_cannot_be_read_again(file: Path, tmp_path: Path) -> None:
    others = [report(file), report(file, None), report(file, 1, place="other.txt"), report(tmp_path / "absent.txt", 1)]
    others += [report(name, 1) for name in ("-", "")]
    for other in others:
        assert with_finding_lines(other) is other
    without_place = replace(report(file), findings=(Finding("HI001", "warning", "odd"),))
    assert with_finding_lines(without_place) is without_place


NAMES = """HloModule m

ENTRY e {
  %p = f32[8] parameter(0)
  %all-reduce.1 = f32[8] all-reduce(%p), to_apply=add
  negate.2 = f32[8] negate(%all-reduce.1)
  ROOT %add.3 = f32[8] add(%p, negate.2)
}
"""


@pytest.mark.parametrize(
    ("beginning", "names"),
    [
        ("all", ["all-reduce", "all-reduce.1"]),
        ("%neg", ["negate", "negate.2"]),
        ("*.3", ["add.3"]),
        ("a*1", ["all-reduce.1"]),
        ("all-gather", []),
    ],
)
def test_completion_offers_matching_names_and_opcodes(tmp_path: Path, beginning: str, names: list[str]) -> None:
    """Only opcodes of the text are offered: `all-gather` is not."""
    (tmp_path / "a.txt").write_text(NAMES)
    assert names_like(str(tmp_path / "a.txt"), beginning) == names


def test_completion_is_limited_and_empty_for_a_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(NAMES)
    assert names_like(str(tmp_path / "b.txt"), "a") == []
    monkeypatch.setattr(source_lines, "MOST", 2)
    assert names_like(str(tmp_path / "a.txt"), "a") == ["add", "add.3"]
