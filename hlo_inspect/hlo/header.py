"""The `HloModule` line: name and attributes, and the stack-frame tables that may follow it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.shape_text import ShapeError, scan_shape
from hlo_inspect.hlo.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

ShapeIndex = tuple[int, ...]

_INDEX = r"\{([\d,\s]*)\}"
_ALIAS = lazy_pattern(rf"{_INDEX}\s*:\s*\(\s*(\d{{1,18}})\s*,\s*{_INDEX}\s*(?:,\s*([a-z]+-alias)\s*)?\)", re.ASCII)
_DONOR = lazy_pattern(rf"\(\s*(\d{{1,18}})\s*,\s*{_INDEX}\s*\)", re.ASCII)
_COUNT = lazy_pattern(r"\d{1,18}", re.ASCII)
_COUNTS = ("num_partitions", "replica_count")
_FLAG = lazy_pattern(r"([A-Za-z_][\w.\-]*+)(?=[ \t]*+[,\n])", re.ASCII)


class Alias(NamedTuple):
    """An output that takes the buffer of a parameter. `kind` is `may-alias` or `must-alias`."""

    output_index: ShapeIndex
    parameter: int
    parameter_index: ShapeIndex
    kind: str


class Donor(NamedTuple):
    """A parameter whose buffer is given away without an output that takes it."""

    parameter: int
    parameter_index: ShapeIndex


class Header:
    """What the header says. `attributes` keeps every attribute's text; `printed` is false for a module without a header;
    `fault` is why it was not read to its end; `states_devices` says whether it prints a device count at all, `prints_counts`
    whether it is one of those that print each count that is not 1.
    """

    def __init__(
        self, name: str, attributes: Mapping[str, str] | None = None, *, printed: bool = True, fault: str = ""
    ) -> None:
        self.name = name
        self.attributes = attributes or {}
        self.printed = printed
        self.fault = fault
        partitions, replicas = (_COUNT.fullmatch(self.attributes.get(count, "")) for count in _COUNTS)
        self.num_partitions = int(partitions[0]) or 1 if partitions else 1
        self.replica_count = int(replicas[0]) or 1 if replicas else 1
        self.states_devices = any(count is not None and int(count[0]) for count in (partitions, replicas))
        self.prints_counts = "entry_computation_layout" in self.attributes
        self.is_scheduled = self.attributes.get("is_scheduled") == "true"

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """What the header's attributes have wrong, as messages."""
        faults = [f"the header cannot be read to its end: {self.fault}"] if self.fault else []
        faults += self._donation_faults
        faults += [
            f"{name} is no number: {self.attributes[name][:40]!r}"
            for name in reversed(_COUNTS)
            if name in self.attributes and _COUNT.fullmatch(self.attributes[name]) is None
        ]
        return tuple(faults)

    @cached_property
    def _donation_faults(self) -> tuple[str, ...]:
        faults = []
        for name, pattern in (("input_output_alias", _ALIAS), ("buffer_donor", _DONOR)):
            rest = pattern.sub("", tokens.without_comments(self.attributes.get(name, "")))
            if rest.strip("{}, \t\n"):
                faults.append(f"{name} has an entry that cannot be read: {rest.strip('{}, ')[:40]!r}")
        return tuple(faults)

    @property
    def tells_donation(self) -> bool:
        """Whether `aliases` and `donors` are all that there are."""
        return self.printed and not self.fault and not self._donation_faults

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        text = tokens.without_comments(self.attributes.get("input_output_alias", ""))
        return tuple(
            Alias(_index(output), int(number), _index(index), kind or "may-alias")
            for output, number, index, kind in _ALIAS.findall(text)
        )

    @cached_property
    def donors(self) -> tuple[Donor, ...]:
        text = tokens.without_comments(self.attributes.get("buffer_donor", ""))
        return tuple(Donor(int(number), _index(index)) for number, index in _DONOR.findall(text))

    @cached_property
    def entry_layout(self) -> tuple[Shape, Shape] | None:
        """The shapes of the parameters (as one tuple) and of the result that `entry_computation_layout` prints."""
        text = tokens.without_comments(self.attributes.get("entry_computation_layout", ""))
        try:
            parameters, end = scan_shape(text, text.index("(") if "(" in text else len(text))
            arrow = text.index("->", end)
            result, _ = scan_shape(text, arrow + 2)
        except (ShapeError, ValueError):
            return None
        return parameters, result


def read_signature(text: str) -> tuple[TupleShape, Shape] | None:
    """The shapes of parameters and result in the first line of a computation, as of `main (p: f32[8]) -> f32[] {`: what
    the text says of them before it is cut off. `None` where the line names none.
    """
    text = tokens.without_comments(text)
    opening = text.find("(")
    try:
        closing = tokens.balanced_end(text, opening) if opening >= 0 else 0
        items = [text[start:end].partition(":")[2] for start, end in tokens.split_items(text, opening + 1, closing - 1)]
        parameters = tuple(scan_shape(item, 0)[0] for item in items)
        result, _ = scan_shape(text, text.index("->", closing) + 2)
    except (ShapeError, ValueError):
        return None
    return TupleShape(parameters), result


def _index(text: str) -> ShapeIndex:
    return tuple(int(part) for part in text.split(",") if part.strip().isdigit() and len(part) < 19)


def scan_header(text: str, start: int, *, final: bool) -> tuple[Header, int]:
    """The header at `start` (at `HloModule`) and the index after it. Where it stops making sense it ends, with a fault.

    `IncompleteError` where the header may continue after the text, unless that is `final`.
    """
    position = tokens.skip_space(text, start + len("HloModule"))
    name = tokens.IDENTIFIER.match(text, position + text.startswith("%", position))
    if name is not None:
        position = name.end()
    if text.startswith(":", position):
        position += 1
    attributes: dict[str, str] = {}
    fault = ""
    try:
        position = _scan_attributes(text, position, attributes)
        if not final and tokens.skip_space(text, position) == len(text):
            raise tokens.IncompleteError("the header may go on", position)
    except tokens.ScanError as error:
        if isinstance(error, tokens.IncompleteError) and not final:
            raise
        fault, position = error.message, error.position
    return Header(name[0] if name else "", attributes, fault=fault), position


def _scan_attributes(text: str, position: int, attributes: dict[str, str]) -> int:
    """Fills `attributes`; the index after them. An attribute without a value is a flag; a trailing comma is allowed."""
    while True:
        common = tokens.COMMON_HEADER_ATTRIBUTE.match(text, position)
        if common is not None and common[2].count("(") == common[2].count(")"):
            attributes.setdefault(common[1], common[2])
            position = common.end()
            continue
        comma = tokens.skip_space(text, position)
        if not text.startswith(",", comma):
            return position
        begin = tokens.skip_space(text, comma + 1)
        attribute = tokens.ATTRIBUTE.match(text, begin)
        flag = _FLAG.match(text, begin)
        if attribute is not None:
            quotes_module = attribute[1] == "origin_recovery_table"
            position = tokens.value_end(text, attribute.end(), name=attribute[1], holds_lines=quotes_module, single=True)
            attributes.setdefault(attribute[1], text[attribute.end() : position].strip())
        elif flag is not None:
            position = flag.end()
            attributes.setdefault(flag[1], "")
        else:
            return comma + 1


TABLE_NAMES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
TABLE = lazy_pattern(rf"[ \t]*+(?:{'|'.join(TABLE_NAMES)})[ \t]*\n(?:\s*+\d+[ \t][^\n]*\n)*+", re.ASCII)
"""A table; blank lines may stand between its rows, as between all lines of some mails."""

_ROW = lazy_pattern(r"^[ \t]*+\d+[ \t]+(.*)$", re.ASCII | re.MULTILINE)
_FIELD = lazy_pattern(r"(\w+)=(\d{1,18})", re.ASCII)

MAX_FRAMES = 32
"""JAX writes ten; of more the innermost are kept."""


class SourceLine(NamedTuple):
    """A line of the program that was compiled."""

    file: str
    line: int
    function: str

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


class StackFrames:
    """The four tables that metadata points into by `stack_frame_id`. Rows count from 1; they are parsed when first asked
    for. `user_lines` is where an analysis notes which line of a stack it takes for the user's, by frame.
    """

    def __init__(self) -> None:
        self.user_lines: dict[int, str] = {}
        self._texts: dict[str, str] = {}
        self._rows: dict[str, list[str]] = {}
        self._stacks: dict[int, tuple[SourceLine, ...]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the text has none of the tables."""
        return not self._texts

    @property
    def tables(self) -> list[str]:
        """The texts of the tables."""
        return list(self._texts.values())

    def add(self, table: str) -> None:
        name = table.split(None, 1)[0]
        self._texts[name] = table

    def stack(self, frame_id: int) -> tuple[SourceLine, ...]:
        """The lines of a frame and of those that it was called from, innermost first; without those that the tables do not
        have.
        """
        missing: list[int] = []
        while frame_id not in self._stacks and self._row("StackFrames", frame_id) and len(missing) < MAX_FRAMES:
            missing.append(frame_id)
            caller = self._cells("StackFrames", frame_id).get("parent_frame_id", 0) - 1  # printed is one more than the number
            frame_id = caller if caller < frame_id else 0  # callers are numbered first
        stack = self._stacks.get(frame_id, ())
        for one in reversed(missing):
            line = self._source_line(one)
            stack = self._stacks[one] = (line, *stack[: MAX_FRAMES - 1]) if line is not None else stack
        return stack

    def _source_line(self, frame_id: int) -> SourceLine | None:
        location = self._cells("StackFrames", frame_id).get("file_location_id", 0)
        fields = self._cells("FileLocations", location)
        file = self._row("FileNames", fields.get("file_name_id", 0))
        function = self._row("FunctionNames", fields.get("function_name_id", 0))
        return SourceLine(tokens.unquote(file), fields.get("line", 0), tokens.unquote(function)) if file else None

    def _cells(self, table: str, number: int) -> dict[str, int]:
        return {name: int(value) for name, value in _FIELD.findall(self._row(table, number))}

    def _row(self, table: str, number: int) -> str:
        """A row of a table behind its number; empty where there is none."""
        rows = self._rows.get(table)
        if rows is None:
            rows = self._rows[table] = _ROW.findall(self._texts.get(table, ""))
        return rows[number - 1] if 0 < number <= len(rows) else ""
