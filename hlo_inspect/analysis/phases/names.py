"""Phases by names, for all instructions, and for collectives as far as their metadata proves them.

Forward, backward and recompute follow from the scopes of JAX's transformations. The other two:

* loss: differentiated work directly in the step function that only a loss does, and work in a scope or file of a loss. Such
  work is a sum to a scalar, or a softmax split over devices if all layers have names.
* optimizer: work that is not differentiated, in a scope or file of an optimizer.

The phase is unknown if the metadata does not show it; combined collectives often lose theirs.

The `op_name` of an instruction in a called computation can be relative to its caller. Newer JAX prints `layers/dot_general`
inside of a `closed_call` that is called under `transpose(jvp(…))`. It is backward then, and forward if another call is forward.
An absolute name begins with a scope of the step: `jit(step)`, `jvp(…)`, `transpose(…)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from functools import cache, cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.provenance import Provenances
from hlo_inspect.figure import Quantity, add, multiply
from hlo_inspect.graph.calls import CallGraph, place
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import (
    BACKWARD,
    FORWARD,
    LOSS,
    RECOMPUTE,
    UNKNOWN,
    Scope,
    phase_of,
    scope_of,
    without_layer_numbers,
)
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from hlo_inspect.graph.view import InstructionPlace

_STEP_SCOPE = lazy_pattern(r"(?:jvp|transpose|vmap|p?jit|pmap|xmap|shard_map|custom_\w+)\(", re.ASCII)
_FUNCTION = lazy_pattern(r"p?jit\(([^()]*)\)", re.ASCII)
_MODULE = lazy_pattern(r"p?jit_(.*)", re.ASCII)
_DIFFERENTIATED = (UNKNOWN, FORWARD, BACKWARD, RECOMPUTE)
"""Phases that a caller passes on.

The later of two phases counts: work that is computed again for a call in the backward pass.
"""


class NamedContext(NamedTuple):
    """The phase of a computation's callers, and how often they run it."""

    phase: str
    runs: Quantity


class OpNamePhase(NamedTuple):
    """The phase by an instruction's own metadata.

    `is_relative` means that its name is relative to its caller. `is_open` means that it may be computed again in spite of that
    phase.
    """

    phase: str
    is_relative: bool
    is_open: bool


_NO_NAME = OpNamePhase(UNKNOWN, is_relative=False, is_open=False)


class NamedPhases:
    """The phases of a module's instructions by names.

    The phases of collectives come from `find_phases`, which looks at all collectives together. If `is_merged()`, names of the
    recomputation are on the forward pass.
    """

    def __init__(
        self,
        module: Module,
        provenances: Provenances,
        graph: CallGraph,
        collectives: Sequence[Collective],
        is_merged: Callable[[], bool],
    ) -> None:
        self._provenances = provenances
        self._by_metadata: dict[Metadata, OpNamePhase] = {}
        match = _MODULE.fullmatch(module.name)
        self._function = _plain(match[1]) if match else ""
        self._functions: dict[str, bool] = {}  # True for the names of the step's function
        self._of_collectives: dict[InstructionPlace, str] = {}
        for collective, phase in zip(collectives, find_phases(collectives), strict=True):
            for instruction in (collective.inner, collective.start):
                self._of_collectives[place(instruction)] = phase
        self.opcodes_of_collectives = {
            instruction.opcode for collective in collectives for instruction in (collective.inner, collective.start)
        }
        self._graph = graph
        self._is_merged = cache(is_merged)

    @cached_property
    def contexts(self) -> dict[str, list[NamedContext]]:
        """The phases in which callers run each computation, with the number of runs."""
        by_computation: dict[str, dict[str, Quantity]] = {name: {UNKNOWN: 1} for name in self._graph.order[:1]}
        for name in self._graph.order:
            contexts_of_caller = by_computation.get(name, {})
            for instruction, calls in groupby(self._graph.calls[name], key=lambda call: call.instruction):
                handed_on = {phase: self.handed_on(instruction, phase) for phase in contexts_of_caller}
                for call in calls:
                    contexts_of_callee = by_computation.setdefault(call.callee, {})
                    for phase, runs in contexts_of_caller.items():
                        handed = handed_on[phase]
                        contexts_of_callee[handed] = add(contexts_of_callee.get(handed, 0), multiply(runs, call.times))
        shared: dict[tuple[tuple[str, Quantity], ...], list[NamedContext]] = {}  # few differ
        return {
            name: shared.setdefault(
                tuple(contexts_of_caller.items()), [NamedContext(*item) for item in contexts_of_caller.items()]
            )
            for name, contexts_of_caller in by_computation.items()
        }

    def of_collective(self, key: InstructionPlace) -> str | None:
        """Return the phase of the collective at a place beside the others; None for another instruction."""
        return self._of_collectives.get(key)

    def is_collective(self, key: InstructionPlace) -> bool:
        """Return True if the instruction at a place is a collective, or wraps one."""
        return key in self._of_collectives

    def handed_on(self, caller: Instruction, around: str) -> str:
        """Return the phase that a call gives to relative names: its own phase, else the phase of the call around it."""
        phase, is_relative, _ = self.own(caller)
        if phase not in _DIFFERENTIATED:
            return phase
        if caller.attr("metadata") is None:
            return around
        return max(phase, around, key=_rank) if is_relative and around in _DIFFERENTIATED else phase

    def phase_of(self, key: InstructionPlace, own: OpNamePhase, around: str = UNKNOWN) -> str:
        """Return the phase by names of the instruction at a place whose computation is called in the phase `around`."""
        collective_phase = self._of_collectives.get(key, UNKNOWN)
        if collective_phase != UNKNOWN:
            return collective_phase
        phase, is_relative, _ = own
        if is_relative and around != UNKNOWN and phase in _DIFFERENTIATED:
            return max(phase, around, key=_rank) if around in _DIFFERENTIATED else around
        return phase

    def is_sure(self, key: InstructionPlace, own: OpNamePhase) -> bool:
        """Return True if the instruction at a place would have another name if it were recomputed."""
        return not own.is_open or key in self._of_collectives

    def own(self, instruction: Instruction) -> OpNamePhase:
        """Return the phase by an instruction's own metadata."""
        try:
            return self.own_name(instruction.attr("metadata"))
        except tokens.ScanError:
            return _NO_NAME

    def own_name(self, metadata: Metadata | None) -> OpNamePhase:
        """Return the phase by the metadata alone."""
        if metadata is None:
            return _NO_NAME
        phase = self._by_metadata.get(metadata)
        if phase is None:
            provenance = self._provenances.get(metadata)
            is_open = provenance.phase == BACKWARD and is_of_old_remat(provenance.scope)
            is_relative = self._is_relative(provenance.origin.op_name)
            named = FORWARD if provenance.phase == RECOMPUTE and self._is_merged() else provenance.phase
            phase = self._by_metadata[metadata] = OpNamePhase(named, is_relative, is_open)
        return phase

    def _is_relative(self, name: str) -> bool:
        """Return True if a name does not begin with a scope of the step."""
        if not _STEP_SCOPE.match(name):
            return True
        function = _FUNCTION.match(name)
        if function is None or not self._function:
            return False
        is_step = self._functions.get(function[1])
        if is_step is None:
            is_step = self._functions[function[1]] = _plain(function[1]) == self._function
        return not is_step


NOT_CALLED = [NamedContext(UNKNOWN, 1)]
"""Context of a computation that no instruction of the text calls: only its own names count."""


def latest_phase(phases: Set[str]) -> str:
    """Return the only phase, or the later one of forward, backward and recompute; unknown for others together."""
    if len(phases) == 1:
        return next(iter(phases))
    return max(phases, key=_rank) if phases and phases <= set(_DIFFERENTIATED) else UNKNOWN


def _rank(phase: str) -> int:
    return _DIFFERENTIATED.index(phase) if phase in _DIFFERENTIATED else -1


def _plain(name: str) -> str:
    """Return the name of a function as names of modules spell it."""
    return re.sub(r"[^\w.]", "_", name).strip("_")


# Scopes of checkpoint before JAX marked recomputed work: `remat(f)` and `remat`; in some versions `checkpoint`.
_OLD_REMAT = lazy_pattern(r"(remat(?:\(.*\))?)|checkpoint", re.DOTALL)


def find_phases(collectives: Sequence[Collective]) -> list[str]:
    """Return the phase of each collective, one of `op_names.PHASES`."""
    names = {name: without_layer_numbers(name) for name in {collective.origin.op_name for collective in collectives}}
    said = {name: scope_of(name) for name in set(names.values())}
    scopes = [said[names[collective.origin.op_name]] for collective in collectives]
    phases = [
        _combined_phase(collective, scope.parts) if len(set(scope.parts)) > 1 else phase_of(collective.origin.innermost, scope)
        for collective, scope in zip(collectives, scopes, strict=True)
    ]
    remats = {scope for scope in said.values() if is_of_old_remat(scope)}
    if remats and RECOMPUTE not in phases:
        _find_recomputed(collectives, scopes, phases, remats)
    _find_losses(collectives, scopes, phases)
    return phases


def _combined_phase(collective: Collective, parts: Sequence[str]) -> str:
    """Return the phase of a combined collective of several phases: the phase of nine tenths of its bytes, else unknown.

    Gradients reach nine tenths if a scalar is combined with them. The parts are in the order of its arrays.
    """
    leaves = array_leaves(collective.result_shape)
    if len(leaves) != len(parts):
        return UNKNOWN
    sizes: Counter[str] = Counter()
    for part, (_, leaf) in zip(parts, leaves, strict=True):
        if leaf.bytes is None:
            return UNKNOWN
        sizes[part] += leaf.bytes
    phase, size = sizes.most_common(1)[0]
    return phase if 10 * size >= 9 * sizes.total() else UNKNOWN


def _find_recomputed(collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str], remats: Set[Scope]) -> None:
    """Mark recomputed collectives in the scopes `remats`, to which old JAX gave the scope of the backward pass.

    A recomputed collective has a twin in the forward pass: the same collective of the same primitive with the same parameters.
    At most the number of twins is marked.

    Without printed parameters a product and its gradient look the same. Such a product is backward if JAX would have marked
    recomputation (it wrote `checkpoint` by then), else unknown.
    """
    arrays = [(c.kind, str(c.result_shape)) for c in collectives]

    def key(n: int) -> tuple[str, ...]:
        return *arrays[n], *_without_remat(scope_of(collectives[n].origin.op_name).path)  # with numbers of layers

    inside = [n for n, phase in enumerate(phases) if phase == BACKWARD and scopes[n] in remats]
    of_inside = {arrays[n] for n in inside}
    forward = Counter(key(n) for n, phase in enumerate(phases) if phase == FORWARD and arrays[n] in of_inside)
    keys = {n: key(n) for n in inside}
    again = Counter(keys.values())
    for n, its_key in keys.items():
        if its_key in forward:
            is_sure = scopes[n].parameters and again[its_key] <= forward[its_key]
            phases[n] = RECOMPUTE if is_sure else UNKNOWN


def is_of_old_remat(scope: Scope) -> bool:
    """Return True if JAX wrote the name before it marked recomputed work."""
    remat = [match for match in map(_OLD_REMAT.fullmatch, scope.path) if match]
    return bool(remat) and bool(scope.parameters or remat[0][1])


def _without_remat(path: Iterable[str]) -> list[str]:
    kept = [scope for scope in path if not _OLD_REMAT.fullmatch(scope)]
    return [scope[len("transpose(") : -1] if scope.startswith("transpose(") else scope for scope in kept]


def _find_losses(collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]) -> None:
    bare = [i for i, phase in enumerate(phases) if phase in {FORWARD, UNKNOWN} and scopes[i].is_bare]
    for i in bare:
        if phases[i] == FORWARD and _is_scalar_sum(collectives[i], scopes[i]):
            phases[i] = LOSS
    if any(scope.has_name and scope.phase != UNKNOWN for scope in scopes):
        _find_softmax(bare, collectives, scopes, phases)
    if not any("jvp()" in name for scope in scopes for name in scope.path):
        _find_unmarked_sums(bare, collectives, scopes, phases)


def _is_scalar_sum(collective: Collective, scope: Scope) -> bool:
    shape = collective.result_shape
    is_scalar = isinstance(shape, ArrayShape) and not shape.dimensions and shape.dtype.startswith(("f", "bf"))
    return is_scalar and scope.primitive == "reduce_sum" and collective.reduction == "add"


def _find_softmax(bare: Sequence[int], collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]) -> None:
    """Mark a maximum and a sum over the same dimension and devices, of the same shape, as loss.

    Layers have names, so it belongs to no layer.
    """
    pairs: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for i in bare:
        collective, shape = collectives[i], collectives[i].result_shape
        if isinstance(shape, ArrayShape) and shape.dimensions and collective.kind == "all-reduce":
            key = (collective.start.computation.name, shape.dimensions, collective.participants.key, scopes[i].parameters)
            pairs.setdefault(key, {}).setdefault(scopes[i].primitive, []).append(i)
    for primitives in pairs.values():
        if len(primitives.get("reduce_max", ())) == len(primitives.get("reduce_sum", ())) == 1:
            for i in (*primitives["reduce_max"], *primitives["reduce_sum"]):
                phases[i] = LOSS


def _find_unmarked_sums(
    bare: Sequence[int], collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]
) -> None:
    """Mark scalar sums before the backward pass as loss.

    Some versions of JAX did not mark differentiation outside of scopes. A scalar sum needs no gradient. If scalar sums follow
    after the backward pass too, all may be norms of the optimizer.
    """
    starts: dict[str, int] = {}
    for collective, phase in zip(collectives, phases, strict=True):
        if phase in {BACKWARD, RECOMPUTE}:
            place = collective.start
            starts[place.computation.name] = min(place.line, starts.get(place.computation.name, place.line))
    sums = [i for i in bare if phases[i] == UNKNOWN and _is_scalar_sum(collectives[i], scopes[i])]
    behind = {
        collectives[i].start.computation.name
        for i in sums
        if collectives[i].start.line > starts.get(collectives[i].start.computation.name, 0)
    }
    for i in sums:
        if collectives[i].start.computation.name not in behind:
            phases[i] = LOSS
