"""Paths of source files on pages. What is left of them is counted by hand."""

from __future__ import annotations

import pytest

from hlo_inspect.report.render_options import with_relative_paths
from hlo_inspect.report.table import Column, Table

SITE = "/venv/lib/python3.11/site-packages"


def shown(*sources: str | None, others: tuple[str, ...] = ()) -> list[object]:
    first = Table("one", "One", (Column("name"), Column("source")), tuple(("x", source) for source in sources))
    second = Table("two", "Two", (Column("source"),), tuple((source,) for source in others))
    return [row[1] for row in with_relative_paths((first, second))[0].rows]


@pytest.mark.parametrize(
    ("sources", "relative"),
    [
        (["/train/main.py:10"], ["main.py:10"]),
        (["/train/main.py:10", "/train/models/layer.py:3"], ["main.py:10", "models/layer.py:3"]),
        (["/train/model.py:1", "/train/models.py:1"], ["model.py:1", "models.py:1"]),
        (["/train/main.py:10", "/home/me/layer.py:3"], ["train/main.py:10", "home/me/layer.py:3"]),
        ([f"{SITE}/optax/_src/update.py:42", "/train/main.py:10"], ["optax/_src/update.py:42", "main.py:10"]),
        (["/train/main.py:10,/train/layer.py:3"], ["main.py:10,layer.py:3"]),
        (
            ["train.py:1", "(not printed)", "", None, "/train/main.py:10"],
            ["train.py:1", "(not printed)", "", None, "main.py:10"],
        ),
    ],
)
def test_relative_paths(sources: list[str | None], relative: list[str | None]) -> None:
    assert shown(*sources) == relative


def test_all_tables_of_a_page_have_one_directory() -> None:
    assert shown("/a/b/main.py:10", others=("/a/c/layer.py:3",)) == ["b/main.py:10"]


def test_other_columns_and_totals_stay() -> None:
    table = Table("t", "T", (Column("path"), Column("bytes", "bytes", summed=True)), (("/train/main.py:10", 4),))
    assert with_relative_paths((table,)) == (table,)


def test_a_column_of_files_has_relative_paths_too() -> None:
    rows = (("a", "/dumps/x/one.txt"), ("b", "/dumps/two.txt:4"))
    table = Table("modules", "Modules", (Column("name"), Column("path", is_file=True)), rows)
    (shown,) = with_relative_paths([table])
    assert [row[1] for row in shown.rows] == ["x/one.txt", "two.txt:4"]
