"""The phase of each instruction of a training step, and from where it is known.

Metadata decides where it is the instruction's own; what it leaves open the graph of values decides. The graph is read when it
is first needed, and not where names decide everything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.phases.names import NOT_CALLED, NamedContext, NamedPhases, OwnName
from hlo_inspect.analysis.provenance import PHASE_ORDER, InstructionPhase, PhaseSource, Provenances
from hlo_inspect.graph.calls import ONCE, Bounds, CallGraph, InstructionPlace, place
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT, RECOMPUTE, UNKNOWN
from hlo_inspect.hlo.wants import Wants

if TYPE_CHECKING:
    from hlo_inspect.analysis.phases.graph_phases import GraphPhases
    from hlo_inspect.graph.value_graph import CallFrame
    from hlo_inspect.graph.view import View

WANTS = Wants(graph=True, entry=True)
"""What has to be kept of a module for the graph: all of it, and what the entry takes and gives."""

GraphSource = Callable[[], "GraphPhases | None"]
"""Gives the phase by the graph, `None` where the graph is not to be used."""


class Phases:
    """The phases of a module's instructions; the same for whoever asks."""

    def __init__(
        self,
        module: Module,
        provenances: Provenances,
        calls: CallGraph,
        collectives: Sequence[Collective],
        graph: GraphSource,
        *,
        seeks_all: bool = True,
    ) -> None:
        """Phases that names leave open are `NOT_SOUGHT` unless this object `seeks_all`."""
        self.names = NamedPhases(module, provenances, calls, collectives)
        self._calls = calls
        self._graph = graph
        self._seeks_all = seeks_all
        self._collectives = collectives
        self._known: dict[InstructionPlace, InstructionPhase] = {}
        self._named: dict[tuple[str, OwnName], tuple[InstructionPhase, bool]] = {}  # of a computation, by what names say
        self._open_collectives: set[InstructionPlace] = set()  # which names leave open, by their place
        self._of_metadata: dict[tuple[str, Metadata | None], InstructionPhase] = {}  # where names are asked alone
        self._contexts: dict[int, NamedContext] = {}

    def of(self, instruction: Instruction) -> InstructionPhase:
        """The phase of an instruction."""
        key = place(instruction)
        known = self._known.get(key)
        if known is not None:
            return known
        is_collective = self.names.is_collective(key)  # its phase depends on the others too
        if is_collective:
            found, is_named = self._named_or_not_sought(instruction)
            self._open_collectives.update([] if is_named else [key])
        else:
            alike = key[0], self.names.own(instruction)
            named = self._named.get(alike)
            if named is None:
                named = self._named[alike] = self._named_or_not_sought(instruction)
            found, is_named = named
        graph = None if is_named else self._graph()
        if graph is not None and graph.phases:
            found = self._by_graph(graph, instruction) or found
        if is_collective or graph is not None:
            self._known[key] = found
        return found

    def of_row(self, view: View, row: int) -> InstructionPhase | None:
        """The phase of a row, `None` where its operands are not closed."""
        alike = view.computation.name, view.metadata(row)
        known = self._of_metadata.get(alike)
        if known is None:
            named, is_named = self._named.get((alike[0], self.names.own_name(alike[1])), (None, False))
            if named is not None and (is_named or self._graph() is None):
                known = self._of_metadata[alike] = named
        if known is not None and not self.names.may_be_collective(view.opcodes[row]):
            return known
        key = (alike[0], view.lines[row], view.names[row])
        if known is None or self.names.is_collective(key):
            known = self._known.get(key)
        if known is not None:
            return known
        try:
            return self.of(view.instruction(row))
        except tokens.ScanError:
            return None

    @cached_property
    def of_collectives(self) -> list[InstructionPhase]:
        """The phase of each collective. Where names leave one open, the other phase that named ones serve is known too."""
        found = [self.of(collective.inner) for collective in self._collectives]
        are_named = self._open_collectives.isdisjoint(place(collective.inner) for collective in self._collectives)
        graph = None if are_named else self._graph()
        if graph is None or not graph.phases:
            return found
        return [
            self._with_other_phase(graph, collective.inner, one) if one.phase_from == "name" else one
            for collective, one in zip(self._collectives, found, strict=True)
        ]

    def graph_phase(self, instruction: Instruction) -> str:
        """The phase by the graph of values in the first call of an instruction's computation, whatever its name says."""
        graph = self._graph()
        found = graph.calls_of(instruction) if graph is not None else []
        if graph is None or not found:
            return UNKNOWN
        return graph.of_collective(*found[0]) if self.names.is_collective(place(instruction)) else graph.of_row(*found[0])

    @staticmethod
    def _with_other_phase(graph: GraphPhases, instruction: Instruction, named: InstructionPhase) -> InstructionPhase:
        """The phase of a collective by names, with the other phase that it serves by the graph."""
        both = {phase for at in graph.calls_of(instruction)[:1] for phase in (graph.of_collective(*at), graph.also(*at))}
        other = both - {named.phase, "", UNKNOWN}
        return named._replace(also_phase=other.pop()) if named.phase in both and other else named

    def _named_or_not_sought(self, instruction: Instruction) -> tuple[InstructionPhase, bool]:
        """The phase by names, and whether they decide it in all calls of the instruction's computation; `NOT_SOUGHT` if they do
        not and nothing else is asked.
        """
        contexts = self.names.contexts.get(instruction.computation.name, NOT_CALLED)
        found = [(self.names.of(instruction, context.phase), context.runs) for context in contexts]
        is_named = self.names.is_sure(instruction) and all(phase != UNKNOWN for phase, _ in found)
        return (_most_run(found, "name") if is_named or self._seeks_all else _NOT_SOUGHT), is_named

    def _by_graph(self, graph: GraphPhases, instruction: Instruction) -> InstructionPhase | None:
        """What names and graph tell of each call of the instruction's computation; `None` of one that is not in the step."""
        calls = graph.calls_of(instruction)
        if not calls:
            return None
        is_collective = self.names.is_collective(place(instruction))
        is_sure = self.names.is_sure(instruction)
        found: list[tuple[str, Bounds]] = []
        sources: set[PhaseSource] = set()
        also = ""
        for frame, row in calls:
            around, runs = self._context(graph, frame)
            phase = self.names.of(instruction, around)
            source: PhaseSource = "name"
            if phase == UNKNOWN or not is_sure:
                by_graph = graph.of_collective(frame, row) if is_collective else graph.of_row(frame, row)
                if phase == UNKNOWN or by_graph == RECOMPUTE:
                    phase, source = by_graph, "graph"
                    also = graph.also(frame, row) if is_collective else ""
            found.append((phase, runs))
            sources.add(source)
        return _most_run(found, "graph" if "graph" in sources else "name")._replace(also_phase=also)

    def _context(self, graph: GraphPhases, frame: CallFrame) -> NamedContext:
        """The phase that names tell of the calls around one call of a computation, and how often it runs."""
        around = [frame]  # and the calls around it, the outermost last
        while around[-1].number not in self._contexts and around[-1].caller is not None:
            around.append(graph.graph.frames[around[-1].caller[0]])
        for one in reversed(around):
            if one.number not in self._contexts:
                self._contexts[one.number] = self._context_in_its_caller(graph, one)
        return self._contexts[frame.number]

    def _context_in_its_caller(self, graph: GraphPhases, frame: CallFrame) -> NamedContext:
        name = frame.name
        if frame.caller is None:
            return NamedContext(UNKNOWN, self._calls.runs(name))
        number, row = frame.caller
        around, caller = self._contexts[number], graph.graph.frames[number].view.instruction(row)
        times = self._times.get((*place(caller), name), ONCE)
        return NamedContext(self.names.handed_on(caller, around.phase), around.runs.times(times))

    @cached_property
    def _times(self) -> dict[tuple[str, int, str, str], Bounds]:
        """How often a call runs its computation."""
        return {(*place(call.instruction), call.callee): call.times for made in self._calls.calls.values() for call in made}


_NOT_SOUGHT = InstructionPhase(NOT_SOUGHT)


@cache
def _phase(phase: str, source: PhaseSource) -> InstructionPhase:
    """A phase that no other use and no calls in several phases add to: one object of those that there are."""
    return InstructionPhase(phase, source if phase != UNKNOWN else "")


def _most_run(found: Sequence[tuple[str, Bounds]], source: PhaseSource) -> InstructionPhase:
    """The phase that runs an instruction most, of equal ones the first of a step."""
    if len(found) == 1:
        return _phase(found[0][0], source)
    runs: dict[str, Bounds] = {}
    for phase, amount in found:
        runs[phase] = runs[phase].plus(amount) if phase in runs else amount
    phase = min(runs, key=lambda one: (-runs[one].least, PHASE_ORDER.index(one)), default=UNKNOWN)
    return InstructionPhase(phase, source if phase != UNKNOWN else "", "", tuple(runs.items()) if len(runs) > 1 else ())
