"""The phases by names: those of collectives, as far as their metadata proves them, and of all instructions.

Forward, backward and recompute are the scopes of JAX's transformations. The other two:

* loss: differentiated work directly in the step function that only a loss does – a sum to a scalar, or a softmax split over
  devices where all layers have names – and what is in a scope or file of a loss.
* optimizer: work that is not differentiated, in a scope or file of an optimizer.

Where the metadata leaves it open the phase is unknown; combined collectives often lose theirs.

The `op_name` of an instruction in a called computation can be relative to the instruction that calls it: newer JAX prints
`layers/dot_general` inside of a `closed_call` that is called under `transpose(jvp(…))`. It is backward then, and forward where
another call is forward. What is not relative begins with a scope of the step: `jit(step)`, `jvp(…)`, `transpose(…)`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.provenance import Provenances
from hlo_inspect.graph.calls import ONCE, Bounds, CallGraph, InstructionPlace, place
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

_STEP_SCOPE = lazy_pattern(r"(?:jvp|transpose|vmap|p?jit|pmap|xmap|shard_map|custom_\w+)\(", re.ASCII)
_FUNCTION = lazy_pattern(r"p?jit\(([^()]*)\)", re.ASCII)
_MODULE = lazy_pattern(r"p?jit_(.*)", re.ASCII)
_DIFFERENTIATED = (UNKNOWN, FORWARD, BACKWARD, RECOMPUTE)
"""Phases that a caller hands on; of two the later one holds: what is computed again for a call in the backward pass."""


class NamedContext(NamedTuple):
    """What the callers of a computation are, and how often they run it."""

    phase: str
    runs: Bounds


class OwnName(NamedTuple):
    """What the metadata of an instruction says by itself: the phase, whether its name is relative to its caller, and whether it
    may be computed again in spite of that phase.
    """

    phase: str
    is_relative: bool
    is_open: bool


_NO_NAME = OwnName(UNKNOWN, is_relative=False, is_open=False)


class NamedPhases:
    """What names say of the instructions of a module. The phases of collectives are those of `find_phases`, which looks at
    all of them together.
    """

    def __init__(self, module: Module, provenances: Provenances, graph: CallGraph, collectives: Sequence[Collective]) -> None:
        self._provenances = provenances
        self._known: dict[Metadata, OwnName] = {}
        match = _MODULE.fullmatch(module.name)
        self._function = _plain(match[1]) if match else ""
        self._functions: dict[str, bool] = {}  # of the names of functions, whether it is that of the step
        self._of_collectives: dict[InstructionPlace, str] = {}
        self._collective_opcodes: set[str] = set()
        for collective, phase in zip(collectives, find_phases(collectives), strict=True):
            for one in (collective.inner, collective.start):
                self._of_collectives[place(one)] = phase
                self._collective_opcodes.add(one.opcode)
        self._graph = graph

    @cached_property
    def contexts(self) -> dict[str, list[NamedContext]]:
        """The phases in which callers run each computation."""
        found: dict[str, dict[str, Bounds]] = {name: {UNKNOWN: ONCE} for name in self._graph.order[:1]}
        for name in self._graph.order:
            around = found.get(name, {})
            for instruction, calls in groupby(self._graph.calls[name], key=lambda call: call.instruction):
                handed_on = {phase: self.handed_on(instruction, phase) for phase in around}
                for call in calls:
                    inside = found.setdefault(call.callee, {})
                    for phase, runs in around.items():
                        handed = handed_on[phase]
                        added = runs.times(call.times)
                        inside[handed] = inside[handed].plus(added) if handed in inside else added
        known: dict[tuple[tuple[str, Bounds], ...], list[NamedContext]] = {}  # computations have a few, most of them the same
        return {
            name: known.setdefault(tuple(around.items()), [NamedContext(*one) for one in around.items()])
            for name, around in found.items()
        }

    def is_collective(self, at: InstructionPlace) -> bool:
        """Whether the instruction at a place is a collective, or wraps one."""
        return at in self._of_collectives

    def may_be_collective(self, opcode: str) -> bool:
        """Whether collectives are of this opcode, or wrapped by such instructions."""
        return opcode in self._collective_opcodes

    def handed_on(self, caller: Instruction, around: str) -> str:
        """The phase that a call gives to relative names: its own, of one that says nothing that of the call around it."""
        phase, is_relative, _ = self.own(caller)
        if phase not in _DIFFERENTIATED:
            return phase
        if caller.attr("metadata") is None:
            return around
        return max(phase, around, key=_rank) if is_relative and around in _DIFFERENTIATED else phase

    def of(self, instruction: Instruction, around: str = UNKNOWN) -> str:
        """What names say of an instruction whose computation is called in the phase `around`."""
        known = self._of_collectives.get(place(instruction), UNKNOWN)
        if known != UNKNOWN:
            return known
        phase, is_relative, _ = self.own(instruction)
        if is_relative and around != UNKNOWN and phase in _DIFFERENTIATED:
            return max(phase, around, key=_rank) if around in _DIFFERENTIATED else around
        return phase

    def is_sure(self, instruction: Instruction) -> bool:
        """Whether what is computed again would have another name."""
        return place(instruction) in self._of_collectives or not self.own(instruction).is_open

    def own(self, instruction: Instruction) -> OwnName:
        """What an instruction's metadata says by itself."""
        try:
            return self.own_name(instruction.attr("metadata"))
        except tokens.ScanError:
            return _NO_NAME

    def own_name(self, metadata: Metadata | None) -> OwnName:
        """What metadata says by itself."""
        if metadata is None:
            return _NO_NAME
        known = self._known.get(metadata)
        if known is None:
            found = self._provenances.get(metadata)
            is_open = found.phase == BACKWARD and is_of_old_remat(found.scope)
            known = self._known[metadata] = OwnName(found.phase, self._is_relative(found.origin.op_name), is_open)
        return known

    def _is_relative(self, name: str) -> bool:
        """Whether a name does not begin with a scope of the step."""
        if not _STEP_SCOPE.match(name):
            return True
        function = _FUNCTION.match(name)
        if function is None or not self._function:
            return False
        is_step = self._functions.get(function[1])
        if is_step is None:
            is_step = self._functions[function[1]] = _plain(function[1]) == self._function
        return not is_step


NOT_CALLED = [NamedContext(UNKNOWN, ONCE)]
"""The context of a computation that nothing that was read calls: only its own names count."""


def _rank(phase: str) -> int:
    return _DIFFERENTIATED.index(phase) if phase in _DIFFERENTIATED else -1


def _plain(name: str) -> str:
    """The name of a function as names of modules spell it."""
    return re.sub(r"[^\w.]", "_", name).strip("_")


# Checkpoint as JAX wrote it before it marked what is computed again: `remat(f)` and `remat`; in some versions `checkpoint`.
_OLD_REMAT = lazy_pattern(r"(remat(?:\(.*\))?)|checkpoint", re.DOTALL)


def find_phases(collectives: Sequence[Collective]) -> list[str]:
    """The phase of each collective, one of `op_names.PHASES`."""
    names = {name: without_layer_numbers(name) for name in {collective.origin.op_name for collective in collectives}}
    said = {name: scope_of(name) for name in set(names.values())}
    scopes = [said[names[collective.origin.op_name]] for collective in collectives]
    phases = [_by_itself(collective, scope) for collective, scope in zip(collectives, scopes, strict=True)]
    remats = {scope for scope in said.values() if is_of_old_remat(scope)}
    if remats and RECOMPUTE not in phases:
        _find_recomputed(collectives, scopes, phases, remats)
    _find_losses(collectives, scopes, phases)
    return phases


def _by_itself(collective: Collective, scope: Scope) -> str:
    """What the collective's own metadata says."""
    if len(set(scope.parts)) > 1:
        return _of_parts(collective, scope.parts)
    return phase_of(collective.origin.innermost, scope)


def _of_parts(collective: Collective, parts: Sequence[str]) -> str:
    """The phase of a combined collective of several phases: that of the parts that make up nine tenths of its bytes, as the
    gradients do that a scalar is combined with. The parts are in the order of its arrays.
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
    """Old JAX gives what is computed again the scope of the backward pass. Inside remat, in one of the scopes `remats`, it is
    what the forward pass has too: the same collective of the same primitive with the same parameters, and no more of them than
    there.

    Without printed parameters a product and its gradient look the same: that is backward where JAX would have marked what is
    computed again (it wrote `checkpoint` by then), and else unknown.
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
    """Whether JAX wrote a name before it marked what is computed again."""
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
    """A maximum and a sum over the same dimension and devices, of the same shape; layers have names, so it is no layer's."""
    pairs: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for i in bare:
        collective, shape = collectives[i], collectives[i].result_shape
        if isinstance(shape, ArrayShape) and shape.dimensions and collective.kind == "all-reduce":
            key = (collective.start.computation.name, shape.dimensions, collective.participants.key, scopes[i].parameters)
            pairs.setdefault(key, {}).setdefault(scopes[i].primitive, []).append(i)
    for found in pairs.values():
        if len(found.get("reduce_max", ())) == len(found.get("reduce_sum", ())) == 1:
            for i in (*found["reduce_max"], *found["reduce_sum"]):
                phases[i] = LOSS


def _find_unmarked_sums(
    bare: Sequence[int], collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]
) -> None:
    """Old JAX did not mark differentiation outside of named scopes. A scalar sum before the backward pass needs no
    gradient, and is the loss's, unless others follow after it: then both may be norms of the optimizer's.
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
