"""Whether what a rule calls a gradient can be the result of a backward pass.

Solvers, samplers, recurrent cells and physics take steps that look like descent, `x' = x - h * f(x)`. What separates a
gradient from a field `f` is the way back: on the way to the loss a weight is multiplied with something, its cofactor, and the
gradient of that product is a product with the same cofactor, along its other dimensions.

    forward   y = c @ w      backward   dw = c.T @ dy

So for each weight the cofactors of all products that hold it, element by element, are collected from the text of the step. A
product that makes up the gradient and has none of them as a factor is no backward pass, nor is one that multiplies with a
cofactor along the same dimensions as before (`w @ A`, a single product). Where something on the way cannot be looked into (a
loop, a custom call), nothing is concluded from what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.hlo.opcodes import CONTROL_FLOW, opcodes_that_are
from hlo_inspect.optimizer.algebra.normal_form import Atom, Monomial, Sum, is_constant
from hlo_inspect.optimizer.algebra.update import Update
from hlo_inspect.optimizer.held_inputs import SOLVED, UNSEEN
from hlo_inspect.optimizer.operations import SOME_VALUES
from hlo_inspect.optimizer.step.dependence import EVERYTHING, InputDependence
from hlo_inspect.optimizer.step.products import Factor, StepProducts

MAX_PAIRS = 100_000  # of products and cofactors that are compared
MAX_DEPTH = 12  # of functions around a gradient
MAX_MATRICES = 4  # by which a gradient is multiplied
MAX_LEAVES = 64  # of one update that are looked at

_CHOSEN = {"select": slice(1, 3), "clamp": slice(1, 2)}
_LINEAR = SOME_VALUES | opcodes_that_are("choice") | {"sum", "broadcast", "transpose"}
_CLOSED = (CONTROL_FLOW - {"call"}) | {"custom-call"}


class BackwardPasses:
    """Says of updates of one step whether their gradients are results of its backward pass. Answers do not depend on earlier
    ones: the fields are caches.
    """

    def __init__(self, frames: Frames, results: Iterable[Place], dependence: InputDependence) -> None:
        self._frames = frames
        self._dependence = dependence
        self._step = StepProducts(frames, results, dependence)
        self._products = self._step.products
        self._held = self._step.held_inputs
        self._solved: dict[Place, bool] = {}
        self._of_parts: dict[Place, frozenset[int]] = {}

    def holds(self, update: Update, gradient: Sum) -> bool | None:
        """Whether `gradient` comes from a backward pass; `None` where that is not known."""
        return self._sum(update, gradient, MAX_DEPTH)

    def may_be_linear(self, update: Update, gradient: Sum) -> bool:
        """Whether the loss can be linear in a weight with this gradient. What the weight itself is multiplied with on the way
        to the loss and on the way back are the factors of its gradient, all of them. Hebb's rule has activations alone.
        """
        nodes = [update.forms.atoms[leaf].node for leaf in update.forms.leaves(gradient)]
        places = [update.forms.graph.places.get(node) if node is not None else None for node in nodes]
        products = [place for place in places if place is not None and self._products.is_product(place)]
        cofactors = self._step.direct_cofactors(update.own_inputs)
        if len(products) < len(places) or len(products) * len(cofactors) > MAX_PAIRS:
            return True
        factors = [factor for place in products for factor in self._products.factors(place)]
        return all(self._may_be_among(factors, cofactor) for cofactor in cofactors)

    def _may_be_among(self, factors: Sequence[Factor], cofactor: Factor) -> bool:
        """Whether a cofactor is one of some factors, or may be: compilers make copies of constants."""
        if self._dependence.inputs(cofactor.place) == 0:
            return any(self._dependence.inputs(factor.place) == 0 for factor in factors)
        return self._are_known(factors, [cofactor]) is not False

    def is_anywhere(self, update: Update) -> bool | None:
        """Whether some product of the step multiplies with a cofactor of the weight on the way back, `None` if it may."""
        own = update.own_inputs
        if self._step.hidden & own:
            return None
        cofactors, products = self._step.cofactors(own), self._step.places
        if len(products) * len(cofactors) > MAX_PAIRS:
            return None
        found = {self._are_known(self._products.factors(place), cofactors) for place in products}
        return True if True in found else None if None in found else False

    def is_in(self, update: Update, forms: Iterable[Sum]) -> bool | None:
        """Whether an opaque value in some forms is a gradient; `None` where one of them cannot be looked into."""
        leaves = sorted({leaf for form in forms for leaf in update.forms.leaves(form)})
        is_unknown = False
        for leaf in [leaf for leaf in leaves if update.depends_on_itself({((leaf, 1.0),): 1.0})][:MAX_LEAVES]:
            if self._atom(update, leaf, MAX_DEPTH) or self._is_preconditioned(update, leaf):
                return True
            is_unknown = is_unknown or self._is_closed(update, leaf)
        return None if is_unknown else False

    def _is_closed(self, update: Update, leaf: int) -> bool:
        """Whether a value is made in a loop or by an unknown kernel, or could not be followed."""
        node = update.forms.atoms[leaf].node
        place = update.forms.graph.places.get(node) if node is not None else None
        if place is None or node in update.forms.graph.broken:
            return True
        return self._frames.opcode(place) in _CLOSED and not self._held.is_solved(place)

    def _is_preconditioned(self, update: Update, leaf: int) -> bool:
        """Whether a value is a gradient that is multiplied with other matrices, from the left or from the right; between two
        such products there may be steps element by element.
        """
        node = update.forms.atoms[leaf].node
        place = update.forms.graph.places.get(node) if node is not None else None
        level = {place[:2]: place} if place is not None and self._products.is_product(place) else {}
        for _ in range(MAX_MATRICES):
            factors = [factor for product in level.values() for factor in self._products.factors(product)]
            level = {one[:2]: one for factor in factors for one in self._products.below(factor.place)}
            if any(self._is_back(update, one) and not self._is_from_solver(one) for one in level.values()):
                return True
        return False

    # -- expressions ----------------------------------------------------------------------------------------------------

    def _sum(self, update: Update, form: Sum, depth: int) -> bool | None:
        """Whether the terms are gradients."""
        return _every(self._term(update, monomial, depth) for monomial, value in form.items() if value != 0.0)

    def _term(self, update: Update, monomial: Monomial, depth: int) -> bool | None:
        """One factor of a term is the gradient of what comes after; the others are derivatives of functions."""
        found = [
            None if exponent != 1.0 else self._atom(update, atom, depth)
            for atom, exponent in monomial
            if update.depends_on_itself({((atom, 1.0),): 1.0})
        ]
        return True if True in found else None if None in found or not found else False

    def _atom(self, update: Update, number: int, depth: int) -> bool | None:
        atom = update.forms.atoms[number]
        summed = update.reductions.over_devices(number)
        if not depth:
            return None
        if summed is not None:
            return self._sum(update, summed, depth - 1)
        if atom.node is not None:
            return False if self._is_pairwise(update, number, atom.node) else self._leaf(update, atom.node)
        if atom.op in _LINEAR:
            return _every(self._sum(update, part, depth - 1) for part in _parts(atom) if not is_constant(part))
        inner = {self._sum(update, part, depth - 1) for part in atom.parts if update.depends_on_itself(part)}
        return False if inner == {False} else None

    def _is_pairwise(self, update: Update, number: int, node: int) -> bool:
        """Whether a value is a sum over pairs of rows of the weight, as of particles that attract each other."""
        if not self._may_be_pairwise(update, node):
            return False
        summed = update.reductions.summed(number) or {}
        repeated = [atom for one in update.forms.atoms_below(summed) if (atom := update.forms.atoms[one]).op == "broadcast"]
        along = {atom.attribute for atom in repeated if atom.parts[0] == {((update.weight, 1.0),): 1.0}}
        return len(along) > 1

    def _may_be_pairwise(self, update: Update, node: int) -> bool:
        """Whether what is summed has the size of such pairs, that of the weight times one of its dimensions. A sum over devices
        alone does not show that: it may be.
        """
        place = update.forms.graph.places.get(node)
        operands = self._frames.operands(self._frames.start(place)) if place is not None and place[1] >= 0 else ()
        weight = update.array.shape
        own, summed = weight.elements or 0, self._frames.size(operands[0]) if operands else 0
        return summed in {own, *(own * (dimension or 0) for dimension in weight.dimensions)}

    def _leaf(self, update: Update, node: int) -> bool | None:
        """An opaque value."""
        place = update.forms.graph.places.get(node)
        if place is None:
            return None
        if self._held.is_solved(place):
            return False
        return self._is_back(update, place) if self._products.is_product(place) else None

    # -- products -------------------------------------------------------------------------------------------------------

    def _is_back(self, update: Update, place: Place) -> bool | None:
        """Whether one of the factors of a product is a cofactor of the weight, taken along other dimensions."""
        own = update.own_inputs
        factors = self._products.factors(place)
        seen = 0
        while True:  # most weights are multiplied as they are
            direct = self._step.direct_cofactors_read(own)
            if len(direct) > seen and self._are_known(factors, direct[seen:]) is True:
                return True
            seen = len(direct)
            if not self._step.read_next():
                break
        cofactors = self._step.cofactors(own)
        found = self._are_known(factors, [one for one in cofactors if self._step.is_before(one.product, place)])
        if found is not True and self._is_from_solver(place):
            return False
        return None if self._step.hidden & own or not cofactors else found

    def _is_from_solver(self, place: Place) -> bool:
        """Whether a product multiplies with what a linear solver gives, directly or below a few other products."""
        known = self._solved.get(place)
        if known is None:
            known = self._solved[place] = self._finds_solver(place)
        return known

    def _finds_solver(self, place: Place) -> bool:
        level = {place[:2]: place}
        for _ in range(MAX_MATRICES):
            factors = [factor for product in level.values() for factor in self._products.factors(product)]
            if any(SOLVED in self._held.of(factor.place) for factor in factors):
                return True
            level = {one[:2]: one for factor in factors for one in self._products.below(factor.place)}
        return False

    def _are_known(self, factors: Sequence[Factor], cofactors: Sequence[Factor]) -> bool | None:
        """Whether one of some factors is among cofactors."""
        found = {self._is_same(factor, one) for factor in factors for one in cofactors}
        return True if True in found else None if None in found else False

    def _is_same(self, factor: Factor, cofactor: Factor) -> bool | None:
        """Whether the factor of a product is a cofactor of another one, or a part of one that was put together: compilers make
        one product of several with the same weight. Values that are computed again are equal if they depend on the same inputs,
        and indices that depend on none may be, such as relative positions; a convolution may take an input itself where another
        one takes its parts in another order.
        """
        if factor.product == cofactor.product:
            return False
        if factor.origin == cofactor.origin or factor.origin in self._products.put_together(cofactor.origin):
            contracted = self._products.contracted(factor)
            return contracted is None or contracted != self._products.contracted(cofactor)
        source = self._frames.input(cofactor.origin)
        if source is not None:
            inputs = self._held.of(factor.place)
            return source in inputs or (None if UNSEEN in inputs else False)
        left, right = (self._dependence.inputs(one.place) for one in (factor, cofactor))
        if EVERYTHING in {left, right} or (left == right == 0 and self._products.are_indices(factor, cofactor)):
            return None
        is_input = self._frames.input(factor.origin) is not None
        is_equal = left != 0 and (left == right or left in self._inputs_of_parts(cofactor.origin))
        return is_equal and (not is_input or self._products.has_window(factor.product))

    def _inputs_of_parts(self, place: Place) -> frozenset[int]:
        """On which inputs the parts depend, of which a value was put together: those of each part as bits."""
        known = self._of_parts.get(place)
        if known is None:
            known = self._of_parts[place] = frozenset(map(self._dependence.inputs, self._products.put_together(place)))
        return known


def _parts(atom: Atom) -> tuple[Sum, ...]:
    """The parts of a function that a gradient can be in."""
    if atom.op in _CHOSEN:
        return atom.parts[_CHOSEN[atom.op]]
    return atom.parts if atom.op in {"sum", "maximum", "minimum"} else atom.parts[:1]


def _every(found: Iterable[bool | None]) -> bool | None:
    """What the terms of a sum are together. Something may have been added to a gradient: then nothing is concluded."""
    every = set(found)
    if len(every) == 1:
        return every.pop()
    return False if False in every and True not in every else None
