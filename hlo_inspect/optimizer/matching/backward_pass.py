"""Test that a rule's gradient can be the result of a backward pass.

Solvers, samplers, recurrent cells and physics take steps that look like descent, `x' = x - h * f(x)`. What separates a gradient
from a field `f` is the way back. On the way to the loss a weight is multiplied with a cofactor. The gradient of that product is
a product with the same cofactor, along its other dimensions.

    forward   y = c @ w      backward   dw = c.T @ dy

So this module collects the cofactors of each weight: the other factors of all products that hold it, element by element. A
product in the gradient with none of these factors is no backward pass. Nor is a product with a cofactor along the same
dimensions as before (`w @ A`, a single product). If something on the way is opaque (a loop, a custom call), a missing cofactor
proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.graph.frames import Frames, Place
from hlo_inspect.hlo.opcodes import CONTROL_FLOW, opcodes_that_are
from hlo_inspect.optimizer.algebra.normal_form import Atom, Monomial, Sum, is_constant
from hlo_inspect.optimizer.algebra.update import Update
from hlo_inspect.optimizer.elementwise_inputs import SOLVED, UNSEEN
from hlo_inspect.optimizer.operations import SOME_VALUES
from hlo_inspect.optimizer.step.products import Factor, StepProducts
from hlo_inspect.optimizer.step.step_dependence import EVERYTHING, InputDependence

MAX_PAIRS = 100_000  # pairs of products and cofactors that are compared
MAX_DEPTH = 12  # nested functions around a gradient
MAX_MATRICES = 4  # factors of a gradient
MAX_LEAVES = 64  # leaves of one update that are read

_CHOSEN = {"select": slice(1, 3), "clamp": slice(1, 2)}
_LINEAR = SOME_VALUES | opcodes_that_are("choice") | {"sum", "broadcast", "transpose"}
_CLOSED = (CONTROL_FLOW - {"call"}) | {"custom-call"}


class BackwardPasses:
    """Judge that decides if gradients in updates of one step are results of its backward pass.

    Answers do not depend on earlier ones: the fields are caches.
    """

    def __init__(self, frames: Frames, results: Iterable[Place], dependence: InputDependence) -> None:
        self._frames = frames
        self._dependence = dependence
        self._step = StepProducts(frames, results, dependence)
        self._products = self._step.products
        self._elementwise_inputs = self._step.elementwise_inputs
        self._solved: dict[Place, bool] = {}
        self._of_parts: dict[Place, frozenset[int]] = {}

    def holds(self, update: Update, gradient: Sum) -> bool | None:
        """Return True if `gradient` comes from a backward pass, None if that is unknown."""
        return self._sum(update, gradient, MAX_DEPTH)

    def is_gradient_of(self, own: int, result: Place) -> bool:
        """Return True if a value ends with the gradient of an input, a bit of `own`.

        A product below it, element by element, multiplies with a cofactor of the input, and depends on that cofactor's product.
        """
        cofactors = self._step.cofactors(own)
        return any(
            self._are_known(self._products.factors(place), [c for c in cofactors if self._step.is_before(c.product, place)])
            for place in self._products.elementwise_products(result)
        )

    def may_be_linear(self, update: Update, gradient: Sum) -> bool:
        """Return True if the loss can be linear in a weight with this gradient.

        All cofactors of the weight, forward and backward, are then factors of its gradient. In Hebb's rule all factors are
        activations.
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
        """Return True if a cofactor is or may be among factors.

        Compilers copy constants, so any two constants may be equal.
        """
        if self._dependence.inputs(cofactor.place) == 0:
            return any(self._dependence.inputs(factor.place) == 0 for factor in factors)
        return self._are_known(factors, [cofactor]) is not False

    def is_anywhere(self, update: Update) -> bool | None:
        """Return True if a product on the way back multiplies with a cofactor of the weight; None if a product may."""
        own = update.own_inputs
        if self._step.hidden & own:
            return None
        cofactors, products = self._step.cofactors(own), self._step.places
        if len(products) * len(cofactors) > MAX_PAIRS:
            return None
        matches = {self._are_known(self._products.factors(place), cofactors) for place in products}
        return True if True in matches else None if None in matches else False

    def is_in(self, update: Update, forms: Iterable[Sum]) -> bool | None:
        """Return True if an opaque value in `forms` is a gradient; None if an opaque value cannot be looked into."""
        leaves = sorted({leaf for form in forms for leaf in update.dependent_leaves(form)})
        is_unknown = False
        for leaf in leaves[:MAX_LEAVES]:
            if self._atom(update, leaf, MAX_DEPTH) or self._is_preconditioned(update, leaf):
                return True
            is_unknown = is_unknown or self._is_closed(update, leaf)
        return None if is_unknown else False

    def _is_closed(self, update: Update, leaf: int) -> bool:
        """Return True if a value is computed by a loop or an unknown kernel, or was not followed."""
        node = update.forms.atoms[leaf].node
        place = update.forms.graph.places.get(node) if node is not None else None
        if place is None or node in update.forms.graph.broken:
            return True
        return self._frames.opcode(place) in _CLOSED and not self._elementwise_inputs.is_solved(place)

    def _is_preconditioned(self, update: Update, leaf: int) -> bool:
        """Return True if a value is a gradient multiplied with other matrices, from the left or the right.

        There may be elementwise operations between two such products.
        """
        node = update.forms.atoms[leaf].node
        place = update.forms.graph.places.get(node) if node is not None else None
        level = {place[:2]: place} if place is not None and self._products.is_product(place) else {}
        for _ in range(MAX_MATRICES):
            factors = [factor for product in level.values() for factor in self._products.factors(product)]
            level = {
                place_below[:2]: place_below
                for factor in factors
                for place_below in self._products.elementwise_products(factor.place)
            }
            if any(
                self._is_back(update, place_below) and not self._is_from_solver(place_below) for place_below in level.values()
            ):
                return True
        return False

    # -- expressions ----------------------------------------------------------------------------------------------------

    def _sum(self, update: Update, form: Sum, depth: int) -> bool | None:
        """Return True if the terms are gradients, None if that is unknown."""
        return _every(self._term(update, monomial, depth) for monomial, value in form.items() if value != 0.0)

    def _term(self, update: Update, monomial: Monomial, depth: int) -> bool | None:
        """Judge a term. One factor is the gradient of the later operations; the others are derivatives of functions."""
        verdicts = [
            None if exponent != 1.0 else self._atom(update, atom, depth)
            for atom, exponent in monomial
            if update.depends_on_itself({((atom, 1.0),): 1.0})
        ]
        return True if True in verdicts else None if None in verdicts or not verdicts else False

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
        """Return True if a value is a sum over pairs of rows of the weight, as of particles that attract each other."""
        if not self._may_be_pairwise(update, node):
            return False
        summed = update.reductions.summed(number) or {}
        repeated = [
            atom
            for number_below in update.forms.atoms_below(summed)
            if (atom := update.forms.atoms[number_below]).op == "broadcast"
        ]
        dimensions = {atom.attribute for atom in repeated if atom.parts[0] == {((update.weight, 1.0),): 1.0}}
        return len(dimensions) > 1

    def _may_be_pairwise(self, update: Update, node: int) -> bool:
        """Return True if the summed value has the size of such pairs: the weight's size times one of its dimensions.

        A sum over devices alone does not show this size, so it may be such a sum.
        """
        place = update.forms.graph.places.get(node)
        operands = self._frames.operands(self._frames.start(place)) if place is not None and place[1] >= 0 else ()
        weight = update.array.shape
        own, summed = weight.elements or 0, self._frames.size(operands[0]) if operands else 0
        return summed in {own, *(own * (dimension or 0) for dimension in weight.dimensions)}

    def _leaf(self, update: Update, node: int) -> bool | None:
        """Judge an opaque value."""
        place = update.forms.graph.places.get(node)
        if place is None:
            return None
        if self._elementwise_inputs.is_solved(place):
            return False
        return self._is_back(update, place) if self._products.is_product(place) else None

    # -- products -------------------------------------------------------------------------------------------------------

    def _is_back(self, update: Update, place: Place) -> bool | None:
        """Return True if a factor of a product is a cofactor of the weight, contracted along other dimensions."""
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
        is_cofactor = self._are_known(
            factors, [cofactor for cofactor in cofactors if self._step.is_before(cofactor.product, place)]
        )
        if is_cofactor is not True and self._is_from_solver(place):
            return False
        return None if self._step.hidden & own or not cofactors else is_cofactor

    def _is_from_solver(self, place: Place) -> bool:
        """Return True if a product multiplies with the result of a linear solver, directly or below a few other products."""
        is_solver = self._solved.get(place)
        if is_solver is None:
            is_solver = self._solved[place] = self._finds_solver(place)
        return is_solver

    def _finds_solver(self, place: Place) -> bool:
        level = {place[:2]: place}
        for _ in range(MAX_MATRICES):
            factors = [factor for product in level.values() for factor in self._products.factors(product)]
            if any(SOLVED in self._elementwise_inputs.get(factor.place) for factor in factors):
                return True
            level = {
                place_below[:2]: place_below
                for factor in factors
                for place_below in self._products.elementwise_products(factor.place)
            }
        return False

    def _are_known(self, factors: Sequence[Factor], cofactors: Sequence[Factor]) -> bool | None:
        """Return True if one of `factors` is among `cofactors`."""
        matches = {self._is_same(factor, cofactor) for factor in factors for cofactor in cofactors}
        return True if True in matches else None if None in matches else False

    def _is_same(self, factor: Factor, cofactor: Factor) -> bool | None:
        """Return True if a factor is a cofactor of another product, or a part of a concatenated one.

        Compilers make one product of several with the same weight. Recomputed values are equal if they depend on the same
        inputs. Indices that depend on no inputs, such as relative positions, may be equal. A convolution may read an input
        itself, while another one reads its parts in another order.
        """
        if factor.product == cofactor.product:
            return False
        if factor.origin == cofactor.origin or factor.origin in self._products.concatenation_origins(cofactor.origin):
            contracted = self._products.contracted(factor)
            return contracted is None or contracted != self._products.contracted(cofactor)
        source = self._frames.input(cofactor.origin)
        if source is not None:
            inputs = self._elementwise_inputs.get(factor.place)
            return source in inputs or (None if UNSEEN in inputs else False)
        left, right = (self._dependence.inputs(value.place) for value in (factor, cofactor))
        if EVERYTHING in {left, right} or (left == right == 0 and self._products.are_indices(factor, cofactor)):
            return None
        is_input = self._frames.input(factor.origin) is not None
        is_equal = left != 0 and (left == right or left in self._inputs_of_parts(cofactor.origin))
        return is_equal and (not is_input or self._products.has_window(factor.product))

    def _inputs_of_parts(self, place: Place) -> frozenset[int]:
        """Return the inputs, as bits, behind each part of a concatenated value."""
        inputs = self._of_parts.get(place)
        if inputs is None:
            inputs = self._of_parts[place] = frozenset(
                map(self._dependence.inputs, self._products.concatenation_origins(place))
            )
        return inputs


def _parts(atom: Atom) -> tuple[Sum, ...]:
    """Return the parts of a function that can hold a gradient."""
    if atom.op in _CHOSEN:
        return atom.parts[_CHOSEN[atom.op]]
    return atom.parts if atom.op in {"sum", "maximum", "minimum"} else atom.parts[:1]


def _every(verdicts: Iterable[bool | None]) -> bool | None:
    """Combine the verdicts on the terms of a sum. A gradient with another addend proves nothing: None."""
    distinct = set(verdicts)
    if len(distinct) == 1:
        return distinct.pop()
    return False if False in distinct and True not in distinct else None
