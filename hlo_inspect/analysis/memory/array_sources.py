"""The source of an array: the instruction whose metadata says which line of the program makes its elements.

A loop over layers writes one layer per iteration into a stack. XLA allocates the stack by a broadcast before the loop, and the
loop writes it by a dynamic-update-slice. Both have the line of the loop (`lax.scan`). The line that makes the elements is the
line of the update. Slices of a stack, copies and conversions that XLA adds have the line of the loop or none. Their source is
further back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.analysis.memory.array_flow import ArrayFlow, ArrayPlace
from hlo_inspect.analysis.memory.parameter_relations import ParameterRelations
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, Labels
from hlo_inspect.graph.frames import MAX_STEPS, Place
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ELEMENTWISE, NAMING
from hlo_inspect.hlo.values.shapes import array_leaves

_WRITING = frozenset({"dynamic-update-slice"})
_WRITES = _WRITING | {"dynamic-update-slice-start"}
_ENDS_OF_WRITES = frozenset({"dynamic-update-slice-done"})
_CALLING = frozenset({"fusion", "call"})
_PASSING = NAMING | _CALLING | {"copy"}
_FILLING = frozenset({"broadcast", "constant"})
_ALLOCATING = frozenset({"AllocateBuffer", "CreateBuffer"})


class ArraySource(NamedTuple):
    """The labels of the instruction that makes the elements of an array.

    `parameter` is the number of the entry's parameter that the array comes from, None for other arrays, and `path` its path.
    `is_copy` is True if no line of the program stands between the parameter and the array.
    """

    labels: Labels
    parameter: int | None
    path: str
    is_copy: bool


class _Way(NamedTuple):
    """The way of an array back to the place that makes its elements.

    `source` is the first instruction with a line that is not of a loop, `of_loop` the last one with any line, `end` the last
    place. `lines` are the lines of the loops on the way. Instructions before a write into a stack are not on it.
    """

    source: Place | None
    of_loop: Place | None
    end: Place
    lines: frozenset[str]


class ArraySources:
    """The sources of arrays, each computed once.

    `labels_of` returns the labels of a row by its own metadata. `paths` are those of the entry's parameters.
    """

    def __init__(
        self,
        flow: ArrayFlow,
        relations: ParameterRelations,
        labels_of: Callable[[View, int], Labels],
        paths: Mapping[int, str],
    ) -> None:
        self._flow = flow
        self._frames = flow.frames
        self._relations = relations
        self._labels_of = labels_of
        self._paths = paths
        self._lines_around: dict[int, frozenset[str]] = {}
        self._loop_lines: dict[tuple[int, int], frozenset[str]] = {}
        self._ways: dict[Place, _Way] = {}
        self._writes: dict[Place, Place | None] = {}
        self._lines: dict[tuple[int, int], str] = {}
        self._cache: dict[ArrayPlace, ArraySource | None] = {}

    def get(self, array: ArrayPlace) -> ArraySource | None:
        """Return the source of an array; None if its computation is not run."""
        if array not in self._cache:
            place = self._flow.place(array)
            self._cache[array] = self._find(self._flow.finished(place)) if place is not None else None
        return self._cache[array]

    def with_phase(self, array: ArrayPlace, labels: Labels) -> ArraySource:
        """Return the source of an array with the phase of the `labels` of its instruction."""
        source = self.get(array)
        if source is None:
            return ArraySource(labels, None, "", is_copy=False)
        made = source.labels
        return source._replace(labels=labels._replace(source=made.source, op_name=made.op_name, scope=made.scope))

    def is_stack(self, array: ArrayPlace) -> bool:
        """Return True if an instruction of a loop's body makes this array by writing a part of the loop's state."""
        place = self._flow.place(array)
        return place is not None and self._write(self._flow.finished(place)) is not None

    def _write(self, place: Place | None) -> Place | None:
        """Return the instruction that writes a part of a loop's state and makes the array at a place."""
        way: dict[Place, None] = {}
        write: Place | None = None
        while place is not None and place[1] >= 0 and place not in way and len(way) < MAX_STEPS:
            if place in self._writes or self._update(place) is not None:
                write = self._writes.get(place, place)
                break
            way[place] = None
            opcode = self._frames.opcode(place)
            if opcode == "while":
                place = self._flow.last_state(place)
            else:
                place = self._frames.step_back(place) if opcode in _PASSING else None
        self._writes |= dict.fromkeys(way, write)
        return write

    @cached_property
    def _allocated(self) -> dict[Place, Place]:
        """The elements of loops by the places that allocate them as stacks, with constants or without content."""
        allocated: dict[Place, Place] = {}
        for loop in self._flow.loops():
            for element in self._written_elements(loop):
                for place in self._allocations(element):
                    allocated.setdefault(place, element)
        return allocated

    def _written_elements(self, loop: Place) -> dict[Place, Place]:
        """Return the elements of a loop's state that are stacks, each with the instruction that writes it."""
        elements = [(*loop[:2], index) for index, _ in array_leaves(self._frames.shape(loop))]
        writes = {element: self._write(self._flow.last_state(element)) for element in elements}
        return {element: write for element, write in writes.items() if write is not None}

    def _allocations(self, element: Place) -> Sequence[Place]:
        """Return the places that make the initial value of a stack; none if it has content."""
        initial = self._frames.operand(element, 0, element[2])
        path = list(self._frames.trace_back(initial)) if initial is not None else []
        opcode = self._frames.opcode(path[-1]) if path else ""
        is_empty = opcode == "constant" or (opcode == "custom-call" and self._frames.target(path[-1]) in _ALLOCATING)
        size = self._frames.size(path[0]) if path else 0
        return [place for place in path if self._frames.size(place) == size] if is_empty else []

    # -- the way back ---------------------------------------------------------------------------------------------------

    def _find(self, place: Place) -> ArraySource:
        way = self._way(self._allocated.get(place, place))
        is_copy = way.source is None and self._flow.parameter(way.end) is not None
        source = way.source or (way.end if is_copy else way.of_loop or place)
        relation = self._relations.at_place(place) or self._relations.at_place(source)
        parameter = relation.parameter if relation is not None else None
        path = self._paths.get(parameter, "") if parameter is not None else ""
        return ArraySource(self._labels(source), parameter, path, is_copy)

    def _way(self, place: Place) -> _Way:
        """Return the way back from a place, computed once for all places on it."""
        passed: dict[Place, Place | None] = {}
        way: _Way | None = None
        current: Place | None = place
        while current is not None and current[1] >= 0 and current not in passed and len(passed) < MAX_STEPS:
            way = self._ways.get(current)
            if way is not None:
                break
            update = passed[current] = self._update(current)
            current = update if update is not None else self._before(current)
        for step in reversed(passed):
            way = self._ways[step] = self._extended(
                way or _Way(None, None, step, frozenset({""})), step, passed[step] is not None
            )
        return way or _Way(None, None, place, frozenset())

    def _extended(self, way: _Way, place: Place, is_write: bool) -> _Way:
        """Return a way back that begins at the place before its first one."""
        line, lines = self._line(place), way.lines | self._lines_of_loops(place[0])
        if is_write:
            return way._replace(lines=lines | {line})
        if self._frames.opcode(place) == "while":
            return way._replace(lines=lines | self._lines_of_loop(place[:2]))
        of_loop = way.of_loop or (place if line else None)
        return _Way(way.source if line in lines else place, of_loop, way.end, lines)

    def _before(self, place: Place) -> Place | None:
        """Return the place before one on the way back."""
        flow, opcode = self._flow, self._frames.opcode(place)
        if opcode == "while":
            return flow.initial(place) or flow.last_state(place)
        source = flow.source(place)
        loop = flow.loop(place[0]) if opcode == "parameter" else None
        if source is None and loop is not None:
            return flow.last_state((*loop[:2], place[2]))
        if source is None and opcode in ELEMENTWISE and not self._line(place):
            arrays = [operand for operand in self._frames.operands(place) if self._frames.opcode(operand) not in _FILLING]
            return arrays[0] if len(arrays) == 1 else None  # the only operand that is no broadcast
        return source

    def _update(self, place: Place) -> Place | None:
        """Return the array that an instruction writes into the state of the loop around it; None for other instructions."""
        frames = self._frames
        if frames.opcode(place) in _ENDS_OF_WRITES:
            place = frames.start(place)
        loop = self._flow.loop(place[0]) if frames.opcode(place) in _WRITES else None
        stack = frames.operand(place, 0) if loop is not None else None
        state = frames.carried_input(stack, _WRITING) if stack is not None else None
        return frames.operand(place, 1) if state is not None and self._flow.is_state(state[0]) else None

    # -- metadata -------------------------------------------------------------------------------------------------------

    def _labels(self, place: Place) -> Labels:
        return self._labels_of(self._frames[place[0]].view, place[1])

    def _line(self, place: Place) -> str:
        """Return the source line of an instruction, else its named scope, else an empty text."""
        key = place[:2]
        if key not in self._lines:
            labels = self._labels(place)
            texts = (labels.source, labels.scope)
            self._lines[key] = next((text for text in texts if text not in {NOT_PRINTED, NO_SCOPE}), "")
        return self._lines[key]

    def _lines_of_loops(self, frame: int) -> frozenset[str]:
        if frame not in self._lines_around:
            loops: dict[Place, None] = {}
            loop = self._flow.loop(frame)
            while loop is not None and loop not in loops:
                loops[loop] = None
                loop = self._flow.loop(loop[0])
            self._lines_around[frame] = frozenset(line for loop in loops for line in self._lines_of_loop(loop[:2]))
        return self._lines_around[frame]

    def _lines_of_loop(self, loop: tuple[int, int]) -> frozenset[str]:
        """Return the line of a loop; if it is not printed, the lines of the instructions that write its stacks."""
        if loop not in self._loop_lines:
            line = self._line((*loop, ()))
            lines = [line] if line else map(self._line, self._written_elements((*loop, ())).values())
            self._loop_lines[loop] = frozenset(lines)
        return self._loop_lines[loop]
