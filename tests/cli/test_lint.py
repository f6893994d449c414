"""`lint`: selection, baselines, ignored findings and exit statuses, each worked out for two undonated parameters of 4 MiB."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from hlo_inspect.checks.lint_page import below_common_folder, without_common_ending
from hlo_inspect.cli.main import run

STEP = """HloModule jit_step{number}

ENTRY main {{
  w = f32[{elements}]{{0}} parameter(0)
  unused = f32[8]{{0}} parameter(1)
  ROOT new = f32[{elements}]{{0}} negate(w)
}}
"""


class Result(NamedTuple):
    status: int
    out: str
    err: str


Lint = Callable[..., Result]


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lint:
    """`lint(argument, …)` in a folder with `step.txt`, which has a warning (HI101) and an info (HI102)."""
    (tmp_path / "step.txt").write_text(STEP.format(number="", elements=1 << 20), encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def linted(*arguments: str) -> Result:
        status = run(["lint", *arguments])
        return Result(status, *capsys.readouterr())

    return linted


def findings(result: Result) -> list[tuple[str, int]]:
    return [(finding["name"], finding["stake"]) for finding in json.loads(result.out)["findings"]]


def test_all_findings_are_listed_and_fail_nothing(lint: Lint) -> None:
    result = lint("step.txt", "--format", "json")
    assert result.status == 0
    assert findings(result) == [("undonated-parameter", 4 << 20), ("unused-parameter", 32)]


def test_the_page_has_stake_and_first_step(lint: Lint) -> None:
    page = lint("step.txt").out
    assert "findings  0 errors, 1 warning, 1 info" in page
    assert "4.00 MiB" in page
    assert "In JAX, donate the arguments that the caller does not use again" in page


def test_equal_findings_of_two_modules_are_rows_of_their_reports(lint: Lint) -> None:
    text = STEP.format(number="", elements=1 << 20)
    Path("two.txt").write_text(text + text, encoding="utf-8")
    assert "2 modules, 0 errors, 2 warnings, 2 infos" in lint("two.txt").out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--select", "HI102"), ["unused-parameter"]),
        (("--select", "un*"), ["undonated-parameter", "unused-parameter"]),
        (("--ignore", "HI101,unused-*"), []),
        (("--select", "HI1*", "--ignore", "HI101"), ["unused-parameter"]),
    ],
)
def test_rules_are_chosen_by_code_name_and_glob(lint: Lint, arguments: tuple[str, ...], names: list[str]) -> None:
    assert [name for name, _ in findings(lint("step.txt", "--format", "json", *arguments))] == names


UNPRINTED = Path(__file__).parents[1] / "data/shardings/shardy/module_0001.jit_step.cpu_after_optimizations.txt.xz"
"""A training step whose text prints no shardings."""


def test_rules_that_the_text_does_not_decide_are_counted_and_never_none(lint: Lint) -> None:
    """The program has 8 partitions: its parameter may be replicated."""
    shutil.copy(UNPRINTED, "unprinted.txt.xz")
    page = lint("unprinted.txt.xz").out
    assert "findings  0 errors, 0 warnings, 0 infos; 2 rules not decided" in page
    assert "this text prints no shardings: HI104, HI506 and replicated bytes are not decided" in " ".join(page.split())
    assert "none; not decided: HI104, HI506" in page
    assert not any(line.split() in (["none"], ["none", "none"]) for line in page.splitlines())
    assert "1 module, 0 errors, 0 warnings, 0 infos, 2 rules not decided" in page
    report = json.loads(lint("unprinted.txt.xz", "--format", "json").out)
    assert report["facts"]["lint.undecided_count"] == 2
    assert lint("unprinted.txt.xz", "--fail-on", "info").status == 0


def test_only_selected_rules_are_not_decided(lint: Lint) -> None:
    shutil.copy(UNPRINTED, "unprinted.txt.xz")
    assert "none; not decided: HI506" in lint("unprinted.txt.xz", "--select", "HI506").out
    page = lint("unprinted.txt.xz", "--select", "HI101").out
    assert "not decided:" not in page
    assert "1 module, 0 errors, 0 warnings, 0 infos\n" in page


@pytest.mark.parametrize(("severity", "status"), [("info", 1), ("warning", 1), ("error", 0)])
def test_fail_on_decides_the_status(lint: Lint, severity: str, status: int) -> None:
    assert lint("step.txt", "--fail-on", severity).status == status


def test_explain_prints_the_documentation_of_what_fired(lint: Lint) -> None:
    page = lint("step.txt", "--explain").out
    assert "XLA allocates a second buffer for the output" in page
    assert "HI304" not in page


# -- baselines ----------------------------------------------------------------------------------------------------------


def test_a_baseline_accepts_what_there_is(lint: Lint) -> None:
    assert lint("step.txt", "--baseline", "b.json", "--update-baseline").status == 0
    result = lint("step.txt", "--baseline", "b.json")
    assert result.status == 0
    assert "0 warnings, 0 infos; 2 in the baseline" in result.out
    written = json.loads(Path("b.json").read_text(encoding="utf-8"))["findings"]
    assert [(entry["rule"], entry["label"], entry["count"], entry["stake"]) for entry in written] == [
        ("undonated-parameter", "parameter f32[1048576] of jit_step", 1, 4 << 20),
        ("unused-parameter", "parameter f32[8] of jit_step", 1, 32),
    ]


def test_a_new_warning_fails_beside_a_baseline(lint: Lint) -> None:
    lint("step.txt", "--baseline", "b.json", "--update-baseline")
    Path("step.txt").write_text(STEP.format(number="", elements=1 << 21), encoding="utf-8")
    result = lint("step.txt", "--baseline", "b.json", "--format", "json")
    assert result.status == 1
    assert findings(result) == [("undonated-parameter", 8 << 20)]


def test_a_second_equal_finding_is_new(lint: Lint) -> None:
    lint("step.txt", "--baseline", "b.json", "--update-baseline")
    text = STEP.format(number="", elements=1 << 20)
    Path("two.txt").write_text(text + text, encoding="utf-8")
    result = lint("two.txt", "--baseline", "b.json")
    assert result.status == 1
    assert "2 modules, new: 0 errors, 1 warning, 1 info" in result.out


def test_entries_that_match_nothing_are_named_and_fail_if_strict(lint: Lint) -> None:
    lint("step.txt", "--baseline", "b.json", "--update-baseline")
    Path("clean.txt").write_text("HloModule m\n\nENTRY e {\n  ROOT c = f32[] constant(1)\n}\n", encoding="utf-8")
    result = lint("clean.txt", "--baseline", "b.json")
    assert result.status == 0
    assert "accepts 1 of unused-parameter (parameter f32[8] of jit_step) that did not occur" in " ".join(result.out.split())
    assert lint("clean.txt", "--baseline", "b.json", "--strict-baseline").status == 1


def test_entries_of_rules_that_are_not_selected_are_not_stale(lint: Lint) -> None:
    lint("step.txt", "--baseline", "b.json", "--update-baseline")
    assert lint("step.txt", "--baseline", "b.json", "--select", "HI101", "--strict-baseline").status == 0


ENTRY = '"rule": "HI101", "label": "x", "count": 1, "stake": 1, "stake_unit": "bytes", "fingerprint": "0"'


def entries(*written: str) -> str:
    return f'{{"version": 1, "findings": [{", ".join(f"{{{entry}}}" for entry in written)}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "b.json:2:1: not valid JSON"),
        ('{"version": 2, "findings": []}', "b.json:1:13: this version of hlo-inspect reads baselines of version 1, not '2'"),
        ('{"version": 1, "finding": []}', "b.json:1:16: unknown key 'finding'; the keys are version, findings"),
        ('{"version": 1, "findings": [{"rule": "HI101"}]}', "missing keys: label, count, stake, stake_unit, fingerprint"),
        (entries(ENTRY.replace("HI101", "HI199")), "there is no rule 'HI199'"),
        (entries(ENTRY.replace('"bytes"', '"MiB"')), "the value is not one of s, bytes, flops"),
        (entries(ENTRY.replace('"count": 1', '"count": 0')), "a count is a whole number"),
        (entries(ENTRY, ENTRY), "stands in two entries"),
    ],
)
def test_a_wrong_baseline_is_a_usage_error_with_its_place(lint: Lint, text: str, message: str) -> None:
    Path("b.json").write_text(text, encoding="utf-8")
    result = lint("step.txt", "--baseline", "b.json")
    assert result.status == 2
    assert message in result.err


def test_a_baseline_is_not_written_for_a_truncated_module(lint: Lint) -> None:
    Path("cut.txt").write_text(STEP.format(number="", elements=8)[:-20], encoding="utf-8")
    assert lint("cut.txt", "--baseline", "b.json", "--update-baseline").status == 3
    assert not Path("b.json").exists()


# -- configuration ------------------------------------------------------------------------------------------------------

IGNORES = '[[tool.hlo-inspect.lint.ignores]]\nrule = "HI101"\n'


def configured(text: str) -> None:
    Path("pyproject.toml").write_text(text, encoding="utf-8")


def test_the_configuration_selects_rules(lint: Lint) -> None:
    configured('[tool.hlo-inspect.lint]\nselect = ["HI1*"]\nignore = ["undonated-parameter"]\n')
    assert findings(lint("step.txt", "--format", "json")) == [("unused-parameter", 32)]


def test_an_ignored_finding_is_counted_and_nowhere_else(lint: Lint) -> None:
    configured(IGNORES + 'reason = "kept for the decoder"\n')
    assert findings(lint("step.txt", "--format", "json")) == [("unused-parameter", 32)]
    page = lint("step.txt").out
    assert "0 warnings, 1 info; 1 ignored" in page
    assert "HI101: 1 ignored because kept for the decoder" in page


def test_an_entry_that_ignores_nothing_is_named(lint: Lint) -> None:
    configured(IGNORES + 'op_name = "*/embed/*"\nreason = "r"\n')
    names = [name for name, _ in findings(lint("step.txt", "--format", "json"))]
    assert names == ["undonated-parameter", "unused-parameter", "stale-ignore"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IGNORES, "pyproject.toml:1:1: missing key: reason"),
        (IGNORES + 'reason = ""\n', "pyproject.toml:3:1: the reason is empty"),
        (IGNORES + 'reason = "r"\nopname = "x"\n', "pyproject.toml:4:1: unknown key 'opname'"),
        (IGNORES.replace("HI101", "HI199") + 'reason = "r"\n', "pyproject.toml:2:1: there is no rule 'HI199'"),
        ('[tool.hlo-inspect.lint]\nselect = "HI101"\n', "pyproject.toml:2:1: expected a value of kind list"),
        ('[tool.hlo-inspect.lint]\nignore = ["undonated-parametr"]\n', "did you mean 'undonated-parameter'"),
        ("[tool.hlo-inspect.lint]\nselect = [\n", "pyproject.toml:2:"),
    ],
)
def test_a_wrong_configuration_is_a_usage_error_with_its_place(lint: Lint, text: str, message: str) -> None:
    configured(text)
    result = lint("step.txt")
    assert result.status == 2
    assert message in result.err


# -- bad input ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--select", "HI1011"), "there is no rule 'HI1011'"),
        (("--ignore", "undonated-parametr"), "did you mean 'undonated-parameter'"),
        (("--threshold", "large-constant"), "is not RULE=SIZE"),
        (("--threshold", "unused-parameter=1MiB"), "unused-parameter has no threshold"),
        (("--update-baseline",), "need --baseline FILE"),
        (("--baseline", "missing.json"), "missing.json: cannot be read"),
    ],
)
def test_a_wrong_option_is_a_usage_error(lint: Lint, arguments: tuple[str, ...], message: str) -> None:
    result = lint("step.txt", *arguments)
    assert result.status == 2
    assert message in result.err


def test_no_dump_is_never_a_pass(lint: Lint) -> None:
    Path("empty").mkdir()
    Path("cut.txt").write_text(STEP.format(number="", elements=8)[:-20], encoding="utf-8")
    assert [lint(name).status for name in ("none.txt", "empty", "cut.txt")] == [3, 3, 3]
    assert lint("cut.txt", "--allow-partial").status == 0


# -- several modules ----------------------------------------------------------------------------------------------------


def test_findings_of_several_modules_are_one_table(lint: Lint) -> None:
    """The larger share comes first, whatever its module: an argument and its mask of 32 bytes."""
    Path("dumps").mkdir()
    for name, elements in (("a.txt", 1 << 14), ("b.txt", 1 << 20)):
        Path("dumps", name).write_text(STEP.format(number="", elements=elements), encoding="utf-8")
    page = lint("dumps").out
    rows = [line.split() for line in page.splitlines() if "HI101" in line and ".txt" in line]
    assert [row[:2] for row in rows] == [["warning", "HI101"], ["info", "HI101"]]
    assert page.index("  b.txt  ") < page.index("  a.txt  ")  # below their folder
    assert page.count("First steps") == 1
    assert page.endswith("2 modules, 0 errors, 1 warning, 3 infos\n")


def test_clean_modules_are_one_line_and_a_report_each_in_json(lint: Lint) -> None:
    Path("clean").mkdir()
    for name in ("a", "b", "c"):
        Path("clean", f"{name}.txt").write_text(
            f"HloModule {name}\n\nENTRY e {{\n  ROOT c = f32[] constant(1)\n}}\n", encoding="utf-8"
        )
    assert lint("clean").out == "3 modules, 0 findings\n"
    assert lint("clean", "--format", "markdown").out.strip() == "### 3 modules, 0 findings"
    assert len(json.loads(lint("clean", "--format", "json").out)["reports"]) == 3


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (["d/a/x.txt", "d/b/x.txt"], ["a/x.txt", "b/x.txt"]),
        (["d/ab/x.txt", "d/ac/x.txt"], ["ab/x.txt", "ac/x.txt"]),
        (["/a/x.txt", "/b/x.txt"], ["/a/x.txt", "/b/x.txt"]),
        (["s3://a/x.txt", "s3://b/x.txt"], ["s3://a/x.txt", "s3://b/x.txt"]),
        (["s3://a/x.txt", "s3://a/y.txt"], ["x.txt", "y.txt"]),
        (["x.txt", "d/x.txt"], ["x.txt", "d/x.txt"]),
    ],
)
def test_paths_are_those_below_the_folder_of_all(paths: list[str], shown: list[str]) -> None:
    assert below_common_folder(paths) == shown


@pytest.mark.parametrize(
    ("paths", "shown"),
    [
        (["a.opt.hlo.txt.xz", "b.pre.hlo.txt.xz"], ["a.opt", "b.pre"]),
        (["a.opt.hlo", "b.opt.hlo", "b.opt.hlo"], ["a", "b", "b"]),
        (["a/x.txt", "b/x.txt"], ["a/x", "b/x"]),
        (["a/.txt", "b/.txt"], ["a/.txt", "b/.txt"]),
        (["module_1.f.cpu.txt", "module_2.f.cpu.txt"], ["module_1", "module_2"]),
        (["a.hlo", "b.txt"], ["a.hlo", "b.txt"]),
        (["a.hlo", "a.hlo"], ["a.hlo", "a.hlo"]),
        (["a.hlo:3", "b.hlo"], ["a.hlo:3", "b.hlo"]),
    ],
)
def test_paths_lose_the_ending_of_all(paths: list[str], shown: list[str]) -> None:
    assert without_common_ending(paths) == shown
