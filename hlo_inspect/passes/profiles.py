"""The hardware profiles as reports: all of them in a table, or one with the source of each figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter, methodcaller
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.hardware import HardwareProfile, Link, load_profile, profile_names
from hlo_inspect.analysis.hardware_figures import HardwareFigure
from hlo_inspect.configs import shipped_configs
from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.table import Column, Value
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "profiles"


class _NamedFigure(NamedTuple):
    """A figure of a profile, None if no source states it, with the page of its source."""

    name: str
    figure: HardwareFigure | None
    page: str | None


def profiles_report() -> Report:
    """Return the shipped profiles: table `profiles`, a row for each.

    Rates are dense peaks. The bandwidth of a link is that of one device in one direction. `memory` is what the maker
    states; `usable_memory` is what the runtime leaves to a program, which `memory` of a dump is compared with.
    """
    profiles = [load_profile(name) for name in profile_names()]
    source = _input(str(shipped_configs("hardware")), (profile.path for profile in profiles))
    return Report(COMMAND, source, facts={}, tables=(_PROFILES.of(profiles),))


def profile_report(name_or_path: str) -> Report:
    """Return the report of a profile: table `profile` with all figures, and table `sources` with their documents."""
    profile = load_profile(name_or_path)
    used = {figure.source for figure in profile.figures.values() if figure is not None}
    documents = [source for source in profile.sources.values() if source.id in used]
    unknown = [name for name, figure in profile.figures.items() if figure is None]
    notes: tuple[str, ...] = (f"no source states {', '.join(unknown)}",) if unknown else ()
    others = profile.not_primary
    notes += (f"not from the maker's documents: {', '.join(others)}",) if others else ()
    return Report(
        COMMAND,
        _input(profile.path, [profile.path]),
        facts={},
        tables=(_PROFILE_FIGURES.of(_figures(profile), title=profile.title), _SOURCES.of(documents)),
        notes=notes,
        profile=profile.name,
    )


def _figures(profile: HardwareProfile) -> Iterator[_NamedFigure]:
    for name, figure in profile.figures.items():
        yield _NamedFigure(name, figure, None if figure is None else profile.sources[figure.source].page)


def _link_getter(position: int, get: Callable[[Link], Value]) -> Callable[[HardwareProfile], Value]:
    """Return a getter for a level of links: the nearest (0), or the farthest (-1) if there are several."""
    return lambda profile: get(profile.networks[position]) if len(profile.networks) > (position != 0) else None


def _stated(get: Callable[[HardwareFigure], Value]) -> Callable[[_NamedFigure], Value]:
    """Return a getter that is None if the figure is not stated."""
    return lambda named: None if named.figure is None else get(named.figure)


def _basis(figure: HardwareFigure) -> str:
    """Return the basis of a figure of a link: "per link, one direction"."""
    words = [f"per {figure.per}"] if figure.per else []
    if figure.when:
        words.append("axes of this size" if figure.when == "exactly" else "axes of a multiple of this size")
    if figure.directions:
        words.append("one direction" if figure.directions == "one" else "both directions")
    return ", ".join(words)


_SENT = attrgetter("send_bandwidth")
_PROFILES = TableSpec("profiles", "Hardware profiles", page_rows=0).with_columns(
    Column("name", width=14, meaning="name for `--profile`"),
    Column("title", detail=2, width=24, meaning="accelerator"),
    Column(
        "bf16", "flops_per_s", meaning="peak of matrix multiplications in bf16, dense", get=methodcaller("value", "matmul.bf16")
    ),
    Column("memory", "bytes", meaning="memory that the maker states", get=attrgetter("memory_capacity")),
    Column(
        "usable_memory",
        "bytes",
        meaning="memory that the runtime leaves to a program, or that the driver reports; else what the maker states",
        page_name="usable",
    ),
    Column("memory_bandwidth", "bytes_per_s", meaning="bandwidth of that memory", page_name="bandwidth"),
    Column("devices_per_node", "count", detail=4, meaning="devices that share a host"),
    Column("link", detail=1, width=7, meaning="nearest link", get=_link_getter(0, attrgetter("name"))),
    Column(
        "link_bandwidth",
        "bytes_per_s",
        meaning="bytes a second that one device sends on it, in one direction",
        get=_link_getter(0, _SENT),
    ),
    Column(
        "link_devices",
        "count",
        detail=5,
        meaning="devices that it joins",
        get=_link_getter(0, lambda link: link.devices.value if link.devices else None),
    ),
    Column(
        "network_bandwidth",
        "bytes_per_s",
        detail=3,
        meaning="bytes a second that one device sends on the farthest link",
        get=_link_getter(-1, _SENT),
    ),
)
_PROFILE_FIGURES = TableSpec("profile", "Hardware profile", page_rows=0).with_columns(
    Column("level", meaning="unit, memory or link", get=lambda named: named.name.rpartition(".")[0]),
    Column("quantity", meaning="figure", get=lambda named: named.name.rpartition(".")[2]),
    Column("stated", width=24, meaning="value as the source states it", get=_stated(attrgetter("stated"))),
    Column("value", "number", detail=3, meaning="value in FLOP/s, bytes, bytes/s or seconds", get=_stated(attrgetter("value"))),
    Column("unit", detail=3, meaning="unit of the value", get=_stated(attrgetter("unit"))),
    Column("basis", detail=1, meaning="device, link or node that it counts, and its directions", get=_stated(_basis)),
    Column("source", meaning="id of the source", get=_stated(attrgetter("source"))),
    Column("page", detail=1, meaning="page of the source"),
    Column("note", detail=2, meaning="remark", get=_stated(attrgetter("note"))),
    Column(
        "confidence",
        detail=4,
        meaning="`secondary` if it is not from the maker, `inferred` if it is computed from others",
        get=_stated(attrgetter("confidence")),
    ),
)
_SOURCES = TableSpec("sources", "Sources", page_rows=0).with_columns(
    Column("id", meaning="id that figures name"),
    Column("title", width=24, meaning="document"),
    Column("publisher", detail=4, meaning="who published it"),
    Column("version", detail=3, meaning="version or date"),
    Column("page", detail=1, width=20, meaning="page of the document"),
    Column("url", detail=2, width=40, meaning="address of the document"),
)
TABLES = (_PROFILES, _PROFILE_FIGURES, _SOURCES)


def _input(path: str, files: Iterable[str]) -> Input:
    texts = [Path(file).read_bytes() for file in files]
    return Input(path, first_line=1, lines=sum(len(text.splitlines()) for text in texts), bytes=sum(map(len, texts)))
