"""Construction of a module from columns, which the native reader filled.

`ModuleBuilder` does the same with rows that readers in Python read. Columns are plainer: each computation is whole, has one
root, and its names are defined once. So most computations cost an object, and rows cost nothing until something asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from hlo_inspect.hlo.columns import CALLS_AHEAD, IS_ENTRY, IS_USED, Columns, Extent
from hlo_inspect.hlo.instruction import LEFT_OUT
from hlo_inspect.hlo.module import Computation, ParameterReads
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, TABLE
from hlo_inspect.hlo.read.consistency import note_elements
from hlo_inspect.hlo.read.module_builder import ModuleBuilder
from hlo_inspect.hlo.read.open_computation import FOLLOWED, HANDING_OPCODES, OpenComputation, without_metadata
from hlo_inspect.hlo.rows import Head, HeadColumn
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.shapes import TupleShape

_IN_TWO_PARTS = ", literal="
"""Attribute with two parts, which the native reader does not tell apart: it reads all others to their end, or refuses them."""

_CALLS = CALLEE_ATTRIBUTES.index("calls")


class ColumnBuilder:
    """Builder of the computations of one `Columns`."""

    def __init__(self, builder: ModuleBuilder, columns: Columns) -> None:
        """Parse the heads. The columns are cut before a computation with a wrong shape."""
        self._builder = builder
        self._module = builder.module
        self._wants = builder.module.wants
        self._columns = columns
        self._heads = self._parsed_heads()
        self._forms: dict[int, HeadColumn] = {}

    def _parsed_heads(self) -> list[Head]:
        columns, table = self._columns, self._module.heads
        heads: list[Head] = []
        for number, text in enumerate(columns.head_texts):
            rows = columns.rows_of_head(number)
            head = table.find(text) if rows else None
            if rows and head is None:
                columns.cut(min(columns.count, columns.computation_of(rows[0])))
            heads.append(head or Head("", None))
        return heads

    def take(self) -> None:
        """Add the computations to the module."""
        columns, kept = self._columns, self._kept_rows()
        noted = self._by_computation(self._rows_of(head.problem is not None for head in self._heads))
        scalar = [head.holds_scalar for head in self._heads]
        wants_scalars, wants_graph = self._wants.loops, self._wants.graph
        is_sound = not any(_IN_TWO_PARTS in text for text in columns.form_texts)
        shared, register = self._module.shared, self._builder.register
        names, forms = columns.names, self._forms
        for number, (name, line, first, end, root, form_number, flags) in enumerate(columns.computations()):
            computation = Computation(names[name], columns.line + line, is_entry=False, shared=shared)
            form = forms.get(form_number) or self._form(number)
            computation.opcodes = form.opcodes
            computation.is_sound = is_sound
            computation.root_opcode = form.opcodes[root - first]
            if wants_graph:
                computation.take_extent(Extent(columns, first, end), form)
            if flags & IS_ENTRY:
                self._make_entry(computation, number)
            for row in noted.get(number, ()):
                self._note_problem(row)
            if number in kept or (wants_scalars and scalar[columns.heads[root]]):
                self._keep(computation, number, kept.get(number, ()))
            register(computation)
        self._check_callees()

    def _form(self, number: int) -> HeadColumn:
        """Return the heads of a computation, which those with the same heads and root share."""
        columns = self._columns
        first, end = columns.extent(number)
        heads = [self._heads[head] for head in columns.heads[first:end]]
        form = self._forms[columns.heads_forms[number]] = HeadColumn(heads, frozenset({columns.roots[number] - first}))
        return form

    # -- rows to keep ---------------------------------------------------------------------------------------------------

    def _rows_of(self, are_asked: Iterable[bool]) -> list[int]:
        """Return the rows with the heads for which `are_asked` is true, in order."""
        columns = self._columns
        rows = [row for number, is_asked in enumerate(are_asked) if is_asked for row in columns.rows_of_head(number)]
        rows.sort()
        return rows

    def _by_computation(self, rows: Sequence[int]) -> dict[int, list[int]]:
        """Return rows, which are in order, by computation."""
        columns = self._columns
        grouped: defaultdict[int, list[int]] = defaultdict(list)
        number, end = -1, 0
        for row in rows:
            if row >= end:
                number = columns.computation_of(row)
                end = columns.first_row[number + 1]
            grouped[number].append(row)
        return grouped

    def _kept_rows(self) -> dict[int, list[int]]:
        """Return the rows whose instructions are kept, by computation."""
        kept = set(self._rows_of(head.is_wanted for head in self._heads))
        for row in self._rows_of(head.may_be_kept and _is_told_by_its_text(head) for head in self._heads):
            if self._builder.is_called_for(self._heads[self._columns.heads[row]], self._columns.tail(row)):
                kept.add(row)
        kept.update(self._callers(kept))
        if self._wants.entry:
            kept.update(self._rows_of_entry())
        return self._by_computation(sorted(kept))

    def _callers(self, kept: set[int]) -> Iterator[int]:
        """Yield the rows that call an earlier computation in which a row is kept, by `calls`."""
        columns = self._columns
        may_be_kept = [head.may_be_kept and head.opcode in TABLE for head in self._heads]
        holders = {columns.computation_names[number]: number for number in self._by_computation(sorted(kept))}
        before = self._builder.holders
        if not holders and not before:
            return
        holders |= {number: -1 for number, name in enumerate(columns.names) if name in before}
        for call, callee in enumerate(columns.callees):
            if callee not in holders or columns.roles[call] != _CALLS:
                continue
            row = columns.row_of_call(call)
            number = columns.computation_of(row)
            if holders[callee] < number and may_be_kept[columns.heads[row]]:
                yield row
                holders.setdefault(columns.computation_names[number], number)

    def _rows_of_entry(self) -> Iterator[int]:
        columns = self._columns
        for number in range(columns.count):
            if columns.computation_flags[number] & IS_ENTRY:
                first, end = columns.extent(number)
                rows = self._rows_of(head.opcode == "parameter" for head in self._heads)
                yield columns.roots[number]
                yield from [row for row in rows if first <= row < end]

    def _keep(self, computation: Computation, number: int, rows: Sequence[int]) -> None:
        """Keep instructions of a computation, and the scalars that decide how often its loops run."""
        columns, heads = self._columns, self._heads
        root = columns.roots[number]
        line = columns.line_of(number) + 1 - columns.extent(number)[0]
        if rows:
            self._keep_instructions(computation, rows, root, line)
        if self._wants.loops:
            handing = [row for row in rows if heads[columns.heads[row]].opcode in HANDING_OPCODES]
            if handing or heads[columns.heads[root]].holds_scalar:
                feeding = self._feeding_scalars(number, handing, is_entry=computation.is_entry)
                computation.keep_scalars([(without_metadata(self._row(row, root)), line + row) for row in feeding])

    def _keep_instructions(self, computation: Computation, rows: Sequence[int], root: int, line: int) -> None:
        """Keep the instructions of these rows. Row number 0 would be on `line`."""
        columns, heads, looked_up = self._columns, self._heads, self._wants.operands
        opened, keep = OpenComputation(computation, self._module.heads), self._builder.keep
        for row in rows:
            if looked_up and heads[columns.heads[row]].opcode in looked_up:
                operands = columns.operands_of(row)
                opened.define(map(columns.row_name, operands), [heads[columns.heads[operand]] for operand in operands])
            keep(opened, self._row(row, root), line + row, is_printed=True)
        computation.instructions = opened.instructions or ()

    def _feeding_scalars(self, number: int, handing: Iterable[int], *, is_entry: bool) -> list[int]:
        """Return the scalar rows that feed the root, loops and calls, as `OpenComputation.feeding_scalars` does."""
        columns, heads = self._columns, self._heads
        waiting = [operand for row in handing for operand in columns.operands_of(row)]
        root = columns.roots[number]
        if not is_entry and self._may_count(number):
            waiting.append(root)
        kept: dict[int, None] = {}
        while waiting:
            row = waiting.pop()
            head = heads[columns.heads[row]]
            if row in kept or not head.holds_scalar:
                continue
            kept[row] = None
            if head.opcode in FOLLOWED:
                waiting += columns.operands_of(row)
        return list(kept)

    def _may_count(self, number: int) -> bool:
        """Return True if the root is a scalar, or if the computation can be the body of a loop, from tuple to tuple."""
        columns, heads = self._columns, self._heads
        root = heads[columns.heads[columns.roots[number]]]
        if not root.holds_scalar or not isinstance(root.shape, TupleShape):
            return root.holds_scalar
        own = {heads[head] for head in set(columns.heads[slice(*columns.extent(number))])}
        return any(h.holds_scalar and h.opcode == "parameter" and isinstance(h.shape, TupleShape) for h in own)

    def _row(self, row: int, root: int) -> Row:
        """Return a row of the computation whose root row is `root`."""
        columns = self._columns
        text, head = columns.text, columns.head_texts[columns.heads[row]]
        name, tail = (
            text[columns.name_start[row] : columns.name_end[row]],
            text[columns.tail_start[row] : columns.tail_end[row]],
        )
        return "ROOT " if row == root else "", name, head, tail

    # -- the entry, and problems ----------------------------------------------------------------------------------------

    def _make_entry(self, computation: Computation, number: int) -> None:
        columns, module = self._columns, self._module
        computation.make_entry()
        module.entry, module.entry_signature = computation, columns.signature(number)
        first, end = columns.extent(number)
        start, stop = columns.name_start[first], columns.tail_end[end - 1]
        module.device_marks.note(columns.text, start, stop, of_entry=True)
        if self._wants.checked or self._wants.unused:
            computation.reads = self._reads(first, end)
            computation.reads.known = columns.text.find(LEFT_OUT, start, stop) < 0

    def _reads(self, first: int, end: int) -> ParameterReads:
        """Return the reads of the parameters among these rows."""
        columns, heads, reads = self._columns, self._heads, ParameterReads()
        tuples: set[int] = set()
        for row in self._rows_of(head.opcode == "parameter" for head in heads):
            if first <= row < end:
                if not columns.row_flags[row] & IS_USED:
                    reads.unread.add(columns.row_name(row))
                if heads[columns.heads[row]].text.startswith("("):
                    reads.elements[columns.row_name(row)] = set()
                    tuples.add(row)
        if tuples:
            users = [row for row in range(first, end) if not tuples.isdisjoint(columns.operands_of(row))]
            note_elements(reads.elements, [(columns.tail(row), heads[columns.heads[row]].opcode) for row in users])
        return reads

    def _note_problem(self, row: int) -> None:
        problem = self._heads[self._columns.heads[row]].problem
        if problem is not None:
            columns = self._columns
            number = columns.computation_of(row)
            line = columns.line_of(number) + 1 + row - columns.extent(number)[0]
            self._module.note(*problem, line, columns.row_name(row))

    def _check_callees(self) -> None:
        """Record the computations that are called and not defined so far."""
        if not self._wants.checked:
            return
        columns, defined = self._columns, self._module.computations
        unknown = {number for number, name in enumerate(columns.names) if name not in defined}
        calls = [call for call, callee in enumerate(columns.callees) if callee in unknown] if unknown else ()
        if not any(self._heads[columns.heads[columns.row_of_call(call)]].may_call for call in calls):
            return  # as attributes of other opcodes name no computations
        for number in range(columns.count):
            if columns.computation_flags[number] & CALLS_AHEAD:
                tails = map(columns.tail, range(*columns.extent(number)))
                self._builder.names.note_callees(enumerate(tails, columns.line_of(number) + 1))


def _is_told_by_its_text(head: Head) -> bool:
    """Return True if the target or an attribute decides if a row is kept, and not the computation that it calls."""
    return head.opcode == "custom-call" or head.opcode not in TABLE
