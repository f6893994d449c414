"""The history of a module's compilation: the files of its passes read one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.pass_history import STATE_WANTS, ModuleSnapshot, PassTrace, Traces, followed_opcode, take_snapshot
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, ParseError, UsageError, did_you_mean
from hlo_inspect.hlo.input.dump_directory import HOW_TO, CompiledModule, PassFile, compiled_modules
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.jobs import Jobs, LostProcessError
from hlo_inspect.inspection.source_reports import listed_names, name_pattern, no_such_module, without_collection
from hlo_inspect.passes.history_tables import PassRow, history_report, history_table, named_like, traces_table
from hlo_inspect.report.model import Report
from hlo_inspect.xla import Xla


@dataclass(slots=True)
class PassHistory:
    """What is asked of a dump directory: which module, by a regular expression (else the largest), and which instructions.
    `jobs` processes read the files; `watch` is called with the pass that is looked at.
    """

    directory: str
    module: str | None = None
    pattern: str | None = None
    jobs: int = 1
    watch: Callable[[str], None] = lambda _: None
    errors: list[HloInspectError] = field(default_factory=list)
    """Internal errors of single files, which are left out."""

    def paths(self) -> frozenset[str]:
        """The files of the module whose history is read; `InputError` where there are none."""
        return frozenset(str(file.path) for file in self._chosen()[0].files)

    def report(self) -> Report:
        """`InputError` where there are no files of passes, `UsageError` where nothing is named like the pattern."""
        chosen, others = self._chosen()
        notes: list[str] = []
        left_out: list[str] = []
        if others:
            names = listed_names(one.name for one in others)
            notes.append(f"of {len(others) + 1:,} modules this is the largest; --module chooses another: {names}")
        if not chosen.has_starts:
            notes.append(f"the dump holds some of the passes: what others changed counts with the next; {HOW_TO}")
        traces = Traces()
        rows: list[PassRow] = []
        opcode = followed_opcode(self.pattern) if self.pattern is not None else None
        says: Counter[int] | None = None
        for file, moment in self._moments(chosen, opcode, left_out):
            traces.take(moment.followed, file.label)
            before = rows[-1].after if rows else None
            if before is None or before.content != moment.state.content:
                rewritten = None if says is None else (moment.says - says).total()
                rows.append(PassRow(file, before, moment.state, rewritten))
            says = moment.says
        if not rows:
            raise InputError(f"no file of a pass of {chosen.name} can be read: {left_out[-1]}", Location(self.directory))
        tables = [history_table(rows, on_page=self.pattern is None)]
        if self.pattern is not None:
            tables.insert(0, traces_table(self._named(traces.found, self.pattern)))
        return history_report(self.directory, chosen, rows, tables, notes, left_out)

    def _chosen(self) -> tuple[CompiledModule, list[CompiledModule]]:
        """The module whose history is read, and the others of which there is one too."""
        modules = compiled_modules(self.directory)
        wanted = name_pattern(self.module)
        if wanted is not None:
            named = [one for one in modules if wanted.search(one.name)]
            if not named:
                message = no_such_module(self.module, (one.name for one in modules), "file of a compiler pass of a module")
                raise InputError(message, Location(self.directory))
            modules = named
        largest = max(modules, key=lambda one: one.bytes)
        return largest, [one for one in modules if one is not largest]

    def _moments(
        self, module: CompiledModule, opcode: str | None, left_out: list[str]
    ) -> Iterator[tuple[PassFile, ModuleSnapshot]]:
        """The module behind each pass that wrote another text; a note of each that cannot be read, or is cut off."""
        files = list(self._differing(module, left_out))
        name = ""
        for file, found in zip(files, self._read(files, opcode), strict=True):
            if isinstance(found, ModuleSnapshot) and name in ("", found.module):
                name = found.module
                yield file, found
                continue
            fault = found.message if isinstance(found, HloInspectError) else f"it holds the module {found.module}, not {name}"
            self.errors += [found] if isinstance(found, InternalError) else []
            left_out.append(f"{file.path.name} is left out, and what it changed counts with the next: {fault}")

    def _differing(self, module: CompiledModule, left_out: list[str]) -> Iterator[PassFile]:
        """The files whose text is not that of the file before them."""
        last = b""
        for file in module.files:
            try:
                text = blake2b(b"".join(open_source(file.path).raw_pieces())).digest()
            except InputError as error:
                left_out.append(f"{file.path.name} is left out: {error.message}")
                continue
            if text != last:
                yield file
            last = text

    def _read(self, files: Sequence[PassFile], opcode: str | None) -> Iterator[ModuleSnapshot | HloInspectError]:
        if self.jobs == 1:
            for file in files:
                self.watch(file.label)
                yield from _moment_behind(opcode, file)
            return
        with Jobs(self.jobs, partial(partial, _moment_behind, opcode)) as processes:
            for found, failure in processes.in_order(files):
                if isinstance(failure, LostProcessError):
                    yield InputError(str(failure), Location(self.directory))
                elif failure is not None:
                    raise failure
                yield from found

    def _named(self, traces: Sequence[PassTrace], pattern: str) -> list[PassTrace]:
        found = named_like(traces, pattern)
        if not found:
            names = sorted({name for one in traces for name in (one.now.kind, *one.names())})
            raise UsageError(
                f"no instruction that passes are followed for is named like {pattern!r}{did_you_mean(pattern, names)}: a "
                "collective, an opcode, a name that begins with an opcode, or a part of an op_name is meant"
            )
        return found


def _moment_behind(opcode: str | None, file: PassFile) -> Iterator[ModuleSnapshot | HloInspectError]:
    """What the module is behind a pass, with the instructions of an opcode that are followed, or why that is not known."""
    xla = Xla()
    try:
        with without_collection():
            found = next(xla.modules(open_source(file.path), STATE_WANTS, strict=False), None)
        if found is None or isinstance(found, ParseError):
            yield InputError("it holds no HLO module", Location(str(file.path)))
        elif found[0].problems.hold_a_cut:
            yield InputError("it is cut off", Location(str(file.path)))
        else:
            yield take_snapshot(Context(found[0]), opcode)
    except InputError as error:
        yield error
    except (HloInspectError, MemoryError):
        raise
    except Exception as error:
        yield InternalError.of(error, Location(str(file.path)))
    finally:
        xla.close()
