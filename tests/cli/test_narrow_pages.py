"""Pages of 80 columns keep what tells rows apart: source, shape, path, instruction, stake."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pytest

from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.request import Request
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
FSDP = "cpu/scan_fsdp.after.txt"
FAULT = DATA / "planted/wide-collective.cpu.fault.hlo.xz"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def table_of(title: str, page: str) -> list[str]:
    """Return the heading and the rows of a table."""
    lines = page.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith(title))
    first += next(index for index, line in enumerate(lines[first:]) if set(line) == {"─"}) - 1
    rest = lines[first:]
    return rest[: rest.index("")] if "" in rest else rest


def headings(title: str, page: str) -> list[str]:
    return re.split(r"\s{2,}", table_of(title, page)[0].strip())


@pytest.mark.parametrize("profile", [(), ("--profile", "h100-sxm")])
def test_top_keeps_shape_and_source(profile: tuple[str, ...]) -> None:
    page = call_text("top", DATA / FSDP, *profile).stdout
    assert {"name", "shape", "source"} <= set(headings("Kernels of one step", page))
    assert all(len(line) <= 80 for line in page.splitlines())


def test_lint_keeps_stake_source_and_instruction() -> None:
    page = call_text("lint", FAULT).stdout
    assert headings("Findings", page) == ["severity", "code", "stake", "share", "of", "instruction", "source"]
    assert "times" not in headings("Findings", page)


def test_lint_of_several_modules_keeps_path_instruction_and_source(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.cpu.hlo.xz").write_bytes(FAULT.read_bytes())
    page = call_text("lint", tmp_path).stdout
    assert headings("Findings", page) == ["severity", "code", "path", "stake", "share", "instruction", "source"]
    rows = table_of("Findings", page)[2:]
    assert [line.split()[2] for line in rows if line.startswith("warning")] == ["first", "second"]
    assert all(len(line) <= 80 for line in page.splitlines())


def test_the_message_stands_below_its_row_unless_the_page_is_very_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table_of("Findings", call_text("lint", FAULT).stdout)
    message = " ".join(line.strip() for line in rows[3:])
    assert rows[3].startswith(" " * 10 + "convert_element_type.")  # below the second column
    monkeypatch.setenv("COLUMNS", "200")
    page = call_text("lint", FAULT).stdout
    assert headings("Findings", page)[-1] == "message"
    assert message.split()[0] in table_of("Findings", page)[2]


def test_optimizer_keeps_the_path() -> None:
    page = call_text("optimizer", DATA / "cpu/adamw_step.after.txt").stdout
    assert {"weight", "path", "shape", "rule", "learning rate"} <= set(headings("Updated weights", page))


def test_the_parts_of_a_step_have_whole_names() -> None:
    page = call_text("time", DATA / FSDP, "--profile", "h100-sxm").stdout
    parts = table_of("Parts of the step", page)
    assert [line.split("  ")[0] for line in parts[2:5]] == [
        "kernels bound by memory",
        "fixed costs of kernels",
        "exposed collectives, d0",
    ]
    assert all(len(line) <= 80 for line in parts)
    assert "vector unit" in page
    assert "…" not in "".join(parts)


def test_a_check_prints_a_finding_once() -> None:
    page = call_text("check", FAULT, "--fail-on", "warning").stdout
    assert page.count("HI209") == 1
    assert "10.5 MiB" in " ".join(page.split())
    assert "Findings" not in page
    with_others = call_text("check", FAULT, "--fail-on", "error").stdout
    assert with_others.count("HI209") == 1
    assert "Findings" in with_others


def test_bars_are_shorter_on_a_narrow_page() -> None:
    with Inspection(Request("time", profile="h100-sxm")) as inspection:
        (report,) = inspection.reports(DATA / FSDP)
    for width, cells in ((80, 12), (120, 24)):
        stream = StringIO()
        FORMATS["table"]([report], stream, RenderOptions(width=width))
        rows = table_of("Parts of the step", stream.getvalue())[2:7]
        # stacked bars: the last one ends where the whole step does
        assert max(len(row) for row in rows) - rows[0].index("█") == cells


def test_off_a_terminal_paths_of_a_list_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    folder = tmp_path / ("a_build_with_a_long_name_" * 6) / "rank_0000"
    folder.mkdir(parents=True)
    other = tmp_path / "b"
    other.mkdir()
    for place in (folder, other):
        (place / "step.txt").write_text((DATA / FSDP).read_text(encoding="utf-8"), encoding="utf-8")
    lines = call_text("list", tmp_path).stdout.splitlines()
    assert any(line.endswith(f"  {folder.relative_to(tmp_path)}/step.txt") for line in lines)
    assert any(line.endswith("  b/step.txt") for line in lines)
