"""Programs compiled here, for one target and one mesh or several: the reports of what comes out."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

from hlo_inspect.compiler.compiler import Compiled, Compiler, without_machine_flags
from hlo_inspect.compiler.installations import Installation
from hlo_inspect.compiler.meshes import Description, Mesh, mesh_text
from hlo_inspect.compiler.program import FlagValue, LoweredProgram
from hlo_inspect.compiler.targets import GPU, Target
from hlo_inspect.errors import HloInspectError, UsageError
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from hlo_inspect.worker_process import Limits

DEFAULT_LIMITS = Limits(seconds=600)
"""The most that a compile may take if nobody says otherwise."""
_PASSES = ("memory", "params", "collectives", "cost", "time")
PASS_LOG = {"TF_CPP_VMODULE": "hlo_pass_pipeline=1", "TF_CPP_MIN_LOG_LEVEL": "0"}
"""Environment in which XLA logs the name of each pass and pipeline that runs."""


class CompiledMesh(NamedTuple):
    """A program compiled for a mesh, with its report; or the reason why it cannot be."""

    mesh: Mesh
    compiled: Compiled | None = None
    report: Report | None = None
    reason: str = ""


class Compilations:
    """A program and its compiler. Without a `folder` what XLA writes is removed at the end.

    `own_flags` are those that the user sets, `sizes` those of the symbols of a file of `jax.export`.
    """

    def __init__(
        self,
        program: LoweredProgram,
        target: Target,
        limits: Limits,
        flags: Mapping[str, FlagValue],
        folder: str | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self.program = program
        self.target = target
        self._limits = limits
        self.own_flags = flags
        self._sizes = sizes or {}
        self._installation: Installation | None = None
        self._compilers: dict[int, Compiler] = {}
        self._temporary = TemporaryDirectory(prefix="hlo-inspect-") if folder is None else None
        self._folder = Path(folder if self._temporary is None else self._temporary.name)  # type: ignore[arg-type]  # one is there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_compilers()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _close_compilers(self) -> None:
        for compiler in self._compilers.values():
            compiler.close()
        self._compilers.clear()

    def move_to(self, installation: Installation) -> None:
        """Compile with another installation of the compiler from now on."""
        self._close_compilers()
        self._installation = installation

    @property
    def compiler(self) -> Compiler:
        """The compiler of this thread."""
        thread = threading.get_ident()
        if thread not in self._compilers:
            self._compilers[thread] = Compiler(self.target, self._limits, installation=self._installation)
        return self._compilers[thread]

    @property
    def made_by(self) -> str:
        """A sentence on what compiled the program, and what is true of that."""
        version = self.compiler.version if self._installation is None else "each version"
        compiler = f"compiled for {self.target.text} by {version}"
        words = f"{compiler}, which decides collectives, memory, schedule and donation; times are those of a model"
        return f"{words}; autotuning was off, so kernels of a real GPU can be others" if self.target.platform == GPU else words

    def on_target(self, request: Request) -> Request:
        """Return the request with the target's hardware profile, unless the user names another."""
        profile = self.target.profile
        return request if request.profile or not profile else replace(request, profile=profile)

    @property
    def is_for_another_platform(self) -> bool:
        """True if the program is that of a dump of another platform than the target's."""
        return self.program.platform not in ("", self.target.platform)

    def describe(self) -> Description:
        """Read the program. Raise InputError if it is no StableHLO, UsageError for sizes that it has no symbols for."""
        if not self.program.is_stablehlo:
            self.program, self._sizes = self.compiler.lowered(self.program, self._sizes), {}
        elif self._sizes:
            raise UsageError(
                f"{self.program.path} has no symbolic sizes to set: StableHLO has numbers, jax.export can have symbols"
            )
        return self.compiler.describe(self.program)

    @property
    def flags(self) -> Mapping[str, FlagValue]:
        """Flags of all compiles: those of the dump, and in their place those that the user sets."""
        return {**without_machine_flags(self.program.flags), **self.own_flags}

    def compile(
        self, description: Description, mesh: Mesh | None = None, folder: str = "", edits: Sequence[Mapping[str, Any]] = ()
    ) -> Compiled:
        """Compile the program, for a mesh or with edits if they are given, with XLA's files in a folder. Raise CompileError."""
        return self.compiler.compile(self.program, description, self._folder / folder, mesh, self.own_flags, edits)

    def compile_with(
        self,
        description: Description,
        flags: Mapping[str, FlagValue],
        folder: str,
        run: Mapping[str, Any] | None = None,
        *,
        compiler: Compiler | None = None,
    ) -> Compiled:
        """Compile the program with these flags alone, and run it if `run` says on what. Raise CompileError."""
        program = self.program._replace(flags={})
        return (compiler or self.compiler).compile(program, description, self._folder / folder, flags=flags, run=run)

    def compile_logged(
        self, description: Description, flags: Mapping[str, FlagValue], folder: str, run: Mapping[str, Any] | None = None
    ) -> tuple[Compiled, str]:
        """Compile the program in a process that logs each pass, with a file for each that changed it. Return its log too."""
        with Compiler(self.target, self._limits, PASS_LOG, self._installation) as compiler:
            written = {**flags, "xla_dump_hlo_pass_re": ".*"}
            return self.compile_with(description, written, folder, run, compiler=compiler), compiler.log

    def path(self, name: str) -> Path:
        """Return the path of a file or folder beside those of the compiles."""
        return self._folder / name

    def for_meshes(
        self, description: Description, meshes: Sequence[Mesh], request: Request, watch: Callable[[str], None]
    ) -> Iterator[CompiledMesh]:
        """Yield the program compiled for each mesh, in the order of the meshes. `request.jobs` are compiled side by side."""

        def compiled(mesh: Mesh) -> CompiledMesh:
            watch(mesh_text(mesh))
            return self._for_mesh(description, mesh, request)

        if request.jobs == 1:
            yield from map(compiled, meshes)
            return
        with ThreadPoolExecutor(min(request.jobs, len(meshes))) as threads:
            yield from threads.map(compiled, meshes)

    def _for_mesh(self, description: Description, mesh: Mesh, request: Request) -> CompiledMesh:
        reason = description.refusal(mesh)
        if reason:
            return CompiledMesh(mesh, reason=reason)
        try:
            compiled = self.compile(description, mesh, mesh_text(mesh).replace(os.sep, "_"))
            return CompiledMesh(mesh, compiled, facts_of(compiled.text, mesh_text(mesh), request))
        except HloInspectError as error:
            return CompiledMesh(mesh, reason=str(error))


def facts_of(text: Path | str, mesh: str | None, request: Request) -> Report:
    """Return the report on a text with all facts that programs are compared by, with the mesh's own names of axes."""
    wanted = replace(request, passes=_PASSES[0], also=_PASSES[1:], mesh=mesh, module=None, stage=None, jobs=1)
    with Inspection(wanted) as inspection:
        (report,) = inspection.reports(str(text))
    return report
