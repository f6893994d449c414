"""Replica groups and shardings."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from hlo_inspect.hlo.sharding import MAX_DEVICES, DeviceListError, replica_groups
from hlo_inspect.hlo.strict.tokens import DEVICES, WORD, Tokens

_MESH_START = ("mesh", "maximal_mesh")
_ALONE = ("replicated", "maximal", "manual", "unknown", "unreduced")  # in the order in which XLA asks for them
_SUBGROUPS = frozenset({"maximal", "replicated", "manual", "unreduced"})
_TRANSPOSE = re.compile(r"T\s*\(")
_AXIS_SIZE = re.compile(r"(?:'([^'\n]*)'|\"([^\"\n]*)\")\s*=")

Metadata = Callable[[Tokens], None]


def take_groups(tokens: Tokens) -> None:
    """`{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2,'b'=2] {'a'}`."""
    if tokens.at("{"):
        for _ in tokens.list("{", "}", DEVICES):
            braced_integers(tokens)
        return
    start = tokens.position
    if tokens.at(*_MESH_START):
        _take_mesh(tokens)
        _take_axes(tokens)
        _check_mesh_groups(tokens, start)
        return
    sizes = _integers_in(tokens, "[", "]")
    tokens.expect("<=", DEVICES)
    reshape = _take_iota(tokens)
    if len(sizes) != 2:
        tokens.refuse(DEVICES, f"groups of {len(sizes)} dimensions, not 2", start)
    if math.prod(sizes) != math.prod(reshape):
        tokens.refuse(DEVICES, f"{math.prod(sizes)} devices in the groups, {math.prod(reshape)} in the list", start)


def braced_integers(tokens: Tokens, code: str = DEVICES) -> list[int]:
    return [tokens.integer(code) for _ in tokens.list("{", "}", code)]


def _integers_in(tokens: Tokens, opening: str, closing: str) -> list[int]:
    """At least one integer between brackets."""
    tokens.expect(opening, DEVICES)
    found = [tokens.integer(DEVICES)]
    while tokens.take(","):
        found.append(tokens.integer(DEVICES))
    tokens.expect(closing, DEVICES)
    return found


def _take_iota(tokens: Tokens) -> list[int]:
    """`[4]` or `[2,2]T(1,0)`."""
    reshape = _integers_in(tokens, "[", "]")
    if len(reshape) == 1:
        return reshape
    if tokens.match(_TRANSPOSE) is None:
        tokens.refuse(DEVICES, "expected T( and the order of the dimensions")
    while True:
        place = tokens.position
        if not 0 <= tokens.integer(DEVICES) < len(reshape):
            tokens.refuse(DEVICES, f"the device list has no dimension of this number, but {len(reshape)}", place)
        if not tokens.take(","):
            break
    tokens.expect(")", DEVICES)
    return reshape


def _check_mesh_groups(tokens: Tokens, start: int) -> None:
    text = tokens.text[start : tokens.position].rstrip()
    try:
        groups = replica_groups(text)
    except DeviceListError as error:
        tokens.refuse(DEVICES, str(error), start)
    if not groups or len(groups[0]) < 2:
        tokens.refuse(DEVICES, "the groups have one device each", start)


def _take_mesh(tokens: Tokens) -> bool:
    """`mesh['a'=2,'b'=4], device_ids=(…)` or `maximal_mesh[device_id=1]`; whether it is the latter."""
    start = tokens.position
    if tokens.word(DEVICES, "a mesh") == "maximal_mesh":
        tokens.expect("[", DEVICES)
        if tokens.attribute_name(DEVICES, "device_id=") != "device_id":
            tokens.refuse(DEVICES, "expected device_id=", start)
        tokens.integer(DEVICES)
        tokens.expect("]", DEVICES)
        return True
    names: list[str] = []
    sizes = []
    for _ in tokens.list("[", "]", DEVICES):
        axis = tokens.match(_AXIS_SIZE)
        if axis is None:
            tokens.refuse(DEVICES, "expected an axis and its size, as in 'a'=2")
        names.append(axis[1] if axis[1] is not None else axis[2])
        sizes.append(tokens.integer(DEVICES))
    if len(set(names)) != len(names):
        tokens.refuse(DEVICES, "the mesh has two axes of one name", start)
    comma = tokens.position
    if tokens.take(","):
        if tokens.at("device_ids="):
            _take_device_ids(tokens, math.prod(sizes))
        else:
            tokens.move(comma)
    return False


def _take_device_ids(tokens: Tokens, devices: int) -> None:
    tokens.attribute_name(DEVICES)
    start = tokens.position
    tokens.expect("(", DEVICES)
    if tokens.at("["):
        _take_iota(tokens)
        tokens.expect(")", DEVICES)
        return
    tokens.move(start)
    ids = [tokens.integer(DEVICES) for _ in tokens.list("(", ")", DEVICES)]
    if len(ids) != devices or len(set(ids)) != len(ids):
        tokens.refuse(DEVICES, f"expected {devices} different device ids", start)


def _take_axes(tokens: Tokens) -> list[str]:
    """`{'a', 'b':(2)4}`, or with `?` at the end: the references to axes."""
    found: list[str] = []
    for _ in tokens.list("{", "}", DEVICES):
        if tokens.take("?"):
            tokens.expect("}", DEVICES)
            return found
        start = tokens.position
        tokens.string(DEVICES)
        if tokens.take(":"):
            tokens.expect("(", DEVICES)
            tokens.integer(DEVICES)
            tokens.expect(")", DEVICES)
            tokens.integer(DEVICES)
        found.append(tokens.text[start : tokens.position].rstrip())
    return found


def take_sharding(tokens: Tokens, metadata: Metadata) -> None:
    """`{…}`, or for a tuple `{{…}, {…}}`."""
    start = tokens.position
    tokens.expect("{", DEVICES)
    if tokens.take("}"):
        return
    if not tokens.at("{"):
        tokens.move(start)
        _take_one(tokens, metadata)
        return
    while True:
        _take_one(tokens, metadata)
        if not tokens.take(","):
            break
    tokens.expect("}", DEVICES)


def _take_one(tokens: Tokens, metadata: Metadata) -> None:
    tokens.expect("{", DEVICES)
    if tokens.at(*_MESH_START):
        _take_named(tokens, metadata)
    else:
        _take_tiled(tokens, metadata)


def _take_named(tokens: Tokens, metadata: Metadata) -> None:
    """What follows the brace of `{mesh['a'=2], [{'a'}, {}], replicated={…}}`."""
    start = tokens.position
    maximal = _take_mesh(tokens)
    mesh = tokens.text[start : tokens.position]
    axes: list[str] = []
    if not maximal:
        tokens.take(",")
        if tokens.at("["):
            for _ in tokens.list("[", "]", DEVICES):
                axes += _take_axes(tokens)
        elif tokens.word(DEVICES, "the dimensions' axes") not in {"replicated", "unreduced", "manual"}:
            tokens.refuse(DEVICES, "expected the dimensions' axes", start)
    while tokens.take(","):
        place = tokens.position
        name = tokens.attribute_name(DEVICES)
        if name == "metadata":
            metadata(tokens)
        elif name in {"replicated", "unreduced", "manual"} and not maximal:
            axes += _take_axes(tokens)
        else:
            tokens.refuse(DEVICES, f"a sharding has no {name!r}", place)
    tokens.expect("}", DEVICES)
    _check_axes(tokens, mesh, axes, start)


def _check_axes(tokens: Tokens, mesh: str, axes: list[str], start: int) -> None:
    """All axes of a sharding are of its mesh, and none is used twice."""
    if not axes:
        return
    try:
        replica_groups(f"{mesh.rstrip()} {{{','.join(axes)}}}")
    except DeviceListError as error:
        sizes = [int(size) for size in re.findall(r"=\s*(\d{1,10})\s*[,\]]", mesh)]
        if 0 < math.prod(sizes) <= MAX_DEVICES:
            tokens.refuse(DEVICES, str(error), start)


def _take_tiled(tokens: Tokens, metadata: Metadata) -> None:
    """What follows the brace of `{devices=[2,2]<=[4] last_tile_dim_replicate}` or of `{replicated}`."""
    start = tokens.position
    words: set[str] = set()
    tiles: list[int] | None = None
    ids: int | None = None  # how many; none where they are an iota
    subgroups = 0
    while not tokens.take("}"):
        place = tokens.position
        word = tokens.match(WORD)
        name = word[0] if word else tokens.refuse(DEVICES, "expected a part of the sharding")
        if tokens.text.startswith("=", place + len(name)):
            tokens.move(place + len(name) + 1)
            if name == "device":
                tokens.integer(DEVICES)
                ids = 1
            elif name == "devices":
                tiles, ids = _take_tiles(tokens)
            elif name == "metadata":
                metadata(tokens)
            elif name == "last_tile_dims":
                subgroups = _take_subgroups(tokens)
            else:
                tokens.refuse(DEVICES, f"a sharding has no {name!r}", place)
        elif name in {"shard_as", "shard_like"}:
            tokens.integer(DEVICES)
        elif name not in _ALONE and name != "last_tile_dim_replicate":
            tokens.refuse(DEVICES, f"{name!r} is no part of a sharding", place)
        words.add(name)
    if tiles is not None and subgroups > len(tiles):
        tokens.refuse(DEVICES, f"{subgroups} subgroups in {len(tiles)} dimensions", start)
    _check_tiled(tokens, words, tiles, ids, start)


def _take_tiles(tokens: Tokens) -> tuple[list[int], int | None]:
    start = tokens.position
    tiles = _integers_in(tokens, "[", "]")
    if tokens.take("<="):
        if math.prod(_take_iota(tokens)) != math.prod(tiles):
            tokens.refuse(DEVICES, f"the tiles are for {math.prod(tiles)} devices, the list has another number", start)
        return tiles, None
    count = 1
    tokens.integer(DEVICES)
    while tokens.take(","):
        tokens.integer(DEVICES)
        count += 1
    return tiles, count


def _take_subgroups(tokens: Tokens) -> int:
    count = 0
    for _ in tokens.list("{", "}", DEVICES):
        start = tokens.position
        count += 1
        if tokens.word(DEVICES, "what a subgroup is") not in _SUBGROUPS:
            tokens.refuse(DEVICES, "expected maximal, replicated, manual or unreduced", start)
    return count


def _check_tiled(tokens: Tokens, words: set[str], tiles: list[int] | None, ids: int | None, start: int) -> None:
    alone = next((word for word in _ALONE if word in words), None)
    if alone == "maximal":
        if ids != 1:
            tokens.refuse(DEVICES, "a maximal sharding names one device", start)
    elif alone is not None:
        if ids is not None:
            tokens.refuse(DEVICES, f"a sharding that is {alone} names no devices", start)
    elif tiles is None:
        tokens.refuse(DEVICES, "expected devices= and their tiles", start)
    elif ids == 1:
        tokens.refuse(DEVICES, "a tiled sharding has more than one device", start)
    elif {"last_tile_dims", "last_tile_dim_replicate"} <= words:
        tokens.refuse(DEVICES, "last_tile_dims and last_tile_dim_replicate exclude each other", start)
