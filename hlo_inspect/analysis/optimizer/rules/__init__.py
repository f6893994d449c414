"""The rules: one file each, with the equation, the paper and the state that it keeps. A rule is a function of an update that
gives a claim, or nothing where the update is not wholly explained.
"""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.optimizer.rules import (
    adabelief,
    adadelta,
    adafactor,
    adagrad,
    adam,
    adamax,
    adamw,
    amsgrad,
    lamb,
    lars,
    lion,
    muon,
    nadam,
    nadamw,
    novograd,
    radam,
    rmsprop,
    schedule_free,
    sgd,
    sm3,
    yogi,
)
from hlo_inspect.analysis.optimizer.update import Claim, Update

Rule = Callable[[Update], Claim | None]

RULES: dict[str, Rule] = {
    "adamw": adamw.match,
    "adam": adam.match,
    "sgd": sgd.match,
    "lion": lion.match,
    "rmsprop": rmsprop.match,
    "adagrad": adagrad.match,
    "adafactor": adafactor.match,
    "lamb": lamb.match,
    "nadamw": nadamw.match,
    "nadam": nadam.match,
    "amsgrad": amsgrad.match,
    "adamax": adamax.match,
    "adabelief": adabelief.match,
    "adadelta": adadelta.match,
    "yogi": yogi.match,
    "radam": radam.match,
    "novograd": novograd.match,
    "lars": lars.match,
    "sm3": sm3.match,
    "muon": muon.match,
    "schedule_free": schedule_free.match,
}
"""By file, the common ones first. No update fits two of them: what tells rules apart is part of each."""
