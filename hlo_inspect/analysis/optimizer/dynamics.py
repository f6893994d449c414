"""Steps of simulations that look like descent: `x' = x - h * f(A x)`, with a matrix or a kernel A.

The gradient of a loss with respect to w goes there and back: what w is multiplied with on the way to the loss is multiplied
again on the way back, or with w in it twice gives two terms. A single product with values that depend on w element by element,
and functions of it, are thus no backward pass: explicit Euler steps and leaky recurrent cells are of this kind.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.normal import Sum
from hlo_inspect.analysis.optimizer.numeric import atoms_below
from hlo_inspect.analysis.optimizer.opcodes import MOVES
from hlo_inspect.analysis.optimizer.update import Update

_ELSEWHERE = MOVES | {"broadcast", "concatenate"}


def is_one_way(update: Update) -> bool:
    """Whether everything opaque in an update that depends on the weight is one product of it with something else."""
    atoms, found = update.forms.atoms, 0
    seen: set[int] = set()
    forms = [update.rest, *(state.form for state in update.used(update.rest))]
    level = {atom for form in forms for monomial in form for atom, _ in monomial}
    while level:
        for atom in sorted(level):
            if atoms[atom].node is not None and update.is_reached({((atom, 1.0),): 1.0}):
                if not _is_one_product(update, atom):
                    return False  # a gradient shows here, before anything deep is looked at
                found += 1
        seen |= level
        level = {inner for atom in level for part in atoms[atom].parts for monomial in part for inner, _ in monomial} - seen
    return found == 1


def _is_one_product(update: Update, leaf: int) -> bool:
    """Whether a leaf of the weight's size multiplies values made of the weight, element by element, with others."""
    node, elements = update.forms.atoms[leaf].node, update.site.shape.elements
    if node is None or update.forms.graph.sizes[node] != elements or elements == 1:
        return False
    factors = update.reductions.factors(leaf, windowed=True)
    if factors is None or any(update.is_reached(factor) for factor in factors):
        return False
    holding = [factor for factor in factors if _holds_weight(update, factor)]
    return len(holding) == 1 and _is_elementwise(update, holding[0])


def _holds_weight(update: Update, form: Sum) -> bool:
    return any(update.holds(atom, update.weight) for monomial in form for atom, _ in monomial)


def _is_elementwise(update: Update, form: Sum) -> bool:
    """Whether the weight is in a form as it is, not repeated nor in part."""
    atoms = ((atom, update.forms.atoms[atom].op) for atom in atoms_below(update.forms, form))
    return not any(op in _ELSEWHERE and update.holds(atom, update.weight) for atom, op in atoms)
