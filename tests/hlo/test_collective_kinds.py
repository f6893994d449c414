"""Formulas of sent bytes by kind, worked out by hand, and the words of kinds in other programs."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.collective_kinds import (
    ALPA_TIES,
    CHAKRA_TYPES,
    KIND_TABLE,
    MEGASCALE_WORDS,
    WORKLOAD_WORDS,
    CollectiveKind,
    is_named_as_collective,
)
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS


@pytest.mark.parametrize(
    ("kind", "devices", "sent"),
    [
        ("all-reduce", 3, 134),  # 2 x 2/3 of 100 is 133.3
        ("all-reduce", 2, 100),
        ("all-reduce", 1, 0),
        ("all-gather", 3, 200),  # the own part to both others
        ("all-gather", 1, 0),
        ("reduce-scatter", 3, 67),  # 2/3 of 100
        ("all-to-all", 4, 75),  # all but the own quarter
        ("collective-permute", None, 100),
        ("collective-broadcast", 8, 100),  # a chain: the root and all but the last pass it on
        ("collective-reduce", 8, 100),  # a chain the other way round
        ("ragged-all-to-all", 4, None),
        ("all-reduce", None, None),
        ("all-reduce", 0, None),
        ("send", 2, None),
        ("collective-gather", 2, None),
    ],
)
def test_bytes_that_one_device_sends_of_an_operand_of_100(kind: str, devices: int | None, sent: int | None) -> None:
    assert KIND_TABLE[kind].sent_bytes(100, devices) == sent


SHARES = {
    "all-reduce": 1.5,
    "all-gather": 0.75,
    "reduce-scatter": 0.75,
    "all-to-all": 0.75,
    "collective-permute": 1.0,
    "collective-broadcast": 1.0,
    "collective-reduce": 1.0,
}
"""The bus bandwidth's factors in the PERFORMANCE.md of nccl-tests, for four devices."""


def test_shares_of_the_whole_array_are_those_of_nccl_tests() -> None:
    assert {name: kind.share_sent(4) for name, kind in KIND_TABLE.items() if name in SHARES} == SHARES
    assert set(COLLECTIVE_KINDS) - set(SHARES) == {"ragged-all-to-all"}
    with pytest.raises(ValueError, match="no formula of the bytes that ragged-all-to-all sends is known"):
        KIND_TABLE["ragged-all-to-all"].share_sent(4)


@pytest.mark.parametrize("kind", SHARES)
def test_a_share_of_the_whole_is_the_formula_of_the_operand(kind: str) -> None:
    properties = KIND_TABLE[kind]
    whole = properties.whole_of_operand(96, 4)
    assert whole == (384 if kind == "all-gather" else 96)
    assert properties.sent_of_whole(whole, 4) == properties.sent_bytes(96, 4) == whole * SHARES[kind]


def test_an_array_that_each_device_sends_to_all_others() -> None:
    """A formula does not fix which array is the whole."""
    shouted = CollectiveKind("shouted", sends="n-1", whole="both")
    assert (shouted.sent_bytes(100, 4), shouted.sent_of_whole(100, 4), shouted.share_sent(4)) == (300, 300, 3.0)


def test_words_are_those_of_kinds_in_the_table() -> None:
    for words in (MEGASCALE_WORDS, WORKLOAD_WORDS, CHAKRA_TYPES, ALPA_TIES):
        assert set(words) <= set(COLLECTIVE_KINDS)
    assert CHAKRA_TYPES == {"all-reduce": 0, "all-gather": 2, "reduce-scatter": 7, "all-to-all": 6}
    assert list(ALPA_TIES) == ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]  # the order of its tuple
    assert set(WORKLOAD_WORDS) == set(CHAKRA_TYPES)


@pytest.mark.parametrize(
    ("opcode", "is_one"),
    [
        ("collective-gather", True),
        ("all-scatter-start", True),
        ("all-scatter-done", False),
        ("all-scatter-update", False),
        ("all-reduce", False),  # known
        ("collective-reduce-start", False),  # a short spelling of a known one
        ("frobnicate", False),
        ("small-all-gather", False),
    ],
)
def test_names_of_unknown_collectives(opcode: str, is_one: bool) -> None:
    assert is_named_as_collective(opcode) is is_one
