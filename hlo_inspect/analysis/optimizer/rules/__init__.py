"""The rules: one file each, with the equation, the paper and the state that it keeps. A rule is a function of an update that
gives a claim, or nothing where the update is not wholly explained.
"""

from __future__ import annotations

from collections.abc import Callable

from hlo_inspect.analysis.optimizer.rules import adafactor, adagrad, adam, adamw, lamb, lion, rmsprop, sgd
from hlo_inspect.analysis.optimizer.update import Claim, Update

Rule = Callable[[Update], Claim | None]

RULES: dict[str, Rule] = {
    "adam": adam.match,
    "adamw": adamw.match,
    "sgd": sgd.match,
    "lion": lion.match,
    "rmsprop": rmsprop.match,
    "adagrad": adagrad.match,
    "lamb": lamb.match,
    "adafactor": adafactor.match,
}
"""By file. No update fits two of them: what tells rules apart is part of each."""
