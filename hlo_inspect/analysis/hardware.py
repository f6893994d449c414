"""Hardware profiles: what an accelerator can do at best, every figure with the document that states it.

A profile is a YAML file, one of those shipped with the package (found by name) or one's own (found by path). Rates are dense
peaks. A figure that no source states is `None`, never a guess.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from hlo_inspect import configs
from hlo_inspect.analysis.hardware_figures import Figure, ProfileContents, SourceDocument, extends_node, parse_contents
from hlo_inspect.configs import Node, shipped_configs
from hlo_inspect.errors import UsageError

MAX_EXTENDED = 20

Engine = Literal["matmul", "vector"]


@dataclass(frozen=True, slots=True)
class Link:
    """A level of the interconnect. `topology` is "switch", "torus" or "network", `devices` how many devices it joins at most.

    `send_bandwidth` is worked out from the figures: bytes/s that one device sends over all its links of this level, in one
    direction, while every device of its node does the same; `None` where a figure for it is missing.
    """

    name: str
    topology: str
    bandwidth: Figure | None
    count: Figure | None
    devices: Figure | None
    send_bandwidth: float | None


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """An accelerator. `figures` holds every figure by its dotted name, in the order of the file; `None` where no source states
    one. `links` are the levels of the interconnect, from the nearest on.
    """

    name: str
    path: str
    title: str
    maker: str
    figures: Mapping[str, Figure | None]
    links: Mapping[str, Link]
    sources: Mapping[str, SourceDocument]

    def value(self, name: str) -> int | None:
        """The figure of that dotted name in its base unit."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value

    def rate(self, engine: Engine, dtype: str) -> int | None:
        """FLOP/s (or integer operations/s) of one device: of its matrix unit or of its vector unit."""
        return self.value(f"{engine}.{dtype}")

    @property
    def memory_capacity(self) -> int | None:
        """Bytes of one device."""
        return self.value("memory.capacity")

    @property
    def memory_bandwidth(self) -> int | None:
        """Bytes/s of one device."""
        return self.value("memory.bandwidth")

    @property
    def devices_per_node(self) -> int | None:
        return self.value("devices_per_node")


def profile_names() -> tuple[str, ...]:
    """The names of the shipped profiles."""
    return tuple(sorted(path.stem for path in shipped_configs("hardware").glob("*.yaml")))


def load_profile(name_or_path: str | Path) -> HardwareProfile:
    """The shipped profile of that name, or the one in that file: a path, or a text with a separator or ending in .yaml or .yml.

    `UsageError` where there is none, or at the place of what is wrong in the file.
    """
    path = Path(name_or_path) if isinstance(name_or_path, Path) or _is_path(name_or_path) else _shipped(name_or_path)
    contents = _contents(path, ())
    texts, figures = contents.texts, contents.figures
    return HardwareProfile(
        name=path.stem,
        path=str(path),
        title=texts["title"],
        maker=texts["maker"],
        figures=figures,
        links=_links(contents),
        sources=contents.sources,
    )


def _is_path(text: str) -> bool:
    return text.endswith((".yaml", ".yml")) or "/" in text or os.sep in text


def _shipped(name: str) -> Path:
    names = profile_names()
    if name not in names:
        closest = sorted(names, key=lambda other: (name not in other, -SequenceMatcher(None, name, other).ratio()))
        raise UsageError(f"no profile {name!r}; there are: {', '.join(closest)}, or give the path of a .yaml file")
    return shipped_configs("hardware") / f"{name}.yaml"


def _contents(path: Path, extended_by: tuple[Path, ...]) -> ProfileContents:
    """The contents of a file; `extended_by` are the files that lead to it, resolved."""
    root = configs.read(path)
    extends = extends_node(root)
    if extends is None:
        return parse_contents(root, None)
    base = _base(extends, path.parent)
    chain = (*extended_by, path.resolve())
    if len(chain) > MAX_EXTENDED:
        raise extends.error(f"the profile extends more than {MAX_EXTENDED} others, one after the other")
    if base.resolve() in chain:
        names = " -> ".join(file.name for file in (*chain, base))
        raise extends.error(f"the profile extends itself: {names}")
    return parse_contents(root, _contents(base, chain))


def _base(extends: Node, folder: Path) -> Path:
    """The file of the profile that `extends` names: a shipped one, or a path relative to `folder`."""
    name = extends.text()
    if not _is_path(name):
        try:
            return _shipped(name)
        except UsageError as error:
            raise extends.error(error.message) from error
    try:
        found = (folder / name).is_file()
    except OSError:  # a name that is too long, a folder that may not be read
        found = False
    if not found:
        raise extends.error(f"no file {name!r} beside this one")
    return folder / name


def _links(contents: ProfileContents) -> dict[str, Link]:
    figures = contents.figures
    devices_per_node = figures.get("devices_per_node")
    links = {}
    for key, topology in contents.texts.items():
        if key.startswith("links."):
            name = key.split(".")[1]
            bandwidth, count, devices = (figures.get(f"links.{name}.{part}") for part in ("bandwidth", "count", "devices"))
            send = _send_bandwidth(bandwidth, count, devices_per_node)
            links[name] = Link(name, topology, bandwidth, count, devices, send)
    return links


def _send_bandwidth(bandwidth: Figure | None, count: Figure | None, devices_per_node: Figure | None) -> float | None:
    if bandwidth is None:
        return None
    total = bandwidth.value / (2 if bandwidth.directions == "both" else 1)
    per = bandwidth.per
    if per == "link":
        if count is None:
            return None
        total, per = total * count.value, count.per
    if per == "node":
        return None if devices_per_node is None else total / devices_per_node.value
    return total
