"""Where an instruction comes from: its `op_name` and its line of source, in both spellings of the metadata."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import StackFrames

_STRING = r'"((?:[^"\\]++|\\.)*+)"'
_OP_NAME = re.compile(rf"\bop_name\s*=\s*{_STRING}", re.DOTALL)
_SOURCE_FILE = re.compile(rf"\bsource_file\s*=\s*{_STRING}", re.DOTALL)
_SOURCE_LINE = re.compile(r"\bsource_line\s*=\s*(\d{1,9})", re.ASCII)
_FRAME = re.compile(r"\bstack_frame_id\s*=\s*(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Origin:
    """`op_name` is the scope that the front end gave, `source` is `file:line`; both are empty where the text does not tell."""

    op_name: str = ""
    source: str = ""


def origin(attributes: dict[str, str], frames: StackFrames) -> Origin:
    """The origin that an instruction's metadata names: inline, or by a frame of the module's tables."""
    metadata = attributes.get("metadata", "")
    if not metadata:
        return Origin()
    op_name = _OP_NAME.search(metadata)
    return Origin(sys.intern(scan.unquote(f'"{op_name[1]}"')) if op_name else "", sys.intern(_source(metadata, frames)))


def _source(metadata: str, frames: StackFrames) -> str:
    file = _SOURCE_FILE.search(metadata)
    if file is not None:
        line = _SOURCE_LINE.search(metadata)
        name = scan.unquote(f'"{file[1]}"')
        return f"{name}:{line[1]}" if line else name
    frame = _FRAME.search(metadata)
    place = frames.source_line(int(frame[1])) if frame else None
    return f"{place.file}:{place.line}" if place else ""
