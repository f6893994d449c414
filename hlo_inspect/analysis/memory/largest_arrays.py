"""The largest arrays that a text makes, scheduled or not: parameters, and what each instruction that runs by itself makes.

What is fused is in no memory of its own, and what tuples, bitcasts, loops, calls and barriers return is made elsewhere. The
result of an asynchronous pair is that of its end. In a scheduled text what is written in place makes no array.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hlo_inspect.analysis.cost.labels import Labeller, Labels
from hlo_inspect.analysis.memory.parameter_relations import ArrayPlace, ParameterRelations, Relation
from hlo_inspect.analysis.optimizer.frames import MAX_STEPS, Frames
from hlo_inspect.analysis.optimizer.graph import Index
from hlo_inspect.analysis.view import View, Views
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Callee
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, TABLE
from hlo_inspect.hlo.shapes import ArrayShape, array_leaves

LEAST_SHARE = 100
"""Arrays that are smaller than the largest by this factor are left out."""

_WRITING = frozenset({"dynamic-update-slice", "scatter"})
_FORWARDING = frozenset({"bitcast", "get-tuple-element", "tuple"})
_MADE_ELSEWHERE = _FORWARDING | {
    "add-dependency", "after-all", "call", "conditional", "domain", "opt-barrier", "while",
    *(opcode.name for opcode in TABLE.values() if opcode.half in ("start", "update")),
}  # fmt: skip
_RUNNING = frozenset({"run", "body", "condition", "branch"})


class LargeArray(NamedTuple):
    """An array: the row that makes it, which `element` of that row's result it is, and what it is to the entry's parameters."""

    view: View
    row: int
    element: Index
    shape: ArrayShape
    relation: Relation | None
    labels: Labels

    @property
    def name(self) -> str:
        return self.view.rows[self.row][1]

    @property
    def opcode(self) -> str:
        return self.view.opcodes[self.row]

    @property
    def line(self) -> int:
        return self.view.lines[self.row]


class LargestArrays(NamedTuple):
    """The arrays by their bytes with padding. So many are smaller and left out, and of so many the size is `unknown`."""

    found: list[LargeArray]
    left_out: int
    unknown: int


def find_largest_arrays(module: Module, views: Views, made: Mapping[ArrayPlace, Relation], labeller: Labeller) -> LargestArrays:
    """The arrays of a module that was read with its graph, except those smaller than the largest by `LEAST_SHARE`.

    `made` is what `made_arrays` found.
    """
    run = list(_run(module, views))
    arrays = [(view, *one) for view, is_entry in _views(module, views, run) for one in _arrays(view, is_entry=is_entry)]
    if module.header.is_scheduled:
        in_place = _InPlace(views)
        arrays = [array for array in arrays if not in_place.writes(*array[:3])]
    sizes = [array[3].padded_bytes for array in arrays]
    least = max([size for size in sizes if size is not None], default=0) / LEAST_SHARE
    large = [array for array, size in zip(arrays, sizes, strict=True) if size and size >= least]
    large.sort(key=lambda array: -(array[3].padded_bytes or 0))
    relations = ParameterRelations(module, views, made)
    for caller, name in run:
        relations.enter(caller, name)
    found = [LargeArray(*one, relations.of((one[0].computation.name, *one[1:3])), labeller.of(*one[:2])) for one in large]
    unknown = sizes.count(None)
    return LargestArrays(found, len(arrays) - len(found) - unknown, unknown)


def _views(module: Module, views: Views, run: list[tuple[ArrayPlace | None, str]]) -> Iterator[tuple[View, bool]]:
    """The views of computations, and whether their parameters are arrays of their own."""
    for _, name in run:
        yield views.of(name), module.entry is None or name == module.entry.name


def _run(module: Module, views: Views) -> Iterator[tuple[ArrayPlace | None, str]]:
    """The computations that run by themselves, each with the instruction that runs it first, callers first. Without an entry
    those that no instruction fuses or applies.
    """
    if module.entry is not None:
        waiting: list[tuple[ArrayPlace | None, str]] = [(None, module.entry.name)]
    else:
        inner = {callee.name for name in views.computations for _, callee in _called(views.of(name))}
        waiting = [(None, name) for name in views.computations if name not in inner]
    seen = {name for _, name in waiting}
    for caller, name in waiting:
        yield caller, name
        for row, callee in _called(views.of(name)):
            if callee.role in _RUNNING and callee.name in views.computations and callee.name not in seen:
                seen.add(callee.name)
                waiting.append(((name, row, ()), callee.name))


def _called(view: View) -> Iterator[tuple[int, Callee]]:
    """The computations that the rows call, except those that starts wrap."""
    for row, opcode in enumerate(view.opcodes):
        if opcode in CALLING_OPCODES and not TABLE[opcode].half:
            try:
                yield from ((row, callee) for callee in view.called(row))
            except tokens.ScanError:
                continue


def _arrays(view: View, *, is_entry: bool) -> Iterator[tuple[int, Index, ArrayShape]]:
    known: dict[int, list[tuple[Index, ArrayShape]]] = {}  # equal shapes of a module are one object
    for row, (opcode, shape) in enumerate(zip(view.opcodes, view.shapes, strict=True)):
        if opcode not in _MADE_ELSEWHERE and (is_entry or opcode != "parameter"):
            leaves = known.get(id(shape))
            if leaves is None:
                leaves = known[id(shape)] = array_leaves(shape)
            yield from ((row, *leaf) for leaf in leaves)


class _InPlace:
    """Which results are written into an operand: those of instructions that write a part, and of fusions that end in one."""

    def __init__(self, views: Views) -> None:
        self._frames = Frames(views)
        self._numbers: dict[str, int | None] = {}

    def writes(self, view: View, row: int, index: Index) -> bool:
        opcode = view.opcodes[row]
        if opcode != "fusion":
            return opcode in _WRITING
        frames, name = self._frames, view.computation.name
        if name not in self._numbers:
            self._numbers[name] = frames.open(name)
        number = self._numbers[name]
        place = frames.called((number, row, index)) if number is not None else None
        for _ in range(MAX_STEPS):
            if place is None or frames.opcode(place) not in _FORWARDING:
                break
            place = frames.step_back(place)
        return place is not None and frames.opcode(place) in _WRITING
