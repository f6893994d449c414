"""Where an instruction comes from: its `op_name` and its line of source, in both spellings of the metadata."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import StackFrames

# One field of the metadata; a string is taken whole, so that what looks like a field inside of it is none.
_FIELD = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]++|\\.)*+)"|([^\s,"{}]++)|\{[^{}]*\})', re.ASCII | re.DOTALL)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Origin:
    """`op_name` is the scope that the front end gave, `source` is `file:line`; both are empty where the text does not tell."""

    op_name: str = ""
    source: str = ""


def origin(metadata: str, frames: StackFrames) -> Origin:
    """The origin that the text of an instruction's `metadata` names: inline, or by a frame of the module's tables."""
    if not metadata:
        return Origin()
    fields = {match[1]: match for match in _FIELD.finditer(metadata)}
    return Origin(sys.intern(_string(fields, "op_name")), sys.intern(_source(fields, frames)))


def _string(fields: dict[str, re.Match[str]], name: str) -> str:
    match = fields.get(name)
    return scan.unquote(f'"{match[2]}"') if match is not None and match[2] is not None else ""


def _number(fields: dict[str, re.Match[str]], name: str) -> int | None:
    match = fields.get(name)
    return int(match[3]) if match is not None and match[3] is not None and _NUMBER.fullmatch(match[3]) else None


def _source(fields: dict[str, re.Match[str]], frames: StackFrames) -> str:
    file, line = _string(fields, "source_file"), _number(fields, "source_line")
    if file:
        return file if line is None else f"{file}:{line}"
    frame = _number(fields, "stack_frame_id")
    place = frames.source_line(frame) if frame is not None else None
    return f"{place.file}:{place.line}" if place else ""
