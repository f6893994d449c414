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
MAKES: Action = "makes"
MAY_SCALE: Action = "may scale"
PASSES: Action = "passes"
IS_NOTHING: Action = "is nothing"
RESHAPES: Action = "reshapes"
IS_INPUT: Action = "is input"
TAKES: Action = "takes"
PACKS: Action = "packs"
PASSES_ALL: Action = "passes all"
CALLS: Action = "calls"
LOOPS: Action = "loops"
BRANCHES: Action = "branches"
JOINS: Action = "joins"
CUTS: Action = "cuts"
BY_FORM: Action = "by form"
_OTHERS: dict[str, Action] = {
    "copy-start": MAKES,
    "dot": MAY_SCALE,
    "add-dependency": PASSES,
    "after-all": IS_NOTHING,
    "domain": PASSES,
    "bitcast": RESHAPES,
    "parameter": IS_INPUT,
    "get-tuple-element": TAKES,
    "tuple": PACKS,
    "opt-barrier": PASSES_ALL,
    "fusion": CALLS,
    "call": CALLS,
    "while": LOOPS,
    "conditional": BRANCHES,
    "concatenate": JOINS,
    "slice": CUTS,
    "custom-call": BY_FORM,
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
