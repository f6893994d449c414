"""The sums over the rows of a workload: compute by pass, bytes by pass, collective and group; the devices of the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hlo_inspect.figure import Quantity, add, known_part, least, multiply, or_unknown, reason, total
from hlo_inspect.hlo.collective_kinds import KIND_TABLE
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, HLO_KINDS, KINDS, NONE, PASSES, WorkloadRow, group_of, kind_of
from hlo_inspect.workloads.workload_header import TENSOR_PARALLEL, WorkloadHeader
from hlo_inspect.workloads.workload_reader import EqualRows, Workload, unreadable_row


class CollectiveLabel(NamedTuple):
    """The key of equal collectives.

    `kind` is None if no client knows the word, `group` if SimAI finds none or the file is not for SimAI.
    """

    pass_name: str
    word: str
    kind: str | None
    group: str | None


@dataclass(slots=True)
class CollectiveSum:
    """The count of a declared collective, and its bytes in the convention of the file's client.

    `wire_bytes` are unknown if the number of devices is.
    """

    label: CollectiveLabel
    devices: int | None
    count: int = 0
    size: Quantity = 0
    wire_bytes: Quantity = 0

    def wire(self, size: int | None) -> int | None:
        """Return the bytes that one device sends for a collective of `size`, that of a whole array as in SimAI."""
        kind = HLO_KINDS.get(self.label.kind or "")
        if size is None or self.devices is None or kind is None:
            return 0 if size == 0 else None
        return KIND_TABLE[kind].sent_of_whole(size, self.devices)


class WorkloadTotals:
    """The sums over all rows of a workload, each row once."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.parallelism = Parallelism(workload.header)
        self.compute: dict[str, Quantity] = dict.fromkeys((*PASSES, UPDATE), 0)
        self.has_groups = workload.header.policy == FORWARD_IN_BACKWARD
        self.unreadable: dict[str, int] = dict.fromkeys(PASSES, 0)
        """Cells of a pass whose collective cannot be read."""
        self.first_unknown: int | None = None
        """The line of the first row with a field that is unknown."""
        self._by_word: dict[str, dict[str, CollectiveSum]] = {name: {} for name in PASSES}
        for row, equal in workload.distinct.items():
            self._add(row, equal)
            if self.first_unknown is None and None in row[2:12]:
                self.first_unknown = equal.line

    def _add(self, row: WorkloadRow, equal: EqualRows) -> None:
        times = equal.count
        self.compute[UPDATE] = add(self.compute[UPDATE], equal.sum_of(row.update_time))
        for name, time, word, size in row.cells:
            self.compute[name] = add(self.compute[name], equal.sum_of(time))
            if word is None:
                self.unreadable[name] += times
            elif word != NONE:
                collective = self._by_word[name].get(word) or self.collective(name, word)
                collective.count += times
                collective.size = add(collective.size, equal.sum_of(size))
                sent = or_unknown(collective.wire(size), reason(collective.size) or self._no_devices)
                collective.wire_bytes = add(collective.wire_bytes, multiply(sent, times))

    @property
    def _no_devices(self) -> str:
        """The reason why the devices of a group are unknown."""
        if self.workload.header.dialect != "simai":
            return "the header of an ASTRA-sim file has no group sizes"
        return "the header lacks the size of a group, or a word names no group"

    def collective(self, pass_name: str, word: str) -> CollectiveSum:
        """Return the collectives of a pass that have this word."""
        collective = self._by_word[pass_name].get(word)
        if collective is None:
            kind = kind_of(word)
            group = group_of(word, pass_name) if self.has_groups and kind is not None else None
            whole = self.workload.header.dialect == "simai" and kind is not None
            devices = self.parallelism.sizes.get(group or "") if whole else None
            collective = self._by_word[pass_name][word] = CollectiveSum(CollectiveLabel(pass_name, word, kind, group), devices)
        return collective

    @property
    def collectives(self) -> Iterator[CollectiveSum]:
        """The collectives of each pass and word."""
        return (collective for words in self._by_word.values() for collective in words.values() if collective.count)

    # -- sums -----------------------------------------------------------------------------------------------------------

    def size(self, *, pass_name: str = "", kind: str = "", group: str = "") -> Quantity:
        """Return the bytes of collectives that clients know, of one pass, kind or group if it is given."""
        return self._lower_bounded(total(collective.size for collective in self._chosen(pass_name, kind, group)), pass_name)

    def wire(self, *, pass_name: str = "", kind: str = "", group: str = "") -> Quantity:
        """Return the bytes that one device sends for them."""
        return self._lower_bounded(
            total(collective.wire_bytes for collective in self._chosen(pass_name, kind, group)), pass_name
        )

    def count(self, *, pass_name: str = "", kind: str = "", group: str = "") -> Quantity:
        """Return their number."""
        return self._lower_bounded(sum(collective.count for collective in self._chosen(pass_name, kind, group)), pass_name)

    def unknown_size(self) -> Quantity:
        """Return the bytes of collectives that no client knows."""
        return self._lower_bounded(
            total(collective.size for collective in self.collectives if collective.label.kind is None), ""
        )

    def _chosen(self, pass_name: str, kind: str, group: str) -> Iterator[CollectiveSum]:
        for collective in self.collectives:
            label = collective.label
            is_meant = pass_name in ("", label.pass_name) and kind in ("", label.kind) and group in ("", label.group)
            if is_meant and label.kind is not None:
                yield collective

    def _lower_bounded(self, amount: Quantity, pass_name: str) -> Quantity:
        """Return the sum as a lower bound if a cell of the pass cannot be read."""
        unreadable = sum(count for name, count in self.unreadable.items() if pass_name in ("", name))
        return known_part(least(amount), reason(amount) or (unreadable_row(self.first_unknown or 0) if unreadable else ""))


UPDATE = "update"
"""The update after a row's collectives: no pass, but with a compute time."""

KIND_NAMES = tuple(KINDS.values())


# -- devices, by the keys of the header --------------------------------------------------------------------------------


class Parallelism:
    """Tensor, pipeline, data and expert parallel devices; None if the header does not say.

    SimAI divides the devices of the job by tensor parallel ones and stages to get the data parallel ones (`Layer::report`).
    These, divided by expert parallel ones, share an expert. If a division has a rest, the result is unknown.
    """

    def __init__(self, header: WorkloadHeader) -> None:
        self.tensor, self.experts = _positive(header, TENSOR_PARALLEL), _positive(header, "ep")
        self.stages, self.devices = _positive(header, "pp"), _positive(header, "all_gpus")
        self.data = _divided(self.devices, self.per_replica)
        self.of_expert = _divided(self.data, self.experts)
        self.transfers = _transfers(header, self.stages)

    @property
    def per_replica(self) -> int | None:
        """The devices that hold one copy of the model."""
        return self.tensor * self.stages if self.tensor is not None and self.stages is not None else None

    @property
    def sizes(self) -> dict[str, int | None]:
        """The devices of each group; for the pipeline, its stages."""
        return {"tp": self.tensor, "dp": self.data, "ep": self.experts, "dp_ep": self.of_expert, "pp": self.stages}

    @property
    def text(self) -> str | None:
        """Tensor x pipeline x data parallel devices, as `8x16x8`."""
        numbers = (self.tensor, self.stages, self.data)
        return "x".join(map(str, numbers)) if None not in numbers else None

    @property
    def faults(self) -> list[str]:
        """Groups that do not divide the devices."""
        faults = []
        if self.devices is not None and self.per_replica is not None and self.devices % self.per_replica:
            together = f"TP {self.tensor} x PP {self.stages} = {self.per_replica}"
            faults.append(f"{together} does not divide the {self.devices} devices of all_gpus")
        if self.data is not None and self.experts is not None and self.data % self.experts:
            faults.append(f"EP {self.experts} does not divide the {self.data} data parallel devices")
        return faults


def _positive(header: WorkloadHeader, key: str) -> int | None:
    number = header.number(key)
    return number if number is not None and number > 0 else None


def _divided(number: int | None, by: int | None) -> int | None:
    return number // by if number is not None and by is not None and number % by == 0 else None


def _transfers(header: WorkloadHeader, stages: int | None) -> int | None:
    """Return the number of sends from a stage to the next in one pass: 2 x vpp x ga as in SimAI (`Layer::report`)."""
    if stages == 1:
        return 0
    chunks, batches = _positive(header, "vpp"), _positive(header, "ga")
    return 2 * chunks * batches if chunks is not None and batches is not None else None
