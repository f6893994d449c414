"""Reading of one input by one process: the figures of its modules, unless an equal text is analyzed already."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.platforms import find_platform
from hlo_inspect.analysis.memory.sidecars import files_beside
from hlo_inspect.errors import HloInspectError, InputError, Location, printable
from hlo_inspect.fleet.inputs import FleetInput, file_version
from hlo_inspect.fleet.parts import StoreRow
from hlo_inspect.fleet.schema import fact_values, stored, table_columns
from hlo_inspect.hlo.input.dump_directory import AFTER, BEFORE, stage_of
from hlo_inspect.hlo.input.source import Source, open_source
from hlo_inspect.hlo.settings.compile_settings import stablehlo_file
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.inspection.source_reports import NoModuleError
from hlo_inspect.remote_files import FileVersion, is_address
from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Finding, Report
from hlo_inspect.report.table import Table, plain
from hlo_inspect.request import Request

KEPT_BYTES = 1 << 26
"""An input up to this size is kept in memory between its hash and its analysis; a larger one is read twice."""
READINGS = 3
"""An input that changes while it is read is read so often."""


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
    bounds: dict[str, float]
    facts: list[Any]
    findings: Sequence[StoreRow] = ()
    tables: Mapping[str, Sequence[StoreRow]] | None = None


class Reading(NamedTuple):
    """The result of one input. If it `is_equal`, another input of the same `digest` is or was analyzed, and it has no modules.

    `sha256` is the hash of the text; `digest` covers also the files beside it that facts depend on.
    """

    version: FileVersion
    sha256: str | None
    digest: str | None
    modules: list[ModuleFigures]
    is_equal: bool = False


class ReadingOptions(NamedTuple):
    """Options of the processes: request, tables, and the folder in which a process claims the digest that it analyzes."""

    request: Request
    tables: tuple[str, ...]
    claims: str


def start_reading(options: ReadingOptions) -> Callable[[FleetInput], Iterator[Reading]]:
    """Return the function that a process calls for each input."""
    reader = InputReader(options)
    return lambda file: iter([reader.read(file)])


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
        needs = ReportNeeds(self._needed_tables if options.tables else lambda _: (), notes=False)
        self._inspection = Inspection(options.request, needs)
        self._inspection.set_report_sink(self._take)
        self._context: Context | None = None

    def read(self, file: FleetInput) -> Reading:
        """Read an input, again if it changes meanwhile."""
        version = file.version
        for _ in range(READINGS):
            reading = self._read_once(file, version)
            try:
                now = file_version(file.path)
            except InputError as error:
                return failed_reading(version, error)
            if _is_same(version, now):
                return reading
            if reading.digest is not None and not reading.is_equal:
                self._release(reading.digest)
            version = now
        return failed_reading(version, InputError("changes while it is read", Location(file.path)))

    def _read_once(self, file: FleetInput, version: FileVersion) -> Reading:
        text = digest = content = None
        with suppress(HloInspectError):  # of a damaged file, the reader takes what is readable and reports the rest
            text, digest, content = self._hash(file.path)
        if digest is not None and not self._claim(digest, file.path) and not file.is_forced:
            return Reading(version, text, digest, [], is_equal=True)
        if content is None:
            source = open_source(file.path)
        else:
            kept = content
            source = Source(file.path, lambda: BytesIO(kept), reopens=True)
        modules = list(self.figures(source, file))
        if not modules:
            modules.append(failed_figures(InputError("no module has a name that --module matches"), "empty"))
        return Reading(version, text, digest, modules)

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

    def _hash(self, path: str) -> tuple[str, str, bytes | None]:
        """Return the hash of the text, that of all that facts depend on, and the content unless it is large."""
        text = sha256()
        pieces: list[bytes] | None = []
        size = 0
        for piece in open_source(path).decompressed():
            text.update(piece)
            size += len(piece)
            if pieces is not None:
                pieces.append(piece)
                if size > KEPT_BYTES:
                    pieces = None
        digest = text.copy()
        digest.update(stage_of(path).encode())
        for sidecar in [] if is_address(path) else _files_beside(path):
            digest.update(sidecar.read_bytes())
        return text.hexdigest(), digest.hexdigest(), b"".join(pieces) if pieces is not None else None

    def _claim(self, digest: str, path: str) -> bool:
        """Return True if no process has claimed the digest before; the file of a claim names the input."""
        try:
            with Path(self._options.claims, digest).open("x", encoding="utf-8", errors="surrogateescape") as claim:
                claim.write(path)
        except FileExistsError:
            return False
        return True

    def _release(self, digest: str) -> None:
        Path(self._options.claims, digest).unlink(missing_ok=True)

    def _take(self, _report: Report, context: Context) -> None:
        self._context = context

    def _needed_tables(self, tables: Sequence[Table]) -> list[Table]:
        return [table for table in tables if table.name in self._options.tables]

    def _figures(self, report: Report, seconds: float) -> ModuleFigures:
        context, self._context = self._context, None
        facts = report.facts if isinstance(report.facts, Facts) else Facts(report.facts, report.specs)
        values, bounds = fact_values(facts, report.specs)
        is_partial, platform = False, None
        if context is not None:
            module = context.module
            is_partial = bool(module.quoted_lines) or module.problems.is_truncated
            platform = find_platform(module, context.views, self._options.request.platform).name
        return ModuleFigures(
            line=report.input.first_line,
            lines=report.input.lines,
            bytes=report.input.bytes,
            name=str(facts["module.name"]),
            platform=platform,
            status="partial" if is_partial else "ok",
            message=None,
            seconds=seconds,
            bounds=bounds,
            facts=values,
            findings=[_finding_row(finding) for finding in report.findings],
            tables={name: _table_rows(report, name) for name in self._options.tables},
        )


def _is_same(version: FileVersion, now: FileVersion) -> bool:
    """Return True if a file has not changed: by its ETag, because a listing may state times less exactly."""
    if version.etag is not None and now.etag is not None:
        return version.etag == now.etag
    return version == now


def failed_reading(version: FileVersion, error: HloInspectError, status: str = "unreadable") -> Reading:
    """Return the result of an input that cannot be read."""
    return Reading(version, None, None, [failed_figures(error, status)])


def failed_figures(error: HloInspectError, status: str) -> ModuleFigures:
    """Return the figures of a module or input that cannot be read: nothing but the error."""
    facts, bounds = fact_values(Facts({}, ()), ())
    return ModuleFigures(error.line, None, None, None, None, status, printable(error.message), None, bounds, facts)


def _files_beside(path: str) -> Iterator[Path]:
    """Yield the files beside a text that its facts and findings depend on."""
    yield from files_beside(path)
    stage = stage_of(path)
    if not stage:
        return
    with suppress(OSError):
        stablehlo = stablehlo_file(Path(path))
        if stablehlo is not None:
            yield stablehlo
    if stage.endswith(AFTER):
        stem, _, end = path.rpartition(stage)
        before = Path(f"{stem}{BEFORE}{end}")
        if before.is_file():
            yield before


def _finding_row(finding: Finding) -> StoreRow:
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


def _table_rows(report: Report, name: str) -> list[StoreRow]:
    """Return the rows of all tables of that name, in the columns of the store."""
    rows: list[StoreRow] = []
    columns = table_columns(name)
    for table in (table.flat() for table in report.tables if table.name == name):
        positions = {column.name: index for index, column in enumerate(table.columns)}
        getters = [(positions.get(column), type_) for column, type_ in columns.items()]
        rows += [
            tuple([None if index is None else stored(plain(row[index]), type_) for index, type_ in getters])
            for row in table.rows
        ]
    return rows
