"""Classes of rows and of computations: numbers that those share whose texts differ in names and metadata only.

A program repeats a few kinds of rows many times. So a fact that the text of a row decides is worked out once for its class.

Rows of a class have one head, heads of operands, attributes, and classes of called computations. Names, metadata, channels,
control predecessors and literals may differ. Computations of a class have rows of the same classes in one order. These rows use
the same rows as operands, and have the same literals.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import count
from typing import Protocol
from weakref import WeakMethod

from hlo_inspect.graph.orders import operands_first
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.columns import Columns, Extent
from hlo_inspect.hlo.instruction import operands_end
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import Rows
from hlo_inspect.lazy_pattern import lazy_pattern

_LEFT_OUT = lazy_pattern(r", metadata=\0\d++\0|(?<=, control-predecessors=)\{[^{}\"]*+\}", re.ASCII)
"""Parts of the text of a form: the place of metadata, and names of predecessors."""


class ClassedView(Protocol):
    """The rows of a computation, as `graph/view.py` reads them."""

    computation: Computation
    rows: Rows
    tails: Sequence[str]
    root: int | None

    @property
    def ambiguous(self) -> frozenset[int]: ...
    @property
    def operands_of_rows(self) -> Sequence[tuple[int | None, ...]]: ...
    def whole_operands(self, index: int, /) -> tuple[int, ...] | None: ...
    def called_names(self, index: int, /) -> list[str]: ...


class RowClasses:
    """The classes of a module's rows and computations. The native reader counts those of its columns from 0, others are below.

    A row whose operands are not names of rows has a class of its own. So has a computation that calls itself. `view_of` is a
    weak reference: the views own their classes, and both are freed together.
    """

    def __init__(self, computations: Mapping[str, Computation], view_of: WeakMethod[Callable[[str], ClassedView]]) -> None:
        self._computations = computations
        self._view_of = view_of
        self._columns: Columns | None = None
        self._numbers: defaultdict[Hashable, int] = defaultdict(count(-2, -1).__next__)
        self._rows: dict[str, Sequence[int]] = {}
        self._classes: dict[str, int] = {}
        self._attributes: dict[str, str] = {}

    def __contains__(self, name: object) -> bool:
        """Return True if the module has a computation of the name."""
        return name in self._computations

    def of_rows(self, view: ClassedView) -> Sequence[int]:
        """Return the class of each row of a computation."""
        name = view.computation.name
        if name not in self._rows:
            for callee in self._callees(name):
                self.of_computation(callee)
            extent = self._extent(name)
            self._rows[name] = self._find_rows(view) if extent is None else extent.classes
        return self._rows[name]

    def of_computation(self, name: str) -> int:
        """Return the class of a computation of the module."""
        if name not in self._classes:
            for callee in operands_first([name], self._callees):
                self._classes[callee] = self._find_computation(callee)
        return self._classes[name]

    def _view(self, name: str) -> ClassedView:
        view_of = self._view_of()
        if view_of is None:
            raise ReferenceError("the views of this module are gone")
        return view_of(name)

    def _extent(self, name: str) -> Extent | None:
        """Return the rows of a computation in the columns whose classes are counted from 0; None for others."""
        extent = self._computations[name].rows.extent
        if extent is not None and self._columns is None:
            self._columns = extent.columns
        return extent if extent is not None and extent.columns is self._columns else None

    def _callees(self, name: str) -> list[str]:
        """Return the computations of the module that have to have a class before a computation that calls them."""
        if self._extent(name) is not None:
            return []
        view = self._view(name)
        called = [callee for row in view.rows.column.calling for callee in _called_names(view, row)]
        return [callee for callee in called if callee in self._computations and callee not in self._classes]

    def _find_computation(self, name: str) -> int:
        extent = self._extent(name)
        if extent is not None:
            number = extent.computation_class
            return number if number >= 0 else self._numbers[object()]
        view = self._view(name)
        classes = self._rows[name] = self._find_rows(view)
        literals = [_literal(view, row) for row in view.rows.column.literals]
        return self._numbers[tuple(classes), tuple(view.operands_of_rows), tuple(literals), view.root]

    def _find_rows(self, view: ClassedView) -> Sequence[int]:
        column, numbers = view.rows.column, self._numbers
        if view.ambiguous or column.shapeless:  # the heads do not say enough
            return [numbers[object()] for _ in view.rows]
        classes: list[int] = []
        for row, (head, tail, used) in enumerate(zip(column.texts, view.tails, view.operands_of_rows, strict=True)):
            is_plain = view.whole_operands(row) is not None
            heads = tuple([column.texts[operand] for operand in used if operand is not None])
            classes.append(numbers[(head, self._attributes_in(view, tail), heads) if is_plain else object()])
        for row in column.calling:
            called = tuple(map(self._classes.get, _called_names(view, row)))
            classes[row] = numbers[object() if None in called else (classes[row], called)]
        return classes

    def _attributes_in(self, view: ClassedView, tail: str) -> Hashable:
        """Return the attributes of a row without metadata and names."""
        try:
            whole = tail[operands_end(tail) + 1 :]
        except tokens.ScanError:
            return object()
        before, _, metadata = whole.partition(", metadata={")
        is_last = metadata.find("}") == len(metadata) - 1 and '"' not in before  # as most
        attributes = before if is_last else whole
        text = self._attributes.get(attributes)
        if text is None:
            form, _ = view.computation.values.forms.take_apart(whole)  # the form that their values are read from
            text = self._attributes[attributes] = _LEFT_OUT.sub("", form.text)
        return text


def _called_names(view: ClassedView, row: int) -> Sequence[str]:
    try:
        return view.called_names(row)
    except tokens.ScanError:
        return ()


def _literal(view: ClassedView, row: int) -> str:
    """Return what the parentheses of a row hold, or its whole text if they are not closed."""
    tail = view.tails[row]
    try:
        return tail[: operands_end(tail)]
    except tokens.ScanError:
        return tail
