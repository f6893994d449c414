"""The phase of each instruction of a training step, and its source.

Metadata decides if it is the instruction's own, else the graph of values. A fusion without both has the phase of the names in
its computation. The graph is read on first use, and not at all if names decide everything.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.phases.names import NOT_CALLED, NamedContext, NamedPhases, OpNamePhase, latest_phase
from hlo_inspect.analysis.provenance import PHASE_ORDER, InstructionPhase, PhaseSource, Provenances
from hlo_inspect.figure import Quantity, add, least, multiply
from hlo_inspect.graph.calls import CallGraph, place
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import CALLING_OPCODES, LITERAL_OPCODES
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.analysis.phases.graph_phases import GraphPhases
    from hlo_inspect.graph.value_graph import CallFrame
    from hlo_inspect.graph.view import InstructionPlace, View, Views
    from hlo_inspect.hlo.module import Module

WANTS = Wants(graph=True, entry=True)
"""Parts of a module that the graph needs: all instructions, the entry's parameters and outputs."""

_PhaseOfRow = Callable[[int], InstructionPhase | None]

_NAME: PhaseSource = "name"
_GRAPH: PhaseSource = "graph"


class _NamedPhase(NamedTuple):
    """The phase of an instruction by names, and whether they decide it in all calls of its computation.

    Else `calls` holds the calls in the step that the graph has, each with its phase by names and its runs.
    """

    phase: InstructionPhase
    is_decided: bool
    calls: Sequence[tuple[CallFrame, str, Quantity]]


class PhaseAnalyses(Protocol):
    """The analyses of a module that decide phases, each made on first use."""

    @property
    def module(self) -> Module: ...
    @property
    def provenances(self) -> Provenances: ...
    @property
    def call_graph(self) -> CallGraph: ...
    @property
    def collectives(self) -> list[Collective]: ...
    @property
    def views(self) -> Views: ...
    @property
    def graph_phases(self) -> GraphPhases | None:
        """The phases by the graph; None if the graph is not to be used."""

    def has_merged_recomputation(self) -> bool:
        """Return True if names of the recomputation stand on the forward pass."""


class Phases:
    """The phases of a module's instructions, shared by all analyses."""

    def __init__(self, analyses: PhaseAnalyses, *, seeks_all: bool) -> None:
        """Report phases that op_names do not decide as `NOT_SOUGHT` unless `seeks_all`. `analyses` end no earlier."""
        self._analyses = analyses
        self._seeks_all = seeks_all
        self._collectives = analyses.collectives
        self._of_collectives: dict[InstructionPlace, InstructionPhase] = {}
        self._named: dict[tuple[str, OpNamePhase, str | None], _NamedPhase] = {}
        self._open_collectives: set[InstructionPlace] = set()  # their phase by names is unknown
        self._contexts: dict[int, NamedContext] = {}

    @cached_property
    def names(self) -> NamedPhases:
        """The phases by names."""
        analyses = self._analyses
        is_merged = lambda: analyses.has_merged_recomputation()  # noqa: E731, PLW0108 - the method would hold the analyses
        return NamedPhases(analyses.module, analyses.provenances, analyses.call_graph, self._collectives, is_merged)

    def for_instruction(self, instruction: Instruction) -> InstructionPhase:
        """Return the phase of an instruction."""
        phase = self._find(place(instruction), self.names.own(instruction))
        if phase.phase != UNKNOWN or instruction.opcode != "fusion" or instruction.attr("metadata") is not None:
            return phase
        of_contents = self._phase_of_contents(instruction)
        return phase if of_contents == UNKNOWN else phase._replace(phase=of_contents, phase_from="name")

    def of_row(self, view: View, row: int) -> InstructionPhase | None:
        """Return the phase of a row; None if its operands are not closed.

        Only an unusual row, or a fusion without a phase, needs its instruction.
        """
        opcode = view.opcodes[row]
        if view.whole_operands(row) is not None and opcode not in LITERAL_OPCODES:
            phase = self._find(view.place(row), self.names.own_name(view.metadata(row)))
            if phase.phase != UNKNOWN or opcode != "fusion":
                return phase
        try:
            return self.for_instruction(view.instruction(row))
        except tokens.ScanError:
            return None

    def of_rows(self, view: View, rows: Iterable[int]) -> list[InstructionPhase | None]:
        """Return the phase of each of some rows of a computation, as `of_row`.

        What decides the phase of most rows is found once for equal metadata.
        """
        unusual = LITERAL_OPCODES | self.names.opcodes_of_collectives
        opcodes, keys, is_closed = view.opcodes, view.metadata_keys, view.rows.extent is not None
        by_metadata: dict[Hashable, _PhaseOfRow] = {}
        by_own_name: dict[OpNamePhase, _PhaseOfRow] = {}
        phases = []
        for row in rows:
            usual_phase = by_metadata.get(keys[row])
            if usual_phase is None:
                own = self.names.own_name(view.similar_metadata(row))
                usual_phase = by_own_name.get(own) or by_own_name.setdefault(own, self._usual_phase(view, own))
                by_metadata[keys[row]] = usual_phase
            is_usual = opcodes[row] not in unusual and (is_closed or view.whole_operands(row) is not None)
            phases.append((usual_phase(row) if is_usual else None) or self.of_row(view, row))
        return phases

    def _usual_phase(self, view: View, own: OpNamePhase) -> _PhaseOfRow:
        """Return the phase of rows of one own name as a function of the row; it returns None if only `of_row` knows."""
        named, opcodes = self._find_named((view.computation.name, 0, ""), own), view.opcodes
        if named.is_decided or not named.calls:
            phase = named.phase
            return lambda row: phase if phase.phase != UNKNOWN or opcodes[row] != "fusion" else None
        (frame, by_name, _), graph = named.calls[0], self._analyses.graph_phases
        if graph is None or len(named.calls) > 1 or by_name != UNKNOWN or frame.view is not view or view.ambiguous:
            return lambda _: None
        values, phases = frame.values, graph.phases

        def by_graph(row: int) -> InstructionPhase | None:
            value = values[row]
            if isinstance(value, int) and opcodes[row] not in CALLING_OPCODES:  # as most
                return _phase(phases[value], _GRAPH)
            phase = graph.of_row(frame, row)
            return _phase(phase, _GRAPH) if phase != UNKNOWN or opcodes[row] != "fusion" else None

        return by_graph

    def _find_named(self, key: InstructionPlace, own: OpNamePhase) -> _NamedPhase:
        """Return the phase by names of the instruction at a place, one for all of a computation; collectives also by phase."""
        kind = key[0], own, self.names.of_collective(key)
        named = self._named.get(kind)
        if named is None:
            named = self._named[kind] = self._in_calls(key, own)
        return named

    def _find(self, key: InstructionPlace, own: OpNamePhase) -> InstructionPhase:
        """Return the phase of the instruction at a place, with the phase by its metadata."""
        if self.names.is_collective(key):  # its phase depends on the others too
            phase = self._of_collectives.get(key)
            if phase is None:
                named = self._find_named(key, own)
                self._open_collectives.update([] if named.is_decided else [key])
                phase = self._of_collectives[key] = self._with_graph(named, key, own)
            return phase
        named = self._find_named(key, own)
        return named.phase if named.is_decided else self._with_graph(named, key, own)

    def _phase_of_contents(self, fusion: Instruction) -> str:
        """Return the phase of the names in a fused computation: if they differ, the later one of forward and backward."""
        view = self._analyses.views.find(fusion.callee("calls"))
        if view is None:
            return UNKNOWN
        return latest_phase({self.names.own_name(view.metadata(row)).phase for row in range(len(view.names))} - {UNKNOWN})

    @cached_property
    def of_collectives(self) -> list[InstructionPhase]:
        """The phase of each collective.

        A named collective can serve another phase too. The graph shows it if names leave the phase of a collective unknown.
        """
        if not self._collectives:
            return []
        are_unnamed = all(collective.inner.attr("metadata") is None for collective in self._collectives)
        if self._seeks_all and are_unnamed and self._analyses.graph_phases is None:
            return [_phase(UNKNOWN, "")] * len(self._collectives)
        phases = [self.for_instruction(collective.inner) for collective in self._collectives]
        are_named = self._open_collectives.isdisjoint(place(collective.inner) for collective in self._collectives)
        graph = None if are_named else self._analyses.graph_phases
        if graph is None or not graph.phases:
            return phases
        return [
            self._with_other_phase(graph, collective.inner, phase) if phase.phase_from == "name" else phase
            for collective, phase in zip(self._collectives, phases, strict=True)
        ]

    def graph_phase(self, instruction: Instruction) -> str:
        """Return the phase by the graph in the first call of an instruction's computation. Its name does not count."""
        graph, key = self._analyses.graph_phases, place(instruction)
        calls = graph.calls_of(key) if graph is not None else []
        if graph is None or not calls:
            return UNKNOWN
        return graph.of_collective(*calls[0]) if self.names.is_collective(key) else graph.of_row(*calls[0])

    @staticmethod
    def _with_other_phase(graph: GraphPhases, instruction: Instruction, named: InstructionPhase) -> InstructionPhase:
        both = set[str]()
        for call in graph.calls_of(place(instruction))[:1]:
            phase = graph.of_collective(*call)
            both = {phase, graph.other_phase(*call, phase)}
        other = both - {named.phase, "", UNKNOWN}
        return named._replace(also_phase=other.pop()) if named.phase in both and other else named

    def _in_calls(self, key: InstructionPlace, own: OpNamePhase) -> _NamedPhase:
        """Return the phase by names in all calls of the instruction's computation.

        If names do not decide it and `seeks_all` is false, the phase is `NOT_SOUGHT`.
        """
        contexts = self.names.contexts.get(key[0], NOT_CALLED)
        phases = [(self.names.phase_of(key, own, context.phase), context.runs) for context in contexts]
        is_decided = self.names.is_sure(key, own) and all(phase != UNKNOWN for phase, _ in phases)
        by_name = _most_run(phases, "name") if is_decided or self._seeks_all else _NOT_SOUGHT
        graph = None if is_decided else self._analyses.graph_phases
        calls = []
        if graph is not None:
            for frame in graph.frames_of(key[0]):
                around, runs = self._context(graph, frame)
                calls.append((frame, self.names.phase_of(key, own, around), runs))
        return _NamedPhase(by_name, is_decided, calls)

    def _with_graph(self, named: _NamedPhase, key: InstructionPlace, own: OpNamePhase) -> InstructionPhase:
        """Return the phase by names and graph over all calls of the instruction's computation in the step.

        Without such a call, or without the instruction in it, only names count.
        """
        graph = self._analyses.graph_phases if named.calls else None
        row = named.calls[0][0].view.row_at(*key[1:]) if graph is not None else None
        if graph is None or row is None:
            return named.phase
        is_collective, is_sure = self.names.is_collective(key), self.names.is_sure(key, own)
        if len(named.calls) == 1 and named.calls[0][1] == UNKNOWN and not is_collective:  # as most
            return _phase(graph.of_row(named.calls[0][0], row), _GRAPH)
        phases: list[tuple[str, Quantity]] = []
        sources: set[PhaseSource] = set()
        also_phase = ""
        for frame, by_name, runs in named.calls:
            phase, source = by_name, _NAME
            if phase == UNKNOWN or not is_sure:
                by_graph = graph.of_collective(frame, row) if is_collective else graph.of_row(frame, row)
                if phase == UNKNOWN or by_graph == RECOMPUTE:
                    phase, source = by_graph, _GRAPH
                    also_phase = graph.other_phase(frame, row, by_graph) if is_collective else ""
            phases.append((phase, runs))
            sources.add(source)
        phase_of_most = _most_run(phases, _GRAPH if _GRAPH in sources else _NAME)
        return phase_of_most._replace(also_phase=also_phase) if also_phase else phase_of_most

    def _context(self, graph: GraphPhases, frame: CallFrame) -> NamedContext:
        """Return the phase by names of the calls around one call of a computation, and its number of runs."""
        around = [frame]  # and the calls around it, the outermost last
        while around[-1].number not in self._contexts and around[-1].caller is not None:
            around.append(graph.graph.frames[around[-1].caller[0]])
        for call in reversed(around):
            if call.number not in self._contexts:
                self._contexts[call.number] = self._context_in_its_caller(graph, call)
        return self._contexts[frame.number]

    def _context_in_its_caller(self, graph: GraphPhases, frame: CallFrame) -> NamedContext:
        name = frame.name
        if frame.caller is None:
            return NamedContext(UNKNOWN, self._analyses.call_graph.runs(name))
        number, row = frame.caller
        around, caller = self._contexts[number], graph.graph.frames[number].view.instruction(row)
        times = self._times.get((*place(caller), name), 1)
        return NamedContext(self.names.handed_on(caller, around.phase), multiply(around.runs, times))

    @cached_property
    def _times(self) -> dict[tuple[str, int, str, str], Quantity]:
        """Runs of the callee in each run of a call."""
        calls = chain.from_iterable(self._analyses.call_graph.calls.values())
        return {(*place(call.instruction), call.callee): call.times for call in calls}


_NOT_SOUGHT = InstructionPhase(NOT_SOUGHT)


@cache
def _phase(phase: str, source: PhaseSource) -> InstructionPhase:
    """Return the shared object of a phase without a second phase and without runs in several phases."""
    return InstructionPhase(phase, source if phase != UNKNOWN else "")


def _most_run(phases: Sequence[tuple[str, Quantity]], source: PhaseSource) -> InstructionPhase:
    """Return the phase that runs an instruction most; if several do, the first of a step."""
    if len(phases) == 1:
        return _phase(phases[0][0], source)
    runs: dict[str, Quantity] = {}
    for phase, amount in phases:
        runs[phase] = add(runs.get(phase, 0), amount)
    phase = min(runs, key=lambda name: (-least(runs[name]), PHASE_ORDER.index(name)), default=UNKNOWN)
    return InstructionPhase(phase, source if phase != UNKNOWN else "", "", tuple(runs.items()) if len(runs) > 1 else ())
