"""Frozen weights that a step adapts: it learns an addition of low rank to them, as LoRA does.

`x @ W + s * (x @ A) @ B` and `x @ (W + s * A @ B)` show that the array `W` is a weight: the product of two smaller learnt
matrices is added to it. A batch, a mask or the matrix of a graph network gets no such addition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.hlo.opcodes import SLICES, opcodes_that_are
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.optimizer.operations import CONCATENATING_TARGETS, ELEMENTWISE
from hlo_inspect.optimizer.step.products import CALLING, OF_INTEREST, Factor, Products
from hlo_inspect.optimizer.step.successions import FLOATS

MAX_TERMS = 32  # values in a sum
MAX_BETWEEN = 100  # values between the inputs of a layer and of its addition, as of a dropout

Leaf = tuple[int, ShapeIndex]
"""Number of an entry parameter, and index into it."""

_SCALING = opcodes_that_are("scale")
_MADE_OF = ELEMENTWISE | {"broadcast"}
_OF_INTEREST = OF_INTEREST | {"add", "subtract"}
_FIRST_OPERAND = SLICES | {"negate"}
_PATH = lazy_pattern(r"\w++(?:\.\w++|\[[^\]]*+\])*+", re.ASCII)
_KEYS = lazy_pattern(r"\[[^\]]*+\]|\.?+\w++", re.ASCII)


def find_adapted_weights(
    frames: Frames,
    parameters: Mapping[Input, Leaf],
    leaves: Sequence[ParameterLeaf],
    weights: set[Leaf],
    state: set[Leaf],
) -> set[Leaf]:
    """Return the arrays that the step only reads and adapts, and those beside them in the caller's tree.

    `parameters` maps inputs of steps to entry parameters, `state` is the training state with its `weights`.
    """
    matrices = {
        (leaf.number, leaf.index) for leaf in leaves if leaf.shape.dtype in FLOATS and len(leaf.shape.dimensions) > 1
    } - state
    if not matrices or len(weights) < 2:
        return set()
    elements = {(leaf.number, leaf.index): leaf.shape.elements or 0 for leaf in leaves}
    sums = _LinearSums(frames, parameters)
    additions = _LowRankAdditions(sums, weights, matrices, elements)
    adapted = additions.find()
    return adapted | _find_siblings(adapted, leaves, state, sums.multiplied) if adapted else set()


class _LinearSums:
    """Sums of scaled values in the frames of a step, the bodies of its loops included."""

    def __init__(self, frames: Frames, parameters: Mapping[Input, Leaf]) -> None:
        self.frames = frames
        self.products = Products(frames)
        self._parameters = parameters
        self._loops: dict[int, Place] = {}
        self._terms: dict[Place, list[Place]] = {}
        self._leaves: dict[Place, Leaf | None] = {}

    @cached_property
    def places(self) -> list[Place]:
        """The sums and products of the steps, of the computations that they call, and of their loops."""
        frames = self.frames
        waiting = list(dict.fromkeys(frame for frame, *_ in self._parameters))
        seen = set(waiting)
        places: list[Place] = []
        while waiting and len(places) < frames.max_places:
            frame = waiting.pop()
            opcodes = frames[frame].view.opcodes
            for row in [row for row, opcode in enumerate(opcodes) if opcode in _OF_INTEREST]:
                opcode, place = opcodes[row], (frame, row, ())
                inner: int | None = None
                if opcode in CALLING:
                    called = frames.called(place)
                    inner = called[0] if called is not None else None
                elif opcode == "while":
                    inner = frames.body(place)
                    if inner is not None:
                        self._loops.setdefault(inner, place)
                elif opcode in {"add", "subtract"} or self.products.is_product(place):
                    places.append(place)
                if inner is not None and inner not in seen:
                    seen.add(inner)
                    waiting.append(inner)
        return places

    def terms(self, place: Place) -> list[Place]:
        """Return the values that a value is the sum of, each with a scalar factor; none if there are too many."""
        terms = self._terms.get(place)
        if terms is None:
            terms = self._terms[place] = self._find_terms(place)
        return terms

    def _find_terms(self, place: Place, most: int = MAX_TERMS) -> list[Place]:
        """Return the terms of a value; none if there are more than `most`."""
        terms: list[Place] = []
        seen: set[Place] = set()
        stack = [place]
        while stack:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            if len(seen) > MAX_TERMS or len(terms) > most:
                return []
            below = self._addends(top)
            if below is None:
                terms.append(top)
                below = self._added_to_product(top)
            stack += below
        return terms

    def _addends(self, place: Place) -> Sequence[Place] | None:
        """Return the values that a value is a sum or a multiple of; None if it is none."""
        frames = self.frames
        before = frames.step_back(place)
        if before is not None:
            return (before,)
        opcode = frames.opcode(place)
        addends: Sequence[Place | None] = ()
        if opcode == "parameter":
            addends = [self._loop_input(place)]
        elif opcode in {"add", "subtract"}:
            addends = frames.operands(place)
        elif opcode in _FIRST_OPERAND or (opcode == "custom-call" and frames.target(place) in CONCATENATING_TARGETS):
            addends = frames.operands(place)[:1]
        elif opcode == "slice-done":
            addends = frames.operands(frames.start(place))[:1]
        elif opcode == "all-reduce":
            addends = [frames.operand(place, place[2][0] if place[2] else 0)]
        elif opcode in _SCALING:
            arrays = [operand for operand in frames.operands(place) if frames.size(frames.find_maker(operand)) != 1]
            addends = arrays if len(arrays) == 1 else ()
        return [addend for addend in addends if addend is not None] or None

    def _loop_input(self, place: Place) -> Place | None:
        """Return the value outside of a loop that an element of the loop's state keeps."""
        source = self.frames.input(place)
        loop = self._loops.get(source[0]) if source is not None else None
        if source is None or loop is None or not self.frames.is_carried((*loop[:2], source[2])):
            return None
        return self.frames.operand(loop, 0, source[2])

    def _added_to_product(self, place: Place) -> Sequence[Place]:
        """Return the array that a GPU library adds to its product."""
        is_library = self.frames.opcode(place) == "custom-call" and self.products.is_product(place)
        return self.frames.operands(place)[2:3] if is_library else ()

    def leaf(self, place: Place) -> Leaf | None:
        """Return the array of an entry parameter that a value is, apart from a factor."""
        if place not in self._leaves:
            terms = self._find_terms(place, most=1)
            source = self.frames.input(terms[0]) if len(terms) == 1 else None
            self._leaves[place] = self._parameters.get(source) if source is not None else None
        return self._leaves[place]

    def maker(self, place: Place) -> Place:
        """Return the place that makes a value, apart from a factor."""
        for _ in range(MAX_TERMS):
            below = self._addends(place)
            if below is None or len(below) != 1:
                break
            place = below[0]
        return place

    def pairs(self, product: Place) -> Iterator[tuple[Factor, Factor]]:
        """Yield each factor of a product with the other one. Products of many pairs of matrices have none."""
        instruction = self.frames.instruction(product)
        factors = self.products.factors(product)
        if len(factors) == 2 and not instruction.attr("lhs_batch_dims"):
            yield from zip(factors, reversed(factors), strict=True)

    @cached_property
    def multiplied(self) -> set[frozenset[Leaf]]:
        """The pairs of leaves that are the factors of one product."""
        pairs = {
            frozenset(leaf for factor in self.products.factors(place) if (leaf := self.leaf(factor.place)) is not None)
            for place in filter(self.products.is_product, self.places)
        }
        return {pair for pair in pairs if len(pair) == 2}


class _LowRankAdditions:
    """The products of two of the `weights` that a step adds to one of the `matrices`. `elements` are sizes of all leaves."""

    def __init__(self, sums: _LinearSums, weights: set[Leaf], matrices: set[Leaf], elements: Mapping[Leaf, int]) -> None:
        self._sums = sums
        self._weights = weights
        self._matrices = matrices
        self._elements = elements

    def find(self) -> set[Leaf]:
        """Return the matrices that get such an addition."""
        products = set(filter(self._sums.products.is_product, self._sums.places))
        if not any(map(self._holds_two_weights, products)):  # as in most programs
            return set()
        adapted: set[Leaf] = set()
        for place in self._sums.places:
            adapted.update(self._in_product(place) if place in products else self._in_sum(place))
        return adapted

    def _holds_two_weights(self, product: Place) -> bool:
        """Return True for `A @ B` and `(x @ A) @ B` of weights `A` and `B`."""
        factors = self._sums.products.factors(product)
        others = [factor for factor in factors if self._sums.leaf(factor.place) not in self._weights]
        if len(others) != 1:
            return not others
        terms = self._sums.terms(others[0].place)
        inner = self._sums.products.factors(terms[0]) if len(terms) == 1 and self._sums.products.is_product(terms[0]) else ()
        return any(self._sums.leaf(factor.place) in self._weights for factor in inner)

    def _in_sum(self, place: Place) -> Iterator[Leaf]:
        """Yield the matrix `W` of `x @ W + (x @ A) @ B`."""
        products = [term for term in self._sums.terms(place) if self._sums.products.is_product(term)]
        pairs = [pair for product in products for pair in self._sums.pairs(product)] if len(products) > 1 else []
        bases = [(leaf, x) for factor, x in pairs if (leaf := self._sums.leaf(factor.place)) in self._matrices]
        if not bases:
            return
        for last, hidden in pairs:
            terms = self._sums.terms(hidden.place)
            inner = self._sums.pairs(terms[0]) if len(terms) == 1 and self._sums.products.is_product(terms[0]) else ()
            for first, x in inner:
                learnt = {self._sums.leaf(first.place), self._sums.leaf(last.place)}
                for base, base_x in bases:
                    if base is not None and self._is_smaller(learnt, base) and self._map_the_same(base_x, x):
                        yield base

    def _in_product(self, place: Place) -> Iterator[Leaf]:
        """Yield the matrix `W` of `x @ (W + A @ B)`.

        In the factorization of an array `W` into A and B, its difference from `A @ B` is multiplied with A and B alone.
        """
        for factor, x in self._sums.pairs(place):
            terms = self._sums.terms(factor.place)
            bases = [leaf for term in terms if (leaf := self._sums.leaf(term)) in self._matrices] if len(terms) > 1 else []
            for term in terms if bases else ():
                factors = self._sums.products.factors(term) if self._sums.products.is_product(term) else []
                learnt = {self._sums.leaf(own.place) for own in factors}
                for base in bases:
                    if base is not None and self._is_smaller(learnt, base) and self._sums.leaf(x.place) not in learnt:
                        yield base

    def _is_smaller(self, learnt: set[Leaf | None], base: Leaf) -> bool:
        """Return True if two different weights together have fewer elements than a matrix."""
        weights = [leaf for leaf in learnt if leaf in self._weights and leaf is not None]
        return len(weights) == 2 and sum(map(self._elements.__getitem__, weights)) < self._elements[base]

    def _map_the_same(self, left: Factor, right: Factor) -> bool:
        """Return True if two products contract the same dimensions of the same value.

        The second may take another function of it, element by element: a dropout, also if compilers compute the value twice.
        """
        axes = [self._sums.products.contracted(factor) for factor in (left, right)]
        lengths = [self._squared_length(factor) for factor in (left, right)]
        if (None not in axes and axes[0] != axes[1]) or lengths[0] != lengths[1]:
            return False
        return self._sums.maker(left.place) == self._sums.maker(right.place) or (
            self._sources(left.place) <= self._sources(right.place)
        )

    def _squared_length(self, factor: Factor) -> float:
        """Return the square of the number of elements that a product of two matrices sums up."""
        frames, product = self._sums.frames, (*factor.product, ())
        sizes = [frames.size(operand) for operand in frames.operands(product)[:2]]
        return sizes[0] * sizes[1] / max(1, frames.size(product))

    def _sources(self, place: Place) -> set[Place]:
        """Return the values that a value is made of, element by element."""
        frames = self._sums.frames
        sources: set[Place] = set()
        seen: set[Place] = set()
        stack = [place]
        while stack and len(seen) < MAX_BETWEEN:
            top = self._sums.maker(stack.pop())
            if top not in seen:
                seen.add(top)
                operands = frames.operands(top) if frames.opcode(top) in _MADE_OF else ()
                stack += operands
                sources |= set() if operands else {top}
        return sources


def _find_siblings(
    adapted: set[Leaf], leaves: Sequence[ParameterLeaf], state: set[Leaf], multiplied: set[frozenset[Leaf]]
) -> set[Leaf]:
    """Return the arrays of the largest trees around `adapted` that hold floats alone, no training state and no batch.

    A batch is multiplied with another array of the tree or with the training state.
    """
    arrays = {(leaf.number, leaf.index): leaf for leaf in leaves if leaf.shape.elements != 1}
    trees: dict[tuple[str, ...], set[Leaf]] = {}
    for key, leaf in arrays.items():
        keys = _KEYS.findall(leaf.path) if _PATH.fullmatch(leaf.path) else ()
        for depth in range(1, len(keys)):
            trees.setdefault(tuple(keys[:depth]), set()).add(key)
    siblings: set[Leaf] = set()
    for tree in trees.values():
        if not tree.isdisjoint(adapted) and tree.isdisjoint(state):
            has_integers = any(arrays[key].shape.dtype not in FLOATS for key in tree)
            union = tree | state
            has_batch = any(pair <= union and not pair.isdisjoint(tree) for pair in multiplied)
            siblings |= set() if has_integers or has_batch else tree
    return siblings
