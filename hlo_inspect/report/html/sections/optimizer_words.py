"""The optimizer in words: each rule with the constants that the text holds of it."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.report.cells import cell, heading
from hlo_inspect.report.model import Column, Row, Table

_MOST = 4
_NO_CONSTANTS = frozenset({"rule", "weights", "bytes", "fusions"})


def optimizer_words(tables: Iterable[Table]) -> str:
    """A sentence for each of the first rules; empty where nothing is updated."""
    groups = next((table for table in tables if table.name == "optimizer_groups"), None)
    if groups is None:
        return ""
    sentences = [_sentence(groups.columns, row) for row in groups.rows[:_MOST]]
    left = len(groups.rows) - len(sentences)
    return " ".join([*sentences, f"The table has {left:,} more."] if left else sentences)


def _sentence(columns: Iterable[Column], row: Row) -> str:
    texts = {
        column.name: (heading(column), cell(value, None, column, raw_bytes=False, of_sums=False))
        for column, value in zip(columns, row, strict=True)
        if value is not None and value != "" and column.unit != "bool"
    }
    rule, weights, size = (texts.get(name, ("", "?"))[1] for name in ("rule", "weights", "bytes"))
    constants = [f"{name} {text}" for key, (name, text) in texts.items() if key not in _NO_CONSTANTS]
    said = f"{rule} updates {weights} weight{'' if weights == '1' else 's'} of {size}"
    return f"{said}: {', '.join(constants)}." if constants else f"{said}."
