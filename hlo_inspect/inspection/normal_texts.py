"""The modules of an input as texts in canonical names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, ParseError, as_internal_errors, printable
from hlo_inspect.findings.reading_problems import problem_text
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule, CanonicalText
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.dump_directory import dump_files, expanded, is_directory
from hlo_inspect.hlo.input.foreign_text import describe_foreign_text
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.source_reports import name_pattern, no_such_module, uncollected
from hlo_inspect.xla import Xla

WANTS = Wants(graph=True, entry=True, checked=True)


@dataclass(slots=True)
class NormalTexts:
    """Normal texts of modules. `notes` has one line per remark on a text, `errors` the files that cannot be read.

    `unscheduled` sorts the lines of a scheduled module too; `layouts` and `metadata` say whether these are kept.
    """

    module: str | None = None
    stage: str | None = None
    strict: bool = False
    unscheduled: bool = False
    layouts: bool = True
    metadata: bool = False
    notes: list[str] = field(default_factory=list)
    errors: list[HloInspectError] = field(default_factory=list)

    def lines(self, argument: str) -> Iterator[str]:
        """Yield the lines of all modules, control characters escaped as in HLO. Raise InputError if there is no such file."""
        return self._printable(self._lines(self._modules(argument), argument))

    def lines_of(self, text: str) -> Iterator[str]:
        """Yield the lines of all modules of a text of HLO. Raise InputError if it holds none."""
        return self._printable(self._lines(self._modules_of(text, Xla(), may_hold=False), "the text"))

    def _printable(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            yield line if line[:-1].isprintable() else "\n".join(map(printable, line.split("\n")))

    def files(self, argument: str) -> Iterator[str | Path]:
        """Return the files of an argument. Raise InputError if there is none."""
        return (path for path, _ in self._dumps(argument))

    def _lines(self, modules: Iterator[Module], argument: str) -> Iterator[str]:
        pattern = name_pattern(self.module)
        others: list[str] = []
        count = 0
        for module in modules:
            if pattern is not None and pattern.search(module.name) is None:
                others.append(module.name)
                continue
            try:
                with as_internal_errors(module.location(module.first_line), module.name):
                    for number, line in enumerate(self._text(module)):
                        if count and not number:
                            yield "\n"
                        yield line
                count += 1
            except InternalError as error:
                self.errors.append(error)
        if not count and others and not self.errors:
            self.errors.append(InputError(no_such_module(self.module, others), Location(argument)))

    def _text(self, module: Module) -> Iterator[str]:
        """Yield the lines of a module."""
        if module.quoted_lines:
            message = "quotes instruction a partial module, which make no text of their own"
            self.errors.append(InputError(message, module.location(module.first_line)))
            return
        # parts that the normal form lacks, or that make it another program
        self.notes += [f"{problem.location}: {problem_text(problem)}" for problem in module.problems]
        canonical = CanonicalModule(module, Views(module.computations), layouts=self.layouts)
        is_scheduled = module.header.is_scheduled and not self.unscheduled
        yield from CanonicalText(canonical, is_scheduled=is_scheduled, metadata=self.metadata).lines()

    def _modules(self, argument: str) -> Iterator[Module]:
        with closing(Xla()) as xla:
            if self.strict:
                xla.require("--strict needs")
            for path, may_hold in self._dumps(argument):
                try:
                    with as_internal_errors(Location(str(path))):
                        yield from self._modules_of(path, xla, may_hold=may_hold)
                except (InputError, InternalError) as error:
                    self.errors.append(error)

    def _modules_of(self, path: str | Path, xla: Xla, *, may_hold: bool) -> Iterator[Module]:
        """Yield the modules of one file."""
        source = open_source(path)
        modules = xla.modules(source, WANTS, strict=self.strict)
        is_empty = True
        for item in uncollected(modules):
            is_empty = False
            if isinstance(item, ParseError):
                self.errors.append(item)
            else:
                yield item[0]
        if is_empty and not may_hold:
            raise InputError(f"holds no HLO module{describe_foreign_text(source.start)}", Location(source.name))

    def _dumps(self, argument: str) -> Iterator[tuple[str | Path, bool]]:
        """Yield the files to read, each with True if it may hold no module."""
        for source in expanded(argument):
            if is_directory(source):
                yield from ((file.source, file.may_hold) for file in dump_files(source, self.stage))
            else:
                yield source, False
