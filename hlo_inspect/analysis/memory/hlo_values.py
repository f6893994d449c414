"""Values of a program: their definitions, and the results that hold them.

Follows `HloDataflowAnalysis` in SSA form, without values of bitcasts (xla/hlo/analysis/hlo_dataflow_analysis.cc).
`InitializeInstructionValueSets` states the values that an instruction defines, `UpdateInstructionValueSet` the values that it
forwards. A result is the list of its values by place (see `ShapeTree`), one value unless it is a tuple. Loops and conditionals
define a phi at each place; redundant phis are removed afterwards (`phis`).

A value has a place in its instruction's result: the number of its subshape in the order of `ShapeUtil::ForEachSubshape`. That
is depth first, 0 for the whole result. So a result has one entry a subshape, and an element of a tuple is a slice of the list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hlo_inspect.analysis.memory.phis import without_redundant_phis
from hlo_inspect.analysis.memory.schedule import MISSING, MemoryFault, Schedule
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import Shape, TupleShape


@dataclass(frozen=True, slots=True, eq=False)
class ShapeTree:
    """The subshapes of a tuple. `elements` has the span of each of its elements, `parts` the subshapes themselves."""

    elements: tuple[tuple[int, int], ...]
    parts: tuple[Shape, ...]


class ShapeTrees:
    """The trees of a module's tuple shapes, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Shape, ShapeTree]] = {}  # the shape is kept, so that its identity stays taken

    def get(self, shape: TupleShape) -> ShapeTree:
        cached = self._known.get(id(shape))
        if cached is None:
            cached = self._known[id(shape)] = (shape, _tree(shape))
        return cached[1]

    def size(self, shape: Shape | None) -> int:
        """Return the number of subshapes; an unknown shape counts as an array."""
        return len(self.get(shape).parts) if isinstance(shape, TupleShape) else 1

    def part(self, shape: Shape | None, place: int) -> Shape | None:
        """Return the subshape at a place."""
        return self.get(shape).parts[place] if isinstance(shape, TupleShape) else shape

    def place(self, shape: Shape | None, index: ShapeIndex) -> int | None:
        """Return the place of a shape index, None if it does not exist."""
        place = 0
        for i in index:
            if not isinstance(shape, TupleShape) or i >= len(shape.elements):
                return None
            place += self.get(shape).elements[i][0]
            shape = shape.elements[i]
        return place

    def index(self, shape: Shape | None, place: int) -> ShapeIndex:
        """Return the shape index of a place."""
        index: list[int] = []
        while place and isinstance(shape, TupleShape):
            elements = self.get(shape).elements
            number = bisect_right(elements, (place + 1,)) - 1  # the last one that starts at the place or before it
            index.append(number)
            place -= elements[number][0]
            shape = shape.elements[number]
        return tuple(index)


def _tree(shape: TupleShape) -> ShapeTree:
    parts: list[Shape] = [shape]
    elements: list[tuple[int, int]] = []
    for element in shape.elements:
        start = len(parts)
        waiting = [element]
        while waiting:
            subshape = waiting.pop()
            parts.append(subshape)
            if isinstance(subshape, TupleShape):
                waiting += reversed(subshape.elements)
        elements.append((start, len(parts)))
    return ShapeTree(tuple(elements), tuple(parts))


Result = int | list[int]
"""The value of a result that is no tuple, else the values by place."""


@dataclass(slots=True, eq=False)
class Values:
    """The values of a program, by number.

    `results` are by time of the `schedule`; `trees` are the trees of its shapes. `times` and `places` belong to the
    definitions; redundant phis keep theirs. `phi_inputs` holds the values that arrive at each phi.
    """

    schedule: Schedule
    trees: ShapeTrees = field(default_factory=ShapeTrees)
    results: list[Result] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    phi_inputs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    faults: list[MemoryFault] = field(default_factory=list)

    def result(self, time: int) -> list[int]:
        """Return the values of a result by place."""
        result = self.results[time]
        return [result] if isinstance(result, int) else result

    def top(self, time: int) -> int:
        """Return the value of the whole result."""
        result = self.results[time]
        return result if isinstance(result, int) else result[0]

    def shape(self, value: int) -> Shape | None:
        return self.trees.part(self.schedule.shapes[self.times[value]], self.places[value])

    def index(self, value: int) -> ShapeIndex:
        """Return the index into the result of the instruction that defines the value."""
        return self.trees.index(self.schedule.shapes[self.times[value]], self.places[value])


def find_values(schedule: Schedule, ranks: Sequence[int]) -> Values:
    """Return the values of a scheduled program, numbered as XLA does.

    They are sorted by the `ranks` of the times at which they are defined, phis after all others.
    """
    values = _Dataflow(schedule).run()
    times, places, phis = values.times, values.places, values.phi_inputs
    used = {value for result in values.results for value in _parts(result)}
    order = sorted(used, key=lambda value: (value in phis, ranks[times[value]], places[value]))
    number = {value: new for new, value in enumerate(order)}
    return Values(
        values.schedule,
        values.trees,
        [number[value] if isinstance(value, int) else [number[part] for part in value] for value in values.results],
        [times[value] for value in order],
        [places[value] for value in order],
        {number[phi]: tuple([number[value] for value in inputs]) for phi, inputs in phis.items() if phi in number},
        values.faults,
    )


class _Dataflow:
    """A walk in the order of time.

    Forwarded values are known by then, except from the end of a loop's body to its start.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._values = Values(schedule)
        self._trees = self._values.trees
        self._loops: list[int] = []

    def run(self) -> Values:
        schedule, values = self._schedule, self._values
        results, handlers = values.results, _HANDLERS
        times, places, shapes = values.times, values.places, schedule.shapes
        for time, opcode in enumerate(schedule.opcodes):
            handler = handlers.get(opcode)
            if handler is not None:
                results.append(handler(self, time))
            elif isinstance(shapes[time], TupleShape):
                results.append(self._define_all(time))
            else:
                results.append(len(times))
                times.append(time)
                places.append(0)
        self._close_loops()
        if values.phi_inputs:
            self._replace(without_redundant_phis(values.phi_inputs))
        return values

    # -- definitions ----------------------------------------------------------------------------------------------------

    def _define(self, time: int, place: int = 0) -> int:
        values = self._values
        values.times.append(time)
        values.places.append(place)
        return len(values.times) - 1

    def _define_all(self, time: int) -> Result:
        shape = self._schedule.shapes[time]
        if not isinstance(shape, TupleShape):
            return self._define(time)
        return [self._define(time, place) for place in range(self._trees.size(shape))]

    def _operand_result(self, time: int) -> Result | None:
        """Return the result of an operand; None if the operand is missing."""
        return self._values.results[time] if 0 <= time < len(self._values.results) else None

    def _operand(self, time: int, number: int = 0) -> Result | None:
        operands = self._schedule.operands[time]
        return self._operand_result(operands[number]) if number < len(operands) else None

    def _fit(self, given: Result | None, time: int) -> Result:
        """Return a forwarded result; note a fault if it does not fit the shape of the instruction."""
        size = self._trees.size(self._schedule.shapes[time])
        if given is not None and (1 if isinstance(given, int) else len(given)) == size:
            return given if isinstance(given, int) or isinstance(self._schedule.shapes[time], TupleShape) else given[0]
        self._fault(time, "does not have the shape of the value that it passes on")
        return self._define_all(time)

    def _fault(self, time: int, message: str) -> None:
        schedule = self._schedule
        name = schedule.name(time)
        self._values.faults.append(MemoryFault(f"{name} {message}", schedule.line(time), name))

    # -- forwarded values -----------------------------------------------------------------------------------------------

    def _pass_on(self, time: int) -> Result:
        return self._fit(self._operand(time), time)

    def _element(self, time: int) -> Result:
        """Return the element of the operand (`UpdateGetTupleElementValueSet`)."""
        return self._fit(self._part_of(time, self._schedule.elements.get(time, 0)), time)

    def _tuple(self, time: int) -> Result:
        """Define a table; its elements are the operands (`UpdateTupleValueSet`)."""
        result = [self._define(time)]
        results = self._values.results
        for operand in self._schedule.operands[time]:
            given = results[operand] if operand >= 0 else self._define(time)
            if isinstance(given, int):
                result.append(given)
            else:
                result += given
        return self._fit(result, time)

    def _copy(self, time: int) -> Result:
        """Define a copy; of a tuple only the table is copied (`UpdateCopyValueSet`)."""
        if not isinstance(self._schedule.shapes[time], TupleShape):
            return self._define(time)
        given = self._pass_on(time)
        return given if isinstance(given, int) else [self._define(time), *given[1:]]

    def _parts(self, time: int, forwarded: dict[ShapeIndex, Result | None], *, leaves: bool = False) -> Result:
        """Return a result with parts of other results (`forwarded`, by shape index); the rest is defined here.

        With `leaves` only arrays are forwarded.
        """
        trees, shape = self._trees, self._schedule.shapes[time]
        if not isinstance(shape, TupleShape):
            given = forwarded.get(())
            return given if isinstance(given, int) else self._define(time)
        result = [MISSING] * trees.size(shape)
        for index, given in forwarded.items():
            place = trees.place(shape, index)
            parts = [given] if isinstance(given, int) else given
            if place is not None and parts is not None and trees.size(trees.part(shape, place)) == len(parts):
                result[place : place + len(parts)] = parts
        tree = trees.get(shape)
        for place, value in enumerate(result):
            if value == MISSING or (leaves and isinstance(tree.parts[place], TupleShape)):
                result[place] = self._define(time, place)
        return result

    def _part_of(self, time: int, number: int) -> Result | None:
        """Return an element of the operand's result."""
        operands = self._schedule.operands[time]
        given = self._operand_result(operands[0]) if operands else None
        if given is None or isinstance(given, int):
            return None
        shape = self._schedule.shapes[operands[0]]
        if not isinstance(shape, TupleShape) or number >= len(shape.elements):
            return None
        start, end = self._trees.get(shape).elements[number]
        return given[start:end] if isinstance(shape.elements[number], TupleShape) else given[start]

    def _gather_start(self, time: int) -> Result:
        """Return a start's result: element 0 is its operand, or a tuple of its operands.

        Follows `UpdateAllGatherStartValueSet` and `UpdateCollectivePermuteStartValueSet`. A collective-permute-start of four
        operands works in place: only the first is passed on.
        """
        operands = self._schedule.operands[time]
        is_in_place = self._schedule.opcodes[time] == "collective-permute-start" and len(operands) == 4
        if len(operands) == 1 or is_in_place:
            return self._parts(time, {(0,): self._operand(time)}, leaves=True)
        return self._parts(time, {(0, i): self._operand(time, i) for i in range(len(operands))}, leaves=True)

    def _gather_done(self, time: int) -> Result:
        """Return the arrays of element 1; define a tuple's table (`UpdateAllGatherDoneValueSet`, `UpdateAsyncDoneValueSet`)."""
        return self._parts(time, {(): self._part_of(time, 1)}, leaves=True)

    def _async_start(self, time: int) -> Result:
        """Return a start's result: the operands, then the root of the wrapped computation (`UpdateAsyncStartValueSet`)."""
        forwarded: dict[ShapeIndex, Result | None] = {
            (0, i): self._operand(time, i) for i in range(len(self._schedule.operands[time]))
        }
        for run in self._schedule.called.get(time, ())[:1]:
            forwarded[1,] = self._operand_result(run.root)
        return self._parts(time, forwarded, leaves=True)

    # -- computations ---------------------------------------------------------------------------------------------------

    def _parameter(self, time: int) -> Result:
        """Return the argument of the caller; a loop defines a phi (`UpdateParameterValueSet`)."""
        run = self._schedule.run_at[time]
        if run.role == "entry":
            return self._define_all(time)
        if run.role in ("body", "condition"):
            return self._phis(time)
        number = next((number for number, argument in run.parameters.items() if argument == time), 0)
        return self._fit(self._operand_result(run.arguments[number]) if number < len(run.arguments) else None, time)

    def _phis(self, time: int) -> Result:
        """Define phis: each equals one of several values that are known later."""
        result = self._define_all(time)
        self._values.phi_inputs.update(dict.fromkeys(_parts(result), ()))
        return result

    def _call(self, time: int) -> Result:
        """Return the root of the computation (`UpdateCallValueSet`)."""
        called = self._schedule.called.get(time, ())
        return self._fit(self._operand_result(called[0].root) if called else None, time)

    def _while(self, time: int) -> Result:
        """Define phis; the values that arrive at them are known at the end of the walk (`UpdateWhileValueSet`)."""
        self._loops.append(time)
        return self._phis(time)

    def _close_loops(self) -> None:
        """Set the inputs of the phis of loops: the operand, and the root of the body."""
        schedule, values = self._schedule, self._values
        for time in self._loops:
            body = next((run for run in schedule.called.get(time, ()) if run.role == "body"), None)
            initial, root = self._operand(time), self._operand_result(body.root) if body is not None else None
            phis = [values.results[time]]
            phis += [values.results[argument] for run in schedule.called.get(time, ()) for argument in run.parameters.values()]
            if initial is None or root is None or len({_size(argument) for argument in (initial, root, *phis)}) != 1:
                self._fault(time, "has a body whose root does not fit its parameter")
                continue
            for phi in phis:
                values.phi_inputs.update(zip(_parts(phi), zip(_parts(initial), _parts(root), strict=True), strict=True))

    def _conditional(self, time: int) -> Result:
        """Define a phi of the roots of the branches (`UpdateConditionalValueSet`)."""
        roots = [self._operand_result(run.root) for run in self._schedule.called.get(time, ())]
        size = self._trees.size(self._schedule.shapes[time])
        if not roots or any(root is None or _size(root) != size for root in roots):
            return self._fit(None, time)
        result = self._phis(time)
        inputs = zip(*[_parts(root) for root in roots if root is not None], strict=True)
        self._values.phi_inputs.update(zip(_parts(result), inputs, strict=True))
        return result

    def _replace(self, values: dict[int, int]) -> None:
        """Replace each redundant phi by the only value that arrives at it."""
        results, kept = self._values.results, self._values.phi_inputs
        for phi in values:
            del kept[phi]
        get = values.get
        for time, result in enumerate(results):
            if isinstance(result, int):
                results[time] = get(result, result)
            elif not values.keys().isdisjoint(result):
                results[time] = [get(value, value) for value in result]
        for phi, inputs in kept.items():
            kept[phi] = tuple([get(value, value) for value in inputs])


def _parts(result: Result) -> Sequence[int]:
    return (result,) if isinstance(result, int) else result


def _size(result: Result) -> int:
    return 1 if isinstance(result, int) else len(result)


_HANDLERS: dict[str, Callable[[_Dataflow, int], Result]] = {
    "add-dependency": _Dataflow._pass_on,
    "all-gather-done": _Dataflow._gather_done,
    "all-gather-start": _Dataflow._gather_start,
    "all-reduce-done": _Dataflow._pass_on,
    "async-done": _Dataflow._gather_done,
    "async-start": _Dataflow._async_start,
    "async-update": lambda flow, time: flow._parts(time, {(i,): flow._part_of(time, i) for i in (0, 1)}, leaves=True),
    "bitcast": _Dataflow._pass_on,
    "call": _Dataflow._call,
    "collective-permute-done": _Dataflow._gather_done,
    "collective-permute-start": _Dataflow._gather_start,
    "conditional": _Dataflow._conditional,
    "copy": _Dataflow._copy,
    "copy-done": lambda flow, time: flow._parts(time, {(): flow._part_of(time, 0)}),
    "copy-start": lambda flow, time: flow._parts(time, {(1,): flow._operand(time)}),
    "domain": _Dataflow._pass_on,
    "get-tuple-element": _Dataflow._element,
    "opt-barrier": _Dataflow._pass_on,
    "parameter": _Dataflow._parameter,
    "recv-done": lambda flow, time: flow._parts(time, {(0,): flow._part_of(time, 0)}),
    "send": lambda flow, time: flow._parts(time, {(0,): flow._operand(time)}),
    "tuple": _Dataflow._tuple,
    "while": _Dataflow._while,
}
"""By opcode the forwarded values of an instruction. All other opcodes define each of their subshapes."""
