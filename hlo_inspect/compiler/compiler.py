"""Compiles of StableHLO in a process of its own, with limits of time and memory.

The process starts on first use and serves all compiles for one platform. After an abort the next compile starts another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, Self

from hlo_inspect.compiler.devices import TPU_ENVIRONMENT
from hlo_inspect.compiler.installations import Installation
from hlo_inspect.compiler.meshes import Description, Mesh
from hlo_inspect.compiler.program import FlagValue, LoweredProgram
from hlo_inspect.compiler.targets import GPU, TPU, Target
from hlo_inspect.compiler.worker import OPTIMIZED, PACKAGES
from hlo_inspect.errors import CompileError, InputError, Location, MissingExtraError
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.worker_process import Limits, WorkerProcess, XlaAbortError, XlaError, XlaLimitError

_MODULE = "hlo_inspect.compiler.worker"
_EXTRAS = {
    TPU: "the extra [tpu]: pip install libtpu",
    GPU: "the extra [cuda]: pip install jax-cuda13-plugin jax-cuda13-pjrt nvidia-cuda-nvcc",
}
_STATUS = lazy_pattern(r"^(?:[A-Z]+_[A-Z_]+|INTERNAL|UNIMPLEMENTED|UNKNOWN): (?:E\d+: )?")
_PLACE = lazy_pattern(r'error: (?:"[^"\n]*"|-):(\d{1,9}):(\d{1,9}): ([^\n]*)')
_DOES_NOT_FIT = lazy_pattern(
    r"total memory required for (?:HLO )?(\w+) \(([\d.]+)([KMGT])\) exceeds available HBM \(([\d.]+)([KMGT])\)"
)
_LEFT_OUT = lazy_pattern(r"xla_dump_.*|xla_force_host_platform_device_count|xla_gpu_cuda_data_dir")
"""Flags of a dump that say what XLA writes, and those that describe the machine that wrote it."""


class Compiled(NamedTuple):
    """A compiled program: the folder with XLA's files, the optimized text in it, and bytes of a device by kind.

    `run` says how its outputs differ from those that were expected, if it was run.
    """

    folder: Path
    text: Path
    memory: Mapping[str, int]
    run: Mapping[str, int | None] = {}


class Compiler:
    """XLA's compiler for a target. `environment` is that of its process, beside what the target needs.

    It is that of this Python, unless it has an `installation` of its own.
    """

    def __init__(
        self,
        target: Target,
        limits: Limits,
        environment: Mapping[str, str] = {},
        installation: Installation | None = None,
    ) -> None:
        self.target = target
        self._installation = installation
        self._environment = environment
        self._limits = limits
        self._process: WorkerProcess | None = None
        self._versions = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.close()
            self._process = None

    @property
    def version(self) -> str:
        """Name and version of the compiler. Raise MissingExtraError if it is not installed."""
        self._running()
        return self._versions

    def describe(self, program: LoweredProgram) -> Description:
        """Return what MLIR reads in a program. Raise InputError with the place of the fault if it cannot read it."""
        try:
            return Description(self._running().ask("describe", program.data, self._limits))
        except XlaAbortError as error:
            self.close()
            raise InputError(f"MLIR's reader: {_ending(error)}", Location(program.path)) from error
        except XlaError as error:
            match = _PLACE.search(error.message)
            place = (int(match[1]), int(match[2])) if match is not None else (None, None)
            words = match[3] if match is not None else error.message.strip().split("\n")[-1]
            raise InputError(
                f"this is no StableHLO that {self._versions} reads: {words}", Location(program.path, *place)
            ) from error

    def lowered(self, program: LoweredProgram, sizes: Mapping[str, int]) -> LoweredProgram:
        """Return the StableHLO of a file of `jax.export` with these sizes of its symbols. Raise InputError for other files."""
        try:
            text = self._running().ask("exported", program.data, self._limits, sizes=sizes)
        except XlaAbortError as error:
            self.close()
            raise InputError(f"jax.export: {_ending(error)}", Location(program.path)) from error
        except XlaError as error:
            raise InputError(error.message.strip().partition("\n")[0], Location(program.path)) from error
        return program._replace(data=text.encode())

    @property
    def log(self) -> str:
        """The compiler's log of the last compile."""
        return self._running().log

    def prepare_arrays(self, program: LoweredProgram, side: str, path: str, seed: int, to: Path) -> None:
        """Write arguments or outputs ("argument", "output") of a program to a file, from the user's or made from a seed.

        Raise InputError if the user's arrays do not fit the program.
        """
        try:
            self._running().ask("arrays", program.data, self._limits, side=side, path=path, seed=seed, to=str(to))
        except XlaAbortError as error:
            self.close()
            raise InputError(f"numpy: {_ending(error)}", Location(path or program.path)) from error
        except XlaError as error:
            raise InputError(error.message.partition("\n")[0], Location(path or program.path)) from error

    def compile(
        self,
        program: LoweredProgram,
        description: Description,
        folder: Path,
        mesh: Mesh | None = None,
        flags: Mapping[str, FlagValue] = {},
        edits: Sequence[Mapping[str, Any]] = (),
        run: Mapping[str, Any] | None = None,
    ) -> Compiled:
        """Compile a program, for a mesh with other sizes of axes, with XLA's files in a folder. Raise CompileError.

        `flags` stand in place of those that the program was compiled with. `edits` change the program before. With `run` it is
        run too: `inputs` and `expected` are files of `prepare_arrays`, `tolerance` is in ULP.
        """
        partitions = description.partitions
        if mesh is not None:
            sizes = {**description.mesh, **mesh}
            partitions, edits = prod(sizes.values()), [{"kind": "mesh", "sizes": sizes}, *edits]
        if self.target.devices is not None and self.target.devices < partitions:
            raise CompileError(f"{self.target.text} has {self.target.devices} devices, the program {partitions} partitions")
        options = {
            "shardy": program.shardy,
            "to_parameters": program.to_parameters,
            "to_output": program.to_output,
            "flags": {**without_machine_flags(program.flags), **flags},
        }
        try:
            answer = self._running().ask(
                "compile",
                program.data,
                self._limits,
                platform=self.target.platform,
                topology=self.target.topology,
                partitions=partitions,
                options=options,
                folder=str(folder.resolve()),
                target_config=self.target.config,
                edits=edits,
                run=run,
            )
        except XlaAbortError as error:
            self.close()
            raise CompileError(_ending(error)) from error
        except XlaError as error:
            raise CompileError(_refusal(error.message)) from error
        return Compiled(folder, optimized_text(folder), **json.loads(answer))

    def _running(self) -> WorkerProcess:
        """Start the process unless it runs. Raise MissingExtraError if a part of the compiler is missing."""
        if self._process is not None:
            return self._process
        needed = TPU_ENVIRONMENT if self.target.platform == TPU else {}
        place = self._installation
        own = () if place is None else (place.python, place.path)
        process = WorkerProcess(_MODULE, {**needed, **self._environment}, *own)
        lack = _lack(process.greeting, self.target.platform)
        if lack:
            process.close()
            message = f"compiling for {self.target.text} needs {lack}"
            raise MissingExtraError(message, None if place is None else Location(place.packages or place.python))
        packages = process.greeting["packages"]
        others = [f"{name} {packages[name]}" for name in PACKAGES.get(self.target.platform, ()) if name in packages]
        self._versions, self._process = ", ".join([f"jaxlib {process.greeting['version']}", *others]), process
        return process


def _lack(greeting: Mapping[str, Any], platform: str) -> str:
    """Return what the process lacks to compile for a platform; empty if it lacks nothing."""
    upgrade = "(pip install --upgrade jaxlib)"
    if greeting["error"] is not None:
        return f"the extra [xla], but jaxlib cannot be imported: {greeting['error']} {upgrade}"
    if greeting["version"] is None:
        return "the extra [xla]: pip install jaxlib"
    if greeting["missing"]:
        return f"the extra [xla], but jaxlib {greeting['version']} is too old: it has no {greeting['missing'][0]} {upgrade}"
    if platform in PACKAGES and not any(name in greeting["packages"] for name in PACKAGES[platform]):
        return _EXTRAS[platform]
    return ""


def optimized_text(folder: Path) -> Path:
    """Return the text after optimizations in a folder that XLA wrote. Raise CompileError if it has none."""
    texts = sorted(folder.glob(f"*{OPTIMIZED}"))
    if not texts:
        raise CompileError("the compiler wrote no text of the module")
    return texts[-1]


def without_machine_flags(flags: Mapping[str, FlagValue]) -> dict[str, FlagValue]:
    """Return flags without those about files that XLA writes, and about the machine."""
    return {name: value for name, value in flags.items() if _LEFT_OUT.fullmatch(name) is None}


def _ending(error: XlaAbortError) -> str:
    """Say why the process ended."""
    if isinstance(error, XlaLimitError):
        if error.seconds is not None:
            return f"took more than {error.seconds:g} s; --compile-timeout sets the limit"
        return f"needed more than {(error.bytes or 0) / (1 << 30):.1f} GiB of memory; --compile-memory sets the limit"
    return f"the compiler aborted ({error.message})"


def _refusal(message: str) -> str:
    """Return XLA's reason in one line: what does not fit in its own figures, else its first line."""
    match = _DOES_NOT_FIT.search(message)
    if match is not None:
        return f"does not fit: {match[2]} {match[3]}iB of {match[1]}, {match[4]} {match[5]}iB of HBM"
    place = _PLACE.search(message)
    return place[3] if place is not None else _STATUS.sub("", message.strip().partition("\n")[0], count=1)
