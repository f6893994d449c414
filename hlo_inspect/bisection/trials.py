"""Trials of a bisection: a program compiled with other flags, and the state of the condition then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from shutil import rmtree
from typing import Any, NamedTuple

from hlo_inspect.bisection.conditions import BisectCondition, Observation
from hlo_inspect.compiler.compiler import Compiled
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.compiler.program import FlagValue
from hlo_inspect.errors import CompileError, InputError, Location
from hlo_inspect.inspection.compilations import Compilations

Flags = Mapping[str, FlagValue]


class Trial(NamedTuple):
    """A compile with its condition. Without an observation `reason` says why the program does not compile."""

    observation: Observation | None
    reason: str = ""

    @property
    def holds(self) -> bool | None:
        return None if self.observation is None else self.observation.holds

    @property
    def value(self) -> str:
        """The value that the condition looks at, or why there is none."""
        return f"does not compile: {self.reason}" if self.observation is None else self.observation.value

    @property
    def is_undecided(self) -> bool:
        """True if the program compiles, but the condition is unknown."""
        return self.observation is not None and self.holds is None


class UndecidedStep(NamedTuple):
    """A step whose condition is unknown."""

    name: str
    reason: str


class Trials:
    """Compiles of one program under a condition, counted. `tell` gets a line for each step.

    `undecided` are the steps whose condition is unknown.
    """

    def __init__(self, compilations: Compilations, condition: BisectCondition, tell: Callable[[str], None]) -> None:
        self.compilations, self.condition, self._tell = compilations, condition, tell
        self.description: Description = compilations.describe()
        compilations.path("").mkdir(parents=True, exist_ok=True)
        condition.prepare(compilations, self.description)
        self.compiles = 0
        self.made_by = compilations.made_by
        self.undecided: list[UndecidedStep] = []
        self._start = time.monotonic()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the compiler and on the condition."""
        return (self.made_by, *self.condition.notes)

    @property
    def effort(self) -> str:
        """Number of compiles, and seconds since the first."""
        return f"{self.compiles:,} compiles, {time.monotonic() - self._start:.0f} s"

    def first(self) -> tuple[Trial, Compiled, str]:
        """Compile the program as it is, with a file for each pass. Return its trial and XLA's log.

        Raise CompileError if it does not compile, InputError if the condition is unknown.
        """
        compiled, log = self.logged(self.compilations.flags, "as-it-is", self.condition.run)
        return self.decided(Trial(self.condition.observe(compiled)), "as it is"), compiled, log

    def logged(self, flags: Flags, folder: str, run: Mapping[str, Any] | None = None) -> tuple[Compiled, str]:
        """Compile the program with a file for each pass. Return XLA's log too. Raise CompileError."""
        self.compiles += 1
        try:
            return self.compilations.compile_logged(self.description, flags, folder, run)
        except CompileError as error:
            raise CompileError(f"the program does not compile: {error.message}") from error

    def of(self, flags: Flags, kept: str = "") -> Trial:
        """Compile the program with these flags and look at the condition. What XLA writes is removed unless it is `kept`."""
        self.compiles += 1
        folder = kept or f"trial-{self.compiles}"
        try:
            compiled = self.compilations.compile_with(self.description, flags, folder, self.condition.run)
            return Trial(self.condition.observe(compiled))
        except CompileError as error:
            return Trial(None, error.message)
        finally:
            if not kept:
                rmtree(self.compilations.path(folder), ignore_errors=True)

    def decided(self, trial: Trial, label: str) -> Trial:
        """Return a trial. Raise CompileError if it does not compile, InputError if its condition is unknown."""
        if trial.observation is None:
            raise CompileError(f"the program does not compile {label}: {trial.reason}")
        if trial.holds is None:
            raise InputError(f"there is nothing to bisect: {label}, {trial.value}", Location(self.compilations.program.path))
        return trial

    def confirm(self, trial: Trial, flags: Flags, label: str) -> None:
        """Compile once more. Raise InputError if the condition then has another state."""
        self.check_equal(trial, self.of(flags), label)

    def check_equal(self, trial: Trial, again: Trial, label: str) -> None:
        """Raise InputError if two runs of the same have another state."""
        if again.holds != trial.holds:
            raise InputError(
                f"two runs of the same disagree, {label}: {trial.value}, then {again.value}; the condition is not stable",
                Location(self.compilations.program.path),
            )

    def tell(self, number: int, total: int, label: str, trial: Trial) -> None:
        """Tell a step: `3 of 101  without algsimp: fusions.count 24  holds`. A `total` of 0 is unknown."""
        if trial.is_undecided:
            self.undecided.append(UndecidedStep(label, trial.value))
        state = {True: "  holds", False: "  does not hold", None: ""}[trial.holds]
        self._tell(f"{number}{f' of {total}' if total else ''}  {label}: {trial.value}{state}")
