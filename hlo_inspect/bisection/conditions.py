"""Conditions of a bisection: on facts of the compiled module, on the outputs of the program, or by a command."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hlo_inspect.checks.needed_passes import passes_for
from hlo_inspect.checks.policy import Policy, assertion_in, given, remark, resolve, value_of
from hlo_inspect.compiler.compiler import Compiled
from hlo_inspect.compiler.execution import OUTPUTS
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.errors import CompileError, InputError, Location, UsageError
from hlo_inspect.inspection.compilations import Compilations
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes import specs_about
from hlo_inspect.report.units import format_value
from hlo_inspect.request import Request

_INPUTS, _EXPECTED, _UNOPTIMIZED = "inputs.npz", "expected.npz", "unoptimized"
SEED = 0
"""Seed of the inputs that are made."""


class Observation(NamedTuple):
    """State of a condition after a compile, None if it is unknown. `value` is what it looks at, as people read it."""

    holds: bool | None
    value: str


class BisectCondition(Protocol):
    """A condition. `text` says it in a sentence, `notes` what is true of it; `run` is what a compile runs for it."""

    text: str
    notes: tuple[str, ...]
    run: Mapping[str, Any] | None

    def prepare(self, compilations: Compilations, description: Description) -> None:
        """Make what it compares with. Raise InputError if the user's files do not fit the program."""

    def observe(self, compiled: Compiled) -> Observation:
        """Return its state for a compiled program."""


class TriedFact:
    """Condition on a fact, as `check` has them."""

    run: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def __init__(self, text: str, request: Request) -> None:
        assertion = assertion_in(given("--if", text))
        if assertion.rows is not None:
            raise UsageError(f"--if: {text!r} is on rows of a table; bisect takes a fact")
        self._check = resolve(assertion, specs_about(assertion.fact.scalar))
        self._request = replace(request, passes=tuple(passes_for(Policy((assertion,)))), module=None, stage=None, jobs=1)
        self.text = f"`{text.strip()}` holds"
        self._observed: dict[tuple[bytes, str], Observation] = {}  # most passes leave a program as it is

    def prepare(self, compilations: Compilations, description: Description) -> None:
        """Name the axes of the program's own mesh."""
        if self._request.mesh is None:
            self._request = replace(self._request, mesh=description.mesh_text)

    def observe(self, compiled: Compiled) -> Observation:
        """Return whether the fact meets the condition."""
        key = sha256(compiled.text.read_bytes()).digest(), str(compiled.memory)
        if key not in self._observed:
            self._observed[key] = self._inspected(compiled)
        return self._observed[key]

    def _inspected(self, compiled: Compiled) -> Observation:
        with Inspection(self._request) as inspection:
            (report,) = inspection.reports(str(compiled.text))
        actual = value_of(self._check, report)
        holds = self._check.condition.decide(actual)
        if holds is None:
            return Observation(None, f"{self._check.name} is unknown: {remark(self._check, report)}")
        return Observation(holds, f"{self._check.name} {format_value(actual, self._check.spec.unit)}")


class TriedOutputs:
    """Condition that outputs differ from those of a file; without a file, from those of the program without optimizations."""

    def __init__(self, expected: str, inputs: str, tolerance: int) -> None:
        self._expected, self._inputs, self._tolerance = expected, inputs, tolerance
        self.run: Mapping[str, Any] | None = None
        self.text = f"the outputs differ from {expected or 'those without optimizations'}"
        made = () if inputs else (f"inputs are made from the seed {SEED}; --inputs takes others",)
        meant = "expected are the outputs of this program compiled without passes: correct unless the fault is elsewhere"
        self.notes = made if expected else (*made, meant)

    def prepare(self, compilations: Compilations, description: Description) -> None:
        """Write inputs and expected outputs in the order of the program. Raise UsageError if it has several devices."""
        if description.partitions > 1:
            raise UsageError(f"--if-differs runs programs of one device; this one has {description.partitions} partitions")
        if compilations.target.platform != "cpu":
            raise UsageError(f"--if-differs runs programs on cpu, not on {compilations.target.text}")
        inputs, expected = compilations.path(_INPUTS), compilations.path(_EXPECTED)
        compilations.compiler.prepare_arrays(compilations.program, "argument", self._inputs, SEED, inputs)
        if self._expected:
            compilations.compiler.prepare_arrays(compilations.program, "output", self._expected, SEED, expected)
        else:
            expected = _unoptimized_outputs(compilations, description, inputs)
        self.run = {"inputs": str(inputs), "expected": str(expected), "tolerance": self._tolerance}

    def observe(self, compiled: Compiled) -> Observation:
        """Return whether the outputs of the run differ, and in how many elements."""
        different, elements, ulp = (compiled.run[name] or 0 for name in ("different", "elements", "ulp"))
        far = f" by up to {ulp:,} ULP" if ulp else ""
        return Observation(different > 0, f"{different:,} of {elements:,} elements differ{far}")


class CommandCondition:
    """Condition that a command on the folder of the dump ends with another status than 0."""

    run: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def __init__(self, command: str) -> None:
        self._words = words_in(command, "--run")
        if shutil.which(self._words[0] if self._words else "") is None:
            raise UsageError(f"--run: {command!r} begins with no command that is here")
        if not any("{}" in word for word in self._words):
            raise UsageError(f"--run: {command!r} has no {{}}, which stands for the folder of the dump")
        self.text = f"`{command}` fails"

    def prepare(self, compilations: Compilations, description: Description) -> None:
        """Prepare nothing."""

    def observe(self, compiled: Compiled) -> Observation:
        """Run the command on the folder. Raise UsageError if there is no such program."""
        words = [word.replace("{}", str(compiled.folder)) for word in self._words]
        try:
            status = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False).returncode  # noqa: S603
        except OSError as error:  # a file that is no program
            raise UsageError(f"--run: {words[0]}: {error.strerror or error}") from error
        return Observation(status != 0, f"status {status}")


def words_in(text: str, option: str) -> list[str]:
    """Split the text of an option into words as a shell does. Raise UsageError if a quote is open."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option}: {text!r} cannot be split into words: {error}") from error


def _unoptimized_outputs(compilations: Compilations, description: Description, inputs: Path) -> Path:
    """Compile and run the program without passes, and return the file of its outputs. Raise InputError if that fails."""
    run = {"inputs": str(inputs), "expected": "", "tolerance": 0}
    flags = {**compilations.flags, "xla_backend_optimization_level": 0}
    for more in ({"xla_disable_all_hlo_passes": True}, {}):  # some programs need passes, such as those of types that CPU lacks
        try:
            compiled = compilations.compile_with(description, {**flags, **more}, _UNOPTIMIZED, run)
        except CompileError as error:
            refusal = error
            continue
        return compiled.folder / OUTPUTS
    location = Location(compilations.program.path)
    raise InputError(f"without optimizations: {refusal.message}; name expected outputs with --if-differs", location)
