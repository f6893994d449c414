"""The `HloModule` line: name and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.values.shape_text import ShapeError, scan_shape
from hlo_inspect.hlo.values.shapes import Shape, TupleShape
from hlo_inspect.lazy_pattern import lazy_pattern

ShapeIndex = tuple[int, ...]

_INDEX = r"\{([\d,\s]*)\}"
_ALIAS = lazy_pattern(rf"{_INDEX}\s*:\s*\(\s*(\d{{1,18}})\s*,\s*{_INDEX}\s*(?:,\s*([a-z]+-alias)\s*)?\)", re.ASCII)
_DONOR = lazy_pattern(rf"\(\s*(\d{{1,18}})\s*,\s*{_INDEX}\s*\)", re.ASCII)
_COUNT = lazy_pattern(r"\d{1,18}", re.ASCII)
_COUNTS = ("replica_count", "num_partitions")
_DONATION = (("input_output_alias", _ALIAS), ("buffer_donor", _DONOR))
_FLAG = lazy_pattern(r"([A-Za-z_][\w.\-]*+)(?=[ \t]*+[,\n])", re.ASCII)


class Alias(NamedTuple):
    """An output that uses a parameter's buffer. `kind` is `may-alias` or `must-alias`."""

    output_index: ShapeIndex
    parameter: int
    parameter_index: ShapeIndex
    kind: str


class Donor(NamedTuple):
    """A parameter that is donated although no output uses its buffer (`buffer_donor`)."""

    parameter: int
    parameter_index: ShapeIndex


class Header:
    """The contents of an `HloModule` line.

    `attributes`: the text of every attribute. `printed`: False for a module without a header.
    `fault`: the reason why it was not read to its end. `faults`: the messages of all its faults, `fault` included.
    `tells_donation`: True if `aliases` and `donors` are complete. `states_devices`: True if it states a number of devices.
    `prints_counts`: True if its printer prints each count other than 1.
    """

    def __init__(
        self, name: str, attributes: Mapping[str, str] | None = None, *, printed: bool = True, fault: str = ""
    ) -> None:
        self.name = name
        self.attributes = attributes or {}
        self.printed = printed
        self.fault = fault
        donation = [(name, pattern.sub("", self._plain(name))) for name, pattern in _DONATION if name in self.attributes]
        unread = [(name, rest.strip("{}, ")) for name, rest in donation if rest.strip("{}, \t\n")]
        counts = {name: _COUNT.fullmatch(self.attributes[name]) for name in _COUNTS if name in self.attributes}
        odd = {name: self.attributes[name][:40] for name, count in counts.items() if count is None}
        self.faults = (
            *([f"the header cannot be read to its end: {fault}"] if fault else ()),
            *[f"{name} has an unreadable entry: {rest[:40]!r}" for name, rest in unread],
            *[f"{name} is not a number: {text!r}" for name, text in odd.items()],
        )
        numbers = {name: int(count[0]) for name, count in counts.items() if count is not None}
        self.num_partitions = numbers.get("num_partitions") or 1
        self.replica_count = numbers.get("replica_count") or 1
        self.states_devices = any(numbers.values())
        self.prints_counts = "entry_computation_layout" in self.attributes
        self.is_scheduled = self.attributes.get("is_scheduled") == "true"
        self.tells_donation = printed and not fault and not unread

    def _plain(self, name: str) -> str:
        """Return the text of an attribute without comments; empty if absent."""
        return tokens.without_comments(self.attributes.get(name, ""))

    @cached_property
    def aliases(self) -> tuple[Alias, ...]:
        return tuple(
            Alias(_index(output), int(number), _index(index), kind or "may-alias")
            for output, number, index, kind in _ALIAS.findall(self._plain("input_output_alias"))
        )

    @cached_property
    def donors(self) -> tuple[Donor, ...]:
        return tuple(Donor(int(number), _index(index)) for number, index in _DONOR.findall(self._plain("buffer_donor")))

    @cached_property
    def entry_layout(self) -> tuple[Shape, Shape] | None:
        """The shapes of parameters (as a tuple) and result in `entry_computation_layout`; None if absent."""
        text = self._plain("entry_computation_layout")
        try:
            parameters, end = scan_shape(text, text.index("(") if "(" in text else len(text))
            arrow = text.index("->", end)
            result, _ = scan_shape(text, arrow + 2)
        except (ShapeError, ValueError):
            return None
        return parameters, result


def read_signature(text: str) -> tuple[TupleShape, Shape] | None:
    """Return the shapes of parameters and result in `main (p: f32[8]) -> f32[] {`; None if they are not printed.

    They stand in for the instructions that a truncated text lacks.
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
    """Return the header at `start` (at `HloModule`) and the index after it.

    The header ends before its first unreadable text, with a fault. Raise IncompleteError if it may continue after the text,
    unless the text is `final`.
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
            raise tokens.IncompleteError("the header may continue", position)
    except tokens.ScanError as error:
        if isinstance(error, tokens.IncompleteError) and not final:
            raise
        fault, position = error.message, error.position
    return Header(name[0] if name else "", attributes, fault=fault), position


def _scan_attributes(text: str, position: int, attributes: dict[str, str]) -> int:
    """Fill `attributes` and return the index after them. One without a value is a flag; a trailing comma is allowed."""
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
