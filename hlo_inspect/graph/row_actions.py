"""Actions of rows on the values of their operands, by opcode, for the graph of values."""

from __future__ import annotations

from typing import Literal

from hlo_inspect.hlo.opcodes import ASYNC_ENDS, ELEMENTWISE, STARTING_COLLECTIVES, TABLE, Role, opcodes_that_are

Action = Literal[
    "makes",
    "is input",
    "takes",
    "packs",
    "passes all",
    "passes",
    "reshapes",
    "is nothing",
    "calls",
    "loops",
    "branches",
    "joins",
    "cuts",
    "keeps parts",
    "makes each",
    "may scale",
    "by form",
]
"""The actions, in the order of `native/source/values.h`, which describes them."""

_STARTS = tuple(name for name, info in TABLE.items() if info.half == "start" and not info.collective)
_COLLECTIVES = STARTING_COLLECTIVES - opcodes_that_are("exchange", "point-to-point")
_OTHERS: dict[str, Action] = {
    "copy-start": "makes",
    "dot": "may scale",
    "add-dependency": "passes",
    "after-all": "is nothing",
    "domain": "passes",
    "bitcast": "reshapes",
    "parameter": "is input",
    "get-tuple-element": "takes",
    "tuple": "packs",
    "opt-barrier": "passes all",
    "fusion": "calls",
    "call": "calls",
    "while": "loops",
    "conditional": "branches",
    "concatenate": "joins",
    "slice": "cuts",
    "custom-call": "by form",
}
ACTIONS_OF_OPCODES: dict[str, Action] = {
    **dict.fromkeys(ELEMENTWISE, "keeps parts"),
    **dict.fromkeys(_STARTS, "calls"),
    **dict.fromkeys(ASYNC_ENDS, "passes"),
    **dict.fromkeys(_COLLECTIVES, "makes each"),
    **_OTHERS,
}
"""The action of each opcode, as `graph_reader` reads it. Other opcodes make one node."""

_RUN: frozenset[Role] = frozenset({"run", "fused"})
CALLED_ROLES: dict[Action, frozenset[Role]] = {
    "calls": _RUN,
    "makes each": _RUN,
    "loops": frozenset({"body"}),
    "branches": frozenset({"branch"}),
}
"""Roles of the computations that count."""


def is_wrapper(opcode: str) -> bool:
    """Return True if a collective can run a computation instead of being one itself."""
    return TABLE[opcode].is_wrapper or opcode == "async-start"
