"""Parts of a source outside its analysis: the lines that findings name, and names for shell completion."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from operator import itemgetter

from hlo_inspect.errors import HloInspectError, InputError
from hlo_inspect.graph.neighbourhood.instruction_lookup import WILDCARD, fits
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Column
from hlo_inspect.report.table_spec import TableSpec

FINDING_LINES = TableSpec("finding_lines", "Lines that findings name", page_rows=0, on_page=False).with_columns(
    Column("line", "number", get=itemgetter(0)), Column("text", width=120, get=itemgetter(1))
)
TABLES = (FINDING_LINES,)
_LONGEST = 400  # characters: lines can have megabytes, and their beginning is enough
MOST_LINES = 200


def with_finding_lines(report: Report) -> Report:
    """Return the report with a table of the first lines that its findings name, and a note on further lines.

    The report stays as it is if its input cannot be read again: standard input, and converted files.
    """
    places = [finding.location for finding in report.findings]
    numbers = sorted({place.line for place in places if place and place.line and place.path == report.input.path})
    if not numbers or report.input.path in {"-", ""}:
        return report
    try:
        texts = _lines(report.input.path, numbers[:MOST_LINES])
    except (InputError, ValueError):
        return report
    more = len(numbers) - len(texts)
    lines = f"{more:,} more line{'' if more == 1 else 's'} that findings name {'is' if more == 1 else 'are'} not quoted"
    notes = [f"{FINDING_LINES.name}: {lines}"] if more > 0 else []
    return replace(report, tables=(*report.tables, FINDING_LINES.of(texts)), notes=(*report.notes, *notes))


def _lines(path: str, numbers: Iterable[int]) -> list[tuple[int, str]]:
    """Return number and text of each line, in one pass over the input."""
    texts = []
    wanted = iter(numbers)
    number, first = next(wanted, None), 1
    for piece in open_source(path).raw_pieces():
        if number is None:
            break
        ends = piece.count(b"\n") + (not piece.endswith(b"\n"))
        if number < first + ends:
            lines = piece.split(b"\n")
            while number is not None and number < first + ends:
                text = lines[number - first].removesuffix(b"\r")
                short = text[: 4 * _LONGEST].decode(errors="backslashreplace")[:_LONGEST]
                texts.append((number, short + "…" if len(short) < len(text) and len(short) == _LONGEST else short))
                number = next(wanted, None)
        first += ends
    return texts


MOST = 200
MOST_READ = 1 << 26
"""Characters of a file in which names are sought: the shell waits."""
_INSTRUCTION = lazy_pattern(r"^[^\S\n]*+(?:ROOT )?+%?([A-Za-z_][\w.\-]*+) = ", re.ASCII | re.MULTILINE)


def names_like(source: str, beginning: str) -> list[str]:
    """Return the first names and opcodes of a file that fit `beginning`, which can hold a `*`; none if it is unreadable."""
    parts = [*beginning.removeprefix("%").split(WILDCARD), ""]
    opcodes = [opcode for opcode in sorted(TABLE) if fits(opcode, parts)]
    matches: dict[str, None] = {}
    read = 0
    try:
        for piece in open_source(source).pieces():
            matches |= dict.fromkeys(opcode for opcode in opcodes if f" {opcode}(" in piece)
            matches |= dict.fromkeys(name for name in _INSTRUCTION.findall(piece) if fits(name, parts))
            read += len(piece)
            if len(matches) >= MOST or read >= MOST_READ:
                break
    except (HloInspectError, OSError):
        return []
    return sorted(matches)[:MOST]
