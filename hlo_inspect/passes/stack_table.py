"""The call stacks of source lines: where each line was called from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from hlo_inspect.analysis.op_names import Origin, origin
from hlo_inspect.hlo.header import StackFrames
from hlo_inspect.hlo.values import Metadata
from hlo_inspect.report.model import Column, Table


def stacks_of(metadata: Iterable[Metadata | None], frames: StackFrames) -> Iterator[Table]:
    """The stacks of some metadata; what they mean is looked up once for all that are the same."""
    distinct = {} if frames.is_empty else dict.fromkeys(metadata)
    return call_stacks(origin(one, frames) for one in distinct if one is not None)


def call_stacks(origins: Iterable[Origin]) -> Iterator[Table]:
    """One row for each frame of each distinct stack, innermost first; `source` is the line that other tables show of it. No
    table where there is no stack.
    """
    stacks = dict.fromkeys((origin.source, origin.stack) for origin in origins if len(origin.stack) > 1)
    frames = [
        (source, depth, line) for source, stack in sorted(stacks, key=lambda one: one[0]) for depth, line in enumerate(stack)
    ]
    columns = (
        Column("source", get=lambda frame: frame[0]),
        Column("depth", "number", get=lambda frame: frame[1]),
        Column("frame", get=lambda frame: frame[2].place),
        Column("function", detail=1, get=lambda frame: frame[2].function),
    )
    if frames:
        table = Table.of("call_stacks", "Call stacks, innermost first", columns, frames, page_rows=0)
        yield replace(table, only_verbose=True)
