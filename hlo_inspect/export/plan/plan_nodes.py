"""Nodes of the plan of a step, built in the order of the schedule.

Kernels run one after the other on a device, so each compute node waits for the one before it. The client's clock is coarse:
consecutive kernels are one node until they last for a tick. A rest that is left at a start or a done is carried to the next
node. Users of its kernels then wait for the nodes that these kernels wait for. The first kernels beside a communication are a
node however short they are: the rest of their tick is taken from the kernels that follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hlo_inspect.analysis.time.program_steps import LoopStep
from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.export.plan.kernel_work import PICOSECONDS, KernelWork
from hlo_inspect.export.plan.row_actions import READY, StepValue, nodes_behind

TICK = PICOSECONDS // 10**6
"""The tick of the client's durations, in picoseconds: a microsecond."""

LEAST_SIZE = 1 << 16
"""Bytes of a compute node that take the roofline's tick of 1 ns, up to a bandwidth of 65 TB/s."""


class ComputeNode(NamedTuple):
    """Consecutive kernels: `duration` is in ticks, `flops` and `size` in FLOPs and bytes.

    `behind` are the compute node and the dones before it, `awaited` are the communications whose results its kernels use.
    """

    number: int
    name: str
    duration: int
    flops: int
    size: int
    behind: tuple[int, ...]
    awaited: tuple[int, ...]


class CommunicationNode(NamedTuple):
    """A run of a communication; a permute has its receiving half at the next number.

    `behind` are nodes that fix its order, `awaited` those that make its operands. `run` counts the permutes of the step.
    """

    number: int
    communication: Communication
    behind: tuple[int, ...]
    awaited: tuple[int, ...]
    run: int


PlanNode = ComputeNode | CommunicationNode


class NodeList:
    """The nodes of a step so far. With `times` nodes last for a tick, else they move `LEAST_SIZE` bytes.

    Kernels that are no node yet have negative numbers in values.
    """

    def __init__(self, *, times: bool) -> None:
        self.nodes: list[PlanNode] = []
        self.kernel_runs = 0
        self._times = times
        self._next = 0
        self._permutes = 0
        self._chain: tuple[int, ...] = ()
        self._behind_chain: set[int] = set()
        self._names: list[str] = []
        self._time = self._flops = self._bytes = 0
        self._open: frozenset[int] = frozenset([-1])
        self._waiting: set[int] = set()
        self._held: set[int] = set()
        self._resolved: dict[int, frozenset[int]] = {}
        self._last_of_group: dict[int, int] = {}
        self._last_communication: tuple[int, ...] = ()
        self._running: set[int] = set()

    @property
    def size(self) -> int:
        return len(self.nodes)

    def refusal(self, _communication: Communication) -> str:
        """Return no reason: all communications with groups or peers have nodes."""
        return ""

    def iterate(self, _loop: LoopStep, _iteration: int | None) -> None:
        """Take an iteration of a loop, which makes no node by itself."""

    def kernel(self, work: KernelWork, operands: Iterable[StepValue]) -> frozenset[int]:
        """Add a run of a kernel and return the value of its result."""
        self.kernel_runs += 1
        self._waiting.update(self._plain(nodes_behind(operands)) - self._behind_chain)
        self._names.append(work.name)
        self._time += work.time
        self._flops += work.flops
        self._bytes += work.size
        is_long = self._time >= TICK if self._times else self._bytes >= LEAST_SIZE
        return self._close(self._time // TICK) if is_long else self._open

    def communicate(self, communication: Communication, operands: Iterable[StepValue]) -> frozenset[int]:
        """Add a run of a communication that waits for its operands and for the kernels before it; return its value."""
        self._divide()
        awaited = self._plain(nodes_behind(operands)) | self._waiting
        behind = {*self._chain, *self._held, *self._last_communication}
        groups = frozenset(communication.groups.values())
        behind.update(last for group in groups if (last := self._last_of_group.get(group)) is not None)
        number, is_permute = self._next, communication.collective.properties.names_pairs
        own = CommunicationNode(number, communication, *_sorted(behind, awaited), self._permutes)
        self.nodes.append(own)
        self._next += 2 if is_permute else 1
        self._permutes += is_permute
        self._last_of_group |= dict.fromkeys(groups, number)
        if groups:
            self._last_communication = (number,)
        self._running.add(number)
        return frozenset([number])

    def wait(self, value: StepValue) -> None:
        """Separate the kernels before a done from those after it, which wait for its value."""
        self._divide()
        ended = self._plain(nodes_behind([value]))
        self._running -= ended
        self._held |= ended - self._behind_chain

    def finish(self) -> None:
        """Add the rest of the kernels as the last node, if it rounds to a tick or if the step would have no kernel."""
        duration = max((self._time + TICK // 2) // TICK, 0)
        has_rest = duration if self._times else self._flops or self._bytes
        if has_rest or not self._chain:
            self._names = self._names or ["rest"]
            self._add_compute(max(duration, 1) if self._times else 0)

    def _divide(self) -> None:
        """Separate the kernels before a start or a done from those after it."""
        if not self._names:
            return
        if max(self._running, default=-1) > max(self._chain, default=-1):
            self._close(1)
        else:
            self._resolve(frozenset([*self._chain, *self._held, *self._waiting]))
            self._names.clear()

    # -- what is open -----------------------------------------------------------------------------------------------------

    def _close(self, ticks: int) -> frozenset[int]:
        """Make the open kernels a node and return its value. Time that they lack for the ticks is owed by the next ones."""
        value = frozenset([self._add_compute(ticks if self._times else 0)])
        if self._times:
            self._time -= ticks * TICK
        self._resolve(value)
        return value

    def _add_compute(self, duration: int) -> int:
        number = self._next
        self._next += 1
        more = f" (+{len(self._names) - 1})" if len(self._names) > 1 else ""
        name, size = f"{self._names[0]}{more}", max(self._bytes, LEAST_SIZE)
        edges = _sorted([*self._chain, *self._held], self._waiting)
        self.nodes.append(ComputeNode(number, name, duration, max(self._flops, 1), size, *edges))
        self._behind_chain |= self._waiting
        self._held.clear()
        self._behind_chain.add(number)
        self._chain = (number,)
        self._flops = self._bytes = 0
        self._waiting.clear()
        self._names.clear()
        return number

    def _resolve(self, value: frozenset[int]) -> None:
        """Give the kernels that are no node so far their value, and begin anew."""
        (marker,) = self._open
        self._resolved[marker] = value
        self._open = frozenset([marker - 1])

    def _plain(self, nodes: frozenset[int]) -> frozenset[int]:
        """Return the numbers of nodes, without those of the kernels that are still open."""
        if not any(node < 0 for node in nodes):
            return nodes
        plain: set[int] = set()
        for node in nodes:
            plain |= {node} if node >= 0 else self._resolved.get(node, READY)
        return frozenset(plain)


def _sorted(behind: Iterable[int], awaited: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of both in ascending order, each once."""
    data = set(awaited)
    return tuple(sorted(set(behind) - data)), tuple(sorted(data))
