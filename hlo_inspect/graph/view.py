"""The view of a computation that was read with its graph: the content of its rows, and the users of each row.

A row is an index. Everything is read on first use and kept, so that the analyses of a module share it.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import count, repeat
from weakref import WeakMethod

from hlo_inspect.graph.row_classes import RowClasses
from hlo_inspect.graph.shape_inference import inferred_shape
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import LEFT_OUT, Callee, Instruction, Operand, operand_names, operands_of, printed_element
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import Head
from hlo_inspect.hlo.values.attribute_forms import printed_fusion
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import without_layer_numbers
from hlo_inspect.hlo.values.shapes import Shape, subshape
from hlo_inspect.lazy_pattern import lazy_pattern

InstructionPlace = tuple[str, int, str]
"""Computation, line and name: the key of an instruction, unique unless one line defines a name twice."""

MAX_INFERRED = 1 << 20
"""Bound on the arrays and tuples in all inferred shapes of a computation: few rows can double a tuple many times."""

_UNREADABLE = (Operand(None),)
_NUMBER = lazy_pattern(r"(\d{1,9}+)\)", re.ASCII)
_PLAIN = r"""[^"'/{}]*+"""
_METADATA = lazy_pattern(
    rf"""{_PLAIN}(?:(?:(?<!, metadata=)\{{{_PLAIN}\}}|/\*index=\d++\*/){_PLAIN})*+(?<=, metadata=)"""
    r"""(\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\})(?=, [a-z_]++=|$)""",
    re.ASCII,
)
"""The metadata of a row, behind operands and attributes that hold no string."""


class View:
    """The rows of one computation: lines, names, opcodes, shapes, operands, attributes.

    A shape that the text leaves out is inferred. A shape is None if it cannot be read or inferred. `root` is the last row that
    is marked as the root, else the last row; None without rows.
    """

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.rows = rows = computation.rows
        column = rows.column
        self.names, self.tails, self.lines = rows.names, rows.tails, rows.lines
        self.heads: Sequence[Head] = column.heads
        self.opcodes, self.shapes = column.opcodes, column.shapes
        size = len(self.names)
        self.root = max(column.marked, default=size - 1 if size else None)
        self._operands: dict[int, tuple[Operand, ...]] = {}
        self._other_operands: dict[int, tuple[int | None, ...]] = {}
        self._instructions: dict[int, Instruction] = {}
        self._metadata: dict[int, Metadata | None] = {}
        self._similar_metadata: dict[int, Metadata | None] = {}
        self._metadata_by_form: dict[Hashable, Metadata | None] = {}
        if column.shapeless:
            self._infer_shapes(column.shapeless)

    def _infer_shapes(self, shapeless: Iterable[int]) -> None:
        """Replace the heads and shapes of rows whose shape the text leaves out. Operands come first in the text."""
        heads, shapes = list(self.heads), list(self.shapes)
        self.heads, self.shapes = heads, shapes
        inferred = 0
        for row in shapeless:
            shape = inferred_shape(self.instruction_at(row), self.operand_shapes(row))
            inferred += shape.extent[1] if shape is not None else 0
            if inferred > MAX_INFERRED:
                break
            shapes[row] = shape
            heads[row] = heads[row]._replace(shape=shape)
        self._instructions.clear()

    def rows_by_head(self) -> Iterator[Sequence[int]]:
        """Yield the rows of each head, which have one opcode and one shape, in the order of the text."""
        rows_of_head: defaultdict[int, array[int]] = defaultdict(partial(array, "I"))  # equal heads are one object
        for row, head in enumerate(self.heads):
            rows_of_head[id(head)].append(row)
        yield from rows_of_head.values()

    def place(self, row: int) -> InstructionPlace:
        """Return computation, line and name of a row."""
        return self.computation.name, self.lines[row], self.names[row]

    @cached_property
    def places(self) -> Sequence[InstructionPlace]:
        """`place` of all rows."""
        return list(zip(repeat(self.computation.name), self.lines, self.names))

    # -- names ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _indices(self) -> dict[str | None, int]:
        return dict(zip(self.names, count()))

    def index(self, name: str) -> int | None:
        """Return the row that defines a name, the last one if there are several."""
        return self._indices.get(name)

    def row_at(self, line: int, name: str) -> int | None:
        """Return the row that defines a name on a line, else the row that `index` returns."""
        row = line - self.lines[0] if self.rows.extent is not None else -1  # in columns each row has a line
        return row if 0 <= row < len(self.names) and self.names[row] == name else self.index(name)

    @cached_property
    def ambiguous(self) -> frozenset[int]:
        """The rows whose names other rows of the computation define too."""
        if self.rows.extent is not None or len(self._indices) == len(self.rows):
            return frozenset()
        last = self._indices
        earlier = {index for index, name in enumerate(self.names) if last[name] != index}
        return frozenset(earlier | {last[self.names[index]] for index in earlier})

    # -- operands -------------------------------------------------------------------------------------------------------

    @cached_property
    def operands_of_rows(self) -> Sequence[tuple[int | None, ...]]:
        """`operand_rows` of all rows."""
        return [self.operand_rows(row) if rows is None else rows for row, rows in enumerate(self._whole_operands)]

    def operand_rows(self, index: int) -> tuple[int | None, ...]:
        """Return the row that defines each operand of a row; None for an operand that nothing defines."""
        whole = self.whole_operands(index)
        return self._other_operands[index] if whole is None else whole

    def whole_operands(self, index: int) -> tuple[int, ...] | None:
        """Return the operand rows if each operand is named and is the whole result of a row; else None."""
        rows = self._whole_operands[index]
        if rows is None and index not in self._other_operands:
            names = operand_names(self.tails[index])
            if names is None:
                self._other_operands[index] = tuple([self._indices.get(operand.name) for operand in self.operands(index)])
                return None
            try:
                rows = self._whole_operands[index] = tuple(map(self._indices.__getitem__, names))
            except KeyError:  # an operand that no row defines
                self._other_operands[index] = tuple(map(self._indices.get, names))
        return rows

    @cached_property
    def _whole_operands(self) -> list[tuple[int, ...] | None]:
        """The operand rows of each row whose operands are the names of rows alone; None for other rows, as long as unread."""
        if self.rows.extent is not None:
            return self.rows.extent.operand_rows()
        row_of = self._indices | {f"%{name}": row for name, row in self._indices.items()}
        row_of.pop("null", None)  # no name where an operand is expected
        row_of.pop("%null", None)
        whole: list[tuple[int, ...] | None] = []
        for opcode, tail in zip(self.opcodes, self.tails, strict=True):
            text, end, _ = tail.partition(")")
            if opcode in LITERAL_OPCODES or (end and not text):
                whole.append(())
                continue
            try:
                whole.append(tuple(map(row_of.__getitem__, text.split(", "))) if end else None)
            except KeyError:
                whole.append(None)
        return whole

    def operand_row(self, index: int, number: int) -> int | None:
        """Return the row that defines an operand. Return None if the row has no such operand, or nothing defines it."""
        rows = self.operand_rows(index)
        return rows[number] if 0 <= number < len(rows) else None

    def operand(self, index: int, number: int) -> Operand | None:
        """Return an operand as the text has it; None if the row has no such operand."""
        operands = self.operands(index)
        return operands[number] if 0 <= number < len(operands) else None

    def omits_operands(self, index: int) -> bool:
        """Return True if the text shows only the first operands of a row."""
        if self.whole_operands(index) is not None:
            return False
        operands = self.operands(index)
        return bool(operands) and operands[-1].name is None and operands[-1].shape.startswith(LEFT_OUT)

    @property
    def has_undefined_operands(self) -> bool:
        """True if a row has an operand that no row defines, among the rows whose operands were read."""
        return any(None in rows for rows in self._other_operands.values())

    def operands(self, index: int) -> tuple[Operand, ...]:
        """Return the operands of a row as the text has them.

        If the operand list is not closed, return one operand without a name.
        """
        operands = self._operands.get(index)
        if operands is None:
            try:
                operands = () if self.opcodes[index] in LITERAL_OPCODES else operands_of(self.tails[index])
            except tokens.ScanError:
                operands = _UNREADABLE
            self._operands[index] = operands
        return operands

    def parameter_number(self, index: int) -> int | None:
        """Return the number of a parameter; None if it cannot be read."""
        plain = _NUMBER.match(self.tails[index])
        return int(plain[1]) if plain is not None else self.instruction_at(index).parameter_number

    @cached_property
    def parameters_by_number(self) -> dict[int, int]:
        """The rows of the parameters whose numbers can be read."""
        rows = [(self.parameter_number(row), row) for row, opcode in enumerate(self.opcodes) if opcode == "parameter"]
        return {number: row for number, row in rows if number is not None}

    def element_number(self, index: int) -> int | None:
        """Return the tuple index that a row takes from its operand; None if the index cannot be read."""
        printed = printed_element(self.tails[index])
        return printed if printed is not None else self.instruction_at(index).attr("index")

    def operand_shape(self, index: int, number: int) -> Shape | None:
        """Return the shape of an operand: from its definition, else as printed.

        Return None if the row has no such operand, or if its shape is unknown.
        """
        row = self.operand_row(index, number)
        defined = self.shapes[row] if row is not None and row not in self.ambiguous else None
        if defined is not None and self.whole_operands(index) is not None:
            return defined
        operand = self.operand(index, number)
        if operand is None:
            return None
        if defined is None:
            return self.computation.values.shapes.get(operand.shape)
        return subshape(defined, operand.path)

    def operand_shapes(self, index: int) -> Sequence[Shape | None]:
        """Return the shapes of all operands of a row."""
        rows = self.whole_operands(index)
        if rows is not None and not self.ambiguous:
            shapes = [shape for row in rows if (shape := self.shapes[row]) is not None]
            if len(shapes) == len(rows):
                return shapes
        return [self.operand_shape(index, number) for number in range(len(self.operand_rows(index)))]

    def origin(self, row: int, through: Container[str]) -> int | None:
        """Follow only operands back through opcodes of `through`, and return the last row; None in a cycle."""
        passed: set[int] = set()
        while row not in passed:
            operands = self.operand_rows(row) if self.opcodes[row] in through else ()
            if len(operands) != 1 or operands[0] is None:
                return row
            passed.add(row)
            row = operands[0]
        return None

    @cached_property
    def users(self) -> list[list[int]]:
        """The rows that use each row, in the order of the text, each once."""
        users: list[list[int]] = [[] for _ in range(len(self.names))]
        for index, rows in enumerate(self.operands_of_rows):
            if len(rows) == 1 and rows[0] is not None:  # as most
                users[rows[0]].append(index)
                continue
            for row in rows:
                if row is not None and (not users[row] or users[row][-1] != index):
                    users[row].append(index)
        return users

    # -- instructions ---------------------------------------------------------------------------------------------------

    def instruction(self, index: int) -> Instruction:
        """Return the instruction of a row; reuse the reader's object if it kept one, unless its shape was inferred.

        Raise ScanError if the operands are not closed.
        """
        instruction = self._instructions.get(index)
        if instruction is None:
            line = self.lines[index]
            instruction = self._kept.get((line, self.names[index]))
            if instruction is None or (instruction.shape is None and self.shapes[index] is not None):
                instruction = Instruction(self.computation.enclosing(), self.rows[index], self.heads[index], line)
            instruction.split()
            self._instructions[index] = instruction
        return instruction

    def instruction_at(self, index: int) -> Instruction:
        """Return the instruction of a row, without operands and attributes if the operands are not closed."""
        try:
            return self.instruction(index)
        except tokens.ScanError:
            mark, name, head, _ = self.rows[index]
            return Instruction(self.computation.enclosing(), (mark, name, head, ")"), self.heads[index], self.lines[index])

    def op_name(self, index: int) -> str:
        """Return the op_name in the metadata of a row; empty if there is none."""
        metadata = self.metadata(index)
        return "" if metadata is None else metadata.op_name

    def metadata(self, index: int) -> Metadata | None:
        """Return the metadata of a row; None if it is missing or unreadable."""
        key = self._metadata_numbers[index]
        if key not in self._metadata:
            self._metadata[key] = self._read_metadata(index)
        return self._metadata[key]

    def similar_metadata(self, index: int) -> Metadata | None:
        """Return the metadata of a row, or of one whose `op_name` differs only in numbers that tell no phase or scope apart.

        A number in the first scope stays: it is the function's.
        """
        extent, number = self.rows.extent, self._metadata_numbers[index]
        if extent is None or number < 0:
            return self.metadata(index)
        if number not in self._similar_metadata:
            before, _, text = extent.metadata(index).partition('op_name="')
            name, _, others = text.partition('"')
            function, bracket, scopes = name.partition(")")
            form = before, function, bracket and without_layer_numbers(scopes), others
            if form not in self._metadata_by_form:
                self._metadata_by_form[form] = self.metadata(index)
            self._similar_metadata[number] = self._metadata_by_form[form]
        return self._similar_metadata[number]

    @cached_property
    def _metadata_numbers(self) -> Sequence[int]:
        """A number for each row, equal for equal texts of metadata if the columns have them."""
        extent = self.rows.extent
        return range(len(self.names)) if extent is None else extent.metadata_numbers

    @cached_property
    def metadata_keys(self) -> Sequence[Hashable]:
        """A key for each row that only rows of equal metadata share."""
        return list(map(self.metadata, range(len(self.names)))) if self.rows.extent is None else self._metadata_numbers

    def _read_metadata(self, index: int) -> Metadata | None:
        extent = self.rows.extent
        if extent is not None:
            text = extent.metadata(index)
            return self._parse_metadata(text) if text else None
        if "metadata" not in self.tails[index]:
            return None
        plain = _METADATA.match(self.tails[index])
        return self._parse_metadata(plain[1]) if plain is not None else self.instruction_at(index).attr("metadata")

    def _parse_metadata(self, text: str) -> Metadata | None:
        value = self.computation.values.read("metadata", text)
        return value if isinstance(value, Metadata) else None

    def fusion_kind(self, index: int) -> str | None:
        """Return the kind of a fusion; None if it is missing or unreadable."""
        printed = self.printed_fusions.get(index)
        return printed[0] if printed is not None and printed[0] else self.instruction_at(index).attr("kind")

    @cached_property
    def _kept(self) -> dict[tuple[int, str], Instruction]:
        return {(kept.line, kept.name): kept for kept in self.computation.instructions}

    def called_names(self, index: int) -> list[str]:
        """Return the names of the computations that a row calls. Raise ScanError if its operands are not closed."""
        printed = self.printed_fusions.get(index)
        return [callee.name for callee in self.instruction(index).called] if printed is None else [printed[1]]

    def called_at(self, index: int) -> list[Callee]:
        """Return the computations that a row calls; none if its operands are not closed."""
        printed = self.printed_fusions.get(index)
        return self.instruction_at(index).called if printed is None else [Callee("calls", "fused", printed[1])]

    @cached_property
    def printed_fusions(self) -> dict[int, tuple[str | None, str]]:
        """Kind and callee of each fusion in the usual printed form."""
        fusions = [index for index in self.rows.column.calling if self.opcodes[index] == "fusion"]
        kinds = zip(fusions, map(printed_fusion, map(self.tails.__getitem__, fusions)), strict=True)
        return {index: printed for index, printed in kinds if printed is not None}


class Views:
    """The views of a module's computations by name, each made on first use, and the classes of their rows."""

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self.computations = computations
        self.classes = RowClasses(computations, WeakMethod(self.for_computation))
        self._known: dict[str, View] = {}

    @cached_property
    def row_count(self) -> int:
        """The number of rows of all computations."""
        return sum([len(computation.rows.names) for computation in self.computations.values()])

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """The opcodes of all computations."""
        columns = {computation.rows.column for computation in self.computations.values()}  # many share one
        return frozenset().union(*[column.opcodes for column in columns])

    def for_computation(self, name: str) -> View:
        """Return the view of a computation. Raise KeyError if the module has no computation of that name."""
        view = self._known.get(name)
        if view is None:
            view = self._known[name] = View(self.computations[name])
        return view

    def rows_with(self, opcodes: Set[str]) -> Iterator[tuple[View, int]]:
        """Yield the rows of these opcodes, one computation after the other."""
        for name, computation in self.computations.items():
            if not opcodes.isdisjoint(computation.opcodes):
                view = self.for_computation(name)
                yield from ((view, row) for row, opcode in enumerate(view.opcodes) if opcode in opcodes)

    def find(self, name: str | None) -> View | None:
        """Return the view of a computation; None if the module has no computation of that name."""
        return self.for_computation(name) if name is not None and name in self.computations else None

    @cached_property
    def fusions(self) -> dict[str, tuple[View, int]]:
        """The fusion of each fused computation, by the computation's name: its view and row. Of several the first."""
        callers: dict[str, tuple[View, int]] = {}
        for name, computation in self.computations.items():
            if not computation.rows.column.calling:
                continue
            view = self.for_computation(name)
            for row in view.rows.column.calling:
                fused = self.fused(view, row) if view.opcodes[row] == "fusion" else None
                if fused is not None:
                    callers.setdefault(fused.name, (view, row))
        return callers

    def running(self, name: str) -> str:
        """Return the computation that runs a computation's instructions: for a fused one that of its outermost fusion."""
        seen: set[str] = set()
        while name in self.fusions and name not in seen:
            seen.add(name)
            name = self.fusions[name][0].computation.name
        return name

    def fused(self, view: View, row: int) -> Computation | None:
        """Return the computation that a fusion runs; None if the text does not hold it."""
        printed = view.printed_fusions.get(row)
        if printed is not None:
            return self.computations.get(printed[1])
        called = view.called_at(row)
        return self.computations.get(called[0].name) if called else None
