"""The hardware profiles as reports: all of them in a table, or one with the source of each figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hlo_inspect.analysis.hardware import HardwareProfile, load_profile, profile_names
from hlo_inspect.analysis.hardware_figures import Figure
from hlo_inspect.configs import shipped_configs
from hlo_inspect.report.model import Column, Input, Report, Row, Table

COMMAND = "profiles"

_LIST_COLUMNS = (
    Column("name", width=14),
    Column("title", detail=2, width=24),
    Column("bf16", "flops_per_s"),
    Column("memory", "bytes"),
    Column("memory_bandwidth", "bytes_per_s"),
    Column("devices_per_node", "count", detail=4),
    Column("link", detail=1, width=7),
    Column("link_bandwidth", "bytes_per_s"),
    Column("link_devices", "count", detail=5),
    Column("network_bandwidth", "bytes_per_s", detail=3),
)
_FIGURE_COLUMNS = (
    Column("level"),
    Column("quantity"),
    Column("stated", width=24),
    Column("value", "number", detail=3),
    Column("unit", detail=3),
    Column("basis", detail=1),
    Column("source"),
    Column("page", detail=1),
    Column("note", detail=2),
    Column("confidence", detail=4),
)
_SOURCE_COLUMNS = (
    Column("id"),
    Column("title", width=24),
    Column("publisher", detail=4),
    Column("version", detail=3),
    Column("page", detail=1, width=20),
    Column("url", detail=2, width=40),
)


def profiles_report() -> Report:
    """The shipped profiles: table `profiles`, a row for each. Rates are dense peaks, the bandwidth of a link is what one device
    sends in one direction.
    """
    profiles = [load_profile(name) for name in profile_names()]
    table = Table("profiles", "Hardware profiles", _LIST_COLUMNS, tuple(_summary(profile) for profile in profiles))
    source = _input(str(shipped_configs("hardware")), (profile.path for profile in profiles))
    return Report(COMMAND, source, facts={}, tables=(table,))


def profile_report(name_or_path: str) -> Report:
    """One profile: table `profile`, a row for every figure, and table `sources`, the documents that state them."""
    profile = load_profile(name_or_path)
    figures = Table("profile", profile.title, _FIGURE_COLUMNS, tuple(_rows(profile)))
    used = {figure.source for figure in profile.figures.values() if figure is not None}
    documents = (source for source in profile.sources.values() if source.id in used)
    rows = tuple((s.id, s.title, s.publisher, s.version, s.page, s.url) for s in documents)
    sources = Table("sources", "Sources", _SOURCE_COLUMNS, rows)
    unknown = [name for name, figure in profile.figures.items() if figure is None]
    notes: tuple[str, ...] = (f"no source states {', '.join(unknown)}",) if unknown else ()
    others = profile.not_primary
    notes += (f"not from the maker's own documents: {', '.join(others)}",) if others else ()
    return Report(
        COMMAND, _input(profile.path, [profile.path]), facts={}, tables=(figures, sources), notes=notes, profile=profile.name
    )


def _summary(profile: HardwareProfile) -> Row:
    """The row of a profile: its nearest level of links, and its farthest where there is a farther one."""
    links = profile.networks
    near = links[0] if links else None
    far = links[-1] if len(links) > 1 else None
    return (
        profile.name,
        profile.title,
        profile.rate("matmul", "bf16"),
        profile.memory_capacity,
        profile.memory_bandwidth,
        profile.devices_per_node,
        near.name if near else None,
        near.send_bandwidth if near else None,
        near.devices.value if near and near.devices else None,
        far.send_bandwidth if far else None,
    )


def _rows(profile: HardwareProfile) -> Iterable[Row]:
    for name, figure in profile.figures.items():
        level, _, quantity = name.rpartition(".")
        if figure is None:
            yield (level, quantity, *(None,) * 8)
        else:
            page = profile.sources[figure.source].page
            stated = (figure.stated, figure.value, figure.unit, _basis(figure))
            yield (level, quantity, *stated, figure.source, page, figure.note, figure.confidence)


def _basis(figure: Figure) -> str:
    """What a figure of a link is for: "per link, one direction"."""
    words = [f"per {figure.per}"] if figure.per else []
    if figure.when:
        words.append("axes of this size" if figure.when == "exactly" else "axes of a multiple of it")
    if figure.directions:
        words.append("one direction" if figure.directions == "one" else "both directions")
    return ", ".join(words)


def _input(path: str, files: Iterable[str]) -> Input:
    texts = [Path(file).read_bytes() for file in files]
    return Input(path, first_line=1, lines=sum(len(text.splitlines()) for text in texts), bytes=sum(map(len, texts)))
