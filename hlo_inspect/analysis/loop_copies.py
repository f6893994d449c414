"""Copies of the state of a loop in each of its iterations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.collectives.collective_results import runs_of
from hlo_inspect.analysis.collectives.loop_collectives import element_of_state, new_state
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.loops import Loop
from hlo_inspect.graph.readers import ViewRow, maker_of, readers_of
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import opcodes_that_call
from hlo_inspect.hlo.values.shapes import ArrayShape

_LOOPS = opcodes_that_call("body")


class LoopCopies(NamedTuple):
    """The copies of one body, and the bytes that they copy in one step. `updates`: they feed a dynamic-update-slice."""

    loop: Loop
    copies: tuple[ViewRow, ...]
    bytes: int
    updates: bool

    @property
    def largest(self) -> ViewRow:
        return max(self.copies, key=attrgetter("bytes"))

    @property
    def counted(self) -> str:
        """The number of copies in words."""
        return "a copy" if len(self.copies) == 1 else f"{len(self.copies)} copies"


def find_loop_copies(views: Views, calls: CallGraph, least: float) -> Iterator[LoopCopies]:
    """Yield the copies of elements of a loop's state, in its body or into its root; those of updates apart.

    The bytes of all copies of a body are `least` or more.
    """
    if _LOOPS.isdisjoint(views.opcodes):
        return
    for name in calls.order:
        loop = next(calls.loops_around(name), None)
        if loop is None or loop.body != name or "copy" not in views.computations[name].rows.column.opcodes:
            continue
        view, runs = views.for_computation(name), runs_of(calls, name)
        copies: dict[bool, list[ViewRow]] = defaultdict(list)
        for row, opcode in enumerate(view.opcodes):
            copy = ViewRow(view, row) if opcode == "copy" and _is_in_place(view, row) else None
            if copy is not None and copy.bytes and copy.bytes * runs >= least / len(view.rows):
                updates = _feeds_update(views, copy)
                if updates or element_of_state(views, copy) is not None or view.root in view.users[row]:
                    copies[updates].append(copy)
        for updates, members in copies.items():
            if not updates and not _moves_elements(views, view):
                continue
            total = sum(copy.bytes for copy in members) * runs
            if total >= least:
                yield LoopCopies(loop, tuple(members), total, updates)


def _is_in_place(view: View, row: int) -> bool:
    """Return True if a copy stays in its layout and memory space. Others change those, and are no second buffer."""
    made, read = view.shapes[row], view.operand_shape(row, 0)
    return isinstance(made, ArrayShape) and isinstance(read, ArrayShape) and made.layout == read.layout


def _feeds_update(views: Views, copy: ViewRow) -> bool:
    """Return True if a dynamic-update-slice writes into the copy."""
    source = maker_of(views, copy)
    for reader in readers_of(views, copy):
        if reader is not None and reader.opcode == "dynamic-update-slice":
            buffer = reader.operand(0)
            if buffer is not None and maker_of(views, buffer) == source:
                return True
    return False


def _moves_elements(views: Views, body: View) -> bool:
    """Return True if the old value of an element of the state becomes another element.

    Without that a copy is the second buffer of a value that the body computes from its old value, which nobody can avoid.
    """
    for number in range(len(body.operand_rows(body.root)) if body.root is not None else 0):
        new = new_state(body, number)
        element = element_of_state(views, new) if new is not None and new.bytes else None
        if element is not None and element[0] is body and element[1] != number:
            return True
    return False
