"""The phase of each instruction of a training step, and from where it is known."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hlo_inspect.analysis.calls import place
from hlo_inspect.analysis.collective_phases import find_phases
from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.analysis.op_names import UNKNOWN, origin_of, phase_of, scope_of
from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module

PhaseSource = Literal["name", "graph", ""]
"""What told a phase: the metadata, the graph of values, or nothing."""


class InstructionPhase(NamedTuple):
    """One of `op_names.PHASES`, what told it, and the other phase that uses the instruction too, empty where there is none."""

    phase: str = UNKNOWN
    phase_from: PhaseSource = ""
    also_phase: str = ""


NO_PHASE = InstructionPhase()


class Phases:
    """The phases of a module's instructions; the same for whoever asks."""

    def __init__(self, module: Module, collectives: list[Collective]) -> None:
        self._module = module
        named = zip(collectives, find_phases(collectives), strict=True)
        self.of_collectives = [_named(phase) for _, phase in named]
        self._known = {
            place(one): phase
            for collective, phase in zip(collectives, self.of_collectives, strict=True)
            for one in (collective.inner, collective.start)
        }

    def of(self, instruction: Instruction) -> InstructionPhase:
        """The phase of an instruction."""
        key = place(instruction)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _named(self._by_name(instruction))
        return known

    def _by_name(self, instruction: Instruction) -> str:
        try:
            origin = origin_of(instruction, self._module.frames)
        except tokens.ScanError:
            return UNKNOWN
        return phase_of(origin, scope_of(origin.op_name))


def _named(phase: str) -> InstructionPhase:
    return InstructionPhase(phase, "name") if phase != UNKNOWN else NO_PHASE
