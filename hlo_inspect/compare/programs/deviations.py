"""Deviation of a rank's program from that of most ranks: the verdict, and the first instruction that deviates."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.programs.collective_order import CollectiveOrder, OrderedCollective, executed
from hlo_inspect.compare.programs.first_difference import (
    NO_DIFFERENCE,
    FirstDifference,
    InstructionDifference,
    contrast,
    first_unequal,
)
from hlo_inspect.compare.programs.meetings import Steps, UndecidedError, in_text_order, unrolled
from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.elided_constants import hash_with_constants
from hlo_inspect.graph.canonical.spelling import TUNED_ATTRIBUTE, Spelling
from hlo_inspect.hlo.settings.stablehlo import ElidedConstant

RankVerdict = Literal["order", "collective", "missing", "program", "extra", "count", "schedule", "flags", "algorithm", "names"]
VERDICTS: tuple[RankVerdict, ...] = get_args(RankVerdict)
"""The verdicts, the gravest first."""

HARMLESS: frozenset[RankVerdict] = frozenset({"algorithm", "names"})
"""Verdicts on ranks that run the program of the majority."""


class RankProgram:
    """The program of a text. `constants` are those that the text may elide.

    Names, numbers, metadata and choices of autotuning are no part of its identity.
    """

    def __init__(self, context: Context, constants: Sequence[ElidedConstant] = ()) -> None:
        self.context = context
        self.canonical = CanonicalModule(context.module, context.views, tuning=False)
        self._constants = constants

    @cached_property
    def identity(self) -> tuple[str, str | None]:
        """Hashes of program and schedule."""
        return hash_with_constants(self.canonical.program, self._constants), self.canonical.schedule

    @cached_property
    def order(self) -> CollectiveOrder:
        """The collectives in the order of the schedule."""
        return CollectiveOrder(self.context)

    @property
    def is_truncated(self) -> bool:
        return self.context.module.problems.is_truncated


class ProgramDeviation(NamedTuple):
    """The deviation of a program. `steps` are its collectives, numbered as in the majority's program.

    `waits` is the first collective that deviates.
    """

    verdict: RankVerdict
    first: InstructionDifference
    detail: str
    steps: Steps
    waits: OrderedCollective | None = None


def find_deviation(own: RankProgram, usual: RankProgram) -> ProgramDeviation:
    """Return the deviation of a program from that of the majority."""
    if own.identity == usual.identity:
        first, detail = _tuned_difference(own, usual)
        return ProgramDeviation("algorithm" if detail else "names", first, detail, usual.order.steps)
    steps = own.order.numbered_like(usual.order)
    verdict = _collective_verdict(own, usual, steps)
    first = FirstDifference(own.canonical, usual.canonical).find()
    if verdict is not None:
        waits, detail = _first_collective(own.order, usual.order, steps)
        return ProgramDeviation(verdict, first, detail, steps, waits)
    is_program = own.identity[0] != usual.identity[0]
    detail = first.text if is_program else "the same instructions in another order"
    if is_program and first == NO_DIFFERENCE:
        detail = "header, or a large constant that the text elides"
    return ProgramDeviation("program" if is_program else "schedule", first, detail, steps)


# -- collectives --------------------------------------------------------------------------------------------------------------


def _collective_verdict(own: RankProgram, usual: RankProgram, steps: Steps) -> RankVerdict | None:
    """Return `collective` or `order` if the collectives, or the order in which they run, deviate; else None."""
    is_ordered = not (own.order.fault or usual.order.fault)
    totals = executed(own.order.steps), executed(usual.order.steps)
    if None in totals or not is_ordered:
        totals = own.order.contents, usual.order.contents
    if totals[0] != totals[1]:
        return "collective"
    return "order" if is_ordered and not _run_in_one_order(steps, usual.order.steps) else None


def _run_in_one_order(steps: Steps, others: Steps) -> bool:
    """Return True if two programs run their collectives in one order, though one may have unrolled a loop."""
    if steps == others:
        return True
    try:
        return unrolled(steps) == unrolled(others)
    except UndecidedError:
        return False


def _first_collective(own: CollectiveOrder, usual: CollectiveOrder, steps: Steps) -> tuple[OrderedCollective | None, str]:
    """Return the first collective that stands in another place, that of the majority if there is none, and a description."""
    meetings, others = list(in_text_order(own.steps)), list(in_text_order(usual.steps))
    place = first_unequal(list(in_text_order(steps)), others)
    if place is None:
        return None, "the loops around collectives run another number of times"
    by_meeting = {ordered.meeting: ordered for ordered in own.collectives}
    usual_by_meeting = {ordered.meeting: ordered for ordered in usual.collectives}
    mine = by_meeting[meetings[place]] if place < len(meetings) else None
    other = usual_by_meeting[others[place]] if place < len(others) else None
    return mine or other, f"collective {place + 1:,}: {_contrast_collectives(mine, other, len(meetings), len(others))}"


def _contrast_collectives(own: OrderedCollective | None, usual: OrderedCollective | None, count: int, usually: int) -> str:
    if own is None or usual is None:
        return contrast(
            "none here: number" if own is None else f"{own.text} ({own.name}): number", f"{count:,}", f"{usually:,}"
        )
    first, second = own.collective, usual.collective
    if own.text != usual.text:
        return f"{own.text} ({own.name}), in the majority {usual.text} ({usual.name})"
    if first.source_target_pairs != second.source_target_pairs:
        return contrast(f"{own.text} ({own.name}): pairs", first.source_target_pairs, second.source_target_pairs)
    if own.meeting.groups != usual.meeting.groups:
        return contrast(f"{own.text} ({own.name}): groups", first.replica_groups, second.replica_groups)
    return f"{own.text} ({own.name}) of another value, in the majority {usual.name}"


# -- choices of autotuning ----------------------------------------------------------------------------------------------------


class _FirstChoice(FirstDifference):
    """Search for the first instruction of equal programs with another choice of autotuning. Keys have no order."""

    def _deviates(self, first: CanonicalComputation, second: CanonicalComputation, row: int, mate: int) -> bool:
        return _choices(first.spellings[row]) != _choices(second.spellings[mate])


def _tuned_difference(own: RankProgram, usual: RankProgram) -> tuple[InstructionDifference, str]:
    """Return the first instruction with another choice of autotuning, and the choice; an empty text if there is none."""
    modules = own.context.canonical, usual.context.canonical
    if modules[0].program == modules[1].program:
        return NO_DIFFERENCE, ""
    first = _FirstChoice(*modules).find()
    if first.own is None or first.usual is None:
        return NO_DIFFERENCE, ""
    choices, others = _choices(first.own.spelling), _choices(first.usual.spelling)
    key = next(key for key in (*choices, *others) if choices.get(key) != others.get(key))
    return first, contrast(key, choices.get(key, ""), others.get(key, ""))


def _choices(spelling: Spelling) -> dict[str, str]:
    """Return shape and configuration of an instruction by the names of their parts."""
    choices = {"shape": spelling.shape}
    text = dict(spelling.attributes).get(TUNED_ATTRIBUTE, "")
    try:
        waiting: list[tuple[str, object]] = [("", json.loads(text))] if text else []
    except (ValueError, RecursionError):
        return choices | {TUNED_ATTRIBUTE: text}
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}" if name else key, inner) for key, inner in value.items()]
        else:
            choices[name or TUNED_ATTRIBUTE] = json.dumps(value)
    return choices
