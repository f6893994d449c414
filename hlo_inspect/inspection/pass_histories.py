"""The history of a module's compilation: the files of its passes read one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.pass_history import STATE_WANTS, ModuleSnapshot, PassTrace, Traces, followed_opcode, take_snapshot
from hlo_inspect.errors import (
    HloInspectError,
    InputError,
    InternalError,
    Location,
    UsageError,
    as_internal_errors,
    did_you_mean,
)
from hlo_inspect.hlo.input.dump_directory import HOW_TO, CompiledModule, PassFile, compiled_modules
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.jobs import Jobs, LostProcessError
from hlo_inspect.inspection.source_reports import listed_names, name_pattern, no_such_module, without_collection
from hlo_inspect.passes.history_tables import PassRow, history_report, history_table, named_like, traces_table
from hlo_inspect.report.model import Report
from hlo_inspect.xla import Xla


@dataclass(slots=True)
class PassHistory:
    """History of one module of a dump directory: `module` is a regular expression (by default, the largest module).

    `pattern` names instructions to follow. `jobs` processes read the files. `watch` is called with the label of each pass.
    """

    directory: str
    module: str | None = None
    pattern: str | None = None
    jobs: int = 1
    watch: Callable[[str], None] = lambda _: None
    errors: list[HloInspectError] = field(default_factory=list)
    """Errors of entries of the directory and internal errors of single files, which are left out."""

    def paths(self) -> frozenset[str]:
        """Return the files of the chosen module. Raise InputError if there are none."""
        return frozenset(str(file.path) for file in self._chosen([])[0].files)

    def report(self) -> Report:
        """Return the report. Raise InputError without files of passes, UsageError if no instruction fits the pattern."""
        chosen, others = self._chosen(self.errors)
        notes: list[str] = []
        left_out: list[str] = []
        if others:
            names = listed_names(other.name for other in others)
            notes.append(f"of {len(others) + 1:,} modules this is the largest; --module chooses another: {names}")
        if not chosen.has_starts:
            notes.append(f"passes without a file count with the next one; dump all with `--xla_dump_hlo_pass_re=.*`; {HOW_TO}")
        traces = Traces()
        rows: list[PassRow] = []
        opcode = followed_opcode(self.pattern) if self.pattern is not None else None
        says: Counter[int] | None = None
        for file, snapshot in self._snapshots(chosen, opcode, left_out):
            traces.take(snapshot.followed, file.label)
            before = rows[-1].after if rows else None
            if before is None or before.content != snapshot.state.content:
                rewritten = None if says is None else (snapshot.says - says).total()
                rows.append(PassRow(file, before, snapshot.state, rewritten))
            says = snapshot.says
        if not rows:
            raise InputError(f"no file of a pass of {chosen.name} can be read: {left_out[-1]}", Location(self.directory))
        tables = [history_table(rows, on_page=self.pattern is None)]
        if self.pattern is not None:
            tables.insert(0, traces_table(self._named(traces.traces, self.pattern)))
        return history_report(self.directory, chosen, rows, tables, notes, left_out)

    def _chosen(self, errors: list[HloInspectError]) -> tuple[CompiledModule, list[CompiledModule]]:
        """Return the chosen module and the others that have a history. Append errors of the directory to `errors`."""
        modules = compiled_modules(self.directory, errors)
        wanted = name_pattern(self.module)
        if wanted is not None:
            named = [module for module in modules if wanted.search(module.name)]
            if not named:
                names = (module.name for module in modules)
                message = no_such_module(self.module, names, "file of a compiler pass of a module")
                raise InputError(message, Location(self.directory))
            modules = named
        largest = max(modules, key=lambda module: module.bytes)
        return largest, [module for module in modules if module is not largest]

    def _snapshots(
        self, module: CompiledModule, opcode: str | None, left_out: list[str]
    ) -> Iterator[tuple[PassFile, ModuleSnapshot]]:
        """Yield the module after each pass that wrote another text; note files that are unreadable or truncated."""
        files = list(self._differing(module, left_out))
        name = ""
        for file, item in zip(files, self._read(files, opcode), strict=True):
            if isinstance(item, ModuleSnapshot) and name in ("", item.module):
                name = item.module
                yield file, item
                continue
            fault = item.message if isinstance(item, HloInspectError) else f"it holds the module {item.module}, not {name}"
            self.errors += [item] if isinstance(item, InternalError) else []
            left_out.append(f"{file.path.name} is left out and counts with the next pass: {fault}")

    def _differing(self, module: CompiledModule, left_out: list[str]) -> Iterator[PassFile]:
        """Yield the files whose text differs from that of the file before."""
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
                yield from _read_snapshot(opcode, file)
            return
        with Jobs(self.jobs, partial(partial, _read_snapshot, opcode)) as processes:
            for snapshots, failure in processes.in_order(files):
                if isinstance(failure, LostProcessError):
                    yield InputError(str(failure), Location(self.directory))
                elif failure is not None:
                    raise failure
                yield from snapshots

    def _named(self, traces: Sequence[PassTrace], pattern: str) -> list[PassTrace]:
        named = named_like(traces, pattern)
        if not named:
            names = sorted({name for trace in traces for name in (trace.now.kind, *trace.names())})
            raise UsageError(
                f"no instruction matches {pattern!r}{did_you_mean(pattern, names)}; PATTERN is "
                "an opcode such as all-gather, a name, or a part of an op_name"
            )
        return named


def _read_snapshot(opcode: str | None, file: PassFile) -> Iterator[ModuleSnapshot | HloInspectError]:
    """Yield the module after a pass with the instructions of an opcode, or the error that hides it."""
    place = Location(str(file.path))
    try:
        with closing(Xla()) as xla, as_internal_errors(place):
            with without_collection():
                module = next(xla.read(open_source(file.path), STATE_WANTS), None)
            if module is None:
                yield InputError("it holds no HLO module", place)
            elif module.problems.is_truncated:
                yield InputError("it is truncated", place)
            else:
                yield take_snapshot(Context(module), opcode)
    except (InputError, InternalError) as error:
        yield error
