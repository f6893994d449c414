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
    "adabelief": adabelief.match,
    "adadelta": adadelta.match,
    "adafactor": adafactor.match,
    "adagrad": adagrad.match,
    "adam": adam.match,
    "adamax": adamax.match,
    "adamw": adamw.match,
    "amsgrad": amsgrad.match,
    "lamb": lamb.match,
    "lars": lars.match,
    "lion": lion.match,
    "nadam": nadam.match,
    "nadamw": nadamw.match,
    "novograd": novograd.match,
    "radam": radam.match,
    "rmsprop": rmsprop.match,
    "schedule_free": schedule_free.match,
    "sgd": sgd.match,
    "sm3": sm3.match,
    "yogi": yogi.match,
}
"""By file. No update fits two of them: what tells rules apart is part of each."""
