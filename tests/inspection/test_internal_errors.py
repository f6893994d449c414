"""An internal error of one module or file never loses another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.input.foreign_text import is_workload
from hlo_inspect.hlo.module import Module
from hlo_inspect.inspection import source_reports
from tests.calling import call_text

TEXT = "HloModule {name}\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  ROOT n = f32[4]{{0}} negate(p)\n}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files, the first with a module of which an analysis fails, behind a good one."""
    for name, modules in (("a", ("first", "bad")), ("b", ("second",)), ("c", ("third",))):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT.format(name=module) for module in modules))
    make: Callable[..., None] = Context.__init__

    def fail(self: Context, module: Module, *rest: object) -> None:
        if module.name == "bad":
            raise IndexError("tuple index out of range")
        make(self, module, *rest)

    monkeypatch.setattr(Context, "__init__", fail)
    return tmp_path


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", ["summary", "params", "collectives", "memory", "check"])
def test_the_other_modules_are_answered(folder: Path, command: str, jobs: str) -> None:
    options = ("--fail-on", "error") if command == "check" else ()
    done = call_text(command, folder, *options, "--format", "json", "-j", jobs)
    reports = json.loads(done.stdout)["reports"]
    assert [report["facts"]["module.name"] for report in reports] == ["first", "second", "third"]
    error = "internal error, please report it: IndexError: tuple index out of range (HLO_INSPECT_DEBUG=1 shows where)"
    assert done.stderr.splitlines() == [f"hlo-inspect: {folder / 'a.txt'}:8: bad: {error}"]
    assert done.returncode == 3


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "jsonl"])
def test_in_all_formats(folder: Path, form: str) -> None:
    done = call_text("list", folder, "--format", form)
    assert all(name in done.stdout for name in ("first", "second", "third"))
    assert done.returncode == 3


def test_an_error_while_a_file_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> bool:
        if "second" in text:
            raise ZeroDivisionError("no")
        return is_workload(text)

    monkeypatch.setattr(source_reports, "is_workload", fail)
    done = call_text("params", folder / "b.txt", folder / "c.txt", "--format", "json")
    assert json.loads(done.stdout)["facts"]["module.name"] == "third"
    assert done.stderr.startswith(f"hlo-inspect: {folder / 'b.txt'}: internal error, please report it: ZeroDivisionError: no")
    assert done.returncode == 3


def test_python_raises_what_was_raised(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IndexError, match="tuple index"):
        hlo_inspect.inspect(folder / "a.txt", module="bad")
    monkeypatch.setenv("HLO_INSPECT_DEBUG", "1")
    with pytest.raises(IndexError, match="tuple index"):
        call_text("params", folder)
