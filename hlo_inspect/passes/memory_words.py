"""Words and groups of the pages of `memory` and `summary`: if a program fits, the largest arrays, moved bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlo_inspect.figure import Quantity, total
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.passes.params import memory_space
from hlo_inspect.report.model import Amount, Parts, sentence

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.fit import MemoryFit
    from hlo_inspect.analysis.memory.host_transfers import HostTransfer
    from hlo_inspect.analysis.memory.largest_arrays import LargeArray


def fit_parts(fit: MemoryFit) -> Parts:
    """Yield if the program fits, the memory of a device, and what is left or too much; nothing if the need is unknown."""
    if fit.left is None:
        return
    fits, rest = ("fits", "left") if fit.left >= 0 else ("does not fit", "too much")
    text = f"{fits} in the {{}} of {fit.memory} of {fit.profile.name}, {{}} {rest}"
    yield from sentence(text, Amount(fit.capacity, "bytes"), Amount(abs(fit.left), "bytes"))


def array_groups(arrays: Sequence[LargeArray]) -> list[list[LargeArray]]:
    """Group the arrays of one row, the largest first."""
    groups = group_rows(arrays, _large_array_key)
    return sorted(groups, key=lambda group: (group[0].shape.padded_bytes or 0, len(group)), reverse=True)


def _large_array_key(array: LargeArray) -> object:
    """Return the properties that the arrays of one row share."""
    steps = array.relation.steps if array.relation is not None else None
    return (array.opcode, str(array.shape), array.shape.padded_bytes, memory_space(array.shape), steps, array.labels.source)


def total_moved(transfers: Sequence[HostTransfer]) -> Quantity:
    """Return the bytes of all runs in a step."""
    return total(transfer.moved for transfer in transfers)
