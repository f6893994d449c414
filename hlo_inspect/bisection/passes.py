"""Bisection over passes: each that ran is disabled alone, then pairs of the likeliest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.bisection.trials import Flags, Trial, Trials
from hlo_inspect.errors import InputError, UsageError, did_you_mean
from hlo_inspect.inspection.pass_histories import PassHistory

_NAME = re.compile(r"\]   HLO pass (\S+)|Running HLO pass pipeline on module [^:\n]+: (\S+)")
_DISABLED = "xla_disable_hlo_passes"
_PAIRED = 8
"""Passes whose pairs are tried if none alone is necessary."""


class PassTrial(NamedTuple):
    """Passes that were disabled, and what came of it. `change` is what they change in the module."""

    names: tuple[str, ...]
    trial: Trial
    change: str = ""

    @property
    def name(self) -> str:
        """The names as XLA takes them."""
        return ",".join(self.names)


class PassBisection(NamedTuple):
    """Result: the state with all passes, the passes in order of the pipeline, and the trials with passes disabled."""

    whole: Trial
    passes: Sequence[str]
    trials: Sequence[PassTrial]

    @property
    def necessary(self) -> list[PassTrial]:
        """Passes without which the condition does not hold."""
        return [trial for trial in self.trials if trial.trial.holds is False]

    @property
    def required(self) -> list[PassTrial]:
        """Passes without which the program does not compile."""
        return [own for own in self.trials if own.trial.observation is None]

    @property
    def others(self) -> list[PassTrial]:
        """Passes without which the condition holds, by another value."""
        return [own for own in self.trials if own.trial.holds and own.trial.value != self.whole.value]


def bisect_passes(trials: Trials) -> PassBisection:
    """Disable each pass alone, then pairs of the likeliest if none alone is necessary.

    Raise CompileError if the program as it is does not compile, InputError if the condition is unknown then or not stable.
    """
    flags = trials.compilations.flags
    whole, compiled, log = trials.first()
    changes = _changes(compiled.folder)
    names = names_in_log(log) or list(changes)
    trials.tell(1, len(names) + 1, "all passes", whole)
    if not whole.holds:
        return PassBisection(whole, names, [])
    trials.confirm(whole, flags, "with all passes")
    order = [*filter(changes.__contains__, names), *(name for name in names if name not in changes)]
    tried = list(_tried(trials, [(name,) for name in order], changes, 2, len(names) + 1))
    result = PassBisection(whole, names, tried)
    if not result.necessary:
        likely = _likeliest(result, changes)
        pairs = list(combinations(likely, 2))
        tried += [pair for pair in _tried(trials, pairs, changes, 1, len(pairs)) if pair.trial.holds is not None]
    for own in result.necessary:
        trials.confirm(own.trial, _without(flags, own.names), f"without {own.name}")
    places = {name: number for number, name in enumerate(names)}
    return result._replace(trials=sorted(tried, key=lambda own: [places[name] for name in own.names]))


def check_pass_names(trials: Trials, flags: Flags) -> None:
    """Raise UsageError if the user's flags disable a pass that does not run for the program without them."""
    names = _disabled(flags)
    if names:
        enabled = {**trials.compilations.flags, **flags, _DISABLED: ""}
        listed = names_in_log(trials.logged(enabled, "enabled")[1])
        unknown = next((name for name in names if name not in listed), None)
        if listed and unknown is not None:
            closest = did_you_mean(unknown, listed)
            raise UsageError(f"{_DISABLED}: {unknown!r} is no pass that runs for this program{closest}")


def names_in_log(log: str) -> list[str]:
    """Return the names of passes and pipelines in XLA's log, each once, in the order in which they began."""
    return list(dict.fromkeys(name or pipeline for name, pipeline in _NAME.findall(log)))


def _tried(
    trials: Trials, groups: Sequence[tuple[str, ...]], changes: Mapping[str, str], first: int, total: int
) -> Iterator[PassTrial]:
    for number, names in enumerate(groups, first):
        trial = trials.of(_without(trials.compilations.flags, names))
        trials.tell(number, total, f"without {' and '.join(names)}", trial)
        yield PassTrial(names, trial, "; ".join(changes[name] for name in names if name in changes))


def _without(flags: Flags, names: Sequence[str]) -> Flags:
    """Return the flags that disable passes too."""
    return {**flags, _DISABLED: ",".join([*_disabled(flags), *names])}


def _disabled(flags: Flags) -> list[str]:
    return [name for part in str(flags.get(_DISABLED, "")).split(",") if (name := part.strip())]


def _likeliest(result: PassBisection, changes: Mapping[str, str]) -> list[str]:
    """Return the passes without which the value is another one, then those that changed the module, in the order of trials."""
    compiling = [own.names[0] for own in result.trials if own.trial.holds]
    by_value = [own.names[0] for own in result.others]
    return list(dict.fromkeys([*by_value, *filter(changes.__contains__, compiling)]))[:_PAIRED]


def _changes(folder: Path) -> dict[str, str]:
    """Return what each pass changed in the module, by `history`; pipelines have the changes of their passes."""
    try:
        table = PassHistory(str(folder)).report().table("history")
    except InputError:  # no pass changed anything
        return {}
    columns = [column.name for column in table.columns]
    listed: dict[str, list[str]] = {}
    for row in (dict(zip(columns, values, strict=True)) for values in table.rows[1:]):
        for name in dict.fromkeys((str(row["pass"]), str(row["pipeline"]))):
            listed.setdefault(name, []).append(str(row["change"] or "") or f"{row['rewritten'] or 0} rewritten")
    return {name: _first_changes(texts) for name, texts in listed.items() if name}


def _first_changes(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - 1} more times" if len(texts) > 2 else ", and once more" if len(texts) == 2 else ""
    return f"{texts[0]}{more}"
