"""One row of a workload file: twelve fields between blanks, a thirteenth where each row has a policy of its own.

The clients read field after field, whatever line it is in: after a field that is missing, one too many, or no integer where one
belongs, everything is read in the wrong place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.workloads.vocabulary import PASSES, POLICIES

FIELDS = 12

MAX_NUMBER = 2**64 - 1
"""What the clients keep times and sizes in."""
_MAX_DIGITS = 20
_SHOWN = 24
_TOKEN = lazy_pattern(r"[^ \t\r\f\v]+")
_DEPENDENCY = lazy_pattern(r"-?[0-9]{1,18}", re.ASCII)
_WORD = lazy_pattern(r"[A-Za-z_]")


WorkloadCell = tuple[str, int | None, str | None, int | None]
"""One pass of a row: its name, compute time, collective and size, `None` where the text does not say."""


class WorkloadRow(NamedTuple):
    """A layer. Times are in the client's unit, sizes are bytes in its convention; `None` is a field that cannot be read."""

    name: str
    dependency: int | None
    forward_time: int | None
    forward_word: str | None
    forward_size: int | None
    input_time: int | None
    input_word: str | None
    input_size: int | None
    weight_time: int | None
    weight_word: str | None
    weight_size: int | None
    update_time: int | None
    policy: str | None = None

    @property
    def cells(self) -> tuple[WorkloadCell, WorkloadCell, WorkloadCell]:
        """The three passes."""
        return (
            (PASSES[0], self.forward_time, self.forward_word, self.forward_size),
            (PASSES[1], self.input_time, self.input_word, self.input_size),
            (PASSES[2], self.weight_time, self.weight_word, self.weight_size),
        )


class FieldFault(NamedTuple):
    """What is wrong with a line, or not read by a client as it is meant, with the 1-based column of the field."""

    message: str
    column: int


def split_fields(text: str) -> list[str]:
    """The fields of a line, between ASCII blanks."""
    return text.split() if text.isascii() else _TOKEN.findall(text)


def placed_fields(text: str) -> list[tuple[str, int]]:
    """The same, each with its 1-based column."""
    return [(match[0], match.start() + 1) for match in _TOKEN.finditer(text)]


def field_column(text: str, at: int) -> int | None:
    """The 1-based column of a field of a line."""
    fields = placed_fields(text)
    return fields[at][1] if at < len(fields) else None


def clean_row(text: str, *, with_policy: bool) -> WorkloadRow | None:
    """The row of a line; `None` where something can be wrong with it."""
    match = (_ROW_WITH_POLICY if with_policy else _ROW).fullmatch(text)
    if match is None:
        return None
    name, dependency, ft, fw, fs, it, iw, ins, wt, ww, ws, update, *policy = match.groups()
    times_and_sizes = (int(ft), fw, int(fs), int(it), iw, int(ins), int(wt), ww, int(ws), int(update))
    return WorkloadRow(name, int(dependency), *times_and_sizes, *policy)


_WORDS = (1, 4, 7)
"""Which of the fields after the dependency are collectives."""

_BLANKS = r"[ \t\r\f\v]"
_DIGITS = r"([0-9]{1,19})"  # fewer than fill 64 bits
_CELL = rf"{_DIGITS}{_BLANKS}++([A-Za-z_][^ \t\r\f\v]*+){_BLANKS}++{_DIGITS}{_BLANKS}++"
_FIELDS = rf"{_BLANKS}*+([^ \t\r\f\v]++){_BLANKS}++(-?[0-9]{{1,18}}){_BLANKS}++{_CELL * 3}{_DIGITS}"
_ROW = lazy_pattern(rf"{_FIELDS}{_BLANKS}*+", re.ASCII)
_ROW_WITH_POLICY = lazy_pattern(rf"{_FIELDS}{_BLANKS}++([^ \t\r\f\v]++){_BLANKS}*+", re.ASCII)


def mended_row(text: str, *, with_policy: bool) -> tuple[WorkloadRow, list[FieldFault]] | None:
    """The row of a line with what is wrong with it; `None` for a line that is no row.

    Blanks in a name are part of it where the fields after them are as they should be.
    """
    tokens = placed_fields(text)
    faults: list[FieldFault] = []
    names = _name_length(tokens, FIELDS + with_policy)
    if names is None:
        return None
    if names > 1:
        faults.append(FieldFault("a blank in the name: clients read what follows it as the next field", tokens[1][1]))
    name = " ".join(token for token, _ in tokens[:names])
    fields = tokens[names:]
    expected = FIELDS - 1 + with_policy
    if len(fields) < expected:
        faults.append(FieldFault(f"{names + len(fields)} fields instead of {names + expected}", len(text.rstrip()) + 1))
    elif len(fields) > expected:
        extra, column = fields[expected]
        what = "a policy, which only rows of HYBRID_CUSTOMIZED have" if extra in POLICIES else f"{shown_field(extra)}"
        faults.append(FieldFault(f"a field too many: {what}", column))
    values: list[int | str | None] = []
    faults += _read_fields(fields[1 : FIELDS - 1], values)
    policy = fields[FIELDS - 1][0] if with_policy and len(fields) >= FIELDS else None
    return WorkloadRow(name, int(fields[0][0]), *values, policy), faults  # type: ignore[call-arg, arg-type]  # as many as fields


def _name_length(tokens: list[tuple[str, int]], width: int) -> int | None:
    """How many tokens are the name: those before the dependency."""
    if len(tokens) < 2:
        return None
    if _DEPENDENCY.fullmatch(tokens[1][0]):
        return 1
    if len(tokens) > width and _DEPENDENCY.fullmatch(tokens[len(tokens) - width + 1][0]):
        return len(tokens) - width + 1
    return None


def _read_fields(fields: list[tuple[str, int]], values: list[int | str | None]) -> Iterator[FieldFault]:
    """Adds the ten values after the dependency. Where a word is in the place of a number or the other way round, a field is
    missing: what follows is not known.
    """
    for at, (field, column) in enumerate(fields):
        is_word = _WORD.match(field) is not None
        if is_word != (at in _WORDS):
            yield FieldFault(f"{shown_field(field)} where {'a number' if is_word else 'a collective'} belongs", column)
            break
        values.append(field if is_word else _number(field))
        if values[-1] is None:
            yield FieldFault(_why_no_number(field), column)
    values += [None] * (FIELDS - 2 - len(values))


def _number(field: str) -> int | None:
    if len(field) > _MAX_DIGITS or not _is_digits(field):
        return None
    value = int(field)
    return value if value <= MAX_NUMBER else None


def _is_digits(field: str) -> bool:
    return field.isascii() and field.isdigit()


def _why_no_number(field: str) -> str:
    if _is_digits(field):
        return f"{shown_field(field)} is larger than 64 bits"
    if field.startswith("-"):
        return f"{shown_field(field)} is negative"
    return f"{shown_field(field)} is no integer: clients stop reading there, and go on without an error"


def shown_field(field: str) -> str:
    """A field as messages have it."""
    return field if len(field) <= _SHOWN else f"{field[:_SHOWN]}… ({len(field)} characters)"
