"""Parameters that are live at the peak together with a copy or a transpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlo_inspect.hlo.opcodes import opcodes_that_are

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.live_arrays import LiveArray

_COPIES = opcodes_that_are("relayout") - {"bitcast"}


def find_copied(live: Sequence[LiveArray], least: int) -> Iterator[tuple[int, LiveArray]]:
    """Yield the number of a parameter and the copy, at least `least` bytes and half of the parameter, in its memory space."""
    parameters = {array.relation.parameter: array for array in live if array.kind == "parameter" and array.relation is not None}
    for array in live:
        relation = array.relation
        if relation is None or array.kind == "parameter" or not relation.steps or not _COPIES.issuperset(relation.steps):
            continue
        parameter = parameters.get(relation.parameter)
        if parameter is not None and array.space == parameter.space and array.bytes >= max(least, parameter.bytes // 2 + 1):
            yield relation.parameter, array
