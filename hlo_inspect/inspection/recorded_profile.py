"""A recorded profile joined with modules: its own, or those of a dump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack

from hlo_inspect.analysis.module_analyses import ModuleAnalyses
from hlo_inspect.analysis.program_outline import outline_of
from hlo_inspect.errors import InputError, Location, UnfitModuleError
from hlo_inspect.hlo.input.dump_directory import dump_files, is_directory
from hlo_inspect.hlo.input.foreign_text import Format, WireError, find_module
from hlo_inspect.hlo.input.source import Openable, Source, open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.shapes import array_leaves
from hlo_inspect.profiler.chip import NO_CHIP
from hlo_inspect.profiler.measurements import RecordedProgram
from hlo_inspect.profiler.profile import ProfileFile, measure
from hlo_inspect.profiler.programs import ProfiledProgram, device_assignment, proto_instructions
from hlo_inspect.profiler.wanted_samples import WantedSamples

_SHOWN = 3
"""Differing instructions that an error names."""


class RecordedProfile(AbstractContextManager["RecordedProfile"]):
    """The files of a profile, open in a `with` block. `watch` receives name and position while they are read."""

    def __init__(self, files: Iterable[Openable | Source], watch: Callable[[str, int], None] | None = None) -> None:
        self._open = ExitStack()
        self.files: list[ProfileFile] = []
        try:
            for file in files:
                source = file if isinstance(file, Source) else open_source(file)
                _require_profile(source)
                name = source.name
                on_bytes = None if watch is None else lambda position, name=name: watch(name, position)
                self.files.append(ProfileFile(name, self._open.enter_context(source.seekable()), on_bytes))
        except BaseException:
            self._open.close()
            raise

    @classmethod
    def at(cls, path: str, watch: Callable[[str, int], None] | None = None) -> RecordedProfile:
        """Open a file or the folder of a run."""
        if not is_directory(path):
            return cls([path], watch)
        file = next(iter(dump_files(path, None)))
        return cls([file.path, *file.hosts], watch)

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def programs(self) -> dict[str, ProfiledProgram]:
        """The programs whose modules the profile has, by label."""
        return {program.label: program for file in reversed(self.files) for program in file.programs}

    def measured(self, modules: Mapping[str, Module], wanted: WantedSamples) -> dict[str, RecordedProgram]:
        """Return the measurements of the modules that ran, by label of their programs."""
        outlines = {label: outline_of(ModuleAnalyses(module)) for label, module in modules.items()}
        times = measure(self.files, outlines, wanted)
        idle = sum(label not in times for label in self.programs)
        chip = next((file.chip for file in self.files if file.chip != NO_CHIP), NO_CHIP)
        return {
            label: RecordedProgram(
                label, times[label], self._devices(label), idle, chip if times[label].platform != "cpu" else NO_CHIP
            )
            for label in modules
            if label in times and times[label].samples
        }

    def _devices(self, label: str) -> tuple[int, ...]:
        """Return the device of each flattened id of a program; empty if they are equal or not stated."""
        assignment = None
        proto = self._proto(label)
        if proto is not None:
            assignment = device_assignment(proto)
        if assignment is None or assignment.devices == tuple(range(len(assignment.devices))):
            return ()
        return assignment.devices

    def _proto(self, label: str) -> memoryview | None:
        """Return the `HloModuleProto` of a program; None if the profile lacks it or if it is damaged."""
        for file in self.files:
            for program in file.programs:
                if program.label == label:
                    serialized = find_module(memoryview(file.proto(program)))
                    return None if serialized is None or serialized.fault else serialized.data
        return None

    def label_of(self, module: Module) -> str:
        """Return the label of the program that a module is of.

        It is one if their instructions have equal names and dimensions. Without modules, the names of the program's
        events decide. Raise UnfitModuleError with the differences if it is none.
        """
        text = _instructions_of(module)
        differences = []
        for label in sorted(self.programs, key=lambda label: label != module.program):  # its own, if it has one
            proto = self._proto(label)
            if proto is not None:
                difference = _difference(text, proto)
                if not difference:
                    return label
                differences.append((program_name(label) != module.name, f"{label}: {difference}"))
        if not self.programs:
            names = {name for rows in text.values() for name in rows}
            for label, times in measure(self.files, {}).items():
                lacking = sorted(name for name in times.instructions if name not in names)
                if times.instructions and not lacking:
                    return label
                shown = ", ".join(lacking[:_SHOWN])
                difference = f"{label}: it lacks {len(lacking):,} instructions with events: {shown}"
                differences.append((program_name(label) != module.name, difference))
        reason = min(differences)[1] if differences else "the profile has no program"
        raise UnfitModuleError(f"{module.name} is no program of the profile; {reason}", module.location(module.first_line))


def _require_profile(source: Source) -> None:
    """Raise InputError if a source is no recorded profile."""
    if not source.peek():
        raise InputError("is empty; a profile has at least one plane", Location(source.name))
    if source.format is not Format.PROFILE:
        raise InputError("is no recorded profile (.xplane.pb)", Location(source.name))


def program_name(label: str) -> str:
    """Return the name of the module in the label of a program."""
    return label.rpartition("(")[0]


_Instructions = dict[str, dict[str, tuple[tuple[int | None, ...], ...]]]


def _instructions_of(module: Module) -> _Instructions:
    """Return the dimensions of instructions by computation; the entry also as ""."""
    views = ModuleAnalyses(module).views
    rows = {}
    for name in module.computations:
        view = views.for_computation(name)
        shapes = (tuple(leaf.dimensions for _, leaf in array_leaves(shape)) for shape in view.shapes)
        rows[name] = dict(zip(view.names, shapes, strict=True))
    return rows


def _difference(text: _Instructions, proto: memoryview) -> str:
    """Describe the difference between a text and a serialized module; empty if they are one program.

    A text may lack computations, such as those of asynchronous operations. Those of equal names have to be equal.
    """
    try:
        computations = proto_instructions(proto)
    except WireError:
        return "its module in the profile is damaged"
    common = [name for name in computations if name in text]
    if not common:
        return "it has none of its computations"
    lacking, differing = [], []
    for computation in common:
        rows = text[computation]
        for name, dimensions in computations[computation].items():
            if name not in rows:
                lacking.append(name)
            elif rows[name] != dimensions:
                differing.append(f"{name} is {_shapes(rows[name])}, not {_shapes(dimensions)}")
    if lacking:
        return f"it lacks {len(lacking):,} instructions: {', '.join(lacking[:_SHOWN])}"
    return f"{len(differing):,} instructions differ: {', '.join(differing[:_SHOWN])}" if differing else ""


def _shapes(arrays: Iterable[tuple[int | None, ...]]) -> str:
    return " ".join(f"[{','.join(map(str, dimensions))}]" for dimensions in arrays)
