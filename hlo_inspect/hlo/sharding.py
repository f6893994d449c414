"""Device lists: replica groups in their three spellings, source-target pairs, and the devices that a sharding names."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

from hlo_inspect.hlo import scan

Groups = tuple[tuple[int, ...], ...]

MAX_DEVICES = 1 << 20
"""More than any machine has; a text that names more is refused instead of being spelled out."""

_NUMBER = r"\d{1,10}"
_NUMBERS = rf"\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*"
_LIST = re.compile(r"\{([\d,\s]*)\}", re.ASCII)
_NESTED_LIST = re.compile(r"\{\s*(?:\{[\d,\s]*\}\s*,?\s*)*\}", re.ASCII)
_IOTA = re.compile(rf"\[({_NUMBERS})\]\s*<=\s*\[({_NUMBERS})\]\s*(?:T\s*\(({_NUMBERS})\))?", re.ASCII)
_TILED_IOTA = re.compile(rf"\(\s*\[({_NUMBERS})\]\s*(?:T\s*\(({_NUMBERS})\))?\s*\)", re.ASCII)
_MESH = re.compile(
    r"(maximal_)?mesh\s*\[([^\]]*)\]\s*(?:,\s*device_ids\s*=\s*(\((?:[^()]|\([^()]*\))*\)))?\s*(\{.*\})?", re.ASCII | re.DOTALL
)
_AXIS = re.compile(rf"(?:'([^']*)'|\"([^\"]*)\")\s*=\s*({_NUMBER})", re.ASCII)
_AXIS_REFERENCE = re.compile(rf"(?:'([^']*)'|\"([^\"]*)\")\s*(?::\s*\(\s*({_NUMBER})\s*\)\s*({_NUMBER}))?", re.ASCII)
_SHARDING_DEVICES = re.compile(rf"devices=\[({_NUMBERS})\]\s*(?:<=\s*\[({_NUMBERS})\]|({_NUMBERS}))", re.ASCII)
_QUOTED = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_PRINTED_ELEMENT = re.compile(r'\{[^{}"/]*+\}')
_PRINTED_TUPLE = re.compile(
    rf"\{{{_PRINTED_ELEMENT.pattern}(?:, (?:/\*index=\d++\*/)?+{_PRINTED_ELEMENT.pattern})*+\}}", re.ASCII
)
_MAXIMAL = re.compile(rf"(?:maximal\s+device=|device_id=)({_NUMBER})", re.ASCII)


class DeviceListError(ValueError):
    """Text that is no device list, or one that contradicts itself."""


@lru_cache(maxsize=1 << 8)
def replica_groups(text: str) -> Groups:
    """The groups that `text` spells, in order; no groups for `{}`, which stands for everybody. `DeviceListError` otherwise."""
    text = scan.without_comments(text).strip()
    iota = _IOTA.fullmatch(text)
    if iota is not None:
        return _iota_groups(*iota.groups())
    mesh = _MESH.fullmatch(text)
    if mesh is not None:
        return _mesh_groups(*mesh.groups())
    if _NESTED_LIST.fullmatch(text) is None:
        raise DeviceListError(f"no replica groups: {text[:60]!r}")
    return tuple(_integers(ids) for ids in _LIST.findall(text[1:-1]) if ids.strip())


@lru_cache(maxsize=1 << 8)
def source_target_pairs(text: str) -> tuple[tuple[int, int], ...]:
    """The pairs of `{{0,1},{1,0}}`; `DeviceListError` where one is no pair."""
    text = scan.without_comments(text).strip()
    if _NESTED_LIST.fullmatch(text) is None:
        raise DeviceListError(f"no source-target pairs: {text[:60]!r}")
    pairs = []
    for ids in _LIST.findall(text[1:-1]):
        pair = _integers(ids)
        if len(pair) != 2:
            raise DeviceListError(f"{ids!r} is no pair of devices")
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def iota(dimensions: tuple[int, ...], reshape: tuple[int, ...], permutation: tuple[int, ...]) -> list[int]:
    """The ids 0…n-1, reshaped to `reshape`, transposed by `permutation`, in row-major order; n is the product of
    `dimensions`.
    """
    count = math.prod(dimensions)
    if count > MAX_DEVICES or math.prod(reshape) != count:
        raise DeviceListError(f"{count} devices in {list(reshape)}")
    if sorted(permutation) != list(range(len(reshape))):
        raise DeviceListError(f"{list(permutation)} is no permutation of {len(reshape)} dimensions")
    strides = [math.prod(reshape[i + 1 :]) for i in range(len(reshape))]
    ids = [0]
    for axis in permutation:
        ids = [base + step * strides[axis] for base in ids for step in range(reshape[axis])]
    return ids


def _iota_groups(dimensions: str, reshape: str, permutation: str | None) -> Groups:
    sizes, shape = _integers(dimensions), _integers(reshape)
    if len(sizes) != 2:
        raise DeviceListError(f"groups of {len(sizes)} dimensions")
    ids = iota(sizes, shape, _integers(permutation) if permutation else tuple(range(len(shape))))
    return _rows(ids, sizes[1])


def _rows(ids: list[int], size: int) -> Groups:
    return tuple(tuple(ids[i : i + size]) for i in range(0, len(ids), size)) if size else ()


class _Axis(NamedTuple):
    """A run of devices in a mesh: `size` steps of `stride` positions."""

    size: int
    stride: int


def _mesh_groups(maximal: str | None, axes: str, device_ids: str | None, references: str | None) -> Groups:
    """Devices that differ along the referenced axes only form one group, listed axes major to minor."""
    if maximal:
        return (_integers(axes.partition("=")[2]),)
    names: dict[str, _Axis] = {}
    sizes = [(match[0] or match[1], int(match[2])) for match in _AXIS.findall(axes)]
    total = math.prod(size for _, size in sizes)
    if total > MAX_DEVICES or total == 0:
        raise DeviceListError(f"a mesh of {total} devices")
    stride = total
    for number, (name, size) in enumerate(sizes):
        stride //= size
        names[name] = names.setdefault(str(number), _Axis(size, stride))
    ids = _mesh_order(device_ids, total)
    inner = [_sub_axis(names, *match.groups()) for match in _AXIS_REFERENCE.finditer(references or "")]
    offsets = [0]
    for axis in inner:
        offsets = [base + step * axis.stride for base in offsets for step in range(axis.size)]
    if len(set(offsets)) != len(offsets) or total % len(offsets):
        raise DeviceListError("the mesh axes of the groups overlap")
    members = set(offsets)
    starts: list[int] = []
    seen: set[int] = set()
    for position in range(total):
        if position not in seen:
            starts.append(position)
            seen.update(position + offset for offset in members)
    if max(seen, default=0) >= total:
        raise DeviceListError("the groups reach outside of the mesh")
    return tuple(tuple(ids[start + offset] for offset in offsets) for start in starts)


def _sub_axis(names: dict[str, _Axis], single: str | None, double: str | None, before: str | None, size: str | None) -> _Axis:
    """An axis, or the part of it that `'a':(before)size` names: `before` is the product of the sizes in front of it."""
    name = single if single is not None else double or ""
    if name not in names:
        raise DeviceListError(f"the mesh has no axis {name!r}")
    axis = names[name]
    if before is None or size is None:
        return axis
    if int(before) == 0 or int(size) == 0 or axis.size % (int(before) * int(size)):
        raise DeviceListError(f"({before}){size} is no part of an axis of {axis.size}")
    return _Axis(int(size), axis.stride * (axis.size // (int(before) * int(size))))


def _mesh_order(device_ids: str | None, total: int) -> list[int]:
    if device_ids is None:
        return list(range(total))
    tiled = _TILED_IOTA.fullmatch(device_ids)
    if tiled is not None:
        shape = _integers(tiled[1])
        return iota((total,), shape, _integers(tiled[2]) if tiled[2] else tuple(range(len(shape))))
    ids = list(_integers(device_ids.strip("()")))
    if len(ids) != total:
        raise DeviceListError(f"{len(ids)} device ids for a mesh of {total}")
    if len(set(ids)) != total:
        raise DeviceListError("the mesh names a device twice")
    return ids


def _integers(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() and len(part) <= 10 for part in parts):
        raise DeviceListError(f"{text[:40]!r} is no list of device ids")
    return tuple(map(int, parts))


@lru_cache(maxsize=1 << 8)
def sharding_devices(text: str) -> int:
    """One more than the largest device id that a sharding names; 0 where it names none."""
    text = _QUOTED.sub('""', text)
    count = 0
    for _, shape, ids in _SHARDING_DEVICES.findall(text):
        count = max(count, math.prod(_integers(shape)) if shape else max(_integers(ids)) + 1)
    for mesh in re.findall(r"mesh\[([^\]]*)\]", text):
        sizes = [int(size) for _, _, size in _AXIS.findall(mesh)]
        count = max(count, math.prod(sizes) if sizes else 0)
    for device in _MAXIMAL.findall(text):
        count = max(count, int(device) + 1)
    return count


def split_sharding(text: str) -> tuple[str, ...] | None:
    """The shardings of a tuple's elements, `None` for a single one."""
    if _PRINTED_TUPLE.fullmatch(text):
        return tuple(_PRINTED_ELEMENT.findall(text, 1))
    text = scan.without_comments(text).strip()
    inside = text[1:-1].strip()
    if text == "{}" or not inside.startswith("{"):
        return None
    return tuple(inside[start:end].strip() for start, end in scan.split_items(inside))
