"""The compiles of dump directories or of other modules, in order, with the reasons of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.compare.programs.compile_record import CompileRecord, record_compile
from hlo_inspect.compare.programs.recompilation import RecompiledFunction
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, as_internal_errors, first_few
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.dump_directory import (
    AFTER,
    CompileFiles,
    compile_files,
    dump_files,
    expanded,
    files_below,
    is_directory,
    stage_of,
)
from hlo_inspect.hlo.input.foreign_text import describe_foreign_text
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.settings.compile_settings import CompileSettings, read_settings, stablehlo_file
from hlo_inspect.hlo.settings.stablehlo import StableHlo, read_stablehlo
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.source_reports import name_pattern, no_such_module, uncollected, without_collection
from hlo_inspect.xla import Xla

WANTS = Wants(graph=True, entry=True)


class _CompileText(NamedTuple):
    """A text to read as compiles: all of its modules. `files` are those of its compile if it is a file of a dump."""

    path: Path | str
    files: CompileFiles | None = None
    may_hold: bool = False


class Recompilations:
    """Reader of compiles. `notes` has a line for each remark, `errors` the files that cannot be read."""

    def __init__(self, module: str | None = None, watch: Callable[[str], None] = lambda _: None) -> None:
        self._module = module
        self._pattern = name_pattern(module)
        self._watch = watch
        self._xla = Xla()
        self._functions: dict[str, RecompiledFunction] = {}
        self._optimized: dict[Path, str] = {}
        self._after: dict[int, Path] = {}
        self._others: list[str] = []
        self._distinct_settings: list[CompileSettings] = []
        self.notes: list[str] = []
        self.errors: list[HloInspectError] = []

    def read(self, inputs: Sequence[str]) -> list[RecompiledFunction]:
        """Return the functions in the order in which they were compiled first; without one, `errors` says why."""
        try:
            for text in self._texts(inputs):
                try:
                    with as_internal_errors(Location(str(text.path))):
                        self._read_text(text)
                except (InputError, InternalError) as error:
                    self.errors.append(error)
        finally:
            self._xla.close()
        if not self._functions and not self.errors:
            what = no_such_module(self._module, self._others) if self._others else "holds no HLO module"
            self.errors.append(InputError(what, Location(inputs[0])))
        return list(self._functions.values())

    # -- files -----------------------------------------------------------------------------------------------------------

    def _texts(self, inputs: Sequence[str]) -> Iterator[_CompileText]:
        """Yield the texts of all inputs. Files of one dump that are named one by one are compiles too."""
        loose: list[Path | str] = []
        for argument in inputs:
            try:
                for source in expanded(argument):
                    if is_directory(source):
                        yield from self._loose_texts(loose)
                        loose = []
                        yield from self._directory_texts(Path(source))
                    else:
                        loose.append(source)
            except InputError as error:
                self.errors.append(error)
        yield from self._loose_texts(loose)

    def _loose_texts(self, sources: Sequence[Path | str]) -> Iterator[_CompileText]:
        compiles = compile_files([source for source in sources if isinstance(source, Path)])
        of_dumps = {path for files in compiles for path in (files.before, files.after)}
        yield from self._dump_texts(compiles)
        yield from (_CompileText(source) for source in sources if source not in of_dumps)

    def _directory_texts(self, directory: Path) -> Iterator[_CompileText]:
        """Yield the texts of a directory. Raise InputError if it holds none."""
        files, fault = files_below(directory)
        if fault is not None:
            self.errors.append(fault)
        compiles = compile_files(files)
        if compiles:
            self._note_faults(directory, compiles)
            yield from self._dump_texts(compiles)
        else:
            yield from (_CompileText(file.path, may_hold=file.may_hold) for file in dump_files(directory, None))

    def _dump_texts(self, compiles: Iterable[CompileFiles]) -> Iterator[_CompileText]:
        for files in compiles:
            path = files.before or files.after
            if path is not None:
                yield _CompileText(path, files)

    def _note_faults(self, directory: Path, compiles: Sequence[CompileFiles]) -> None:
        """Note numbers of a dump that do not agree, as after two runs into one directory."""
        names: dict[tuple[Path, int], set[str]] = {}
        for files in compiles:
            names.setdefault(((files.before or files.after or directory).parent, files.number), set()).add(files.name)
        mixed = [f"{number:04d} ({', '.join(sorted(both))})" for (_, number), both in names.items() if len(both) > 1]
        if mixed:
            message = f"{first_few(mixed, 3)} has several names: the directory holds more than one run"
            self.notes.append(f"{directory}: module {message}")
        unfinished = list(dict.fromkeys(f"{files.number:04d}" for files in compiles if files.after is None))
        if unfinished and any(files.after is not None for files in compiles):
            message = f"{first_few(unfinished, 3)} has no text after optimizations: its compile did not end"
            self.notes.append(f"{directory}: module {message}")

    # -- modules ---------------------------------------------------------------------------------------------------------

    def _read_text(self, text: _CompileText) -> None:
        """Read the modules of a text as compiles. Raise InputError if it holds none."""
        count = 0
        settings = self._settings(Path(text.path)) if text.files is not None else CompileSettings()
        for module in self._modules(text.path):
            count += 1
            if self._pattern is not None and self._pattern.search(module.name) is None:
                self._others.append(module.name)
                continue
            self._watch(module.name)
            with without_collection():
                self._add(module, text.files, settings)
        if not count and not text.may_hold:
            start = open_source(text.path).peek_text()
            raise InputError(f"holds no HLO module{describe_foreign_text(start)}", Location(str(text.path)))

    def _add(self, module: Module, files: CompileFiles | None, settings: CompileSettings) -> None:
        stablehlo = self._stablehlo(Path(module.path)) if files is not None else None
        is_optimized = files.before is None if files is not None else stage_of(module.path).endswith(AFTER)
        number = files.number if files is not None else None
        record = record_compile(module, number, settings, stablehlo, is_optimized=is_optimized)
        function = self._functions.setdefault(module.name, RecompiledFunction(module.name))
        if files is not None and files.is_load:
            function.add_load(record, self._origin(function, record))
            return
        if not record.is_whole:
            self.notes.append(f"{module.path}: the text is truncated; only its arguments are compared")
        if files is not None and files.after is not None:
            self._after[id(record)] = files.after
        function.add(record)

    def _settings(self, module_file: Path) -> CompileSettings:
        """Return the settings of a module. Modules with equal settings share one object."""
        settings = read_settings(module_file)
        if settings not in self._distinct_settings:
            self._distinct_settings.append(settings)
        return self._distinct_settings[self._distinct_settings.index(settings)]

    def _stablehlo(self, module_file: Path) -> StableHlo | None:
        path = stablehlo_file(module_file)
        try:
            return read_stablehlo(path) if path is not None else None
        except InputError as error:
            self.notes.append(str(error))
            return None

    def _origin(self, function: RecompiledFunction, load: CompileRecord) -> CompileRecord | None:
        """Return the earlier compile of the program that was loaded: its optimized text is the same."""
        for compile_ in function.compiles:
            after = self._after.get(id(compile_.record))
            if after is not None and self._optimized_program(after) == load.program:
                return compile_.record
        return None

    def _optimized_program(self, path: Path) -> str:
        if path not in self._optimized:
            try:
                module = next(self._modules(path), None)
            except InputError:
                module = None
            is_whole = module is not None and not module.problems.is_truncated
            program = CanonicalModule(module, Views(module.computations)).program if module is not None and is_whole else ""
            self._optimized[path] = program
        return self._optimized[path]

    def _modules(self, path: Path | str) -> Iterator[Module]:
        modules = uncollected(self._xla.read(open_source(path), WANTS))
        return (module for module in modules if not module.quoted_lines)
