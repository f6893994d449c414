"""Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/): momentum, made nearly orthogonal.

    m' = momentum * m + g, or an average with (1 - momentum) * g
    M = m', or with Nesterov's look ahead g + momentum * m'; each with its bias correction, if there is one
    X = M / (norm(M) + epsilon), then several times X = a X + (b X X^T + c (X X^T)^2) X
    w' = w - rate * (scale * X + decay * w)

State: m. Reads momentum; rate and decay where they stand as in the last line. The scale goes by the shape of the weight
(`sqrt(max(1, rows / columns))`, or `0.2 * sqrt(max(rows, columns))` of Liu et al. 2025, arXiv:2502.16982); elsewhere the rate
is read with the scale in it, and a decay is not read. The coefficients can be any of the signs +, -, +; optax keeps them in an
array that is handed in.
"""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.moments import gradient_average
from hlo_inspect.analysis.optimizer.newton_schulz import find_iteration, linear_in
from hlo_inspect.analysis.optimizer.normal import Sum, scaled
from hlo_inspect.analysis.optimizer.readings import ABSENT, COMPUTED, Reading
from hlo_inspect.analysis.optimizer.update import Claim, Update

LEAST_STEPS = 2


def match(update: Update) -> Claim | None:
    states = update.used(update.rest)
    if len(states) != 1 or not update.is_plain():
        return None
    average = gradient_average(update, states[0])
    iteration = find_iteration(update, update.rest) if average is not None else None
    if average is None or iteration is None or iteration.steps < LEAST_STEPS:
        return None
    ahead = linear_in(update, iteration.matrix, states[0].new)
    if ahead is None or (ahead[1] and not update.same_direction(ahead[1], average.rest)):
        return None
    rate, decay = scaled(iteration.factor, -1.0), update.decay_of(iteration.factor)
    decay = COMPUTED if decay.state != "absent" and decay.value != 0.0 else decay
    shared = _shared_factor(update)
    if shared is not None:
        rate, decay = shared[0], update.read(shared[1])
    readings = {
        "learning_rate": update.read(rate),
        "momentum": average.decay,
        "nesterov": Reading(float(bool(ahead[1])), "constant"),
        "weight_decay": decay if decay is not None else ABSENT,
    }
    return Claim("muon", rate, average.rest, readings, {"first_moment": states[0].site})


def _shared_factor(update: Update) -> tuple[Sum, Sum] | None:
    """The rate and the decay of `w + -rate * (step + decay * w)`, as the text has it."""
    graph, own = update.forms.graph, update.site.own
    if graph.ops[update.site.new] != "add" or own not in graph.args[update.site.new]:
        return None
    (step,) = [arg for arg in graph.args[update.site.new] if arg != own] or [own]
    if graph.ops[step] != "multiply":
        return None
    for factor, total in (graph.args[step], graph.args[step][::-1]):
        terms = graph.args[total] if graph.ops[total] == "add" else ()
        for term in terms:
            others = [arg for arg in graph.args[term] if arg != own] if graph.ops[term] == "multiply" else []
            if len(others) == 1 and own in graph.args[term]:
                rate, decay = scaled(update.forms.form(factor), -1.0), update.forms.form(others[0])
                return (rate, decay) if update.are_scalar(rate) and update.are_scalar(decay) else None
    return None
