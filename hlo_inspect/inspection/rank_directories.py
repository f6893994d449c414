"""The ranks of a job: the directories that a pattern names, and what it matched in each."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.compare.programs.rank_sets import rank_order
from hlo_inspect.errors import InputError, Location, UsageError, reading
from hlo_inspect.lazy_pattern import lazy_pattern

RANK = "{rank}"
_WILD = lazy_pattern(r"\{rank\}|\*")
_MODULE_FOLDER = lazy_pattern(r"(?:\d+\.)?module_\d{4,18}\..*", re.ASCII | re.DOTALL)


class RankDirectory(NamedTuple):
    """The dump of one rank: a directory, or a file."""

    label: str
    path: Path


def rank_directories(arguments: Sequence[str]) -> list[RankDirectory]:
    """Return the ranks that the arguments name, in order.

    These are a pattern with `{rank}` or `*`, a directory of directories, or several directories. Raise InputError if there is
    none, UsageError if two have one name.
    """
    if len(arguments) > 1:
        ranks = _sorted(RankDirectory(Path(argument).name or argument, Path(argument)) for argument in arguments)
    else:
        ranks = _of_argument(arguments[0])
    labels = [rank.label for rank in ranks]
    for first, second in pairwise(ranks):
        if first.label == second.label:
            raise UsageError(f"{first.path} and {second.path} are both rank {first.label!r}; name it with {RANK}")
    if not labels:
        raise InputError(f"no directory fits this pattern; `dumps/{RANK}` fits dumps/0, dumps/1, …", Location(arguments[0]))
    return ranks


def _of_argument(argument: str) -> list[RankDirectory]:
    if RANK in argument or (glob.has_magic(argument) and not Path(argument).exists()):
        return _sorted(_matches(argument))
    root = Path(argument)
    if not root.is_dir():
        what = "is a file" if root.exists() else "there is no such directory"
        raise InputError(
            f"{what}; `ranks` reads a directory for each rank: a pattern such as 'dumps/{RANK}'", Location(argument)
        )
    with reading(argument):
        paths = list(root.iterdir())
    if any(_MODULE_FOLDER.fullmatch(path.name) for path in paths):
        raise InputError(f"is the dump of one rank; name all of them with a pattern such as 'dumps/{RANK}'", Location(argument))
    return _sorted(RankDirectory(path.name, path) for path in paths if path.is_dir())


def _matches(pattern: str) -> Iterator[RankDirectory]:
    """Yield the paths that fit a pattern. `{rank}`, or each `*` without it, is the rank; else the name of the directory is."""
    marks, texts = _WILD.findall(pattern), _WILD.split(pattern)
    wild = "*".join(map(glob.escape, texts)) if marks else pattern
    parts = [re.escape(texts[0])]
    for mark, text in zip(marks, texts[1:], strict=True):
        parts += [r"([^/]*)" if mark == RANK or RANK not in marks else r"[^/]*", re.escape(text)]
    expression = re.compile("".join(parts), re.DOTALL)
    for path in glob.glob(wild):  # noqa: PTH207 - an absolute pattern has no folder to start in
        match = expression.fullmatch(path)
        label = "/".join(dict.fromkeys(match.groups())) if match is not None else ""
        yield RankDirectory(label or Path(path).name, Path(path))


def _sorted(ranks: Iterable[RankDirectory]) -> list[RankDirectory]:
    return sorted(ranks, key=lambda rank: rank_order(rank.label))
