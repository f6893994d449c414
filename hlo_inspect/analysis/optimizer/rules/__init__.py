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
    lion,
    nadam,
    nadamw,
    rmsprop,
    sgd,
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
    "lion": lion.match,
    "nadam": nadam.match,
    "nadamw": nadamw.match,
    "rmsprop": rmsprop.match,
    "sgd": sgd.match,
    "yogi": yogi.match,
}
"""By file. No update fits two of them: what tells rules apart is part of each."""
