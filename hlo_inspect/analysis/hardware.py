"""Hardware profiles: the peak figures of an accelerator, each with the document that states it.

A profile is a YAML file: a shipped file (found by name) or the user's (found by path). Rates are dense peaks. A figure that no
source states is None, never a guess.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from hlo_inspect import configs
from hlo_inspect.analysis.hardware_figures import HardwareFigure, ProfileContents, SourceDocument, extends_node, parse_contents
from hlo_inspect.configs import Node, shipped_configs
from hlo_inspect.errors import UsageError

MAX_EXTENDED = 20


@dataclass(frozen=True, slots=True)
class Link:
    """A level of the interconnect.

    `topology` is "switch", "mesh" (links between all pairs of devices), "torus", "network" or "host". `send_bandwidth` is
    computed: the bytes/s that one device sends in one direction over all its links of this level. All devices of its node send
    at the same time. It is None if a figure for it is missing.

    `efficiency` is the share of the bandwidth that transfers reach. `latency` are the seconds of a hop from a device to the
    next. `low_latency_bandwidth` are the largest bytes/s of the protocol for small messages. If the network `reduces`, it adds
    up the data of the devices; then `reduction_efficiency` is the share of the bandwidth that a sum in the network reaches, in
    bytes of the operand. `wraparound` says which axes of a torus are rings.
    """

    name: str
    topology: str
    bandwidth: HardwareFigure | None
    count: HardwareFigure | None
    devices: HardwareFigure | None
    send_bandwidth: float | None
    efficiency: float | None
    latency: float | None
    low_latency_bandwidth: float | None
    reduces: bool
    reduction_efficiency: float | None
    wraparound: HardwareFigure | None

    @property
    def link_bandwidth(self) -> float | None:
        """Bytes/s of one link in one direction; None if the number of links of a device is unknown."""
        if self.bandwidth is None or self.send_bandwidth is None:
            return None
        if self.bandwidth.per == "link":
            return self.bandwidth.value / (2 if self.bandwidth.directions == "both" else 1)
        return self.send_bandwidth / self.count.value if self.count is not None and self.count.per == "device" else None

    def wraps(self, size: int) -> bool:
        """Return True if a torus axis of this size is a ring."""
        figure = self.wraparound
        if figure is None or size < 3:  # one link joins two devices
            return False
        return size == figure.value if figure.when == "exactly" else size % int(figure.value) == 0


class HardwareProfile(NamedTuple):
    """An accelerator.

    `figures` holds every figure by its dotted name, in the order of the file; None if no source states it. `links` are the
    levels of the interconnect, the nearest first. `changes` lists the figures that the user changed. Figures are per device. If
    `devices_per_chip` is above 1, figures of links and nodes are per chip.
    """

    name: str
    path: str
    title: str
    maker: str
    figures: Mapping[str, HardwareFigure | None]
    links: Mapping[str, Link]
    sources: Mapping[str, SourceDocument]
    changes: tuple[str, ...] = ()
    devices_per_chip: int = 1

    @property
    def is_tpu(self) -> bool:
        return self.maker == "Google"

    def value(self, name: str) -> float | None:
        """Return a figure by its dotted name, in its base unit: `matmul.bf16` in FLOP/s, `memory.bandwidth` in bytes/s."""
        figure = self.figures.get(name)
        return None if figure is None else figure.value

    def _count(self, name: str) -> int | None:
        count = self.value(name)
        return None if count is None else int(count)

    @property
    def memory_capacity(self) -> float | None:
        """Bytes of one device."""
        return self.value("memory.capacity")

    @property
    def usable_memory(self) -> float | None:
        """Bytes of one device that the runtime leaves or the driver reports; the capacity if no source states them."""
        return self.value("memory.usable") or self.memory_capacity

    @property
    def memory_bandwidth(self) -> float | None:
        """Bytes/s of one device."""
        return self.value("memory.bandwidth")

    @property
    def devices_per_node(self) -> int | None:
        return self._count("devices_per_node")

    @property
    def clock(self) -> float | None:
        """Hertz of the cores, the unit of compilers' cycles."""
        return self.value("clock")

    @property
    def clock_is_inferred(self) -> bool:
        """True if no document states the clock."""
        figure = self.figures.get("clock")
        return figure is not None and figure.confidence == "inferred"

    @property
    def kernel_overhead(self) -> float | None:
        """Seconds that a kernel takes besides its work."""
        return self.value("kernel_overhead")

    @property
    def matmul_efficiency(self) -> float:
        """The share of the matrix unit's peak that kernels reach; 1 if none is stated."""
        return self.value("efficiency.matmul") or 1.0

    @property
    def memory_efficiency(self) -> float:
        """The share of the memory bandwidth that kernels reach; 1 if none is stated."""
        return self.value("efficiency.memory") or 1.0

    @property
    def cores_per_device(self) -> int | None:
        """The number of cores that form one device of a program."""
        return self._count("cores_per_device")

    @property
    def cores_per_chip(self) -> int | None:
        return self._count("cores_per_chip")

    @property
    def host_bandwidth(self) -> float | None:
        """Bytes/s of one device from or to the memory of its host."""
        of_chip = next((link.send_bandwidth for link in self.links.values() if link.topology == "host"), None)
        return None if of_chip is None else of_chip / self.devices_per_chip

    @property
    def networks(self) -> list[Link]:
        """The levels between devices, the nearest first."""
        return [link for link in self.links.values() if link.topology != "host"]

    @property
    def not_primary(self) -> list[str]:
        """The names of the figures that the maker's own documents do not state."""
        return [name for name, figure in self.figures.items() if figure is not None and figure.confidence != "primary"]

    def with_figures(self, figures: Mapping[str, HardwareFigure | None], changes: tuple[str, ...]) -> HardwareProfile:
        """Return the profile with other figures, and with the links that follow from them."""
        changed = {**self.figures, **figures}
        links = _links({name: link.topology for name, link in self.links.items()}, changed)
        return self._replace(figures=changed, links=links, changes=(*self.changes, *changes))


def profile_names() -> tuple[str, ...]:
    """Return the names of the shipped profiles."""
    return tuple(sorted(path.stem for path in shipped_configs("hardware").glob("*.yaml")))


def load_profile(name_or_path: str | Path) -> HardwareProfile:
    """Load a shipped profile by name, or a file by its path.

    A text is a path if it has a separator or ends in .yaml or .yml. Raise UsageError if there is no such profile, or at the
    line of a fault in the file.
    """
    path = Path(name_or_path) if isinstance(name_or_path, Path) or _is_path(name_or_path) else _shipped(name_or_path)
    contents = _contents(path, ())
    texts, figures = contents.texts, contents.figures
    topologies = {key.split(".")[1]: topology for key, topology in texts.items() if key.startswith("links.")}
    return HardwareProfile(
        name=path.stem,
        path=str(path),
        title=texts["title"],
        maker=texts["maker"],
        figures=figures,
        links=_links(topologies, figures),
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
    """Read the contents of a file; `extended_by` are the files that lead to it, resolved."""
    root = configs.read(path)
    extends = extends_node(root)
    if extends is None:
        return parse_contents(root, None)
    base = _base(extends, path.parent)
    chain = (*extended_by, path.resolve())
    if len(chain) > MAX_EXTENDED:
        raise extends.error(f"the profile extends more than {MAX_EXTENDED} others in a chain")
    if base.resolve() in chain:
        names = " -> ".join(file.name for file in (*chain, base))
        raise extends.error(f"the profile extends itself: {names}")
    return parse_contents(root, _contents(base, chain))


def _base(extends: Node, folder: Path) -> Path:
    """Return the path of the profile that `extends` names: a shipped one, or a path relative to `folder`."""
    name = extends.text()
    if not _is_path(name):
        try:
            return _shipped(name)
        except UsageError as error:
            raise extends.error(error.message) from error
    try:
        exists = (folder / name).is_file()
    except OSError:  # a name that is too long, a folder that may not be read
        exists = False
    if not exists:
        raise extends.error(f"no file {name!r} beside this one")
    return folder / name


def _links(topologies: Mapping[str, str], figures: Mapping[str, HardwareFigure | None]) -> dict[str, Link]:
    devices_per_node = figures.get("devices_per_node")
    links = {}
    for name, topology in topologies.items():
        prefix = f"links.{name}."
        own = {key.removeprefix(prefix): figure for key, figure in figures.items() if key.startswith(prefix)}
        values = {key: figure.value for key, figure in own.items() if figure is not None}
        links[name] = Link(
            name,
            topology,
            own.get("bandwidth"),
            own.get("count"),
            own.get("devices"),
            _send_bandwidth(own.get("bandwidth"), own.get("count"), devices_per_node),
            values.get("efficiency"),
            values.get("latency"),
            values.get("low_latency_bandwidth"),
            bool(values.get("in_network_reduction")),
            values.get("reduction_efficiency"),
            own.get("wraparound"),
        )
    return links


def _send_bandwidth(
    bandwidth: HardwareFigure | None, count: HardwareFigure | None, devices_per_node: HardwareFigure | None
) -> float | None:
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
