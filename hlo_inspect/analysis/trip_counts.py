"""How often each loop runs: as XLA prints it, else worked out from the text.

XLA's own analysis leaves `known_trip_count` in the `backend_config` of a while; TPU's optimized text and text before
optimization have none. What is worked out here are loops whose condition compares two integers, each a constant or an element
of the loop's state that every run changes by a constant, from a constant start. A count is never guessed: where one of these
things depends on data, the count is `None` and the reason says on what.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hlo_inspect.analysis.induction import Induction, Progression, UnknownError
from hlo_inspect.hlo import dtypes, scan
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module

_PRINTED = re.compile(r'"known_trip_count"\s*:\s*(\{[^{}]*\}|[^,}]*)')
_COUNT = re.compile(r'\{\s*"n"\s*:\s*("?)(\d{1,18})\1\s*\}', re.ASCII)


@dataclass(frozen=True, slots=True)
class Loop:
    """One while. `trip_count` is how often its body runs each time that it is reached; its condition runs once more.

    `reason` says why the count is not known, as what follows "the trip count of NAME"; `fault` what is wrong with the printed
    one.
    """

    instruction: Instruction
    body: str | None
    condition: str | None
    trip_count: int | None
    source: Literal["known_trip_count", "derived"] | None
    reason: str | None = None
    fault: str | None = None


def find_loops(module: Module) -> list[Loop]:
    """The kept whiles of `module`, in the order of the text; counts are derived where it was read for `Wants.loops`."""
    induction = Induction(module)
    return [_loop(instruction, induction) for instruction in module.with_opcodes(frozenset({"while"}))]


def _loop(instruction: Instruction, induction: Induction) -> Loop:
    attributes = instruction.attributes
    callees = instruction.callees(attributes)
    body, condition = (names[0] if (names := callees.get(key)) else None for key in ("body", "condition"))
    count, fault = printed_count(attributes.get("backend_config", ""))
    if count is not None:
        return Loop(instruction, body, condition, count, "known_trip_count")
    try:
        count = runs(*induction.comparison(instruction))
    except (UnknownError, scan.ScanError) as error:
        return Loop(instruction, body, condition, None, None, str(error), fault)
    return Loop(instruction, body, condition, count, "derived", None, fault)


def printed_count(backend_config: str) -> tuple[int | None, str | None]:
    """The `known_trip_count` of a configuration, quoted or bare, and what is wrong with it."""
    match = _PRINTED.search(scan.unquote(backend_config))
    if match is None:
        return None, None
    count = _COUNT.fullmatch(match[1])
    if count is None:
        return None, f"known_trip_count is no count: {match[1][:40]!r}"
    return int(count[2]), None


def runs(direction: str, left: Progression, right: Progression) -> int:
    """How often `left direction right` holds before it does not, checked before each run; `UnknownError` for a loop without
    end.
    """
    gap, change = left.start - right.start, left.step - right.step
    if direction in {"GT", "GE"}:
        gap, change = -gap, -change
    if direction in {"LE", "GE"}:
        gap -= 1
    if direction in {"LT", "LE", "GT", "GE"}:
        count = 0 if gap >= 0 else -(gap // change) if change > 0 else None
    elif direction == "NE":
        meets = change != 0 and gap % change == 0 and -gap // change > 0
        count = 0 if gap == 0 else -gap // change if meets else None
    else:
        raise UnknownError(f"is not known: its condition compares with direction={direction}")
    if count is None or not all(_fits(side.start + count * side.step, side.dtype) for side in (left, right)):
        raise UnknownError("is not known: its condition stays true, or its counter overflows")
    return count


def _fits(value: int, dtype: str) -> bool:
    """Whether a type of integers holds a value; constants have no type."""
    if dtype[:1] not in {"s", "u"}:
        return True
    bits = dtypes.BITS[dtype]
    low = -(1 << (bits - 1)) if dtype[0] == "s" else 0
    return low <= value < low + (1 << bits)
