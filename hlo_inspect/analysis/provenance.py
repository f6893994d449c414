"""What the metadata of a module's instructions says, each found once for all that have the same.

Layers that are written out have the same names but for a number, `jvp(layers_3)` and `jvp(layers_4)`: what such a number does
not matter for is found once for all of them. The phase of an instruction, as analyses and tables hand it on, is declared here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from hlo_inspect.graph.calls import Bounds
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import (
    BACKWARD,
    FORWARD,
    LOSS,
    OPTIMIZER,
    RECOMPUTE,
    UNKNOWN,
    Origin,
    Scope,
    StackFrames,
    origin_of,
    phase_of,
    scope_of,
    without_layer_numbers,
)


class Provenance(NamedTuple):
    """Where an instruction comes from. `phase` is what its metadata says by itself, `folded` the scopes that the program named.

    `scope` is that of its `op_name` with 0 for each number of a layer.
    """

    origin: Origin
    scope: Scope
    phase: str
    folded: str


class Provenances:
    """What each metadata of a module says, with the tables of stack frames that it points into."""

    def __init__(self, frames: StackFrames) -> None:
        self.frames = frames
        self._known: dict[Metadata, Provenance] = {}
        self._alike: dict[tuple[str, str], tuple[Scope, str, str]] = {}

    def of(self, metadata: Metadata) -> Provenance:
        known = self._known.get(metadata)
        if known is None:
            found = origin_of(metadata, self.frames)
            name, innermost = without_layer_numbers(found.op_name), found.innermost
            said = self._alike.get((name, innermost))
            if said is None:
                scope = scope_of(name)
                said = self._alike[name, innermost] = scope, phase_of(innermost, scope), "/".join(scope.folded)
            known = self._known[metadata] = Provenance(found, *said)
        return known


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
