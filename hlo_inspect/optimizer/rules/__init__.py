"""The optimizers that are recognised: one file each, with the equation, the paper and the state that it keeps."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.optimizer.algebra.toolkit import OptimizerRule
from hlo_inspect.optimizer.algebra.update import Claim, Update
from hlo_inspect.optimizer.rules import (
    adabelief,
    adabound,
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    ademamix,
    adopt,
    amsgrad,
    asgd,
    dadapt_adamw,
    ftrl,
    lamb,
    lars,
    lion,
    mars,
    muon,
    nadam,
    novograd,
    prodigy,
    radam,
    rmsprop,
    rprop,
    schedule_free,
    sgd,
    sm3,
    sophia,
    yogi,
)

RULES: tuple[OptimizerRule, ...] = (
    adam.RULE,
    sgd.RULE,
    lion.RULE,
    rmsprop.RULE,
    adagrad.RULE,
    adafactor.RULE,
    lamb.RULE,
    nadam.RULE,
    amsgrad.RULE,
    adamax.RULE,
    ademamix.RULE,
    adabelief.RULE,
    adadelta.RULE,
    yogi.RULE,
    radam.RULE,
    novograd.RULE,
    lars.RULE,
    sm3.RULE,
    muon.RULE,
    schedule_free.RULE,
    sophia.RULE,
    mars.RULE,
    adopt.RULE,
    adabound.RULE,
    rprop.RULE,
    ftrl.RULE,
    asgd.RULE,
    prodigy.RULE,
    dadapt_adamw.RULE,
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
