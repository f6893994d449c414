"""Programs of several slices: TPUs whose slices are joined by the data-centre network.

XLA compiles such a program for one slice. `num_partitions` counts the devices of one slice, device groups hold ids of one, and
only shardings are over all devices. Traffic between slices is a send and a recv to the host. Their frontend attributes name the
collective that they make up:

    _xla_megascale_transfer_type="ALL_GATHER", _xla_megascale_target="{1,2}x{0:15}"
    _xla_megascale_transfer_type="ONE_TO_ONE", _xla_megascale_target={{100000->200000},{200000->100000}}

A target is slices and the devices of each, or lists of devices written as slice × 100,000 + device. Slices count from 1.
Source: the text that libtpu 0.0.42 writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hlo_inspect.hlo.collective_kinds import MEGASCALE_WORDS
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.lazy_pattern import lazy_pattern

DCN = "dcn"
"""The name of the axis between slices: data-centre network."""

_POINT_TO_POINT = frozenset({"send", "recv"})
_KINDS = {word: kind for kind, word in MEGASCALE_WORDS.items()}
_DEVICES_OF_SLICE = 100_000
_PRODUCT = lazy_pattern(r"\{([\d,\s]{1,4000})\}\s*x\s*\{", re.ASCII)
_LIST = lazy_pattern(r"\{([\d,\s]+|\s*\d+\s*->\s*\d+\s*)\}", re.ASCII)
_ID = lazy_pattern(r"\d{1,12}", re.ASCII)


class Transfer(NamedTuple):
    """The traffic of a send between slices, together with the sends of the other slices.

    `kind` is that of a collective, None for an unknown word. `slices` is how many of them exchange data, 1 if all stays in a
    slice. `last` is the highest slice number in the target.
    """

    kind: str | None
    slices: int
    last: int

    @property
    def text(self) -> str:
        return f"{self.kind or 'unknown'} of {self.slices} slices"


def transfer_of(instruction: Instruction) -> Transfer | None:
    """Return the transfer between slices of a send or recv; None if it has another purpose."""
    attributes = instruction.attr("frontend_attributes") if instruction.opcode in _POINT_TO_POINT else None
    if attributes is None or "_xla_megascale_target" not in attributes:
        return None
    kind = _KINDS.get(attributes.get("_xla_megascale_transfer_type", ""))
    groups = _slices_of(attributes["_xla_megascale_target"])
    return Transfer(kind, max(map(len, groups), default=1), max((max(group) for group in groups), default=1))


def rendezvous(instruction: Instruction) -> str:
    """Return the name under which a send and its recv meet; empty if none is printed."""
    return (instruction.attr("frontend_attributes") or {}).get("_xla_host_transfer_rendezvous", "")


def _slices_of(target: str) -> list[frozenset[int]]:
    products = _PRODUCT.findall(target)
    if products:
        return [frozenset(_numbers(text)) for text in products if _ID.search(text)]
    return [frozenset(number // _DEVICES_OF_SLICE for number in _numbers(text)) for text in _LIST.findall(target)]


def _numbers(text: str) -> Iterable[int]:
    return map(int, _ID.findall(text))


def slices_of_module(module: Module, partitions: int) -> int:
    """Return the number of slices of a program for `partitions` partitions, 1 if nothing shows several.

    If no slice sends to another, the shardings of a text with TPU layouts can: they are over a multiple of `partitions`
    devices.
    """
    transfers = (transfer_of(instruction) for instruction in module.with_opcodes(_POINT_TO_POINT))
    named = max((transfer.last for transfer in transfers if transfer is not None), default=1)
    if named > 1 or partitions < 2 or ":T(" not in module.header.attributes.get("entry_computation_layout", ""):
        return named
    read = (module.values.read("sharding", text) for text in module.device_marks.shardings)
    sizes = {sharding.devices for sharding in read if isinstance(sharding, Sharding) and sharding.kind in {"tiled", "named"}}
    (devices,) = sizes if len(sizes) == 1 else (partitions,)
    return devices // partitions if devices % partitions == 0 else 1
