"""Bisection over versions of the compiler: halves of a range, and the texts of the two versions between which it turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hlo_inspect.bisection.conditions import Observation
from hlo_inspect.bisection.trials import Trial, Trials
from hlo_inspect.compiler.compiler import optimized_text
from hlo_inspect.compiler.installations import Version, listed_versions, pip_versions
from hlo_inspect.compiler.targets import Target
from hlo_inspect.errors import HloInspectError
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.inspection.compilations import Compilations
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request


class VersionTrial(NamedTuple):
    """A version, what came of it, and the folder of what XLA wrote."""

    version: Version
    trial: Trial
    folder: str


class VersionBisection(NamedTuple):
    """Result: the last version with the state of the first, and the first with another one; the ends if their states are equal.

    `between` are the versions that lie between them and do not decide the condition.
    """

    old: VersionTrial
    new: VersionTrial
    between: Sequence[str]

    @property
    def necessary(self) -> list[VersionTrial]:
        """The version with which the condition turns; none if it does not."""
        return [self.new] if self.new.trial.holds != self.old.trial.holds else []


def versions_between(span: str, target: Target, path: str) -> list[Version]:
    """Return the versions of a range A..B: those of the user's list, or without a `path` those of pip."""
    return listed_versions(path, span) if path else pip_versions(target, span)


def open_first(compilations: Compilations, versions: Sequence[Version]) -> None:
    """Compile with the first version from now on. A file of `jax.export` is lowered before, by the jax of this Python."""
    if not compilations.program.is_stablehlo:
        compilations.describe()
    compilations.move_to(versions[0].install())


def bisect_versions(trials: Trials, versions: Sequence[Version]) -> VersionBisection:
    """Find the version with which the condition turns, if it differs between the first and the last.

    It halves the range until nothing is between. Raise HloInspectError if an end cannot be tried, InputError if the condition
    is not stable.
    """
    low, high = 0, len(versions) - 1
    most = 2 + (len(versions) - 2).bit_length()
    tried: dict[int, VersionTrial] = {}

    def holds(position: int) -> bool | None:
        version = versions[position]
        folder = f"version-{position}"
        trial = _trial(trials, version, folder, is_end=position in (0, len(versions) - 1))
        tried[position] = VersionTrial(version, trial, folder)
        trials.tell(len(tried), max(most, len(tried)), f"with {version.label}", trial)
        return trial.holds

    for position in (low, high):
        holds(position)
        trials.decided(tried[position].trial, f"with {versions[position].label}")
    turns = tried[low].trial.holds != tried[high].trial.holds
    while turns and (untried := [position for position in range(low + 1, high) if position not in tried]):
        middle = untried[len(untried) // 2]
        state = holds(middle)
        if state == tried[low].trial.holds:
            low = middle
        elif state is not None:
            high = middle
    for own in (tried[low], tried[high]) if turns else ():
        again = _trial(trials, own.version, f"{own.folder}-again")
        trials.check_equal(own.trial, again, f"with {own.version.label}")
    between = [version.name for version in versions[low + 1 : high]] if turns else []
    return VersionBisection(tried[low], tried[high], between)


def _trial(trials: Trials, version: Version, folder: str, *, is_end: bool = True) -> Trial:
    """Compile with a version. Unless it is an end, it is undecided if it cannot be installed or does not compile."""
    try:
        trials.compilations.move_to(version.install())
        trials.description = trials.compilations.describe()
    except HloInspectError as error:
        if is_end:
            raise
        return Trial(Observation(None, error.message))
    trial = trials.of(trials.compilations.flags, folder)
    return trial if is_end or trial.observation is not None else Trial(Observation(None, trial.value))


def text_changes(trials: Trials, result: VersionBisection, request: Request) -> Report:
    """Return what `diff` says between the texts of the two versions. Raise HloInspectError if one cannot be read."""
    mesh = request.mesh or trials.description.mesh_text
    texts = [str(optimized_text(trials.compilations.path(side.folder))) for side in (result.old, result.new)]
    comparisons = Comparisons(replace(request, module=None, stage=None), with_notes=False)
    for comparison in comparisons.compare(*(ComparedInput(text, mesh=mesh) for text in texts)):
        return comparison.report
    raise comparisons.errors[0]
