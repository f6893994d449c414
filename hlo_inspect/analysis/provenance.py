"""Provenance of instructions by their metadata, found once for equal metadata, and the labels of costs.

Unrolled layers have the same names except for a number, `jvp(layers_3)` and `jvp(layers_4)`. Results that do not depend on the
number are found once for all layers. This module declares the phase of an instruction, as analyses and tables pass it on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from hlo_inspect.figure import Quantity
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

if TYPE_CHECKING:
    from hlo_inspect.graph.view import View


class Provenance(NamedTuple):
    """The source of an instruction.

    `phase` is the one of its own metadata, `folded` the scopes that the program named. `scope` is the scope of its `op_name`
    with 0 for each layer number.
    """

    origin: Origin
    scope: Scope
    phase: str
    folded: str


class Provenances:
    """The provenance of each metadata of a module, with the tables of stack frames to which metadata points."""

    def __init__(self, frames: StackFrames) -> None:
        self.frames = frames
        self._by_metadata: dict[Metadata, Provenance] = {}
        self._parts_by_name: dict[tuple[str, str], tuple[Scope, str, str]] = {}

    def get(self, metadata: Metadata) -> Provenance:
        provenance = self._by_metadata.get(metadata)
        if provenance is None:
            origin = origin_of(metadata, self.frames)
            name, innermost = without_layer_numbers(origin.op_name), origin.innermost
            parts = self._parts_by_name.get((name, innermost))
            if parts is None:
                scope = scope_of(name)
                parts = self._parts_by_name[name, innermost] = scope, phase_of(innermost, scope), "/".join(scope.folded)
            provenance = self._by_metadata[metadata] = Provenance(origin, *parts)
        return provenance


PHASE_ORDER = (FORWARD, LOSS, RECOMPUTE, BACKWARD, OPTIMIZER, UNKNOWN)
"""The phases in the order of a step."""

PhaseSource = Literal["name", "graph", ""]
"""The source of a phase: the metadata, the graph of values, or nothing."""


class InstructionPhase(NamedTuple):
    """The phase of an instruction, of `op_names.PHASES`, its source, and the other phase that uses the instruction too.

    `also_phase` is empty if there is none. If calls of its computation are in several phases, `runs` holds the runs in each;
    else it is empty.
    """

    phase: str = UNKNOWN
    phase_from: PhaseSource = ""
    also_phase: str = ""
    runs: tuple[tuple[str, Quantity], ...] = ()


# -- labels of a cost: kind of fusion, phase, source line, scope ---------------------------------------------------------------


NOT_PRINTED = "(not printed)"
"""The source of an instruction without metadata, and the kind of a fusion whose text lacks it or the computation."""
NOT_FUSED = "(not a fusion)"
NO_SCOPE = "(no named scope)"
"""The scope of an instruction whose `op_name` has no scope that the program named, or joins several."""

_FUSIONS = opcodes_that_call("fused")
_SINGLE = 64
"""Rows of a computation that are labelled one by one. Many of a computation with phases are faster all at once."""


class Labels(NamedTuple):
    """The labels of a cost.

    `kind` is the kind of a fusion, `source` is `file:line`, `scope` the `op_name` folded as in `Scope.folded`. `phase_runs`
    holds the runs in each phase if there are several.
    """

    kind: str
    phase: str
    source: str
    op_name: str = ""
    scope: str = NOT_PRINTED
    phase_from: PhaseSource = ""
    phase_runs: tuple[tuple[str, Quantity], ...] = ()


def scope_label(provenance: Provenance | None) -> str:
    """Return the scope of an instruction, `NOT_PRINTED` without metadata."""
    if provenance is None or not provenance.origin.op_name:
        return NOT_PRINTED
    return provenance.folded or NO_SCOPE


def printed(label: str) -> str:
    """Return a label of the text, empty if it has none."""
    return "" if label == NOT_PRINTED else label


PhasesOf: TypeAlias = "Callable[[View, Sequence[int]], Sequence[InstructionPhase | None]]"
"""Callback that returns the phase of each of some rows of a computation."""


class Labeller:
    """Labels rows by their attributes, and by the phases that `phases_of` adds."""

    def __init__(self, provenances: Provenances, phases_of: PhasesOf | None = None) -> None:
        self._provenances = provenances
        self._phases_of = phases_of
        self._by_metadata: dict[tuple[str, Metadata | None, InstructionPhase | None], Labels] = {}
        self._by_row: defaultdict[str, dict[int, Labels]] = defaultdict(dict)
        self._phases: dict[str, tuple[Sequence[int], Sequence[InstructionPhase | None]]] = {}

    def get(self, view: View, index: int) -> Labels:
        """Return the labels of a row."""
        shared, op_name = self.shared(view, index), view.op_name(index)
        return shared if op_name == shared.op_name else shared._replace(op_name=op_name)

    def shared(self, view: View, index: int) -> Labels:
        """Return the labels of a row, but for an `op_name` of a row that differs in layer numbers only: those share an object.

        They are computed on first use, since a phase may need the graph of values.
        """
        by_row = self._by_row[view.computation.name]
        if index not in by_row:
            rows, _ = self._phases.get(view.computation.name, ((), ()))
            if len(rows) > len(by_row) >= _SINGLE:  # they are not labelled yet: all at once, as others will be asked too
                self.of_rows(view, rows)
        return by_row[index] if index in by_row else self.of_rows(view, (index,))[0]

    def of_rows(self, view: View, rows: Sequence[int]) -> list[Labels]:
        """Return the `shared` labels of each of some rows of a computation."""
        opcodes, keys = view.opcodes, view.metadata_keys
        by_key: dict[Hashable, Labels] = {}
        labels = []
        for row, phase in zip(rows, self._phases_of_rows(view, rows), strict=True):
            kind = NOT_FUSED if opcodes[row] not in _FUSIONS else kind_of_fusion(view, row)
            key = kind, keys[row], id(phase)  # `phases` keeps the objects
            of_row = by_key.get(key)
            if of_row is None:
                of_row = by_key[key] = self._with_phase(view.similar_metadata(row), phase, kind)
            labels.append(of_row)
        self._by_row[view.computation.name].update(zip(rows, labels, strict=True))
        return labels

    def phases(self, view: View, rows: Sequence[int]) -> Iterator[InstructionPhase]:
        """Yield the phase of each of some rows of a computation, as their labels have it."""
        for row, phase in zip(rows, self._phases_of_rows(view, rows), strict=True):
            yield phase or InstructionPhase(self.named(view, row).phase)

    def _phases_of_rows(self, view: View, rows: Sequence[int]) -> Sequence[InstructionPhase | None]:
        """Return the phases that `phases_of` gives. Those of most rows of a computation are kept."""
        if self._phases_of is None:
            return [None] * len(rows)
        before, phases = self._phases.get(view.computation.name, ((), ()))
        if before is rows:
            return phases
        phases = self._phases_of(view, rows)
        if len(rows) > len(before):
            self._phases[view.computation.name] = rows, phases
        return phases

    def named(self, view: View, index: int) -> Labels:
        """Return the labels of a row with the phase of its own name."""
        return self._with_phase(view.metadata(index), None, kind_of_fusion(view, index))

    def named_phases(self, view: View, rows: Iterable[int]) -> Iterator[str]:
        """Yield the phases of the own names of rows, once for rows of equal metadata."""
        keys = view.metadata_keys
        for row in {keys[row]: row for row in rows}.values():
            metadata = view.similar_metadata(row)
            yield UNKNOWN if metadata is None else self._provenances.get(metadata).phase

    def _with_phase(self, metadata: Metadata | None, phase: InstructionPhase | None, kind: str) -> Labels:
        """Return the labels of metadata in a phase, one object for all rows of the same kind, metadata and phase."""
        labels = self._by_metadata.get((kind, metadata, phase))
        if labels is None:
            provenance = self._provenances.get(metadata) if metadata is not None else None
            labels = self._by_metadata[kind, metadata, phase] = _labels(kind, provenance, phase)
        return labels


def _labels(kind: str, provenance: Provenance | None, phase: InstructionPhase | None) -> Labels:
    """Return the labels of a kind and provenance; without a phase, use the phase of the instruction's own name."""
    origin, named = (Origin(), UNKNOWN) if provenance is None else (provenance.origin, provenance.phase)
    decided = phase or InstructionPhase(named)
    source, scope = origin.source or NOT_PRINTED, scope_label(provenance)
    return Labels(kind, decided.phase, source, origin.op_name, scope, decided.phase_from, decided.runs)


def kind_of_fusion(view: View, index: int) -> str:
    """Return the kind of a fusion, `NOT_FUSED` for other instructions.

    `NOT_PRINTED` if the text lacks the kind or the computation.
    """
    if view.opcodes[index] not in _FUSIONS:
        return NOT_FUSED
    printed = view.printed_fusions.get(index)
    if printed is not None and printed[0]:  # as most
        return printed[0]
    return (view.called_at(index) and view.fusion_kind(index)) or NOT_PRINTED
