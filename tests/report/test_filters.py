from __future__ import annotations

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.figure import at_least
from hlo_inspect.report.filters import Comparison, parse_filter, row_test, shows
from hlo_inspect.report.table import Column, Row, Table

RUNS = Column("runs", "count", summed=True, bounded=True)
COLUMNS = (
    Column("kind"),
    Column("operand_bytes", "bytes", summed=True),
    RUNS,
    Column("is_async", "bool"),
    Column("op_name"),
    Column("axis", optional=True),
    Column("share", "share"),
)
ROWS: tuple[Row, ...] = (
    ("all-gather", 2**20, 4, True, "jit(step)/transpose(jvp(x))/dot", "d0", 0.5),
    ("all-gather", 2**20 - 1, at_least(3, "a loop"), False, "jit(step)/jvp(x)/dot", "d1", 0.05),
    ("all-reduce", 0, 1, False, "", None, 0.25),
    ("all-reduce", None, None, False, "jit(step)/while", "d0,d1", 0.2),
)
TABLE = Table("collectives", "Collectives", COLUMNS, ROWS)


def kept(text: str) -> list[int]:
    table = TABLE.with_bounds()
    tests = [(comparison, row_test(comparison, table)) for comparison in parse_filter(text)]
    return [number for number, row in enumerate(table.rows) if all(shows(comparison, test(row)) for comparison, test in tests)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("kind = all-gather", [0, 1]),
        ("kind=all-gather", [0, 1]),
        ("kind == all-gather", [0, 1]),
        ("kind != all-gather", [2, 3]),
        ("kind = all-gather operand_bytes >= 1MiB", [0]),
        ("operand_bytes>=1 MiB kind=all-gather", [0]),
        ("operand_bytes < 1MB", [2]),
        ("operand_bytes <= 1048575", [1, 2]),
        ("operand_bytes > 0.5 MiB", [0, 1]),
        ("operand_bytes = ?", [3]),
        ("operand_bytes != ?", [0, 1, 2]),
        ("operand bytes = 0", []),
        ("runs >= 3", [0, 1]),  # the second has run three times at least
        ("runs <= 3", [2]),
        ("runs_lower_bound = 3", [1]),
        ("is_async = yes", [0]),
        ("is_async != true", [1, 2, 3]),
        ("op_name ~ transpose(jvp", [0]),
        ("op_name ~ ^jit.*dot$", [0, 1]),
        ("op_name ~ (step)", [0, 1, 3]),
        ("op_name = ''", [2]),
        ("axis = ''", [2]),
        ("axis = d0,d1", [3]),
        ('kind = "all-reduce" axis = "d0,d1"', [3]),
        ("share > 20%", [0, 2]),
        ("share > 0.2", [0, 2]),
    ],
)
def test_rows(text: str, rows: list[int]) -> None:
    if text == "operand bytes = 0":
        with pytest.raises(UsageError, match="not a comparison"):
            kept(text)
    else:
        assert kept(text) == rows


def test_all_comparisons_are_read() -> None:
    assert parse_filter("  kind = all-gather phase=backward operand_bytes >= 1 MiB ") == [
        Comparison("kind", "=", "all-gather", False),
        Comparison("phase", "=", "backward", False),
        Comparison("operand_bytes", ">=", "1 MiB", False),
    ]
    assert parse_filter("a = 'b = c' d~e") == [Comparison("a", "=", "b = c", True), Comparison("d", "~", "e", False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a comparison"),
        ("kind", "'kind' is not a comparison; a filter is `COLUMN OP VALUE`"),
        ("kind in x", "is not a comparison"),
        ("= 4", "is not a comparison"),
        ("kind =", "'kind =' has no value"),
        ("kind = 'a' b", "'b' is not a comparison"),
        ("knd = 4", "no column 'knd' in the table 'collectives'; did you mean 'kind'"),
        ("zzz = 4", "no column 'zzz' in the table 'collectives'; there are: kind, operand_bytes"),
        ("kind < 4", "'<' needs an order, which column 'kind' does not have: use =, != or ~"),
        ("is_async > 0", "'>' needs an order, which column 'is_async' does not have: use = or !="),
        ("is_async = 7", "column 'is_async' is yes or no, not '7'"),
        ("runs ~ 4", "'~' is for text, which column 'runs' is not"),
        ("operand_bytes > 4 ms", "column 'operand_bytes': '4 ms': ms is a unit of seconds"),
        ("operand_bytes > many", "column 'operand_bytes': 'many' is not a number"),
    ],
)
def test_a_filter_that_makes_no_sense(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        kept(text)
    assert message in str(error.value)
