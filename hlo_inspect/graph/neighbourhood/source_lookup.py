"""Look up the user's source lines: `gen.py:160`, `gen.py` or `train/*.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from hlo_inspect.errors import NoSuchInstructionError, did_you_mean
from hlo_inspect.hlo.values.op_names import Origin
from hlo_inspect.lazy_pattern import lazy_pattern

_QUERY = lazy_pattern(r"\S*\.[A-Za-z]{1,4}(?::\d{1,9})?", re.ASCII)
"""Pattern of a file with its extension, and perhaps a line."""
_MOST_NEAR = 2
_MOST_CALLED = 5


def is_source_query(query: str) -> bool:
    """Return True if a query is written as a source file, or a line of one."""
    return _QUERY.fullmatch(query) is not None


def find_sources(query: str, sources: Iterable[str], origins: Iterable[Origin], module: str) -> set[str]:
    """Return the source lines that a query names; a file names all of its lines.

    A path may begin at any folder, and `*` is any text. Raise NoSuchInstructionError if there is none. It names the lines
    that the queried line calls by the stacks of `origins`, else the nearest lines.
    """
    sources = set(sources)
    matching = {source for source in sources if _matches(query, source)}
    if not matching:
        hint = _called(query, origins) or _nearest(query, sources)
        raise NoSuchInstructionError(f"no instruction of {module} is from {query}{hint}")
    return matching


def _called(query: str, origins: Iterable[Origin]) -> str:
    """Return the source lines that have a line of the query further out in their call stacks."""
    called = {origin.source for origin in origins if any(_matches(query, line.place) for line in origin.stack)}
    more = f" and {len(called) - _MOST_CALLED} more" if len(called) > _MOST_CALLED else ""
    return f" itself; it calls {', '.join(sorted(called, key=_by_line)[:_MOST_CALLED])}{more}" if called else ""


def _matches(query: str, source: str) -> bool:
    text = source if _split(query)[1] else _split(source)[0]
    return fnmatchcase(text, query) or fnmatchcase(text, f"*/{query}")


def _split(source: str) -> tuple[str, str]:
    """Return the file and the line of a source line; the line is empty if there is none."""
    file, _, line = source.rpartition(":")
    return (file, line) if file and line.isdigit() else (source, "")


def _by_line(source: str) -> tuple[str, int]:
    file, line = _split(source)
    return file, int(line or 0)


def _nearest(query: str, sources: set[str]) -> str:
    """Return the lines of the same file that are nearest to the one of a query, else files with a similar name."""
    file, line = _split(query)
    lines = [(abs(int(own) - int(line)), source) for source in sources if (own := _split(source)[1]) and line]
    of_file = sorted((distance, source) for distance, source in lines if _matches(file, source))
    if of_file:
        return f"; the nearest lines are {' and '.join(source for _, source in of_file[:_MOST_NEAR])}"
    names = {_split(source)[0].rpartition("/")[2] for source in sources}
    return did_you_mean(file, names) or "; `cost` lists the source lines"
