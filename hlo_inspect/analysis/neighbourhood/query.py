"""What a command is asked about an instruction."""

from __future__ import annotations

from typing import NamedTuple

DEPTH = 2
"""So many steps are shown around an instruction where nothing else is asked."""


class InstructionQuery(NamedTuple):
    """`name` is the instruction, or what `find_rows` takes for one, `to` another one to which ways are asked for, and `depth`
    how many steps around it are shown. A `quick` answer leaves out where its buffers live.
    """

    name: str | None = None
    to: str | None = None
    depth: int = DEPTH
    quick: bool = False


NO_QUERY = InstructionQuery()
