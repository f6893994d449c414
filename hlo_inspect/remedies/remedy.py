"""Edits that mend what a finding reports, and those that cannot be tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Finding

Edit = Mapping[str, Any]
"""An edit for the compiler's process, as plain data: `kind`, and what it changes."""

_ROOT = lazy_pattern(r"[A-Za-z_]\w*+")


class Remedy(NamedTuple):
    """Mending of a finding: in words, as edits of the StableHLO, and the line of Python to write."""

    words: str
    edits: tuple[Edit, ...]
    line: str


class CannotBeTriedError(Exception):
    """A finding has no remedy that can be written into the program; the text says why."""


FindRemedy = Callable[[Context, Finding, Description], Remedy]
"""Return the remedy of a finding on a module, for the StableHLO that it was compiled from. Raise CannotBeTriedError."""


class Argument(NamedTuple):
    """An argument of the StableHLO: its number, its name in Python (empty if the text has none) and its dimensions."""

    number: int
    name: str
    dimensions: tuple[int, ...]

    @property
    def root(self) -> str:
        """The argument of the Python function that it is a part of: `w` of `w['head']`."""
        match = _ROOT.match(self.name)
        return match[0] if match is not None else ""

    def __str__(self) -> str:
        return self.name or f"argument {self.number}"


def argument_of(leaf: ParameterLeaf, description: Description) -> Argument:
    """Return the argument that a parameter of the compiled program was. Raise CannotBeTriedError if it cannot be told."""
    if leaf.index:
        raise CannotBeTriedError(f"parameter {leaf.number} is a tuple: the argument of its array cannot be told")
    return argument(leaf.number, description)


def argument(number: int, description: Description) -> Argument:
    """Return the argument of this number. Raise CannotBeTriedError if there is none."""
    if number >= len(description.arguments):
        raise CannotBeTriedError(f"the StableHLO has {len(description.arguments)} arguments, and none of number {number}")
    own = description.arguments[number]
    return Argument(number, own.get("name", ""), tuple(own["dimensions"]))


def argument_numbers(arguments: Iterable[Argument], description: Description) -> tuple[int, ...]:
    """Return the positions in the Python function that these arguments are parts of; none if the text has no names."""
    roots = list(dict.fromkeys(argument(number, description).root for number in range(len(description.arguments))))
    return tuple(sorted({roots.index(own.root) for own in arguments if own.root})) if "" not in roots else ()
