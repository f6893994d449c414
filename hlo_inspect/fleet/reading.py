"""Reading of one input by one process: the figures of its modules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.platforms import find_platform
from hlo_inspect.errors import HloInspectError, InputError, printable
from hlo_inspect.fleet.fleet_inputs import FleetInput, file_version
from hlo_inspect.fleet.input_texts import InputText, is_same
from hlo_inspect.fleet.parts import StoreRow
from hlo_inspect.fleet.schema import FactValues, fact_values, stored, table_columns
from hlo_inspect.hlo.input.source import Source, open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.inspection.source_reports import NoModuleError
from hlo_inspect.remote_files import FileVersion
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Finding, Report
from hlo_inspect.report.table import READERS
from hlo_inspect.request import Request


class ModuleFigures(NamedTuple):
    """The figures of a module that do not depend on the place of its input. `tables` has rows by the name of the table."""

    line: int | None
    lines: int | None
    bytes: int | None
    name: str | None
    platform: str | None
    status: str
    message: str | None
    seconds: float | None
    facts: FactValues
    findings: Sequence[StoreRow] = ()
    tables: Mapping[str, Sequence[StoreRow]] | None = None


class ReadingOptions(NamedTuple):
    """Options of the processes: request and tables."""

    request: Request
    tables: tuple[str, ...]


def start_reading(options: ReadingOptions) -> Callable[[InputText], list[list[ModuleFigures] | FileVersion]]:
    """Return the function that a process calls for each text."""
    reader = InputReader(options)
    return lambda text: [reader.read(text)]


def prepare_reading(options: ReadingOptions) -> None:
    """Import what the processes need before they fork. Raise UsageError if the request makes no sense."""
    reader = InputReader(options)
    for _ in reader.figures(open_source(_SMALLEST)):
        pass


_SMALLEST = "HloModule m\n\nENTRY main {\n  p = f32[] parameter(0)\n  ROOT a = f32[] add(p, p)\n}\n"


class InputReader:
    """Reader of inputs with the same options."""

    def __init__(self, options: ReadingOptions) -> None:
        self._options = options
        needs = ReportNeeds(lambda tables: [table for table in tables if table.name in options.tables], notes=False)
        self._inspection = Inspection(options.request, needs)
        self._inspection.set_report_sink(self._take)
        self._context: Context | None = None

    def read(self, text: InputText) -> list[ModuleFigures] | FileVersion:
        """Return the figures of the modules of an input, or its version if it has changed since it was hashed."""
        path, content = text.file.path, text.content
        source = Source(path, lambda: BytesIO(content), reopens=True) if content is not None else open_source(path)
        modules = list(self.figures(source, text.file))
        if content is None and not is_same(text.file.version, version := file_version(path)):
            return version
        return modules or [failed_figures(InputError("no module has a name that --module matches"), "empty")]

    def figures(self, source: Source, file: FleetInput | None = None) -> Iterator[ModuleFigures]:
        """Yield the figures of the modules of a source, which is the content of a file."""
        note, hosts, may_hold = (file.note, file.hosts, file.may_hold) if file is not None else (None, (), False)
        begin = time.perf_counter()
        for item in self._inspection.read_source(source, note, hosts):
            seconds = time.perf_counter() - begin
            if isinstance(item, Report):
                yield self._figures(item, seconds)
            elif isinstance(item, HloInspectError):
                yield failed_figures(item, "empty" if may_hold and isinstance(item, NoModuleError) else "unreadable")
            begin = time.perf_counter()

    def _take(self, _report: Report, context: Context) -> None:
        self._context = context

    def _figures(self, report: Report, seconds: float) -> ModuleFigures:
        context, self._context = self._context, None
        facts = report.facts if isinstance(report.facts, Facts) else Facts(report.facts, report.specs)
        status, platform = "ok", None
        if context is not None:
            status = status_of(context.module)
            platform = find_platform(context.module, context.views, self._options.request.platform).name
        return ModuleFigures(
            line=report.input.first_line,
            lines=report.input.lines,
            bytes=report.input.bytes,
            name=str(facts["module.name"]),
            platform=platform,
            status=status,
            message=None,
            seconds=seconds,
            facts=fact_values(facts, report.specs),
            findings=[finding_row(finding) for finding in report.findings],
            tables={name: table_rows(report, name) for name in self._options.tables},
        )


def failed_figures(error: HloInspectError, status: str) -> ModuleFigures:
    """Return the figures of a module or input that cannot be read: nothing but the error."""
    facts = fact_values(Facts({}, ()), ())
    return ModuleFigures(error.line, None, None, None, None, status, printable(error.message), None, facts)


def status_of(module: Module) -> str:
    """Return the status of a module that was read: `partial` if the text does not hold all of it, else `ok`."""
    return "partial" if module.quoted_lines or module.problems.is_truncated else "ok"


def finding_row(finding: Finding) -> StoreRow:
    place = finding.location
    return (
        finding.rule,
        finding.name,
        finding.severity,
        finding.message,
        place.line if place is not None else None,
        place.column if place is not None else None,
        finding.subject,
        float(finding.stake) if finding.stake is not None else None,
        finding.stake_unit,
        finding.source,
        finding.op_name or None,
        finding.label or None,
        finding.fingerprint or None,
    )


def table_rows(report: Report, name: str) -> list[StoreRow]:
    """Return the rows of all tables of that name, in the columns of the store."""
    rows: list[StoreRow] = []
    columns = table_columns(name)
    for table in (table for table in report.tables if table.name == name):
        positions = {column.name: index for index, column in enumerate(table.columns)}
        getters = [(positions.get(column.of), READERS[column.bound], column.type) for column in columns]
        rows += [
            tuple([None if index is None else stored(read(row[index]), type_) for index, read, type_ in getters])
            for row in table.rows
        ]
    return rows
