"""What a source is that holds no module, by its first lines: a workload file, or one of XLA's files about memory."""

from __future__ import annotations

import re

from hlo_inspect.hlo.foreign_text import is_workload, what_text_looks_like
from hlo_inspect.hlo.source import START_CHARS, Source
from hlo_inspect.lazy_pattern import lazy_pattern

_MEMORY_FILE = lazy_pattern(r"\s*+(?:(BufferAssignment:)|(HloLiveRange \(max)|(Memory Space: |Total bytes used: ))")


def holds_workload(source: Source) -> bool:
    """Whether the source is a workload file, by its first lines. `InputError` for what cannot be read."""
    return is_workload(_start(source))


def is_no_workload(source: Source) -> str:
    """The message for a source that is none."""
    return f"is no workload file of a network simulator{what_text_looks_like(_start(source))}"


def _start(source: Source) -> str:
    return source.peek()[:START_CHARS].decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def memory_file_start(source: Source) -> re.Match[str] | None:
    """How a file of XLA's about memory begins, in a group of its own the buffer assignment, the live ranges and the report on
    usage; `None` where the source is none.
    """
    return _MEMORY_FILE.match(source.peek()[:START_CHARS].decode(errors="replace"))
