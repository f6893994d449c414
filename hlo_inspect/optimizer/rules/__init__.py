"""The optimizers that are recognised: each file holds one or several that are alike, with equations, papers and states."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.optimizer.algebra.update import Claim, OptimizerRule, Update
from hlo_inspect.optimizer.rules import (
    adafactor,
    adam_family,
    adamax,
    adopt,
    distance_estimates,
    ftrl,
    lars,
    muon,
    nadam,
    novograd,
    rmsprop,
    rprop,
    schedule_free,
    sgd,
    signs,
    sm3,
    sophia,
)

RULES: tuple[OptimizerRule, ...] = (
    *adam_family.RULES,
    *sgd.RULES,
    *signs.RULES,
    *rmsprop.RULES,
    *adafactor.RULES,
    *nadam.RULES,
    *adamax.RULES,
    *novograd.RULES,
    *lars.RULES,
    *sm3.RULES,
    *muon.RULES,
    *schedule_free.RULES,
    *sophia.RULES,
    *adopt.RULES,
    *rprop.RULES,
    *ftrl.RULES,
    *distance_estimates.RULES,
)
"""The common ones first. No update fits two of them, so the order changes no result."""


def claims_of(update: Update) -> Iterator[Claim]:
    """The claims of the rules that explain an update. Constants can be anything: where arithmetic with them fails a rule makes
    none.
    """
    for rule in RULES:
        try:
            claim = rule.claim(update)
        except ArithmeticError:
            continue
        if claim is not None:
            yield claim
