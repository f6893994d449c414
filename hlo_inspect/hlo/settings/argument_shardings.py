"""Shardings of a program's arguments in StableHLO: the attributes of `@main`, by Shardy or GSPMD.

Shardy writes `sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>` and names its meshes above: `sdy.mesh @mesh = <["data"=4]>`.
GSPMD's is the text of an HLO sharding: `mhlo.sharding = "{devices=[4,1]<=[4]}"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo.values.device_groups import DeviceListError, shardy_meshes
from hlo_inspect.hlo.values.sharding import Sharding, parse_sharding, parse_shardy_shardings, spelled_by_xla
from hlo_inspect.lazy_pattern import lazy_pattern

_MODULE = lazy_pattern(r"^\s*+module @(\S++)", re.MULTILINE)
_MAIN = lazy_pattern(r"^\s*+func\.func (?:public |private )?@main\((.*)$", re.MULTILINE)
_ARGUMENT = lazy_pattern(r"(?:^|, )%arg\d++: ")
_DIMENSIONS = lazy_pattern(r"tensor<((?:\d{1,18}x)*+)")
_GSPMD = lazy_pattern(r'\b(?:mhlo|xla)\.sharding = "([^"]*+)"')
_SHARDY = "sdy.sharding = "


class LoweredArray(NamedTuple):
    """An array of the entry's parameters before partitioning: its whole dimensions, and its sharding if the text has one."""

    dimensions: tuple[int | None, ...]
    sharding: Sharding | None


def read_arguments(text: str, name: str) -> list[LoweredArray]:
    """Return the arguments of the StableHLO module `name`; none if the text is of another module."""
    module, main = _MODULE.search(text), _MAIN.search(text)
    if main is None or (module is not None and module[1].strip('"') != name):
        return []
    return list(_arguments(text[: main.start()], main[1].partition(") -> ")[0]))


def _arguments(before: str, listed: str) -> Iterator[LoweredArray]:
    meshes = shardy_meshes("\n".join(line for line in before.split("\n") if "sdy.mesh" in line))
    for argument in _ARGUMENT.split(listed)[1:]:
        type_ = _DIMENSIONS.match(argument)
        dimensions = tuple(int(size) for size in type_[1].split("x") if size) if type_ is not None else ()
        gspmd = _GSPMD.search(argument)
        try:
            shardy = parse_shardy_shardings(argument, meshes) if _SHARDY in argument else ()
            sharding = spelled_by_xla(shardy[0]) if shardy else parse_sharding(gspmd[1]) if gspmd is not None else None
        except DeviceListError:
            sharding = None
        yield LoweredArray(dimensions, sharding)
