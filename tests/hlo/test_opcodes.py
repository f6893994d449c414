"""Opcodes: the spellings that a reader of other compilers would guess wrong, old ones, and asynchronous sugar."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.opcodes import OPCODES, base_opcode, calling_opcodes, is_known
from hlo_inspect.hlo.strict.signatures import signatures

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
REMOVED = ["trace", "tuple-select", "cross-replica-sum"]
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
    assert is_known(opcode)


def test_the_list_holds_the_133_of_today_and_the_removed() -> None:
    assert len(OPCODES - {*REMOVED, "bitcast-move"}) == 133


@pytest.mark.parametrize("opcode", SUGAR)
def test_sugar_is_known_without_being_listed(opcode: str) -> None:
    assert opcode not in OPCODES
    assert is_known(opcode)


@pytest.mark.parametrize("opcode", [*NO_SUGAR, "negate-start-done", "negate-begin", "-start", "exp", "barrier", "Add", ""])
def test_what_xla_refuses_is_unknown(opcode: str) -> None:
    assert not is_known(opcode)


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


def test_what_can_call_a_computation() -> None:
    """Against the attributes that the strict check knows of each opcode."""
    calling = {opcode for opcode in OPCODES if calling_opcodes([opcode])}
    kinds = {opcode: set(signature.attributes.values()) for opcode, signature in signatures().items()}
    named = {opcode for opcode, found in kinds.items() if found & {"computation", "computations"}}
    assert named <= calling
    assert calling - named <= {"cross-replica-sum", "async-update", "async-done", "all-reduce-done"}
    assert calling_opcodes(["add", "new-one", "reduce-scatter-start", "tuple", "fusion", "fusion"]) == {
        "new-one",
        "reduce-scatter-start",
        "fusion",
    }
