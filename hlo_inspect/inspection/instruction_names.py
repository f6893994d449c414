"""Names of instructions for a shell that completes them: sought in the text, without reading it as a module."""

from __future__ import annotations

import re

from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.neighbourhood.selection import WILDCARD, fits
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.lazy_pattern import lazy_pattern

MOST = 200
MOST_READ = 1 << 26
"""Characters of a file in which names are sought: the shell waits."""
_INSTRUCTION = lazy_pattern(r"^[^\S\n]*+(?:ROOT )?+%?([A-Za-z_][\w.\-]*+) = ", re.ASCII | re.MULTILINE)


def names_like(source: str, beginning: str) -> list[str]:
    """The first names and opcodes of a file that begin as given, or fit a beginning with a `*` in it; nothing where it cannot
    be read.
    """
    parts = [*beginning.removeprefix("%").split(WILDCARD), ""]
    opcodes = [opcode for opcode in sorted(TABLE) if fits(opcode, parts)]
    found: dict[str, None] = {}
    read = 0
    try:
        for piece in open_source(source).pieces():
            found |= dict.fromkeys(opcode for opcode in opcodes if f" {opcode}(" in piece)
            found |= dict.fromkeys(name for name in _INSTRUCTION.findall(piece) if fits(name, parts))
            read += len(piece)
            if len(found) >= MOST or read >= MOST_READ:
                break
    except (HloInspectError, OSError):
        return []
    return sorted(found)[:MOST]
