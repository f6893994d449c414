"""Bisection over flags: the least part of the difference between two sets that turns the condition."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.bisection.conditions import words_in
from hlo_inspect.bisection.trials import Flags, Trial, Trials
from hlo_inspect.compiler.compiler import without_machine_flags
from hlo_inspect.compiler.program import FlagValue, flag_values
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.hlo.settings.text_proto import joined_entries, parse_text_proto, read_file


class FlagChange(NamedTuple):
    """A flag of the two sets, with its value in each; None if it has XLA's own."""

    name: str
    old: FlagValue | None
    new: FlagValue | None


class FlagBisection(NamedTuple):
    """Result: the state by both sets, the flags that differ, and those that are necessary for the state of the second."""

    old: Trial
    new: Trial
    differing: Sequence[FlagChange]
    necessary: Sequence[FlagChange]


def read_flags(side: str) -> Flags:
    """Return the flags of a file of `debug_options`, or of a list such as 'xla_a=true xla_b=2'. Raise UsageError."""
    if os.path.isfile(side):  # noqa: PTH113 - False for a list that is too long for a path
        return without_machine_flags(flag_values(joined_entries(parse_text_proto(read_file(Path(side)), side))))
    texts: dict[str, str] = {}
    for word in words_in(side, "--over flags"):
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals or not name.startswith("xla"):
            raise UsageError(
                f"is neither a file of debug_options nor a list such as 'xla_a=true xla_b=2': {word}", Location(side)
            )
        texts[name] = value
    return flag_values(texts)


def bisect_flags(trials: Trials, old: Flags, new: Flags) -> FlagBisection:
    """Find the least flags of `new` by which the condition is as with all of them.

    Raise CompileError if a set does not compile, InputError if the condition is unknown by it or not stable.
    """
    own = trials.compilations.flags
    sides = {**own, **old}, {**own, **new}
    names = [name for name in dict.fromkeys((*sides[0], *sides[1])) if sides[0].get(name) != sides[1].get(name)]
    changes = [FlagChange(name, sides[0].get(name), sides[1].get(name)) for name in names]
    before, after = trials.of(sides[0]), trials.of(sides[1])
    for number, (side, trial) in enumerate((("A", before), ("B", after)), 1):
        trials.tell(number, 0, f"flags of {side}", trial)
        trials.decided(trial, f"with the flags of {side}")
    if before.holds == after.holds:
        return FlagBisection(before, after, changes, [])
    steps = 2

    def turns(chosen: Sequence[FlagChange]) -> bool:
        nonlocal steps
        steps += 1
        trial = trials.of(_mixed(sides[0], chosen))
        names = chosen[0].name if len(chosen) == 1 else f"{len(chosen):,} of {len(changes):,} flags"
        trials.tell(steps, 0, f"with {names} of B", trial)
        return trial.holds == after.holds

    least = least_part(changes, turns)
    trials.confirm(after, _mixed(sides[0], least), "with the least flags of B")
    return FlagBisection(before, after, changes, least)


def least_part(whole: Sequence[FlagChange], is_enough: Callable[[Sequence[FlagChange]], bool]) -> list[FlagChange]:
    """Return a part that is enough, of which no member can be left out. The whole has to be enough.

    Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input": halves first, then smaller parts.
    """
    parts, least = 2, list(whole)
    while len(least) > 1:
        size = -(-len(least) // parts)
        chunks = [least[start : start + size] for start in range(0, len(least), size)]
        rests = [[change for change in least if change not in chunk] for chunk in chunks] if parts > 2 else []
        enough = next((part for part in (*chunks, *rests) if is_enough(part)), None)
        if enough is not None:
            parts = 2 if len(enough) <= size else max(parts - 1, 2)
            least = enough
        elif parts >= len(least):
            break
        else:
            parts = min(2 * parts, len(least))
    return least


def _mixed(old: Mapping[str, FlagValue], chosen: Sequence[FlagChange]) -> Flags:
    """Return the flags of the first set with some of the second."""
    mixed = {**old, **{change.name: change.new for change in chosen if change.new is not None}}
    return {name: value for name, value in mixed.items() if FlagChange(name, old.get(name), None) not in chosen}
