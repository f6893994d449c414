"""The phase of one instruction, as analyses and tables hand it on."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hlo_inspect.graph.calls import Bounds
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, OPTIMIZER, RECOMPUTE, UNKNOWN

PHASE_ORDER = (FORWARD, LOSS, RECOMPUTE, BACKWARD, OPTIMIZER, UNKNOWN)
"""The phases as they follow each other in a step."""

PhaseSource = Literal["name", "graph", ""]
"""What decided a phase: the metadata, the graph of values, or nothing."""


class InstructionPhase(NamedTuple):
    """One of `op_names.PHASES`, what decided it, and the other phase that uses the instruction too, empty where there is none.

    `runs`: where calls of its computation are in several phases, how often it runs in each; else empty.
    """

    phase: str = UNKNOWN
    phase_from: PhaseSource = ""
    also_phase: str = ""
    runs: tuple[tuple[str, Bounds], ...] = ()
