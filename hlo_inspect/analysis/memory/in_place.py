"""In-place pairs: a part of an operand and a part of the result that are always one buffer.

Follows `AliasInfo::GetInPlaceInputOutputPairs` (xla/hlo/analysis/alias_info.cc; before 2025
`HloDataflowAnalysis::GetInPlaceInputOutputPairs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import TupleShape, leaf_indices
from hlo_inspect.lazy_pattern import lazy_pattern


class Pair(NamedTuple):
    """A part of an operand, and the part of the result that takes its buffer."""

    operand: int
    operand_index: ShapeIndex
    result_index: ShapeIndex


_FIRST, _SECOND = (Pair(0, (), ()),), (Pair(1, (), ()),)
_ALIASED = lazy_pattern(r"\{([\d,\s]*+)\}\s*+:\s*+\(\s*+(\d{1,9}+)\s*+,\s*+\{([\d,\s]*+)\}", re.ASCII)


def _index(text: str) -> ShapeIndex:
    return tuple([int(part) for part in text.split(",") if part.strip()])


class InPlace:
    """The in-place pairs of instructions. `passing` are the opcodes to step through to find a fusion's in-place update."""

    def __init__(self, views: Views, passing: frozenset[str]) -> None:
        self._views = views
        self._passing = passing
        self.opcodes = frozenset(_RULES)
        """Opcodes that can be in place."""
        self._fusions: dict[str, tuple[Pair, ...]] = {}

    def pairs(self, view: View, row: int, opcode: str) -> Sequence[Pair]:
        """Return the pairs of a row.

        If the row is a short spelling of an asynchronous instruction, `opcode` is the opcode of one half.
        """
        rule = _RULES.get(opcode)
        return rule(self, view, row) if rule is not None else ()

    # -- opcodes --------------------------------------------------------------------------------------------------------

    def _permute(self, view: View, row: int) -> Sequence[Pair]:
        """Return the pairs of a collective-permute of four operands, or of its start: it writes to the second operand."""
        if len(view.operand_rows(row)) != 4:
            return ()
        result_index: ShapeIndex = (1,) if view.opcodes[row].endswith("-start") else ()
        shape = view.operand_shape(row, 1)
        parts = range(len(shape.elements)) if isinstance(shape, TupleShape) else ()
        return (Pair(1, (), result_index), *[Pair(1, (i,), (*result_index, i)) for i in parts])

    def _stated_pairs(self, view: View, row: int) -> Sequence[Pair]:
        if "output_to_operand_aliasing" not in view.tails[row]:
            return ()
        text = view.instruction_at(row).attr("output_to_operand_aliasing") or ""
        return [Pair(int(number), _index(operand), _index(result)) for result, number, operand in _ALIASED.findall(text)]

    def _fusion(self, view: View, row: int) -> Sequence[Pair]:
        pairs_by_content, stated = self._pairs_by_content(view, row), self._stated_pairs(view, row)
        return (*pairs_by_content, *stated) if pairs_by_content and stated else pairs_by_content or stated

    def _pairs_by_content(self, view: View, row: int) -> Sequence[Pair]:
        fused = self._views.fused(view, row)
        return self.fusion_pairs(fused) if fused is not None else ()

    # -- fusions --------------------------------------------------------------------------------------------------------

    def fusion_pairs(self, fused: Computation) -> tuple[Pair, ...]:
        """Return the pairs of a fusion by its content (`GetFusionInstructionInPlaceInputOutputPairs`).

        These are the pairs of its root whose operand is a parameter.
        """
        cached = self._fusions.get(fused.name)
        if cached is None:
            self._fusions[fused.name] = ()  # for a fusion that holds itself
            cached = self._fusions[fused.name] = tuple(self._find(self._views.for_computation(fused.name)))
        return cached

    def _find(self, view: View) -> list[Pair]:
        root = view.root
        if root is None:
            return []
        pairs = []
        shape = view.shapes[root]
        for index in leaf_indices(shape) if shape is not None else [()]:
            source, source_index = self._source(view, root, index)
            for pair in self._source_pairs(view, source):
                if pair.result_index != source_index:
                    continue
                origin, origin_index = self._origin(view, source, pair)
                if origin is not None and view.opcodes[origin] == "parameter":
                    number = view.parameter_number(origin)
                    if number is not None:
                        pairs.append(Pair(number, origin_index, index))
        return pairs

    def _source_pairs(self, view: View, row: int | None) -> Sequence[Pair]:
        """Return the pairs of a row of a fusion; for a nested fusion only the pairs by its content."""
        if row is None:
            return ()
        if view.opcodes[row] == "fusion":
            return self._pairs_by_content(view, row)
        return self.pairs(view, row, view.opcodes[row])

    def _origin(self, view: View, source: int | None, pair: Pair) -> tuple[int | None, ShapeIndex]:
        """Return the origin of an in-place operand, followed through nested fusions that are in place."""
        row = view.operand_row(source, pair.operand) if source is not None else None
        index = pair.operand_index
        row, index = self._source(view, row, index)
        if row is not None and view.opcodes[row] == "fusion":
            for inner in self.pairs(view, row, "fusion"):
                if inner.result_index == index:
                    return self._source(view, view.operand_row(row, inner.operand), inner.operand_index)
        return row, index

    def _source(self, view: View, row: int | None, index: ShapeIndex) -> tuple[int | None, ShapeIndex]:
        """Follow an element of a result through tuples, then through get-tuple-elements, then through bitcasts."""
        opcodes = view.opcodes
        steps = range(len(opcodes))  # a cycle ends there
        for _ in steps:
            if row is None or opcodes[row] != "tuple" or not index:
                break
            row, index = view.operand_row(row, index[0]), index[1:]
        for _ in steps:
            if row is None or opcodes[row] != "get-tuple-element":
                break
            index = (view.element_number(row) or 0, *index)
            row = view.operand_row(row, 0)
        for _ in steps:
            if row is None or index or opcodes[row] not in self._passing:
                break
            row = view.operand_row(row, 0)
        return row, index


def _each(count: int) -> Sequence[Pair]:
    return _FIRST if count == 1 else [Pair(i, (), (i,)) for i in range(count)]


_RULES: Mapping[str, Callable[[InPlace, View, int], Sequence[Pair]]] = {
    "all-reduce-start": lambda _, view, row: _each(len(view.operand_rows(row))),
    "async-start": InPlace._stated_pairs,
    "collective-permute": InPlace._permute,
    "collective-permute-start": InPlace._permute,
    "custom-call": InPlace._stated_pairs,
    "dynamic-update-slice": lambda *_: _FIRST,
    "fusion": InPlace._fusion,
    "ragged-all-to-all": lambda *_: _SECOND,
    "scatter": lambda _, view, row: _each(len(view.operand_rows(row)) // 2),  # n of its 2n + 1 operands are written
    "set-dimension-size": lambda *_: _FIRST,
}
