"""The trace of each rank: the nodes of the plan with the rank's groups and peers. Ranks with equal traces are a class.

Numbers of nodes are the same on all ranks. A rank has no node for a collective without it, or for a permute in which it neither
sends nor receives. Users of such a node wait for its own dependencies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.export.plan.communications import Communication
from hlo_inspect.export.plan.plan_nodes import CommunicationNode, ComputeNode, PlanNode
from hlo_inspect.export.written.chakra_nodes import (
    METADATA,
    collective_node,
    compute_node,
    delimited,
    edges_of,
    group_attribute,
    message_node,
    peer_attribute,
)

_Peers = tuple[int | None, int | None]
"""Peers of a rank in a communication: its group and None, or the ranks that it sends to and receives from."""
_ALONE: _Peers = (None, None)


class RankClass(NamedTuple):
    """Ranks with equal traces, ascending. `peers` are those of each communication that has nodes."""

    ranks: tuple[int, ...]
    peers: tuple[_Peers, ...]


class RankTraces:
    """The traces of all ranks of a step."""

    def __init__(self, nodes: Sequence[PlanNode], ranks: int) -> None:
        self._nodes = nodes
        communications: dict[int, Communication] = {}
        for node in nodes:
            if isinstance(node, CommunicationNode):
                communications.setdefault(id(node.communication), node.communication)
        self._indices = {key: index for index, key in enumerate(communications)}
        by_peers: dict[tuple[_Peers, ...], list[int]] = {}
        for rank in range(ranks):
            by_peers.setdefault(tuple([_peers(own, rank) for own in communications.values()]), []).append(rank)
        self.classes = [RankClass(tuple(members), peers) for peers, members in by_peers.items()]
        self._templates: dict[tuple[tuple[bool, bool], ...], _Template] = {}

    def trace(self, rank_class: RankClass) -> bytes:
        """Return the content of the file of a class of ranks."""
        return self._template(rank_class).filled(rank_class.peers)

    def node_count(self, rank_class: RankClass) -> int:
        """Return the number of nodes of a rank."""
        return self._template(rank_class).nodes

    def _template(self, rank_class: RankClass) -> _Template:
        pattern = tuple([(first is not None, second is not None) for first, second in rank_class.peers])
        template = self._templates.get(pattern)
        if template is None:
            template = self._templates[pattern] = _Template(self._nodes, self._indices, rank_class.peers)
        return template


def _peers(communication: Communication, rank: int) -> _Peers:
    if communication.collective.properties.names_pairs:
        return communication.targets.get(rank), communication.sources.get(rank)
    return communication.groups.get(rank), None


class _Slot(NamedTuple):
    """A node whose last attribute depends on the rank: the first or second peer of a communication."""

    content: bytes
    communication: int
    which: int
    is_group: bool


class _Template:
    """The bytes that ranks share if they have the same nodes, and the nodes that name their groups and peers."""

    def __init__(self, nodes: Sequence[PlanNode], indices: dict[int, int], peers: Sequence[_Peers]) -> None:
        self._stand_ins: dict[int, tuple[int, ...]] = {}
        """Nodes that take the place of a number: the halves of a permute, or what an absent node waits for."""
        self._parts: list[bytes | _Slot] = [METADATA]
        self._filled: dict[tuple[int, int], bytes] = {}
        self.nodes = 0
        for node in nodes:
            if isinstance(node, ComputeNode):
                edges = edges_of(self._present(node.behind), self._present(node.awaited))
                self._add(delimited(compute_node(node, edges)))
            else:
                index = indices[id(node.communication)]
                for part in self._communication(node, index, peers[index]):
                    self._add(part)

    def _add(self, part: bytes | _Slot) -> None:
        self.nodes += 1
        last = self._parts[-1]
        if isinstance(part, bytes) and isinstance(last, bytes) and len(last) < _JOINED:
            self._parts[-1] = last + part
        else:
            self._parts.append(part)

    def _communication(self, node: CommunicationNode, index: int, peers: _Peers) -> Iterator[_Slot]:
        """Yield the nodes that a rank has of a communication."""
        behind, awaited = self._present(node.behind), self._present(node.awaited)
        edges = edges_of(behind, awaited)
        if not node.communication.collective.properties.names_pairs and peers != _ALONE:
            yield _Slot(collective_node(node, edges), index, 0, is_group=True)
            return
        own = tuple(node.number + which for which in (0, 1) if peers[which] is not None)
        self._stand_ins[node.number] = own or tuple(sorted({*behind, *awaited}))
        for which in (0, 1):
            if peers[which] is not None:
                yield _Slot(message_node(node, edges, sends=which == 0), index, which, is_group=False)

    def _present(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Return the nodes that a rank has in place of these, ascending."""
        if not self._stand_ins:
            return tuple(numbers)
        return tuple(sorted({present for number in numbers for present in self._stand_ins.get(number, (number,))}))

    def filled(self, peers: Sequence[_Peers]) -> bytes:
        """Return the content of a file with these groups and peers."""
        return b"".join(
            [part if isinstance(part, bytes) else self._fill(number, part, peers) for number, part in enumerate(self._parts)]
        )

    def _fill(self, number: int, slot: _Slot, peers: Sequence[_Peers]) -> bytes:
        peer = peers[slot.communication][slot.which]
        if peer is None:  # a rank of this template has all of its nodes
            return b""
        if not slot.is_group:
            return delimited(slot.content + peer_attribute(peer, sends=slot.which == 0))
        content = self._filled.get((number, peer))
        if content is None:  # many ranks share a group
            content = self._filled[number, peer] = delimited(slot.content + group_attribute(peer))
        return content


_JOINED = 1 << 16
"""Bytes of joined nodes: longer ones would be copied again for each node."""
