"""The kernels of OLD that held the work of a new kernel."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.edits import Edit, EditPlace
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import opcodes_that_are

_LEAST_SHARE = 0.5
_REPEATED = opcodes_that_are("cheap") | {"convert"}

Operation = tuple[str, str]
"""Opcode and op_name of an instruction that costs something."""


class KernelOrigins:
    """The removed and changed kernels of OLD by the operations that they hold. Operations without an op_name do not count."""

    def __init__(self, old: Context, new: Context, edits: Iterable[Edit]) -> None:
        self._new = new
        self._holders: defaultdict[Operation, set[str]] = defaultdict(set)
        for edit in edits:
            if edit.old is not None:
                name = _view(old, edit.old).names[edit.old.row]
                for operation in _operations(old, edit.old):
                    self._holders[operation].add(name)

    def of(self, place: EditPlace) -> str:
        """Return the kernel of OLD that held most operations of a kernel of NEW; empty if none held half of them."""
        operations = Counter(_operations(self._new, place))
        shared: Counter[str] = Counter()
        for operation, count in operations.items():
            shared.update(dict.fromkeys(self._holders.get(operation, ()), count))
        if not shared:
            return ""
        name, count = min(shared.items(), key=lambda item: (-item[1], item[0]))
        return name if count >= _LEAST_SHARE * operations.total() else ""


def _view(context: Context, place: EditPlace) -> View:
    return context.views.for_computation(place.computation)


def _operations(context: Context, place: EditPlace) -> Iterator[Operation]:
    """Yield the operations of a kernel: those of its fused computation, or itself."""
    view = _view(context, place)
    rows: Iterable[int] = [place.row]
    fused = context.views.fused(view, place.row)
    if fused is not None:
        view = context.views.for_computation(fused.name)
        rows = range(len(view.names))
    for row in rows:
        if view.opcodes[row] not in _REPEATED and (op_name := view.op_name(row)):
            yield view.opcodes[row], op_name
