"""Every figure on a page is a cell of the JSON report of the same input; people read that figure."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.commands.report import PASSES
from hlo_inspect.cli.main import run
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.units import as_unit, parse_quantity
from tests.browser.page_data import PageData, PageTable

DATA = Path(__file__).parent.parent / "data"
MODULES = {
    "cpu": (DATA / "cpu" / "adamw_step.after.txt", None),
    "gpu": (DATA / "gpu" / "gathered_matmul.after.txt", "h100-sxm"),
    "tpu": (DATA / "memory" / "tpu_scan.hlo", "tpu-v5e"),
    "before": (DATA / "cpu" / "collectives.before.txt", None),
}
READ_BACK = {"bytes", "flops", "seconds", "count"}

Tables = list[dict[str, Any]]


def page_of(tmp_path: Path, *arguments: str | Path) -> PageData:
    output = tmp_path / "page.html"
    assert run(["report", *map(str, arguments), "-q", "-o", str(output)]) == 0
    return PageData(output.read_text(encoding="utf-8"))


def reported(tmp_path: Path, *arguments: str | Path) -> list[Tables]:
    """Return the tables of the JSON reports of a command."""
    output = tmp_path / "report.json"
    assert run([*map(str, arguments), "-q", "--format", "json", "-o", str(output)]) == 0
    report = json.loads(output.read_text(encoding="utf-8"))
    return [item["tables"] for item in report.get("reports", [report])]


def assert_same(page: PageData, view: str, tables: Tables, for_pictures: Collection[str] = ()) -> None:
    """Assert that each table that a view shares with a report has the same rows and columns.

    Only tables for pictures alone may be missing in the view, and those whose rows another table has.
    """
    shown = page.tables(view)
    missing = {table["name"] for table in tables if table["rows"]} - shown.keys()
    for table in tables:
        if table["name"] in missing - set(for_pictures):
            assert any(map(partial(_is_repeated, table), shown.values())), table["name"]
    for name in {table["name"] for table in tables if table["rows"]} - missing:
        of_page = [[list(row) for row in shown[name].rows], shown[name].names, shown[name].units]
        of_report = [
            [table["rows"], [column["name"] for column in table["columns"]], [column["unit"] for column in table["columns"]]]
            for table in tables
            if table["name"] == name
        ]
        assert of_page in of_report or name == "call_stacks", name  # call stacks belong to several passes


def _is_repeated(table: dict[str, Any], shown: PageTable) -> bool:
    """Return True if a table of the page has the rows of a table of the report, in any order."""
    names = [column["name"] for column in table["columns"]]
    if not set(names) <= set(shown.names):
        return False
    chosen = [shown.names.index(name) for name in names]
    return Counter(tuple(row[index] for index in chosen) for row in shown.rows) == Counter(map(tuple, table["rows"]))


def assert_read(page: PageData) -> int:
    """Assert that each text has two digits of its value, so that it differs by less than 5 %. Return their number."""
    compared = 0
    for view in {view for view, _, _ in page.blocks}:
        for table in page.tables(view).values():
            for index in [index for index, unit in enumerate(table.units) if unit in READ_BACK]:
                for row, texts in zip(table.rows, table.texts, strict=True):
                    if texts[index] == "< 0.01 ns":
                        assert 0 < row[index] < 1e-11
                    elif isinstance(row[index], int | float):
                        number = re.sub(r"(?<=\d),(?=\d)", "", texts[index]).removeprefix("+")
                        is_rounded = table.units[index] == "count" and number[-1] in "kMGTP"
                        unit = "flops" if is_rounded else as_unit(table.units[index])
                        number += "FLOP" if unit == "flops" and "FLOP" not in number else ""  # it stands in the heading
                        value = parse_quantity(number, unit)
                        assert math.isclose(value, row[index], rel_tol=0.05), (table.title, texts[index], row[index])
                        compared += 1
    return compared


@pytest.mark.parametrize("name", MODULES)
def test_a_module(name: str, tmp_path: Path) -> None:
    path, profile = MODULES[name]
    page = page_of(tmp_path, path, *(["--profile", profile] if profile else []))
    stream = StringIO()
    report = hlo_inspect.inspect(path, PASSES, profile=profile)
    ALL_FORMATS["json"]([report], stream, RenderOptions())
    for_pictures = {table.name for table in report.tables if not table.on_page}
    assert_same(page, "", json.loads(stream.getvalue())["tables"], for_pictures)
    assert assert_read(page) > 500
    argument_bytes = sum(row[page.table("params").names.index("bytes")] for row in page.table("params").rows)
    assert argument_bytes == report.facts["params.bytes"]


def test_two_modules_compared(tmp_path: Path) -> None:
    old, new = DATA / "cpu" / "sgd_unused.after.txt", DATA / "gpu" / "sgd_unused.after.txt"
    page = page_of(tmp_path, old, new, "--diff")
    (difference,) = reported(tmp_path, "diff", old, new)
    assert_same(page, "", difference)
    for view, path in (("old", old), ("new", new)):
        assert_same(page, view, reported(tmp_path, "collectives", path)[0])
    facts = {row[0]: (row[1], row[2]) for row in page.table("facts").rows}
    for measure in page.pictures()["before-and-after"]["figures"]:
        before, after = measure["figure"]["data"]
        for key, was, now in zip(before["keys"], before["x"], after["x"], strict=True):
            fact = page.table("facts").rows[int(key.removeprefix("facts:"))]
            assert (was, now) == tuple(fact[1:3]) == facts[fact[0]]
    changes = page.table("changes")
    for measure in page.pictures()["differences-by-kind"]["figures"]:
        column = changes.names.index({"Bytes": "bytes", "FLOPs": "flops", "Places": "sites"}[measure["label"]])
        marks = [
            (int(key.removeprefix("changes:")), length)
            for trace in measure["figure"]["data"]
            for key, length in zip(trace["keys"], trace["x"], strict=True)
        ]
        assert sorted(marks) == [(number, row[column]) for number, row in enumerate(changes.rows) if row[column]]


def test_compiler_passes_and_lists(tmp_path: Path) -> None:
    assert_same(page_of(tmp_path, DATA / "xla_dump_to"), "m1", reported(tmp_path, "history", DATA / "xla_dump_to")[0])
    dumps = sorted((DATA / "handmade").glob("[a-c]*s.txt"))
    page = page_of(tmp_path, *dumps)
    assert_same(page, "", reported(tmp_path, "list", *dumps)[0])
    links = page.table("modules").links
    assert len(links) == len(page.table("modules").rows) == len(set(links))
    assert_read(page)
