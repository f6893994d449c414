"""Kinds of collectives: the formulas of their bytes, their words in other programs, and the kinds of unknown opcodes.

The rows of kinds are in `opcodes`. An opcode that no known version of XLA has is a kind of its own, with unknown bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, TABLE, Opcode, Sends, Whole

_WORDS = """
# kind              megascale       workload       chakra  alpa
all-reduce          ALL_REDUCE      ALLREDUCE      0       0.01
all-gather          ALL_GATHER      ALLGATHER      2       0.1
reduce-scatter      REDUCE_SCATTER  REDUCESCATTER  7       0.001
all-to-all          ALL_TO_ALL      ALLTOALL       6       0.001
collective-permute  ONE_TO_ONE      -              -       -
"""
"""Words of kinds in other programs; `-` and a missing row mean that a program does not know the kind.

`megascale` is the word of traffic between slices of TPUs, `workload` that of SimAI and ASTRA-sim 1.0. `chakra` is the value of
Chakra's `CollectiveCommType`, `alpa` the constant by which Alpa's cost model breaks ties.
"""


class CollectiveKind(NamedTuple):
    """A kind of collective. `sends` and `whole` are those of its row in `opcodes`.

    `names_pairs`: it has source-target pairs instead of groups. `is_exchange`: each device of a group gets another part.
    `is_known`: it has a row in `opcodes`. `rounds`: the times that its data go round a ring: 2 if devices add up parts and
    then exchange the sums, else 1. `sends_whole`: a device sends its operand once, for any size of the group.
    """

    name: str
    sends: Sends = "?"
    whole: Whole = "?"
    names_pairs: bool = False
    is_exchange: bool = False
    is_known: bool = False
    rounds: int = 1
    sends_whole: bool = False

    def sent_bytes(self, operand_bytes: int, devices: int | None) -> int | None:
        """Return the bytes that one device of a group of `devices` sends, rounded up; None if unknown."""
        if self.sends_whole:
            return operand_bytes
        if not devices or self.sends in _NO_FORMULA:
            return None
        sent = self.rounds * (devices - 1) * operand_bytes
        return sent if self.sends == "n-1" else -(-sent // devices)

    def share_sent(self, devices: int) -> float:
        """Return the share of the whole array that one device sends, the bus-bandwidth factor of nccl-tests.

        Raise ValueError for a kind without a formula.
        """
        numerator, denominator = self._ratio_of_whole(devices)
        return numerator / denominator

    def sent_of_whole(self, whole_bytes: int, devices: int) -> int:
        """Return the bytes that one device sends of a whole array, rounded up. Raise ValueError as `share_sent`."""
        numerator, denominator = self._ratio_of_whole(devices)
        return -(-whole_bytes * numerator // denominator)

    def _ratio_of_whole(self, devices: int) -> tuple[int, int]:
        """Return sent bytes by the bytes of the whole array. Raise ValueError for a kind without a formula."""
        if self.sends in _NO_FORMULA:
            raise ValueError(f"no formula of the bytes that {self.name} sends is known")
        if self.sends_whole:
            return 1, 1
        denominator = 1 if self.sends == "n-1" else devices
        return self.rounds * (devices - 1), denominator * devices if self.whole == "result" else denominator

    def whole_of_operand(self, operand_bytes: int, devices: int) -> int:
        """Return the bytes of the whole array of a group of `devices`, by the operand of one device."""
        return operand_bytes * devices if self.whole == "result" else operand_bytes


_NO_FORMULA: frozenset[Sends] = frozenset({"<=1", "?"})


class _KindTable(dict[str, CollectiveKind]):
    """Kinds by name. send, recv and unknown opcodes are kinds without formulas."""

    def __missing__(self, name: str) -> CollectiveKind:
        return CollectiveKind(name, is_known=name in TABLE)


def _kind(record: Opcode) -> CollectiveKind:
    return CollectiveKind(
        record.name,
        record.sends,
        record.whole,
        names_pairs="pairs" in record.traits,
        is_exchange="exchange" in record.traits,
        is_known=True,
        rounds=2 if record.sends == "2(n-1)/n" else 1,
        sends_whole=record.sends == "1",
    )


KIND_TABLE = _KindTable({name: _kind(TABLE[name]) for name in COLLECTIVE_KINDS})


def _words_of(column: int) -> Mapping[str, str]:
    """Return the words of one column of `_WORDS` by kind."""
    rows = [line.split() for line in _WORDS.splitlines() if line and not line.startswith("#")]
    return {row[0]: row[column] for row in rows if row[column] != "-"}


MEGASCALE_WORDS = _words_of(1)
WORKLOAD_WORDS = _words_of(2)
CHAKRA_TYPES = {kind: int(word) for kind, word in _words_of(3).items()}
ALPA_TIES = {kind: float(word) for kind, word in _words_of(4).items()}


# -- unknown opcodes --------------------------------------------------------------------------------------------------------

PREFIXES = ("all-", "collective-")
"""Beginnings of names that mark an unknown opcode as a collective."""

DEVICE_ATTRIBUTES = ("replica_groups", "channel_id")
"""Attributes that mark an unknown opcode as a collective."""


def may_start_unknown(opcode: str) -> bool:
    """Return True if an opcode is unknown and no end of an asynchronous pair."""
    return opcode not in TABLE and not opcode.endswith(("-done", "-update"))


def is_named_as_collective(opcode: str) -> bool:
    """Return True if the name of an unknown opcode says that it starts a collective."""
    return may_start_unknown(opcode) and opcode.startswith(PREFIXES)
