"""Kinds of collectives: the formulas of their bytes, their words in other programs, and the kinds of unknown opcodes.

The rows of kinds are in `opcodes`. An opcode that no known version of XLA has is a kind of its own, with unknown bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, TABLE, Sends, Whole, base_opcode

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
    `is_known`: it has a row in `opcodes`.
    """

    name: str
    sends: Sends = "?"
    whole: Whole = "?"
    names_pairs: bool = False
    is_exchange: bool = False
    is_known: bool = False

    @property
    def rounds(self) -> int:
        """The times that its data go round a ring: 2 if devices add up parts and exchange the sums, else 1."""
        return 2 if self.sends == "2(n-1)/n" else 1

    @property
    def sends_whole(self) -> bool:
        """True if a device sends its operand once, for any size of the group."""
        return self.sends == "1"

    def _ratio(self, devices: int) -> tuple[int, int] | None:
        """Return sent bytes by operand bytes as numerator and denominator; None if unknown."""
        if self.sends_whole:
            return 1, 1
        if self.sends == "n-1":
            return devices - 1, 1
        return (self.rounds * (devices - 1), devices) if self.sends in ("2(n-1)/n", "(n-1)/n") else None

    def sent_bytes(self, operand_bytes: int, devices: int | None) -> int | None:
        """Return the bytes that one device of a group of `devices` sends, rounded up; None if unknown."""
        if not devices and not self.sends_whole:
            return None
        ratio = self._ratio(devices or 1)
        return None if ratio is None else -(-operand_bytes * ratio[0] // ratio[1])

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
        ratio = self._ratio(devices)
        if ratio is None:
            raise ValueError(f"no formula of the bytes that {self.name} sends is known")
        return (ratio[0], ratio[1] * devices) if self.whole == "result" else ratio

    def whole_bytes(self, operand_bytes: int | None, result_bytes: int | None) -> int | None:
        """Return the bytes of the whole array; the operands of a kind whose whole array is unknown."""
        return result_bytes if self.whole == "result" else operand_bytes

    def whole_of_operand(self, operand_bytes: int, devices: int) -> int:
        """Return the bytes of the whole array of a group of `devices`, by the operand of one device."""
        return operand_bytes * devices if self.whole == "result" else operand_bytes

    def operand_of_result(self, result_bytes: int, devices: int | None) -> int | None:
        """Return the operand bytes of one device of a group of `devices`, by its result; None if unknown."""
        if self.whole == "both":
            return result_bytes
        if self.whole == "?" or not devices:
            return None
        return result_bytes // devices if self.whole == "result" else result_bytes * devices


@cache
def _known_kinds() -> Mapping[str, CollectiveKind]:
    records = [TABLE[name] for name in COLLECTIVE_KINDS]
    return {
        record.name: CollectiveKind(
            record.name, record.sends, record.whole, "pairs" in record.traits, "exchange" in record.traits, is_known=True
        )
        for record in records
    }


def collective_kind(name: str) -> CollectiveKind:
    """Return a kind by its name; without formulas for send, recv and unknown opcodes."""
    return _known_kinds().get(name) or CollectiveKind(name, is_known=name in TABLE)


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


def kind_of(opcode: str) -> str:
    """Return the kind of collective that an opcode starts or ends; empty for an opcode that is none.

    An unknown opcode counts as a collective of its own kind: ask for opcodes of collectives only.
    """
    record = TABLE.get(opcode)
    return base_opcode(opcode) if record is None else record.collective


def may_start_unknown(opcode: str) -> bool:
    """Return True if an opcode is unknown and no end of an asynchronous pair."""
    return opcode not in TABLE and not opcode.endswith(("-done", "-update"))


def is_named_as_collective(opcode: str) -> bool:
    """Return True if the name of an unknown opcode says that it starts a collective."""
    return may_start_unknown(opcode) and opcode.startswith(PREFIXES)
