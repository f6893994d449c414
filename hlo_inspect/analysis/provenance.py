"""What the metadata of a module's instructions says, each found once for all that have the same; and the labels of a cost.

Layers that are written out have the same names but for a number, `jvp(layers_3)` and `jvp(layers_4)`: what such a number does
not matter for is found once for all of them. The phase of an instruction, as analyses and tables hand it on, is declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from hlo_inspect.graph.calls import Bounds
from hlo_inspect.graph.view import View
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.opcodes import opcodes_that_call
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


# -- what a cost is attributed to: kind of fusion, phase, line of source, scope ------------------------------------------------


NOT_PRINTED = "(not printed)"
"""The source of an instruction without metadata, and the kind of a fusion whose text lacks it or the computation."""
NOT_FUSED = "(not a fusion)"
NO_SCOPE = "(no named scope)"
"""The scope of an instruction whose `op_name` has no scope that the program named, or joins several."""

_FUSIONS = opcodes_that_call("fused")


class Labels(NamedTuple):
    """The kind of a fusion, the phase, `file:line`, the `op_name` with its scopes folded as `Scope.folded` has them, what told
    the phase, and how often it runs in each where that is in several phases.
    """

    kind: str
    phase: str
    source: str
    op_name: str = ""
    scope: str = NOT_PRINTED
    phase_from: PhaseSource = ""
    phase_runs: tuple[tuple[str, Bounds], ...] = ()


def scope_label(provenance: Provenance | None) -> str:
    """The scope of an instruction, of one without metadata `NOT_PRINTED`."""
    if provenance is None or not provenance.origin.op_name:
        return NOT_PRINTED
    return provenance.folded or NO_SCOPE


def printed(label: str) -> str:
    """A label of the text, nothing where it has none."""
    return "" if label == NOT_PRINTED else label


PhaseOf = Callable[[View, int], InstructionPhase | None]


class Labeller:
    """Labels rows by what their attributes say, and by what more `phase_of` knows of their phases."""

    def __init__(self, provenances: Provenances, phase_of: PhaseOf | None = None) -> None:
        self._provenances = provenances
        self._phase_of = phase_of
        self._alike: dict[tuple[str, Metadata | None, InstructionPhase | None], Labels] = {}
        self._known: dict[tuple[str, int], Labels] = {}

    def of(self, view: View, index: int) -> Labels:
        """The labels of a row; worked out when they are first asked for, since a phase may need the graph of values."""
        key = (view.computation.name, index)
        known = self._known.get(key)
        if known is None:
            phase = self._phase_of(view, index) if self._phase_of is not None else None
            known = self._known[key] = self._with_phase(view, index, phase)
        return known

    def named(self, view: View, index: int) -> Labels:
        """The labels of a row with the phase of its own name."""
        return self._with_phase(view, index, None)

    def _with_phase(self, view: View, index: int, phase: InstructionPhase | None) -> Labels:
        """The labels of a row in a phase, one object for all rows of the same kind, metadata and phase."""
        kind = kind_of_fusion(view, index)
        metadata = view.metadata(index)
        known = self._alike.get((kind, metadata, phase))
        if known is None:
            provenance = self._provenances.of(metadata) if metadata is not None else None
            known = self._alike[kind, metadata, phase] = _labels(kind, provenance, phase)
        return known


def _labels(kind: str, provenance: Provenance | None, phase: InstructionPhase | None) -> Labels:
    """The labels of what is of a kind and comes from there; without a phase in the one of its own name."""
    origin, named = (Origin(), UNKNOWN) if provenance is None else (provenance.origin, provenance.phase)
    found = phase or InstructionPhase(named)
    source, scope = origin.source or NOT_PRINTED, scope_label(provenance)
    return Labels(kind, found.phase, source, origin.op_name, scope, found.phase_from, found.runs)


def kind_of_fusion(view: View, index: int) -> str:
    """The kind of a fusion, `NOT_PRINTED` where the text lacks it or the computation, and `NOT_FUSED` of what is no fusion."""
    if view.opcodes[index] not in _FUSIONS:
        return NOT_FUSED
    printed = view.printed_fusions.get(index)
    if printed is not None and printed[0]:  # as most
        return printed[0]
    try:
        return (view.called(index) and view.fusion_kind(index)) or NOT_PRINTED
    except tokens.ScanError:
        return NOT_PRINTED
