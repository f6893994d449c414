"""What the rows of a workload add up to: compute by pass, bytes by pass, collective and group; the devices of the groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hlo_inspect.workloads.header import TENSOR_PARALLEL, WorkloadHeader
from hlo_inspect.workloads.reader import Workload
from hlo_inspect.workloads.row import FORWARD_IN_BACKWARD, KINDS, NONE, PASSES, WorkloadRow, group_of, kind_of


@dataclass(slots=True)
class PartialSum:
    """A sum whose parts are not all known: `least` is what the known ones add up to."""

    least: int = 0
    is_complete: bool = True

    @property
    def exact(self) -> int | None:
        return self.least if self.is_complete else None

    def add(self, amount: int | None, times: int = 1) -> None:
        if amount is None:
            self.is_complete = False
        else:
            self.least += amount * times


def together(sums: Iterable[PartialSum]) -> PartialSum:
    """The sum of sums."""
    result = PartialSum()
    for one in sums:
        result.least += one.least
        result.is_complete = result.is_complete and one.is_complete
    return result


class CollectiveLabel(NamedTuple):
    """What equal collectives have in common. `kind` is `None` where no client knows the word, `group` where SimAI gives it none
    or the file is not for SimAI.
    """

    pass_name: str
    word: str
    kind: str | None
    group: str | None


@dataclass(slots=True)
class CollectiveSum:
    """How often a collective is declared, and its bytes in the convention of the file's client. Those on the wire are not known
    where the number of devices is not.
    """

    label: CollectiveLabel
    devices: int | None
    count: int = 0
    size: PartialSum = field(default_factory=PartialSum)
    wire_bytes: PartialSum = field(default_factory=PartialSum)

    def wire(self, size: int | None) -> int | None:
        """What one device has to send for one with a bandwidth-optimal algorithm, rounded up: 2(n-1)/n of the size for an
        all-reduce in a group of n devices, (n-1)/n for the others. Sizes are those of whole arrays, as SimAI has them.
        """
        if size is None or self.devices is None:
            return 0 if size == 0 else None
        return -(-size * (self.devices - 1) * (2 if self.label.kind == "allreduce" else 1) // self.devices)


class WorkloadTotals:
    """The sums over all rows of a workload, each row once."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.parallelism = Parallelism(workload.header)
        self.compute = {name: PartialSum() for name in (*PASSES, UPDATE)}
        self.has_groups = workload.header.policy == FORWARD_IN_BACKWARD
        self.unreadable: dict[str, int] = dict.fromkeys(PASSES, 0)
        """Cells of a pass whose collective cannot be read."""
        self.first_unknown: int | None = None
        """The line of the first row with a field that is not known."""
        self._by_word: dict[str, dict[str, CollectiveSum]] = {name: {} for name in PASSES}
        for row, equal in workload.distinct.items():
            self._add(row, equal.count)
            if self.first_unknown is None and None in row[2:12]:
                self.first_unknown = equal.line

    def _add(self, row: WorkloadRow, times: int) -> None:
        self.compute[UPDATE].add(row.update_time, times)
        for name, time, word, size in row.cells:
            self.compute[name].add(time, times)
            if word is None:
                self.unreadable[name] += times
            elif word != NONE:
                one = self._by_word[name].get(word) or self.collective(name, word)
                one.count += times
                one.size.add(size, times)
                one.wire_bytes.add(one.wire(size), times)

    def collective(self, pass_name: str, word: str) -> CollectiveSum:
        """The collectives of a pass that have this word."""
        found = self._by_word[pass_name].get(word)
        if found is None:
            kind = kind_of(word)
            group = group_of(word, pass_name) if self.has_groups and kind is not None else None
            whole = self.workload.header.dialect == "simai" and kind is not None
            devices = self.parallelism.sizes.get(group or "") if whole else None
            found = self._by_word[pass_name][word] = CollectiveSum(CollectiveLabel(pass_name, word, kind, group), devices)
        return found

    @property
    def collectives(self) -> Iterator[CollectiveSum]:
        """Those of each pass and word."""
        return (one for words in self._by_word.values() for one in words.values() if one.count)

    # -- sums -----------------------------------------------------------------------------------------------------------

    def size(self, *, pass_name: str = "", kind: str = "", group: str = "") -> PartialSum:
        """The bytes of collectives that clients know, of one pass, kind or group where it is named."""
        return self._of(together(one.size for one in self._chosen(pass_name, kind, group)), pass_name)

    def wire(self, *, pass_name: str = "", kind: str = "", group: str = "") -> PartialSum:
        """The bytes that one device sends for them."""
        return self._of(together(one.wire_bytes for one in self._chosen(pass_name, kind, group)), pass_name)

    def count(self, *, pass_name: str = "", kind: str = "", group: str = "") -> PartialSum:
        """How many there are."""
        return self._of(PartialSum(sum(one.count for one in self._chosen(pass_name, kind, group))), pass_name)

    def unknown_size(self) -> PartialSum:
        """The bytes of collectives that no client knows."""
        return self._of(together(one.size for one in self.collectives if one.label.kind is None), "")

    def _chosen(self, pass_name: str, kind: str, group: str) -> Iterator[CollectiveSum]:
        for one in self.collectives:
            label = one.label
            is_meant = pass_name in ("", label.pass_name) and kind in ("", label.kind) and group in ("", label.group)
            if is_meant and label.kind is not None:
                yield one

    def _of(self, found: PartialSum, pass_name: str) -> PartialSum:
        """The sum, without an end where a cell of the pass cannot be read."""
        unreadable = sum(count for name, count in self.unreadable.items() if pass_name in ("", name))
        return PartialSum(found.least, found.is_complete and not unreadable)


UPDATE = "update"
"""What follows the collective of a row: no pass, and a compute time like those."""

KIND_NAMES = tuple(KINDS.values())


# -- devices, by the keys of the header --------------------------------------------------------------------------------


class Parallelism:
    """Tensor, pipeline, data and expert parallel devices; `None` where the header does not say.

    SimAI: data parallel devices are those of the job by tensor parallel ones and stages (`Layer::report`), and those that share
    an expert are the data parallel ones by expert parallel ones. A division with a rest leaves them unknown.
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
        """The devices of each group, and of the pipeline its stages."""
        return {"tp": self.tensor, "dp": self.data, "ep": self.experts, "dp_ep": self.of_expert, "pp": self.stages}

    @property
    def text(self) -> str | None:
        """Tensor x pipeline x data parallel devices, as `8x16x8`."""
        numbers = (self.tensor, self.stages, self.data)
        return "x".join(map(str, numbers)) if None not in numbers else None

    @property
    def faults(self) -> list[str]:
        """Groups that do not divide the devices."""
        found = []
        if self.devices is not None and self.per_replica is not None and self.devices % self.per_replica:
            together = f"TP {self.tensor} x PP {self.stages} = {self.per_replica}"
            found.append(f"{together} does not divide the {self.devices} devices of all_gpus")
        if self.data is not None and self.experts is not None and self.data % self.experts:
            found.append(f"EP {self.experts} does not divide the {self.data} data parallel devices")
        return found


def _positive(header: WorkloadHeader, key: str) -> int | None:
    number = header.number(key)
    return number if number is not None and number > 0 else None


def _divided(number: int | None, by: int | None) -> int | None:
    return number // by if number is not None and by is not None and number % by == 0 else None


def _transfers(header: WorkloadHeader, stages: int | None) -> int | None:
    """How many times a stage sends to the next in one pass, 2 x vpp x ga as SimAI has it (`Layer::report`)."""
    if stages == 1:
        return 0
    chunks, batches = _positive(header, "vpp"), _positive(header, "ga")
    return 2 * chunks * batches if chunks is not None and batches is not None else None
