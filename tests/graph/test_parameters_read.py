"""Unread parameters of real programs. Cases of texts are in tests/cases/graph/parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context

Read = Callable[[str], Context]

DATA = Path(__file__).parents[1] / "data"


def unused(context: Context) -> list[tuple[int, tuple[int, ...]]]:
    return [(leaf.number, leaf.index) for leaf in context.interface.parameters if leaf.unused]


@pytest.mark.parametrize("name", ["cpu/sgd_unused.after.txt", "tpu/sgd_unused.after.txt", "jax_0_4_13/sgd_unused.before.txt"])
def test_only_the_unread_argument_of_a_real_program_is_unused(read: Read, name: str) -> None:
    """It is `mask`, the fifth argument."""
    assert unused(read((DATA / name).read_text(encoding="utf-8"))) == [(4, ())]


def test_no_parameter_is_unused_if_operands_have_no_names(read: Read) -> None:
    assert unused(read((DATA / "prints/no_operand_names.txt").read_text(encoding="utf-8"))) == []
