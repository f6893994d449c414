"""The products of one step, and by the inputs that their factors hold the other factors: cofactors.

Products are read in the order of the text, and only as far as somebody asks: most gradients show within the first few. To read
all at once would make `optimizer` a tenth slower for a transformer of 48 layers. Each answer is the same however far the step
was read before: the fields below are caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.optimizer.graph import each_bit
from hlo_inspect.optimizer.held_inputs import UNSEEN, HeldInputs
from hlo_inspect.optimizer.step.dependence import EVERYTHING, InputDependence
from hlo_inspect.optimizer.step.products import CALLING, OF_INTEREST, Factor, Products

Cofactors = dict[int, list[Factor]]
"""The other factors of products, by the bit of an input in the first factor."""


class StepProducts:
    """The products of the frames that hold some results, and of the computations that these call."""

    def __init__(self, frames: Frames, results: Iterable[Place], dependence: InputDependence) -> None:
        self._frames = frames
        self._dependence = dependence
        self.products = Products(frames)
        self.held_inputs = HeldInputs(frames)
        self._unread = _walk(frames, self.products, dependence, {place[0] for place in results})
        self._read: list[Place] = []
        self._direct: Cofactors = {}
        self._hidden_by_text = 0  # complete once all is read

    # -- as far as the step was read ------------------------------------------------------------------------------------

    def read_next(self) -> bool:
        """Read the next product; return False if there is none."""
        for place, hidden in self._unread:
            self._hidden_by_text |= hidden
            if place is not None:
                self._take(place)
                return True
        return False

    def _take(self, place: Place) -> None:
        self._read.append(place)
        for factor, cofactor in self._pairs(place):
            source = self._frames.input(factor.origin)
            if source is not None:
                self._direct.setdefault(self._dependence.bit(source), []).append(cofactor)

    def direct_cofactors_read(self, own: int) -> list[Factor]:
        """Return the cofactors of products that were read and have one of the inputs `own` itself as a factor."""
        return _of(own, self._direct)

    # -- of the whole step ----------------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> list[Place]:
        """All products of the step."""
        while self.read_next():
            pass
        return self._read

    def direct_cofactors(self, own: int) -> list[Factor]:
        """Return the cofactors of all products that have one of the inputs `own` itself as a factor."""
        while self.read_next():
            pass
        return _of(own, self._direct)

    def cofactors(self, own: int) -> list[Factor]:
        """Return the cofactors of all products with a factor that holds one of the inputs `own`, element by element."""
        return _of(own, self._indirect)

    @cached_property
    def hidden(self) -> int:
        """The inputs, as bits, whose products may not all be known."""
        while self.read_next():
            pass
        is_cut_short = self._hidden_by_text == EVERYTHING or self._dependence.bit(UNSEEN) in self._indirect
        return EVERYTHING if is_cut_short else self._hidden_by_text

    def is_before(self, product: tuple[int, int], place: Place) -> bool:
        """Return True if a value follows from a product: so does a loss, and thus the way back."""
        return bool(self._followers.inputs(place) & self._marks[product])

    @cached_property
    def _indirect(self) -> Cofactors:
        cofactors: Cofactors = {}
        for place in self.places:
            for factor, cofactor in self._pairs(place):
                for source in self.held_inputs.of(factor.place):
                    cofactors.setdefault(self._dependence.bit(source), []).append(cofactor)
        return cofactors

    @cached_property
    def _marks(self) -> dict[tuple[int, int], int]:
        """A bit for each product, by its instruction and those that call it: of a fusion the operands are followed."""
        marks: dict[tuple[int, int], int] = {}
        for number, place in enumerate(self.places):
            instruction: tuple[int, int] | None = place[:2]
            while instruction is not None:
                marks[instruction] = marks.get(instruction, 0) | 1 << number
                instruction = self._frames[instruction[0]].caller
        return marks

    @cached_property
    def _followers(self) -> InputDependence:
        return InputDependence(self._frames, self._marks)

    def _pairs(self, place: Place) -> list[tuple[Factor, Factor]]:
        """Return each factor of a product with the other one."""
        factors = self.products.factors(place)
        return list(zip(factors, reversed(factors), strict=True)) if len(factors) > 1 else []


def _walk(
    frames: Frames, products: Products, dependence: InputDependence, frames_of_results: Iterable[int]
) -> Iterator[tuple[Place | None, int]]:
    """Yield each product in the order of the text, or None and the inputs, as bits, of what may hold others."""
    stack = [_rows_of_interest(frames, frame) for frame in frames_of_results]
    rows = 0
    while stack:
        place = next(stack[-1], None)
        rows += 1
        if place is None or rows > frames.max_places:
            stack.pop()
            continue
        opcode = frames.opcode(place)
        if opcode in CALLING:
            called = frames.called(place) if products.may_hold(frames.callee(place, CALLING[opcode])) else None
            stack += [_rows_of_interest(frames, called[0])] if called is not None else []
        elif products.is_product(place):
            yield place, 0
        elif frames.step_back(place) is None:
            yield None, dependence.inputs(place)
    if rows > frames.max_places:
        yield None, EVERYTHING


def _rows_of_interest(frames: Frames, frame: int) -> Iterator[Place]:
    opcodes = frames[frame].view.opcodes
    return ((frame, row, ()) for row, opcode in enumerate(opcodes) if opcode in OF_INTEREST)


def _of(own: int, cofactors: Cofactors) -> list[Factor]:
    return [factor for bit in each_bit(max(own, 0)) for factor in cofactors.get(bit, ())]  # negative: unknown which
