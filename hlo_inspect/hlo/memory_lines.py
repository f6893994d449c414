"""Lines of a log in which XLA reports memory that did not suffice, kept while the text around modules streams by."""

from __future__ import annotations

from hlo_inspect.lazy_pattern import lazy_pattern

MENTION = lazy_pattern(
    r"Ran out of memory in memory space (\w++)|(BufferAssignment OOM Debugging)"
    r"|(?i:out of memory)(?: while trying to allocate| allocating) "
)
"""What such a report begins with."""

MAX_LINES = 50_000
"""So many lines are kept."""

MAX_LINE_CHARS = 1 << 14


class MemoryLines:
    """The lines from the first one on that mentions memory that did not suffice, with their numbers."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []

    def take(self, text: str, line: int) -> None:
        """Takes whole lines that belong to no module, of which the first has this number."""
        if not self.lines and MENTION.search(text) is None:
            return
        for number, one in enumerate(text.splitlines(), line):
            if len(self.lines) >= MAX_LINES:
                break
            if self.lines or MENTION.search(one):
                self.lines.append((number, one[:MAX_LINE_CHARS]))
