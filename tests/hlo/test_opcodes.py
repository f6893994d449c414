"""Opcodes: the spellings that a reader of other compilers would guess wrong, old ones, and asynchronous sugar."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.opcodes import (
    CALLING_OPCODES,
    ELEMENTWISE,
    OPCODES,
    TABLE,
    base_opcode,
    callee_roles,
    opcodes_that_call,
)

UNEXPECTED = [
    "opt-barrier",
    "exponential",
    "exponential-minus-one",
    "log-plus-one",
    "count-leading-zeros",
    "popcnt",
    "cosine",
    "sine",
    "round-nearest-afz",
    "round-nearest-even",
    "is-finite",
    "atan2",
    "rng-get-and-update-state",
    "bitcast-convert",
    "add-dependency",
    "after-all",
    "partition-id",
]
RECENT = [
    "collective-broadcast",
    "ragged-all-to-all",
    "ragged-dot",
    "scaled-dot",
    "scan",
    "mulhi",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "cosh",
    "sinh",
    "tan",
    "erf",
    "topk",
]
REMOVED = ["trace", "tuple-select", "cross-replica-sum", "all-reduce-scatter"]
NATIVE_ASYNC = [
    *(f"{name}-{end}" for name in ("all-gather", "all-reduce", "collective-permute", "copy") for end in ("start", "done")),
    *("send", "send-done", "recv", "recv-done", "async-start", "async-update", "async-done"),
]
SUGAR = [f"{name}-{end}" for name in ("reduce-scatter", "dot", "custom-call", "slice") for end in ("start", "update", "done")]
NO_SUGAR = [  # opcodes with a native pair have no other spelling
    *(f"{name}-update" for name in ("all-gather", "all-reduce", "collective-permute", "copy", "recv", "send")),
    *("send-start", "recv-start"),
]


@pytest.mark.parametrize("opcode", UNEXPECTED + RECENT + REMOVED + NATIVE_ASYNC)
def test_opcodes_of_every_age_are_listed(opcode: str) -> None:
    assert opcode in OPCODES
    assert opcode in TABLE


def test_the_list_holds_the_133_of_today_and_the_removed() -> None:
    assert len(OPCODES - {*REMOVED, "bitcast-move"}) == 133


@pytest.mark.parametrize("opcode", SUGAR)
def test_sugar_is_known_without_being_listed(opcode: str) -> None:
    assert opcode not in OPCODES
    assert opcode in TABLE


@pytest.mark.parametrize("opcode", [*NO_SUGAR, "negate-start-done", "negate-begin", "-start", "exp", "barrier", "Add", ""])
def test_what_xla_refuses_is_unknown(opcode: str) -> None:
    assert opcode not in TABLE


@pytest.mark.parametrize(
    ("opcode", "base"),
    [
        ("all-gather-start", "all-gather"),
        ("collective-permute-done", "collective-permute"),
        ("reduce-scatter-update", "reduce-scatter"),
        ("send-done", "send"),
        ("async-start", "async"),
        ("all-reduce", "all-reduce"),
        ("after-all", "after-all"),
        ("dynamic-update-slice", "dynamic-update-slice"),
        ("dynamic-update-slice-start", "dynamic-update-slice"),
    ],
)
def test_base_opcode(opcode: str, base: str) -> None:
    assert base_opcode(opcode) == base


CALLERS = """
    all-reduce all-reduce-start all-reduce-scatter async-start async-update async-done call conditional cross-replica-sum
    custom-call fusion map reduce reduce-scatter reduce-window scan scatter select-and-scatter sort while
"""


def test_what_can_call_a_computation() -> None:
    assert set(OPCODES) & CALLING_OPCODES == set(CALLERS.split())


@pytest.mark.parametrize(
    ("opcode", "roles"),
    [
        ("while", {"body": "body", "condition": "condition"}),
        ("fusion", {"calls": "fused"}),
        ("fusion-start", {"calls": "fused"}),
        ("call", {"to_apply": "run"}),
        ("async-start", {"calls": "run"}),
        ("async-done", {}),  # names what its start runs
        ("reduce-scatter-start", {"to_apply": "applied"}),
        ("reduce-scatter-done", {}),
        ("all-reduce-done", {}),
        ("cross-replica-sum", {"to_apply": "applied"}),
        ("select-and-scatter", {"select": "applied", "scatter": "applied"}),
        ("add", {}),
        ("new-one", {}),
    ],
)
def test_the_role_of_each_callee(opcode: str, roles: dict[str, str]) -> None:
    assert callee_roles(opcode) == roles


def test_which_opcodes_call_in_a_role() -> None:
    assert opcodes_that_call("run") == {"async-start", "call", "call-start"}
    assert opcodes_that_call("body", "branch") == {"conditional", "conditional-start", "while", "while-start"}


@pytest.mark.parametrize(
    ("opcode", "half", "base", "is_wrapper", "collective"),
    [
        ("all-gather-start", "start", "all-gather", False, "all-gather"),
        ("reduce-scatter-start", "start", "reduce-scatter", True, "reduce-scatter"),
        ("all-reduce-scatter", "", "all-reduce-scatter", False, "reduce-scatter"),
        ("cross-replica-sum", "", "cross-replica-sum", False, "all-reduce"),
        ("send-done", "done", "send", False, "send"),
        ("copy-start", "start", "copy", False, ""),
        ("async-update", "update", "async", False, ""),
        ("dot-done", "done", "dot", True, ""),
    ],
)
def test_asynchronous_halves_and_collectives(opcode: str, half: str, base: str, is_wrapper: bool, collective: str) -> None:
    record = TABLE[opcode]
    assert (record.half, record.base) == (half, base)
    assert (record.is_wrapper, record.collective) == (is_wrapper, collective)


def test_elementwise_opcodes_have_one_to_three_operands() -> None:
    """As `HloInstruction::IsOpElementwise` lists them."""
    counts = {TABLE[opcode].operands for opcode in ELEMENTWISE}
    assert counts == {1, 2, 3}
    assert {opcode for opcode in ELEMENTWISE if TABLE[opcode].operands == 3} == {"select", "clamp"}
    assert {"copy", "convert", "bitcast-convert", "reduce-precision", "compare"} <= ELEMENTWISE
    assert ELEMENTWISE.isdisjoint({"bitcast", "iota", "broadcast", "map", "add-dependency", "add-start"})


def test_each_row_stands_for_opcodes_of_their_own() -> None:
    """No opcode stands in two rows of the table."""
    rows = [*opcodes._OPERANDS.values(), *opcodes._OLD_OPERANDS.values()]
    assert len(OPCODES) == sum(len(names.split()) for names in rows) == 133 + 5
