"""The optimizers that are recognised: one file each, with the equation, the paper and the state that it keeps."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.rules import (
    adabelief,
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    ademamix,
    amsgrad,
    lamb,
    lars,
    lion,
    muon,
    nadam,
    novograd,
    radam,
    rmsprop,
    schedule_free,
    sgd,
    sm3,
    yogi,
)
from hlo_inspect.analysis.optimizer.toolkit import OptimizerRule

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
)
"""The common ones first. No update fits two of them, so the order changes no result."""
