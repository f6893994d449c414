"""The phases by names, in computations that are called as well.

The `op_name` of an instruction in a called computation can be relative to the instruction that calls it: newer JAX prints
`layers/dot_general` inside of a `closed_call` that is called under `transpose(jvp(…))`. It is backward then, and forward where
another call is forward. What is not relative begins with a scope of the step: `jit(step)`, `jvp(…)`, `transpose(…)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.phases.named_collectives import find_phases, is_of_old_remat
from hlo_inspect.analysis.provenance import Provenances
from hlo_inspect.graph.calls import ONCE, Bounds, CallGraph, InstructionPlace, place
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read import tokens
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, RECOMPUTE, UNKNOWN
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
    """What names say of the instructions of a module. The phases of collectives are those of `named_collectives`, which looks
    at all of them together.
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

    def contexts(self, computation: str) -> list[NamedContext]:
        """The phases in which callers run a computation; only that of its own names where nothing that was read calls it."""
        return self._contexts.get(computation, _NOT_CALLED)

    @cached_property
    def _contexts(self) -> dict[str, list[NamedContext]]:
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
            found = self._provenances.of(metadata)
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


_NOT_CALLED = [NamedContext(UNKNOWN, ONCE)]


def _rank(phase: str) -> int:
    return _DIFFERENTIATED.index(phase) if phase in _DIFFERENTIATED else -1


def _plain(name: str) -> str:
    """The name of a function as names of modules spell it."""
    return re.sub(r"[^\w.]", "_", name).strip("_")
