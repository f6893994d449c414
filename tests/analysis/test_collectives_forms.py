"""Collectives in all prints of a module, and the formulas of what they send. tests/cases/analysis has small texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import Collective, wire_bytes
from hlo_inspect.analysis.context import Context

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"


def sizes(collective: Collective) -> tuple[int | None, int | None, int | None]:
    return collective.operand_bytes, collective.result_bytes, collective.wire_bytes


@pytest.mark.parametrize(
    "name", ["long", "no_operand_names", "operand_shapes", "no_percent", "short_parsable", "no_signatures"]
)
def test_all_prints_of_a_module_hold_the_same_collectives(read: Entry, name: str) -> None:
    """Seven collectives, computed by hand from their shapes and groups; all-to-all's operand comes in four slices."""
    collectives = read((DATA / f"prints/{name}.txt").read_text(encoding="utf-8")).collectives
    assert [(c.kind, *sizes(c), c.group_size, c.reduction) for c in collectives] == [
        ("all-reduce", 256, 256, 384, 4, "add"),
        ("all-reduce", 256, 256, 256, 2, "max"),
        ("collective-permute", 1024, 1024, 1024, None, ""),
        ("all-gather", 1024, 2048, 1024, 2, ""),
        ("reduce-scatter", 1024, 256, 768, 4, "add"),
        ("all-reduce", 4, 4, 7, 8, "add"),
        ("all-to-all", 1024, 1024, 768, 4, ""),
    ]


@pytest.mark.parametrize(
    ("kind", "operand", "size", "expected"),
    [
        ("all-reduce", 10, 4, 15),
        ("all-reduce", 1, 8, 2),  # 1.75
        ("all-gather", 10, 4, 30),
        ("reduce-scatter", 10, 4, 8),  # 7.5
        ("all-to-all", 10, 3, 7),  # 6.67
        ("collective-broadcast", 10, None, 10),
        ("collective-permute", 10, None, 10),
        ("ragged-all-to-all", 10, 4, None),
        ("all-reduce", 10, None, None),
        ("all-reduce", None, 4, None),
        ("all-reduce", 0, 4, 0),
        ("all-reduce", 2**62 + 1, 2, 2**62 + 1),
    ],
)
def test_the_formulas(kind: str, operand: int | None, size: int | None, expected: int | None) -> None:
    assert wire_bytes(kind, operand, size) == expected
