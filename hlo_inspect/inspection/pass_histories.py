"""The history of a module's compilation: the files of its passes read one after the other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.pass_history.state import STATE_WANTS, ModuleMoment, followed_opcode, moment_of
from hlo_inspect.analysis.pass_history.traces import PassTrace, Traces
from hlo_inspect.errors import InputError, Location, UsageError, did_you_mean
from hlo_inspect.hlo.pass_files import CompiledModule, PassFile, compiled_modules
from hlo_inspect.hlo.source import open_source
from hlo_inspect.inspection.source_reports import name_pattern, without_collection
from hlo_inspect.passes.history_tables import PassRow, history_report, history_table, named_like, traces_table
from hlo_inspect.report.model import Report
from hlo_inspect.xla import Xla

_NAMED = 8
"""So many other modules are named."""


@dataclass(slots=True)
class PassHistory:
    """What is asked of a dump directory: which module, by a regular expression (else the largest), and which instructions."""

    directory: str
    module: str | None = None
    pattern: str | None = None
    watch: Callable[[str], None] = lambda _: None

    def report(self) -> Report:
        """`InputError` where there are no files of passes, `UsageError` where nothing is named like the pattern."""
        chosen, others = self._chosen()
        notes = (
            [f"of {len(others) + 1:,} modules this is the largest; --module chooses another: {_listed(others)}"]
            if others
            else []
        )
        traces = Traces()
        rows: list[PassRow] = []
        opcode = followed_opcode(self.pattern) if self.pattern is not None else None
        says: Counter[int] | None = None
        for file, moment in self._moments(chosen, opcode, notes):
            traces.take(moment.followed, file.label)
            before = rows[-1].after if rows else None
            if before is None or before.program != moment.state.program:
                rewritten = None if says is None else (moment.says - says).total()
                rows.append(PassRow(file, before, moment.state, rewritten))
            says = moment.says
        if not rows:
            raise InputError(f"no file of a pass of {chosen.name} can be read: {notes[-1]}", Location(self.directory))
        tables = [history_table(rows, on_page=self.pattern is None)]
        if self.pattern is not None:
            tables.insert(0, traces_table(self._named(traces.found, self.pattern)))
        return history_report(self.directory, chosen.name, rows, chosen.bytes, tables, notes)

    def _chosen(self) -> tuple[CompiledModule, list[CompiledModule]]:
        """The module whose history is told, and the others of which there is one too."""
        modules = compiled_modules(self.directory)
        wanted = name_pattern(self.module)
        if wanted is not None:
            named = [one for one in modules if wanted.search(one.name)]
            if not named:
                hint = did_you_mean(self.module or "", [one.name for one in modules])
                message = f"holds no passes of a module that is named like {self.module!r}; there are: {_listed(modules)}{hint}"
                raise InputError(message, Location(self.directory))
            modules = named
        largest = max(modules, key=lambda one: one.bytes)
        return largest, [one for one in modules if one is not largest]

    def _moments(self, module: CompiledModule, opcode: str | None, notes: list[str]) -> Iterator[tuple[PassFile, ModuleMoment]]:
        """The states that differ in their texts from those before them; a note of each that cannot be read, or is cut off."""
        xla = Xla()
        last = b""
        try:
            for file in module.files:
                self.watch(file.path.name)
                try:
                    text = blake2b(_body(file)).digest()
                    if text == last:
                        continue
                    moment = _moment(file, module.name, opcode, xla)
                except InputError as error:
                    notes.append(f"{file.path.name} is left out: {error.message}")
                    continue
                last = text
                yield file, moment
        finally:
            xla.close()

    def _named(self, traces: Sequence[PassTrace], pattern: str) -> list[PassTrace]:
        found = named_like(traces, pattern)
        if not found:
            names = sorted({name for one in traces for name in (one.now.kind, *one.names())})
            raise UsageError(
                f"no instruction that passes are followed for is named like {pattern!r}{did_you_mean(pattern, names)}: a "
                "collective, an opcode, a name that begins with an opcode, or a part of an op_name is meant"
            )
        return found


_FIRST_LINE = re.compile(rb"[^\n]*+\n")


def _body(file: PassFile) -> bytes:
    """The text without its first line, which tells whether the pass before changed anything."""
    whole = b"".join(open_source(file.path).raw_pieces())
    return _FIRST_LINE.sub(b"", whole, count=1)


def _moment(file: PassFile, name: str, opcode: str | None, xla: Xla) -> ModuleMoment:
    source = open_source(file.path)
    with without_collection():
        found = next(xla.modules(source, STATE_WANTS, strict=False), None)
    if found is None or isinstance(found, Exception):
        raise InputError("it holds no HLO module", Location(str(file.path)))
    module = found[0]
    if module.problems.hold_a_cut:
        raise InputError("it is cut off", Location(str(file.path)))
    if module.name.partition(".")[0] != name:
        raise InputError(f"it holds the module {module.name}", Location(str(file.path)))
    return moment_of(Context(module), opcode)


def _listed(modules: Sequence[CompiledModule]) -> str:
    names = list(dict.fromkeys(one.name for one in modules))
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
