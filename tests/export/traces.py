"""Execution traces read back through protobuf, and played as ASTRA-sim 2 plays them.

The descriptors are made of the published field numbers of `et_def.proto`. `play` follows `Workload.cc` and
`HardwareResource.cc`: a rank runs one compute node and one communication at a time, in the order of node numbers.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

COMP, SEND, RECV, COLL = 4, 5, 6, 7
KINDS = {0: "all-reduce", 2: "all-gather", 6: "all-to-all", 7: "reduce-scatter"}

_FIELDS: dict[str, dict[int, tuple[str, str, bool]]] = {
    "GlobalMetadata": {1: ("version", "string", False), 2: ("attr", "AttributeProto", True)},
    "Node": {
        1: ("id", "uint64", False),
        2: ("name", "string", False),
        3: ("type", "uint64", False),
        4: ("ctrl_deps", "uint64", True),
        5: ("data_deps", "uint64", True),
        6: ("start_time_micros", "uint64", False),
        7: ("duration_micros", "uint64", False),
        10: ("attr", "AttributeProto", True),
    },
    "AttributeProto": {
        1: ("name", "string", False),
        7: ("int32_val", "int32", False),
        9: ("int64_val", "int64", False),
        13: ("uint64_val", "uint64", False),
        27: ("bool_val", "bool", False),
        29: ("string_val", "string", False),
    },
}
_TYPES = {"string": 9, "uint64": 4, "int32": 5, "int64": 3, "bool": 8}
TYPE_OF_ATTRIBUTE = {
    "is_cpu_op": "bool_val",
    "num_ops": "int64_val",
    "tensor_size": "uint64_val",
    "comm_type": "int64_val",
    "comm_size": "int64_val",
    "pg_name": "string_val",
    "comm_src": "int32_val",
    "comm_dst": "int32_val",
    "comm_tag": "int32_val",
}
"""The types that the older feeder reads; it takes others as 0."""


@cache
def _messages() -> Mapping[str, Any]:
    names = ("descriptor_pb2", "descriptor_pool", "message_factory")
    descriptor_pb2, descriptor_pool, message_factory = (pytest.importorskip(f"google.protobuf.{name}") for name in names)
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    for message, fields in _FIELDS.items():
        own = file.message_type.add(name=message)
        if message == "AttributeProto":
            own.oneof_decl.add(name="value")
        for number, (name, kind, is_many) in fields.items():
            field = own.field.add(name=name, number=number, label=3 if is_many else 1)
            if kind in _TYPES:
                field.type = _TYPES[kind]
            else:
                field.type, field.type_name = 11, f".ChakraProtoMsg.{kind}"
            if message == "AttributeProto" and number > 2:
                field.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptors = {name: pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}") for name in _FIELDS}
    return {name: message_factory.GetMessageClass(descriptor) for name, descriptor in descriptors.items()}


class Node(NamedTuple):
    """A node of a trace; `attributes` have the types of `TYPE_OF_ATTRIBUTE`."""

    id: int
    name: str
    type: int
    duration: int
    ctrl: tuple[int, ...]
    data: tuple[int, ...]
    attributes: dict[str, Any]

    @property
    def deps(self) -> set[int]:
        return {*self.ctrl, *self.data}


def messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of a file. Fail if it ends within a message."""
    position = 0
    while position < len(data):
        length = shift = 0
        while True:
            byte = data[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert length, "readers take an empty message for the end of the file"
        assert position + length <= len(data)
        yield data[position : position + length]
        position += length


def read(path: Path) -> list[Node]:
    """Read a trace. Fail on fields that are not published, and on attributes of other types."""
    metadata, *rest = messages(path.read_bytes())
    assert _messages()["GlobalMetadata"].FromString(metadata).version == "0.0.4"
    nodes = []
    for data in rest:
        node = _messages()["Node"].FromString(data)
        assert node.SerializeToString(deterministic=True) == data, "fields are in order, and all are known"
        attributes = {}
        for attribute in node.attr:
            name = attribute.name
            assert name not in attributes
            assert attribute.WhichOneof("value") == TYPE_OF_ATTRIBUTE[name], name
            attributes[name] = getattr(attribute, TYPE_OF_ATTRIBUTE[name])
        edges = tuple(node.ctrl_deps), tuple(node.data_deps)
        nodes.append(Node(node.id, node.name, node.type, node.duration_micros, *edges, attributes))
    return nodes


class Traces(NamedTuple):
    """The traces of all ranks, and the members of each group."""

    ranks: dict[int, list[Node]]
    groups: dict[str, list[int]]

    def members(self, node: Node) -> tuple[int, ...]:
        """Return the ranks of a collective; without a group all of them."""
        group = node.attributes.get("pg_name", "")
        return tuple(self.groups[group]) if group else tuple(self.ranks)

    def moved(self, rank: int) -> tuple[Counter[str], Counter[str]]:
        """Return runs and operand bytes of a rank's collectives by kind."""
        runs: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for node in self.ranks[rank]:
            if node.type == COLL:
                kind = KINDS[node.attributes["comm_type"]]
                runs[kind] += 1
                sizes[kind] += node.attributes["comm_size"]
        return runs, sizes

    def messages_sent(self) -> dict[int, int]:
        """Return the bytes of each permute by its tag, which is that of one run."""
        return {
            node.attributes["comm_tag"]: node.attributes["comm_size"]
            for nodes in self.ranks.values()
            for node in nodes
            if node.type == SEND
        }


def load(folder: Path) -> Traces:
    """Read the files of a folder; of classes of ranks, each file for all of its ranks."""
    files = {int(path.name.split(".")[-2]): path for path in folder.glob("*.et")}
    map_file = folder / "rank_classes.json"
    classes = json.loads(map_file.read_text()) if map_file.exists() else {str(rank): [rank] for rank in files}
    ranks = {rank: read(files[int(first)]) for first, members in classes.items() for rank in members}
    return Traces(dict(sorted(ranks.items())), json.loads((folder / "comm_groups.json").read_text()))


def check(traces: Traces) -> None:
    """Fail if the client would misread the traces without a message, or hang."""
    assert list(traces.ranks) == list(range(len(traces.ranks)))
    for name, members in traces.groups.items():
        assert 0 < int(name) < 2148
        assert name == str(int(name))
        assert len(members) > 1
        assert members == sorted(set(members))
    started: dict[str, dict[int, list[tuple[int, int]]]] = {}
    sent: Counter[tuple[int, int, int, int]] = Counter()
    received: Counter[tuple[int, int, int, int]] = Counter()
    for rank, nodes in traces.ranks.items():
        assert nodes
        _check_edges(nodes)
        for node in nodes:
            own = node.attributes
            assert own["is_cpu_op"] is False
            if node.type == COMP:
                assert own["num_ops"] >= 1
                assert own["tensor_size"] >= 1 << 16
            elif node.type == COLL:
                assert rank in traces.members(node)
                assert own["comm_type"] in KINDS
                assert own["comm_size"] >= 0
                order = started.setdefault(own.get("pg_name", ""), {}).setdefault(rank, [])
                order.append((own["comm_type"], own["comm_size"]))
            else:
                assert 0 <= own["comm_tag"] < 500_000_000
                peer = own["comm_dst" if node.type == SEND else "comm_src"]
                assert peer != rank
                ends = (rank, peer) if node.type == SEND else (peer, rank)
                (sent if node.type == SEND else received)[own["comm_tag"], *ends, own["comm_size"]] += 1
    assert sent == received
    assert set(sent.values()) <= {1}
    for group, orders in started.items():
        assert set(orders) == set(traces.groups[group] if group else traces.ranks)
        assert len({tuple(order) for order in orders.values()}) == 1, "all ranks agree on the order"


def _check_edges(nodes: list[Node]) -> None:
    seen: set[int] = set()
    last_of_group: dict[str, int] = {}
    last_kernel: int | None = None
    reached: dict[int, int] = {}
    """The nodes that each node waits for, through any others, as bits."""
    for node in nodes:
        assert not seen or node.id > max(reached)
        assert node.deps <= seen, "dependencies are earlier numbers of nodes that exist"
        assert not {*node.ctrl} & {*node.data}
        bits = 0
        for other in node.deps:
            bits |= reached[other] | 1 << other
        reached[node.id] = bits
        seen.add(node.id)
        if node.type == COMP:
            assert last_kernel is None or bits >> last_kernel & 1, "kernels run one after the other"
            last_kernel = node.id
        if node.type == COLL:
            group = node.attributes.get("pg_name", "")
            before = last_of_group.get(group)
            assert before is None or before in node.deps, "a collective waits for the one before it in its group"
            last_of_group[group] = node.id


def play(traces: Traces, nanoseconds: int = 1000) -> dict[int, int]:
    """Return the end of each rank in ns if messages and collectives take no time. Fail if a rank hangs.

    A collective ends when all of its members have started it; the n-th of a group meets the n-th of the other ranks.
    """
    return _Player(traces, nanoseconds).run()


class _Player:
    def __init__(self, traces: Traces, nanoseconds: int) -> None:
        self.traces, self.unit = traces, nanoseconds
        self.left = {rank: {node.id: len(node.deps) for node in nodes} for rank, nodes in traces.ranks.items()}
        self.users: dict[int, dict[int, list[int]]] = {}
        self.nodes = {rank: {node.id: node for node in nodes} for rank, nodes in traces.ranks.items()}
        for rank, nodes in traces.ranks.items():
            users = self.users[rank] = {}
            for node in nodes:
                for other in node.deps:
                    users.setdefault(other, []).append(node.id)
        self.free = {rank: [number for number, count in left.items() if not count] for rank, left in self.left.items()}
        self.busy: dict[tuple[int, int], int] = {}
        self.met: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.counts: Counter[tuple[int, str]] = Counter()
        self.mail: dict[tuple[int, ...], int] = {}
        self.awaited: dict[tuple[int, ...], tuple[int, int]] = {}
        self.events: list[tuple[int, int, int]] = []
        self.ends: dict[int, int] = {}

    def run(self) -> dict[int, int]:
        for rank in self.traces.ranks:
            self.start(rank, 0)
        while self.events:
            now, rank, number = heapq.heappop(self.events)
            node = self.nodes[rank].pop(number)
            self.busy.pop((rank, min(node.type, SEND)) if node.type != RECV else (rank, -1), None)
            if node.type == COLL:
                self.busy.pop((rank, SEND), None)
            self.ends[rank] = now
            for user in self.users[rank].get(number, ()):
                self.left[rank][user] -= 1
                if not self.left[rank][user]:
                    self.free[rank].append(user)
            self.start(rank, now)
        hanging = {rank: [node.name for node in nodes.values()][:3] for rank, nodes in self.nodes.items() if nodes}
        assert not hanging
        return self.ends

    def start(self, rank: int, now: int) -> None:
        for number in sorted(self.free[rank]):
            node = self.nodes[rank][number]
            unit = (rank, COMP if node.type == COMP else SEND)
            if node.type != RECV:
                if unit in self.busy:
                    continue
                self.busy[unit] = number
            self.free[rank].remove(number)
            self.issue(rank, node, now)

    def issue(self, rank: int, node: Node, now: int) -> None:
        own = node.attributes
        if node.type == COMP:
            self.end(now + max(node.duration * self.unit, 1), rank, node.id)
        elif node.type == COLL:
            group = own.get("pg_name", "")
            key = group, self.counts[rank, group]
            self.counts[rank, group] += 1
            meeting = self.met.setdefault(key, [])
            meeting.append((rank, node.id))
            if len(meeting) == len(self.traces.members(node)):
                for other, number in meeting:
                    self.end(now, other, number)
        elif node.type == SEND:
            letter = own["comm_tag"], rank, own["comm_dst"], own["comm_size"]
            self.end(now, rank, node.id)
            if letter in self.awaited:
                self.end(now, *self.awaited.pop(letter))
            else:
                self.mail[letter] = now
        else:
            letter = own["comm_tag"], own["comm_src"], rank, own["comm_size"]
            if letter in self.mail:
                self.end(now, rank, node.id)
            else:
                self.awaited[letter] = rank, node.id

    def end(self, time: int, rank: int, number: int) -> None:
        heapq.heappush(self.events, (time, rank, number))
