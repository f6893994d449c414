"""The parts of a module by which executions are nested and runs are separated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ProgramOutline(NamedTuple):
    """The instructions of a program that can be executed, by name.

    `computations` has the computation of each instruction, a number. `held` has the computations that each while, call and
    conditional runs, directly or through others. `starts` has the start of each done. `collectives` are the instructions whose
    executions on several devices belong together.
    """

    computations: Mapping[str, int]
    entry: int = 0
    held: Mapping[str, frozenset[int]] = {}
    starts: Mapping[str, str] = {}
    collectives: frozenset[str] = frozenset()


NO_OUTLINE = ProgramOutline({})
