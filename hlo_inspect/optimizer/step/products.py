"""Products of matrices, convolutions, lookups and scatters in the text, with the origins of their factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.graph.frames import MAX_STEPS, Frames, Place
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import (
    CONTROL_FLOW,
    OPCODES,
    PRODUCTS,
    callee_roles,
    opcodes_that_are,
    opcodes_that_call,
)
from hlo_inspect.hlo.rows import NO_ROWS
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.elementwise_inputs import MOVING, UNSEEN, ElementwiseInputs
from hlo_inspect.optimizer.graph import each_bit
from hlo_inspect.optimizer.operations import ELEMENTWISE, GEMM_TARGETS
from hlo_inspect.optimizer.step.step_dependence import EVERYTHING, InputDependence

MAX_BETWEEN = 100  # steps between two products

_PRODUCTS = (PRODUCTS - {"ragged-dot", "scaled-dot"}) | {"gather", "scatter"}
_PRODUCT_TARGETS = (*GEMM_TARGETS, "__cublas$lt$matmul$f8", "__onednn$matmul", "__onednn$convolution")
_PRODUCT_PREFIXES = ("__cudnn$conv",)
_HIDING = (CONTROL_FLOW - {"call"}) | opcodes_that_are("library") | {"custom-call", "ragged-dot"}
CALLING = {name: next(iter(callee_roles(name))) for name in opcodes_that_call("run", "fused") & OPCODES}
OF_INTEREST = _PRODUCTS | _HIDING | frozenset(CALLING)
"""Opcodes of products, of instructions that may hide them, and of calls of computations that may hold them."""

_MADE = ELEMENTWISE | {"tuple", "reduce"}
_GATHERS = {"all-gather", "all-gather-start"}
_RESHAPING = (opcodes_that_are("relayout") - {"copy"}) | _GATHERS | {"broadcast", "custom-call"}

Order = tuple[int, ...] | None
"""The numbers of dimensions in another array, None if they cannot be followed."""


class Factor(NamedTuple):
    """Factor of a product: the number of its operand, its place, and the `origin` that computes its value."""

    product: tuple[int, int]
    place: Place
    origin: Place
    number: int


class Products:
    """The products of a module's computations."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._with_products: dict[str, bool] = {}
        self._origins: dict[Place, Place] = {}
        self._concatenation_origins: dict[Place, frozenset[Place]] = {}
        self._forwarding: dict[str, bool] = {}

    def is_product(self, place: Place) -> bool:
        opcode = self._frames.opcode(place)
        if opcode == "custom-call":
            target = self._frames.target(place)
            return target in _PRODUCT_TARGETS or target.startswith(_PRODUCT_PREFIXES)
        return opcode in _PRODUCTS

    def factors(self, place: Place) -> list[Factor]:
        """Return the factors of a product."""
        operands = self._frames.operands(place)[:2]
        return [Factor(place[:2], operand, self._origin(operand), number) for number, operand in enumerate(operands)]

    def concatenation_origins(self, place: Place) -> frozenset[Place]:
        """Return the origins of the parts of a concatenation."""
        origins = self._concatenation_origins.get(place)
        if origins is None:
            parts = self._frames.operands(place) if self._frames.opcode(place) == "concatenate" else ()
            origins = self._concatenation_origins[place] = frozenset(map(self._origin, parts))
        return origins

    def elementwise_products(self, place: Place) -> list[Place]:
        """Return the products that a value depends on element by element."""
        products: list[Place] = []
        seen: set[Place] = set()
        stack = [place]
        while stack and len(seen) < MAX_BETWEEN:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            before = self._frames.step_back(top)
            if before is not None:
                stack.append(before)
            elif self.is_product(top):
                products.append(top)
            elif self._frames.opcode(top) in ELEMENTWISE or self._frames.opcode(top) in MOVING:
                stack += self._frames.operands(top)
        return products

    def may_hold(self, name: str) -> bool:
        """Return True if a fused computation may hold products."""
        has_products = self._with_products.get(name)
        if has_products is None:
            computation = self._frames.views.computations.get(name)
            opcodes = computation.rows.opcodes if computation is not None else ()
            has_products = self._with_products[name] = not OF_INTEREST.isdisjoint(opcodes)
        return has_products

    def contracted(self, factor: Factor) -> frozenset[int] | None:
        """Return the contracted dimensions of a factor by their numbers at its origin; None if unknown."""
        frames = self._frames
        product = (*factor.product, ())
        instruction = frames.instruction(product) if frames.opcode(product) in {"dot", "convolution"} else None
        axes = _contracted_axes(instruction, factor.number) if instruction is not None else None
        shape = frames.shape(factor.place)
        if axes is None or not isinstance(shape, ArrayShape):
            return None
        order = tuple(range(len(shape.dimensions)))
        place = factor.place
        for before in frames.trace_back(place):
            moved = self._reorder(place, before, order) if before != place else order
            if moved is None:
                return None
            order, place = moved, before
            if place == factor.origin:
                break
        return frozenset(order[axis] for axis in axes if axis < len(order))

    def has_window(self, product: tuple[int, int]) -> bool:
        """Return True if a product is a convolution along some dimensions.

        TPU writes a matrix product as a convolution along none.
        """
        instruction = self._frames.instruction((*product, ())) if self._frames.opcode((*product, ())) == "convolution" else None
        return instruction is not None and instruction.attr("window") is not None

    def are_indices(self, scattered: Factor, looked_up: Factor) -> bool:
        """Return True if two factors are equally large indices, of a scatter and of a lookup."""
        frames = self._frames
        opcodes = tuple(frames.opcode((*factor.product, ())) for factor in (scattered, looked_up))
        is_second = scattered.number == looked_up.number == 1
        return is_second and opcodes == ("scatter", "gather") and frames.size(scattered.place) == frames.size(looked_up.place)

    def _origin(self, start: Place) -> Place:
        """Return the place that computes a value.

        A fusion without products ends the search unless it only hands something on.
        """
        origin = self._origins.get(start)
        if origin is None:
            place = start
            for _ in range(MAX_STEPS):
                before = self._frames.step_back(place) if self._forwards(place) else None
                if before is None:
                    break
                place = before
            origin = self._origins[start] = place
        return origin

    def _forwards(self, place: Place) -> bool:
        """Return True if a value can come unchanged from before a place."""
        frames = self._frames
        if frames.opcode(place) != "fusion":
            return True
        name = frames.callee(place, "calls")
        forwards = self._forwarding.get(name)
        if forwards is None:
            forwards = self._forwarding[name] = self.may_hold(name) or self._is_forwarded(name)
        return forwards

    def _is_forwarded(self, name: str) -> bool:
        """Return True if the root of a computation may be one of its parameters, moved or converted."""
        computation = self._frames.views.computations.get(name)
        rows = computation.rows if computation is not None else NO_ROWS
        return not rows.column.marked or rows.opcodes[max(rows.column.marked)] not in _MADE

    def _reorder(self, place: Place, before: Place, order: tuple[int, ...]) -> Order:
        """Return the numbers of dimensions one step further back."""
        frames = self._frames
        opcode = frames.opcode(place)
        if opcode not in _RESHAPING:
            return order
        if opcode == "transpose":
            instruction = frames.instruction(place)
            moved = instruction.attr("dimensions")
            return tuple(moved[axis] for axis in order) if moved is not None and max(order, default=0) < len(moved) else None
        shape, shape_before = frames.shape(place), frames.shape(before)
        if (
            not isinstance(shape, ArrayShape)
            or not isinstance(shape_before, ArrayShape)
            or shape.dimensions != shape_before.dimensions
        ):
            return None
        return None if opcode == "bitcast" and _minor_to_major(shape) != _minor_to_major(shape_before) else order


def _contracted_axes(product: Instruction, operand: int) -> Sequence[int] | None:
    """Return the dimensions of an operand that a product contracts, None for a convolution along some dimensions.

    A convolution along none is how TPUs write products of matrices.
    """
    if product.opcode == "dot":
        return product.attr("rhs_contracting_dims" if operand else "lhs_contracting_dims") or ()
    labels = product.attr("dim_labels")
    if labels is None or product.attr("window") is not None:
        return None
    axis = labels.kernel.find("i") if operand else labels.input.find("f")
    return [axis] if axis >= 0 else None


def _minor_to_major(shape: ArrayShape) -> tuple[int, ...] | None:
    return shape.layout.minor_to_major if shape.layout is not None else None


Cofactors = dict[int, list[Factor]]
"""The other factors of products, by the bit of an input in the first factor."""


class StepProducts:
    """The products of the frames that hold some results, and of the computations that these call."""

    def __init__(self, frames: Frames, results: Iterable[Place], dependence: InputDependence) -> None:
        self._frames = frames
        self._dependence = dependence
        self.products = Products(frames)
        self.elementwise_inputs = ElementwiseInputs(frames)
        self._unread = _walk(frames, self.products, dependence, {place[0] for place in results})
        self._read: list[Place] = []
        self._direct: Cofactors = {}
        self._hidden_by_text = 0  # complete when all products are read

    # -- products read so far -------------------------------------------------------------------------------------------

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
        """Return the cofactors of the products read so far that have an input of `own` itself as a factor."""
        return _cofactors_of(own, self._direct)

    # -- of the whole step ----------------------------------------------------------------------------------------------

    @cached_property
    def places(self) -> list[Place]:
        """All products of the step."""
        while self.read_next():
            pass
        return self._read

    def direct_cofactors(self, own: int) -> list[Factor]:
        """Return the cofactors of all products that have an input of `own` itself as a factor."""
        while self.read_next():
            pass
        return _cofactors_of(own, self._direct)

    def cofactors(self, own: int) -> list[Factor]:
        """Return the cofactors of all products with a factor that holds an input of `own`, element by element."""
        return _cofactors_of(own, self._indirect)

    @cached_property
    def hidden(self) -> int:
        """The inputs, as bits, whose products may not all be known."""
        while self.read_next():
            pass
        is_cut_short = self._hidden_by_text == EVERYTHING or self._dependence.bit(UNSEEN) in self._indirect
        return EVERYTHING if is_cut_short else self._hidden_by_text

    def is_before(self, product: tuple[int, int], place: Place) -> bool:
        """Return True if a value depends on a product. A loss does, and so does the way back."""
        return bool(self._followers.inputs(place) & self._marks[product])

    @cached_property
    def _indirect(self) -> Cofactors:
        cofactors: Cofactors = {}
        for place in self.places:
            for factor, cofactor in self._pairs(place):
                for source in self.elementwise_inputs.get(factor.place):
                    cofactors.setdefault(self._dependence.bit(source), []).append(cofactor)
        return cofactors

    @cached_property
    def _marks(self) -> dict[tuple[int, int], int]:
        """A bit for each product, by its instruction and the instructions that call it."""
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
    """Yield each product in the order of the text.

    For an instruction that may hold further products, yield None and its inputs as bits.
    """
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


def _cofactors_of(own: int, cofactors: Cofactors) -> list[Factor]:
    return [factor for bit in each_bit(max(own, 0)) for factor in cofactors.get(bit, ())]  # negative: unknown
