"""`benchmarks.answers`: equal trees, a changed one, and each kind of difference."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.answer_differences import differences
from benchmarks.answer_lines import PASSES, find_inputs
from benchmarks.answers import main
from hlo_inspect.passes import PASSES as OWN_PASSES

ROOT = Path(__file__).parents[2]
DUMP = ROOT / "tests" / "data" / "handmade" / "aliases.txt"
REPORT: dict[str, Any] = {
    "command": "time",
    "facts": {"time.step_s": 1.0},
    "tables": [
        {
            "name": "kernels",
            "title": "Kernels",
            "columns": [{"name": "name", "unit": "text"}, {"name": "runs", "unit": "count"}],
            "rows": [["a", 1], ["b", 2]],
            "total": [None, 3],
        }
    ],
    "findings": [{"rule": "HI101", "message": "m"}],
    "notes": ["time.step_s: a reason"],
}
COLUMNS = {"columns": [{"name": "name", "unit": "text"}, {"name": "runs", "unit": "count"}, {"name": "x", "unit": "s"}]}


def answer(report: Mapping[str, Any] | str, **other: object) -> dict[str, object]:
    output = report if isinstance(report, str) else json.dumps(report)
    return {"status": 0, "output": output, "errors": "", "files": {}, **other}


def names(old: dict[str, object], new: dict[str, object], *line: str) -> set[str]:
    return {f"{each.name} {each.change}" for each in differences(line or ("time", "INPUT", "--format", "json"), old, new)}


def with_table(**changed: object) -> dict[str, Any]:
    return {**REPORT, "tables": [{**REPORT["tables"][0], **changed}]}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (REPORT, set()),
        ({**REPORT, "facts": {"time.step_s": 1}}, {"fact time.step_s changed"}),  # 1 is not 1.0
        ({**REPORT, "facts": {"time.step_s": None}}, {"fact time.step_s changed"}),
        ({**REPORT, "facts": {"time.step_s": 1.0, "new": 1}}, {"fact new added"}),
        ({**REPORT, "facts": {}}, {"fact time.step_s removed"}),
        ({**REPORT, "notes": []}, {"note time.step_s removed"}),
        ({**REPORT, "findings": REPORT["findings"] * 2}, {"finding HI101 added"}),
        ({**REPORT, "tables": []}, {"table kernels removed"}),
        ({**REPORT, "profile": "tpu-v5e"}, {"other time profile added"}),
        (with_table(rows=[["a", 1], ["b", 4]], total=[None, 5]), {"row kernels.runs changed", "total kernels.runs changed"}),
        (with_table(rows=[["a", 1], ["c", 7], ["b", 2]]), {"row kernels c added"}),
        (with_table(rows=[["a", 1], ["a", 2], ["b", 2]]), {"row kernels changed", "row kernels.name changed"}),
        (with_table(total=None), {"total kernels changed"}),
        (with_table(title="Other"), {"other kernels title changed"}),
        (with_table(**COLUMNS, rows=[["a", 1, 0.5], ["b", 2, 0.5]], total=[None, 3, 1.0]), {"column kernels.x added"}),
    ],
)
def test_parts_of_reports_are_compared(changed: Mapping[str, Any], named: set[str]) -> None:
    assert names(answer(REPORT), answer(changed)) == named


def test_units_and_the_order_of_columns_count() -> None:
    turned = {"columns": [{"name": "runs", "unit": "bytes"}, {"name": "name", "unit": "text"}]}
    changed = with_table(**turned, rows=[[1, "a"], [2, "b"]], total=[3, None])
    assert names(answer(REPORT), answer(changed)) == {"column kernels.runs changed", "column kernels order changed"}


def test_statuses_errors_pages_and_files_are_compared() -> None:
    old = answer("one\ntwo\n", files={"page.html": "0"})
    assert names(old, answer("one\ntwo\n", files={"page.html": "0"}), "report") == set()
    new = answer("one\n2\n", status=3, errors="hlo-inspect: out of memory\n", files={"page.html": "1"})
    assert names(old, new, "report") == {
        "status report changed",
        "error report changed",
        "page report changed",
        "file report page.html changed",
    }


def test_all_passes_are_asked() -> None:
    assert {*OWN_PASSES.names} <= {*PASSES}


def test_each_dump_is_compared_with_the_next_of_its_folder(tmp_path: Path) -> None:
    for name in ("b.txt", "a.hlo.gz", "step.xplane.pb", "notes.md"):
        shutil.copy(DUMP, tmp_path / name)
    (tmp_path / "a.hlo.gz").write_bytes(b"")
    inputs = list(find_inputs([tmp_path]))
    assert [(each.path.name, each.next) for each in inputs] == [
        ("a.hlo.gz", "b.txt"),
        ("b.txt", None),
        ("step.xplane.pb", None),
    ]
    assert [each.lines[-1][0] for each in inputs] == ["diff", "workload", "measured"]


def test_a_changed_tree_is_found_and_additions_can_be_permitted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = tmp_path / "tree"
    for part in ("hlo_inspect", "configs"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    source = tree / "hlo_inspect" / "passes" / "module_facts.py"
    before = source.read_text()
    arguments = [str(ROOT), str(tree), str(DUMP), "--kept", str(tmp_path / "kept")]

    assert main(arguments) == 0
    assert "no difference" in capsys.readouterr().out

    put = 'facts.put("module.name.upper_bound", 1)'
    added = before.replace(
        '        facts.put("module.is_scheduled"', f'        {put}\n        facts.put("module.is_scheduled"', 1
    )
    assert added != before
    source.write_text(added)
    assert main(arguments) == 1
    assert "module.name.upper_bound added" in capsys.readouterr().out
    assert main([*arguments, "--allow", "row facts*", "--allow", "fact *"]) == 0
    assert "; 0 and 0 lines ran" in capsys.readouterr().out
