"""An internal error in one module or file never loses the others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.pass_history import take_snapshot
from hlo_inspect.compare.compared_module import ComparedModule
from hlo_inspect.compare.comparison import ModuleComparison
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.hlo.input.foreign_text import is_workload
from hlo_inspect.hlo.module import Module
from hlo_inspect.inspection import comparisons, normal_texts, pass_histories, source_reports
from hlo_inspect.report.model import Report
from tests.calling import call_text

TEXT = "HloModule {name}\n\nENTRY e {{\n  p = f32[4]{{0}} parameter(0)\n  ROOT n = f32[4]{{0}} negate(p)\n}}\n"


ERROR = "internal error, please report it: IndexError: tuple index out of range (HLO_INSPECT_DEBUG=1 shows the traceback)"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files; the first has a good module and one whose analysis fails."""
    for name, modules in (("a", ("first", "bad")), ("b", ("second",)), ("c", ("third",))):
        (tmp_path / f"{name}.txt").write_text("\n".join(TEXT.format(name=module) for module in modules))
    make: Callable[..., None] = Context.__init__

    def fail(self: Context, module: Module, *rest: object) -> None:
        if module.name == "bad" and Path(module.path).name == "a.txt":
            raise IndexError("tuple index out of range")
        make(self, module, *rest)

    monkeypatch.setattr(Context, "__init__", fail)
    return tmp_path


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", ["summary", "params", "collectives", "memory", "check"])
def test_an_internal_error_in_a_module_keeps_the_other_reports(folder: Path, command: str, jobs: str) -> None:
    options = ("--fail-on", "error") if command == "check" else ()
    done = call_text(command, folder, *options, "--format", "json", "-j", jobs)
    reports = json.loads(done.stdout)["reports"]
    assert [report["facts"]["module.name"] for report in reports] == ["first", "second", "third"]
    assert done.stderr.splitlines() == [f"hlo-inspect: {folder / 'a.txt'}:8: bad: {ERROR}"]
    assert done.returncode == 3


@pytest.mark.parametrize("form", ["table", "csv", "markdown", "jsonl"])
def test_each_format_keeps_the_other_modules(folder: Path, form: str) -> None:
    done = call_text("list", folder, "--format", form)
    assert all(name in done.stdout for name in ("first", "second", "third"))
    assert done.returncode == 3


def test_an_internal_error_while_reading_keeps_the_other_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> bool:
        if "second" in text:
            raise ZeroDivisionError("no")
        return is_workload(text)

    monkeypatch.setattr(source_reports, "is_workload", fail)
    done = call_text("params", folder / "b.txt", folder / "c.txt", "--format", "json")
    assert json.loads(done.stdout)["facts"]["module.name"] == "third"
    assert done.stderr.startswith(f"hlo-inspect: {folder / 'b.txt'}: internal error, please report it: ZeroDivisionError: no")
    assert done.returncode == 3


def test_python_and_debug_mode_raise_the_internal_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(IndexError, match="tuple index"):
        hlo_inspect.inspect(folder / "a.txt", module="bad")
    monkeypatch.setenv("HLO_INSPECT_DEBUG", "1")
    with pytest.raises(IndexError, match="tuple index"):
        call_text("params", folder)


def write_good_file(folder: Path) -> Path:
    """Write the same modules in reverse order to a file whose analysis does not fail."""
    file = folder.parent / f"{folder.name}.new.txt"
    file.write_text("\n".join(TEXT.format(name=name) for name in ("third", "second", "bad", "first")))
    return file


@pytest.mark.parametrize("is_reversed", [False, True])
def test_diff_compares_the_other_pairs(folder: Path, *, is_reversed: bool) -> None:
    """The counterpart of the failed module counts as neither added nor removed."""
    sides = [folder, write_good_file(folder)]
    done = call_text("diff", *(reversed(sides) if is_reversed else sides), "--format", "json")
    reports = json.loads(done.stdout)["reports"]
    names = ["first", "second", "third"]
    assert [report["facts"]["module.name"] for report in reports] == (names[::-1] if is_reversed else names)
    assert [report["facts"]["diff.same_program"] for report in reports] == [True, True, True]
    assert done.stderr.splitlines() == [f"hlo-inspect: {folder / 'a.txt'}:8: bad: {ERROR}"]
    assert done.returncode == 3


def test_diff_reports_a_pair_if_one_side_fails(folder: Path) -> None:
    (folder / "a.txt").write_text(TEXT.format(name="bad"))
    done = call_text("diff", folder / "a.txt", write_good_file(folder), "--module", "bad")
    assert (done.stdout, done.returncode) == ("", 3)
    assert done.stderr == f"hlo-inspect: {folder / 'a.txt'}:1: bad: {ERROR}\n"


def test_diff_skips_a_pair_if_its_comparison_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlo_inspect.compare.comparison import compare

    def fail(old: ComparedModule, new: ComparedModule) -> ModuleComparison:
        if old.name == "second":
            raise IndexError("tuple index out of range")
        return compare(old, new)

    monkeypatch.setattr(comparisons, "compare", fail)
    new = write_good_file(folder)
    done = call_text("diff", new, new, "--format", "json")
    reports = json.loads(done.stdout)["reports"]
    assert [report["facts"]["module.name"] for report in reports] == ["third", "bad", "first"]
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {new}:8: second: {ERROR}\n", 3)


def test_check_with_a_baseline_checks_the_other_modules(folder: Path) -> None:
    new = write_good_file(folder)
    done = call_text("check", new, "--baseline", folder, "--fail-if", "different", "--format", "json")
    reports = json.loads(done.stdout)["reports"]
    assert [report["facts"]["checks.passed_count"] for report in reports] == [1, 1, 1]
    assert [report["facts"]["module.name"] for report in reports] == ["first", "second", "third"]
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {folder / 'a.txt'}:8: bad: {ERROR}\n", 3)


def test_normalize_prints_the_other_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def fail(module: Module, *rest: object, **options: object) -> object:
        if module.name == "bad":
            raise IndexError("tuple index out of range")
        return CanonicalModule(module, *rest, **options)  # type: ignore[arg-type]  # the original arguments

    (folder / "b.txt").write_text("no module\n")
    monkeypatch.setattr(normal_texts, "CanonicalModule", fail)
    done = call_text("normalize", f"{folder}/*.txt", "-o", folder / "new")
    heads = [line for line in (folder / "new").read_text().splitlines() if line.startswith("HloModule ")]
    assert [head.split()[1].rstrip(",") for head in heads] == ["first", "third"]
    first, second = done.stderr.splitlines()
    assert first == f"hlo-inspect: {folder / 'a.txt'}:8: bad: {ERROR}"
    assert second.startswith(f"hlo-inspect: {folder / 'b.txt'}: holds no HLO module")
    assert done.returncode == 3


def history(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files of three passes, of which the second one fails; return its path."""
    for number, (name, opcode) in enumerate((("a", "negate"), ("b", "sine"), ("c", "tanh"))):
        text = TEXT.format(name="jit_f").replace("negate", opcode)
        (folder / f"module_0001.jit_f.000{number}.x.after_{name}.before_z.txt").write_text(text)

    def fail(context: Context, opcode: str | None) -> object:
        if "after_b" in context.module.path:
            raise IndexError("tuple index out of range")
        return take_snapshot(context, opcode)

    monkeypatch.setattr(pass_histories, "take_snapshot", fail)
    return folder / "module_0001.jit_f.0001.x.after_b.before_z.txt"


def test_history_leaves_out_a_pass_that_fails(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = history(folder, monkeypatch)
    done = call_text("history", folder, "--format", "json")
    report = json.loads(done.stdout)
    assert len(report["tables"][0]["rows"]) == 2
    assert any(note.startswith(f"{file.name} is left out") for note in report["notes"])
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {file}: {ERROR}\n", 3)


def test_a_page_leaves_out_a_pass_that_fails(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jinja2")
    file = history(folder, monkeypatch)
    done = call_text("report", folder, "-q", "-o", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000
    assert f"hlo-inspect: {file}: {ERROR}" in done.stderr.splitlines()
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("form", "place"),
    [
        ("table", "formats.terminal._page"),
        ("markdown", "formats.markdown._page"),
        ("json", "formats.json.report_to_dict"),
        ("jsonl", "formats.json.report_to_dict"),
        ("csv", "formats.csv._content"),
        ("tsv", "formats.csv._content"),
        ("dot", "formats.graphs.picture_of"),
        ("mermaid", "formats.graphs.picture_of"),
        ("perfetto", "formats.perfetto.trace_events"),
    ],
)
def test_a_report_that_cannot_be_rendered_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, form: str, place: str
) -> None:
    fail_to_render("second", place, monkeypatch)
    commands = {"dot": ("show", "n"), "mermaid": ("show", "n"), "perfetto": ("time", "--profile", "tpu-v5e")}
    command, *rest = commands.get(form, ("params",))
    file = write_good_file(folder)
    file.write_text(re.sub("(HloModule .*)", r"\1, is_scheduled=true", file.read_text()))
    done = call_text(command, file, *rest, "--format", form)
    if form == "mermaid":
        assert done.stdout.count("flowchart TD") == 3
    else:
        assert all(name in done.stdout for name in ("first", "third"))
    assert "second" not in done.stdout
    if form == "json":
        assert len(json.loads(done.stdout)["reports"]) == 3
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {file}:8: second: {ERROR}\n", 3)


@pytest.mark.parametrize(
    ("form", "place"),
    [
        *((form, "annotations._annotations") for form in ("sarif", "github", "gitlab")),
        ("junit", "formats.junit._cases"),
    ],
)
def test_a_report_that_a_format_for_ci_cannot_render_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, form: str, place: str
) -> None:
    fail_to_render("second", place, monkeypatch)
    file = write_good_file(folder)
    done = call_text("check", file, "--assert", "params.count == 7", "--format", form)
    assert all(name in done.stdout for name in ("first", "third"))
    assert "second" not in done.stdout
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {file}:8: second: {ERROR}\n", 3)


def fail_to_render(name: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the function at `place` raise IndexError for the report of a module."""
    file, _, function = place.rpartition(".")
    module = import_module(f"hlo_inspect.report.{file}")
    render = getattr(module, function)

    def fail(report: Report, *rest: object) -> object:
        if report.module_name == name:
            raise IndexError("tuple index out of range")
        return render(report, *rest)

    monkeypatch.setattr(module, function, fail)


STEPS = {
    "check": ("checks.runner.most_severe_first", ("--assert", "params.count == 1"), "FAILED 1 of 4 modules (1 not checked)"),
    "lint": ("checks.lint_reports.group_findings", ("--format", "json"), '"command": "lint"'),
    "params": ("cli.output.selected", ("--sort", "bytes"), ""),
}
"""A step of a command that judges a report after the module was read, its options, and the verdict if it fails for one."""


@pytest.mark.parametrize("command", STEPS)
def test_a_report_that_cannot_be_judged_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    place, options, verdict = STEPS[command]
    calls = iter(range(9))
    path, _, name = place.rpartition(".")
    module = import_module(f"hlo_inspect.{path}")
    judge = getattr(module, name)

    def fail(*arguments: object, **named: object) -> object:
        if next(calls) == 1:
            raise IndexError("tuple index out of range")
        return judge(*arguments, **named)

    monkeypatch.setattr(module, name, fail)
    file = write_good_file(folder)
    done = call_text(command, file, *options)
    assert all(name in done.stdout for name in ("first", "third", verdict))
    assert not re.search(r"\bsecond\b(?!-)", done.stdout)
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {file}:8: second: {ERROR}\n", 3)


def test_a_pair_that_cannot_be_judged_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlo_inspect.checks.differences import examined

    def fail(conditions: object, old: Report, new: Report, **named: object) -> object:
        if new.module_name == "second":
            raise IndexError("tuple index out of range")
        return examined(conditions, old, new, **named)  # type: ignore[arg-type]  # the original arguments

    monkeypatch.setattr("hlo_inspect.cli.commands.diff.examined", fail)
    file = write_good_file(folder)
    done = call_text("diff", file, file, "--fail-if", "different", "--format", "json")
    assert [report["facts"]["module.name"] for report in json.loads(done.stdout)["reports"]] == ["third", "bad", "first"]
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {file}:8: second: {ERROR}\n", 3)


@pytest.mark.parametrize("place", ["formats.html.view_texts.split_headline", "formats.html.views.distinct_tables"])
def test_a_page_that_cannot_be_rendered_keeps_its_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The page is one document, so no part of it is written."""
    pytest.importorskip("jinja2")
    fail_to_render("second", place, monkeypatch)
    page = folder / "page.html"
    page.write_text("before")
    done = call_text("report", write_good_file(folder), "-q", "-o", page)
    assert page.read_text() == "before"
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {write_good_file(folder)}:8: second: {ERROR}\n", 3)


def test_a_file_is_unchanged_if_its_only_report_cannot_be_rendered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_render("second", "formats.graphs.picture_of", monkeypatch)
    drawing = folder / "drawing.dot"
    drawing.write_text("before")
    done = call_text("show", folder / "b.txt", "n", "--format", "dot", "-o", drawing)
    assert drawing.read_text() == "before"
    assert (done.stderr, done.returncode) == (f"hlo-inspect: {folder / 'b.txt'}:1: second: {ERROR}\n", 3)
