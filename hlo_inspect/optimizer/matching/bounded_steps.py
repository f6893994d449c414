"""Updates whose new value is not the old one and something added: weights that are kept within bounds after the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hlo_inspect.optimizer.algebra.normal_form import ONE, FormKinds, Sum, close, product
from hlo_inspect.optimizer.algebra.update import LEAST_KEPT, Update, split
from hlo_inspect.optimizer.matching.proposals import Proposal
from hlo_inspect.optimizer.matching.step_expressions import StepExpressions


def may_be_bounded_step(expressions: StepExpressions, proposal: Proposal) -> bool:
    """Return True if a new value, which is no plain step, can hold one."""
    return _holds_step(expressions, proposal) or _holds_last_step(proposal.update)


def find_bounded_steps(expressions: StepExpressions, proposals: Iterable[Proposal]) -> list[Update]:
    """Find the updates in which a gradient shows, or shows in others of the same form."""
    kinds = FormKinds(expressions.forms)
    by_kind: dict[int, list[Proposal]] = {}
    for proposal in proposals:
        by_kind.setdefault(kinds.of(proposal.update.form), []).append(proposal)
    is_in = expressions.backward_passes.is_in
    return [
        proposal.update
        for members in by_kind.values()
        if any(is_in(member.update, member.chain) for member in members)
        for proposal in members
    ]


def _holds_step(expressions: StepExpressions, proposal: Proposal) -> bool:
    """Return True if a new value holds a sum of the old one, or of a state, and something that depends on the weight."""
    atoms, dependence, update = expressions.forms.atoms, expressions.dependence, proposal.update
    own = expressions.values.own(update.array)
    values = [update.weight, *(state.old for state in update.states)]
    inner = {atom for form in proposal.chain for atom in expressions.forms.atoms_below(form)}
    for form in (*proposal.chain, *(part for atom in inner for part in atoms[atom].parts)):
        if len(form) > 1 and dependence.inputs(form) & own and _is_sum_with(expressions, update, form, values):
            return True
    return False


def _is_sum_with(expressions: StepExpressions, update: Update, form: Sum, values: Sequence[int]) -> bool:
    """Return True if a form is most of one of `values` and something that depends on the weight."""
    own = expressions.values.own(update.array)
    for value in values:
        factor, rest = split(_without_shared(form), value)
        is_kept = LEAST_KEPT <= factor.get(ONE, 1.0) <= 1.0 and update.are_scalar(factor)
        if factor and is_kept and expressions.dependence.inputs(rest) & own:
            return True
    return False


def _holds_last_step(update: Update) -> bool:
    """Return True for `w + b * (w - last) + ...` with the value of the step before: momentum without a state of its own. With
    b = 1 it is a wave.
    """
    again = update.kept.get(ONE, 0.0) - 1.0
    if len(update.kept) != 1 or not 0.0 < again < 1.0:
        return False
    inputs = [m[0][0] for m, value in update.rest.items() if len(m) == 1 and m[0][1] == 1.0 and close(value, -again)]
    return any(update.forms.atoms[atom].op == "input" for atom in inputs)


def _without_shared(form: Sum) -> Sum:
    """Divide a sum by the factors that all of its terms share."""
    terms = [set(monomial) for monomial, value in form.items() if value != 0.0]
    shared = set.intersection(*terms) if terms else set()
    divisor = tuple(sorted((atom, -exponent) for atom, exponent in shared))
    return {product(monomial, divisor): value for monomial, value in form.items()} if divisor else form
