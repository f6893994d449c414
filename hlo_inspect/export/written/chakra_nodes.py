"""Nodes of Chakra's execution traces as bytes, in protobuf's wire format (https://protobuf.dev/programming-guides/encoding).

The numbers come from `schema/protobuf/et_def.proto` of mlcommons/chakra.

Attributes have the types that both feeders of ASTRA-sim read; the older one takes any other type as 0. Members of a oneof are
on the wire even if they are 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.export.plan.communications import EVERYBODY, MAX_SIZE
from hlo_inspect.export.plan.plan_nodes import CommunicationNode, ComputeNode
from hlo_inspect.hlo.collective_kinds import CHAKRA_TYPES

_ID, _NAME, _TYPE, _CTRL_DEPS, _DATA_DEPS, _DURATION, _ATTR = 1, 2, 3, 4, 5, 7, 10
_INT32, _INT64, _UINT64, _BOOL, _STRING = 7, 9, 13, 27, 29
_COMP_NODE, _COMM_SEND_NODE, _COMM_RECV_NODE, _COMM_COLL_NODE = 4, 5, 6, 7
_VARINT, _BYTES = 0, 2


def varint(number: int) -> bytes:
    """Encode an unsigned integer in base 128, least significant digits first."""
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)


def integer(field: int, number: int) -> bytes:
    """Encode an unsigned integer, or one of two's complement if it is not negative."""
    return varint(field << 3 | _VARINT) + varint(number)


def text(field: int, content: str | bytes) -> bytes:
    """Encode a string or a message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | _BYTES) + varint(len(data)) + data


def integers(field: int, numbers: Iterable[int]) -> bytes:
    """Encode a packed list of unsigned integers; an empty one is not on the wire."""
    data = b"".join(map(varint, numbers))
    return text(field, data) if data else b""


def delimited(message: bytes) -> bytes:
    """Return a message behind its length, as in a chain of messages."""
    return varint(len(message)) + message


METADATA = delimited(text(1, "0.0.4"))
"""The first message of a file: a version. Readers take an empty message for the end of the file."""


def _attribute(name: str, field: int, value: int | str) -> bytes:
    encoded = text(field, value) if isinstance(value, str) else integer(field, value)
    return text(_ATTR, text(1, name) + encoded)


_ON_DEVICE = _attribute("is_cpu_op", _BOOL, 0)


def _node(number: int, name: str, kind: int, edges: bytes, attributes: bytes) -> bytes:
    own = integer(_ID, number) if number else b""
    return own + text(_NAME, name) + integer(_TYPE, kind) + edges + attributes


def edges_of(behind: tuple[int, ...], awaited: tuple[int, ...]) -> bytes:
    """Encode control and data dependencies. Each number is in one of the two lists."""
    return integers(_CTRL_DEPS, sorted(set(behind) - set(awaited))) + integers(_DATA_DEPS, awaited)


def compute_node(node: ComputeNode, edges: bytes) -> bytes:
    """Encode a compute node. Both kinds of system file work: those with durations, and those with a roofline."""
    duration = integer(_DURATION, node.duration) if node.duration else b""
    attributes = (
        _ON_DEVICE
        + _attribute("num_ops", _INT64, min(node.flops, MAX_SIZE))
        + _attribute("tensor_size", _UINT64, min(node.size, MAX_SIZE))
    )
    return _node(node.number, node.name, _COMP_NODE, edges + duration, attributes)


def collective_node(node: CommunicationNode, edges: bytes) -> bytes:
    """Encode a run of a collective, without its group."""
    communication = node.communication
    attributes = (
        _ON_DEVICE
        + _attribute("comm_type", _INT64, CHAKRA_TYPES[communication.kind])
        + _attribute("comm_size", _INT64, communication.size)
    )
    return _node(node.number, communication.collective.start.name, _COMM_COLL_NODE, edges, attributes)


def message_node(node: CommunicationNode, edges: bytes, *, sends: bool) -> bytes:
    """Encode the sending or receiving half of a run of a permute, without its peer."""
    communication = node.communication
    attributes = _ON_DEVICE + _attribute("comm_size", _INT64, communication.size) + _attribute("comm_tag", _INT32, node.run)
    number, kind = (node.number, _COMM_SEND_NODE) if sends else (node.number + 1, _COMM_RECV_NODE)
    name = f"{communication.collective.start.name} {'send' if sends else 'receive'}"
    return _node(number, name, kind, edges, attributes)


def group_attribute(number: int) -> bytes:
    """Encode the group of a collective; all ranks need no name."""
    return b"" if number == EVERYBODY else _attribute("pg_name", _STRING, str(number))


def peer_attribute(rank: int, *, sends: bool) -> bytes:
    """Encode the rank at the other end of a message."""
    return _attribute("comm_dst" if sends else "comm_src", _INT32, rank)
