"""The nodes of the places read so far, for the transfer functions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.hlo.opcodes import COMMUTATIVE, DEVICE_NUMBERS, ELEMENTWISE, MOVES, opcodes_that_are
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import BUFFER_TARGET, HANDED_ON

MAX_STEPS = 256  # operands of one value, at any depth

_WITH_DIMENSIONS = (MOVES - {"concatenate", "dynamic-update-slice"}) | {"reduce"}
_LOOKED_INTO = (ELEMENTWISE - {"bitcast-convert", "reduce-precision"}) | opcodes_that_are("relayout") | _WITH_DIMENSIONS
_LEFT_OUT = "..."
"""The mark that printers write for the elements of a large constant."""
_COMBINERS = COMMUTATIVE & opcodes_that_are("sum", "scale", "choice")


class FusedValues:
    """Numbers of values that fusions compute element by element and by reductions.

    Compilers for GPUs compute a value again in each fusion that uses it. Inside of a fusion, its operations and the fusion's
    operands identify a value. Equal values have one number.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._known: dict[Place, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def number(self, place: Place) -> int | None:
        """Return the number of a value in a called computation.

        Return None if the value depends on too many operations, or on other kinds of operations.
        """
        if self._frames[place[0]].caller is None:
            return None
        stack, steps = [place], 0
        while stack:
            top = stack[-1]
            operands = self._frames.operands(top) if top not in self._known else ()
            missing = [operand for operand in operands if operand not in self._known]
            steps += 1 + len(operands)
            if steps > MAX_STEPS:
                return None
            if missing:
                stack += missing
                continue
            stack.pop()
            key = self._key(top, operands) if top not in self._known else None
            if key is not None:
                self._known[top] = self._numbers.setdefault(key, len(self._numbers))
            elif top not in self._known:
                return None
        return self._known[place]

    def _key(self, place: Place, operands: tuple[Place, ...]) -> Hashable:
        """Return the key that equal values share."""
        frames = self._frames
        opcode, shape = frames.opcode(place), str(frames.shape(place))
        if opcode == "parameter":
            return opcode, frames.find_maker(place, HANDED_ON)
        if opcode == "constant":
            literal = frames.instruction(place).literal or _LEFT_OUT
            return None if _LEFT_OUT in literal else (opcode, shape, literal)
        combiner = next((op for op in _COMBINERS if opcode == "reduce" and frames.applies(place, op)), "")
        if opcode not in _LOOKED_INTO or place[2] or not operands or (opcode == "reduce" and not combiner):
            return None
        attribute: object = None
        if opcode in _WITH_DIMENSIONS or opcode == "compare":
            attribute = frames.instruction(place).attr("direction" if opcode == "compare" else "dimensions")
        # The layouts of a bitcast's result and operand decide which elements it holds.
        arrays = tuple(map(frames.shape, (place, *operands))) if opcode == "bitcast" else ()
        return opcode, shape, combiner, str(attribute), arrays, tuple(map(self._known.__getitem__, operands))


MAX_WRITES = 1024  # into one buffer

Write = tuple[Place, ...]
"""The operands of a dynamic-update-slice: the previous buffer, the written array, and its start."""


class FilledBuffers:
    """Buffers into which TPU writes arrays one behind the other, instead of a concatenation.

    For each dynamic-update-slice it counts the elements that are written after it.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._written: dict[Place, int | None] = {}

    def written_count(self, place: Place) -> int | None:
        """Return the number of elements written up to a place, with repeats; None for another array."""
        frames, counts = self._frames, self._written
        chain: list[tuple[Place, int]] = []
        before: Place | None = place
        while before is not None and before not in counts and frames.opcode(before) == "dynamic-update-slice":
            counts[before] = None  # in case a text defines it in terms of itself
            array, part = frames.operand(before, 0), frames.operand(before, 1)
            chain.append((before, frames.size(part) if part is not None else 0))
            before = frames.find_maker(array) if array is not None else None
        is_buffer = before is not None and frames.opcode(before) == "custom-call" and frames.target(before) == BUFFER_TARGET
        total = 0 if is_buffer else counts.get(before) if before is not None else None
        for write, elements in reversed(chain):
            total = counts[write] = total + elements if total is not None and elements else None
        return counts.get(place)

    def writes(self, place: Place) -> list[Write]:
        """Return the writes into a buffer up to a place, the last write first."""
        writes: list[Write] = []
        while self._frames.opcode(place) == "dynamic-update-slice" and len(writes) < MAX_WRITES:
            writes.append(self._frames.operands(place))
            place = self._frames.find_maker(writes[-1][0])
        return writes


class MissingNodesError(Exception):
    """Raised by a transfer function that needs the nodes at `places` first."""

    def __init__(self, places: list[Place]) -> None:
        self.places = places


class NodeCache:
    """Nodes of `graph` by their places in `frames`. `constants` are inputs that are numbers, by their nodes."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.graph = Graph()
        self.by_place: dict[Place, int] = {}
        self.constants: dict[Input, int] = {}
        self.buffers = FilledBuffers(frames)
        self.fused = FusedValues(frames)
        self._of_device: list[bool] = []

    def nodes_at(self, places: Sequence[Place]) -> tuple[int, ...]:
        """Return the nodes at these places. Raise MissingNodesError if some are not read yet."""
        nodes = self.by_place
        missing = [place for place in places if place not in nodes]
        if missing:
            raise MissingNodesError(missing)
        return tuple(map(nodes.__getitem__, places))

    def opaque(self, place: Place) -> int:
        """Return a leaf for a value whose definition is not expanded."""
        return self.graph.opaque(place, self.frames.size(place))

    def broken(self, place: Place, reason: str) -> int:
        """Return a leaf for a value that was not followed, and note the reason."""
        self.frames.note_fault(place, reason)
        node = self.opaque(place)
        self.graph.broken.add(node)
        return node

    def is_of_device(self, node: int) -> bool:
        """Return True if an expression holds the number of the device, so that it can differ between devices."""
        graph, of_device = self.graph, self._of_device
        for number in range(len(of_device), node + 1):  # operands have lower numbers
            leaf = graph.places.get(number)
            is_number = leaf is not None and self.frames.opcode(leaf) in DEVICE_NUMBERS
            of_device.append(is_number or any(of_device[arg] for arg in graph.args[number]))
        return of_device[node]
