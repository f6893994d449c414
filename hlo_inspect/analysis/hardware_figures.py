"""Figures of a hardware profile: the contents of one file, each figure with its unit and its source.

Figures have dotted names (`matmul.bf16`, `memory.bandwidth`, `links.nvlink.count`). So a profile that extends another replaces
whole figures and never half of one. `configs/hardware/README.md` describes the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Literal, NamedTuple

from hlo_inspect.configs import Node
from hlo_inspect.errors import did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern

Unit = Literal["flops_per_s", "bytes", "bytes_per_s", "count", "hertz", "seconds", "ratio", "flag"]

DTYPES = ("f64", "f32", "tf32", "bf16", "f16", "f8", "s32", "s8", "s4")
TOPOLOGIES = ("switch", "mesh", "torus", "network", "host")
CONFIDENCES = ("primary", "secondary", "inferred")

_PLAIN: dict[str, Unit] = {
    "devices_per_node": "count",
    "cores_per_chip": "count",
    "cores_per_device": "count",
    "clock": "hertz",
    "kernel_overhead": "seconds",
}
"""Figures outside of any section."""
_KEYS = ("extends", "title", "maker", "matmul", "vector", "memory", "on_chip", *_PLAIN, "efficiency", "links", "sources")
_REQUIRED = ("title", "maker", "matmul", "vector", "memory", "sources")
_SECTIONS: dict[str, dict[str, Unit]] = {
    "matmul": dict.fromkeys(DTYPES, "flops_per_s"),
    "vector": dict.fromkeys(DTYPES, "flops_per_s"),
    "memory": {"capacity": "bytes", "usable": "bytes", "bandwidth": "bytes_per_s"},
    "efficiency": {"matmul": "ratio", "memory": "ratio"},
}
_OF_MEMORY = ("capacity", "bandwidth")
"""Keys that the memory of a profile needs, be it with null."""
_LEVEL: dict[str, Unit] = {
    "latency": "seconds",
    "efficiency": "ratio",
    "low_latency_bandwidth": "bytes_per_s",
    "in_network_reduction": "flag",
    "reduction_efficiency": "ratio",
}
"""Figures of a level of links without the key `per`."""
_SOURCE_KEYS = ("id", "title", "publisher", "version", "url", "page")

_SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_BYTES = {f"{prefix}B": Fraction(factor) for prefix, factor in _SI.items()} | {
    f"{prefix}iB": Fraction(1024**power) for power, prefix in enumerate("KMGTP", 1)
}
_UNITS: dict[Unit, dict[str, Fraction]] = {
    "flops_per_s": {f"{prefix}{op}/s": Fraction(factor) for prefix, factor in _SI.items() for op in ("FLOP", "OP")},
    "bytes": _BYTES,
    "bytes_per_s": {f"{name}/s": factor for name, factor in _BYTES.items()}
    | {f"{prefix}bit/s": Fraction(factor, 8) for prefix, factor in _SI.items()},
    "count": {},
    "hertz": {f"{prefix}Hz": Fraction(factor) for prefix, factor in _SI.items()},
    "seconds": {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)},
    "ratio": {},
    "flag": {},
}
_EXAMPLES: dict[Unit, str] = {
    "flops_per_s": "a rate such as '312 TFLOP/s'",
    "bytes": "a size such as '80 GB'",
    "bytes_per_s": "a bandwidth such as '3.35 TB/s' or '400 Gbit/s'",
    "count": "a count such as 8",
    "hertz": "a clock such as '1.75 GHz'",
    "seconds": "a time such as '1.2 us'",
    "ratio": "a share such as 0.8",
    "flag": "true or false",
}
_QUANTITY = lazy_pattern(r"(?P<number>[+-]?[0-9]{1,24}(?:\.[0-9]{1,24})?(?:[eE][+-]?[0-9]{1,2})?) ?(?P<unit>[A-Za-z/]*)")
_AXES = lazy_pattern(r"[1-9][0-9]{0,5}(?:x[1-9][0-9]{0,5})+")
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9_-]*")
_LARGEST = 10**24
_NEED_UNITS = frozenset({"bytes_per_s", "hertz", "seconds"})
_FRACTIONS = frozenset({"hertz", "seconds", "ratio"})
"""Units whose figures need not be whole numbers."""


class SourceDocument(NamedTuple):
    """A document and the page that states the figures, with the profile's texts."""

    id: str
    title: str
    publisher: str
    version: str
    url: str
    page: str


class HardwareFigure(NamedTuple):
    """A number that a source states.

    `value` is in FLOP/s, bytes, bytes/s, pieces, hertz or seconds, a share, or 1 and 0 for true and false. `stated` is the text
    of the profile. `source` is the id of a source. `confidence` is "primary" for the maker's own document, "secondary" for
    another one and "inferred" if the figure is computed from one.

    For a link, `per` is "link", "device" or "node", and `directions` of a bandwidth is "one" or "both". `axes` are the sizes of
    a torus, whose product is the value. `when` says which axes wrap round: axes whose size is "exactly" the value or a
    "multiple" of it.
    """

    value: float
    unit: Unit
    stated: str
    source: str
    note: str = ""
    per: str = ""
    directions: str = ""
    axes: tuple[int, ...] = ()
    when: str = ""
    confidence: str = "primary"


@dataclass(frozen=True, slots=True)
class ProfileContents:
    """The contents of a file and of the files that it extends.

    Texts and figures are by dotted name, sources by id. A figure is None if the sources state none.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, HardwareFigure | None] = field(default_factory=dict)
    sources: Mapping[str, SourceDocument] = field(default_factory=dict)


def extends_node(root: Node) -> Node | None:
    """Return the node that names the profile which this one extends."""
    return root.fields(_KEYS).get("extends")


def parse_contents(root: Node, base: ProfileContents | None) -> ProfileContents:
    """Parse a profile over the contents of `base`, the profile that it extends. Raise UsageError at the first fault."""
    fields = root.fields(_KEYS, _REQUIRED if base is None else ())
    base = base or ProfileContents()
    texts = dict(base.texts) | {key: fields[key].text() for key in ("title", "maker") if key in fields}
    sources = dict(base.sources)
    if "sources" in fields:
        _add_sources(fields["sources"], sources)
    figures: dict[str, HardwareFigure | None] = {}
    for section, units in _SECTIONS.items():
        required = _OF_MEMORY if section == "memory" and not base.figures else ()
        for key, node in fields[section].fields(units, required).items() if section in fields else ():
            figures[f"{section}.{key}"] = _figure(node, units[key], sources)
    for name, node in _named(fields.get("on_chip")):
        figures[f"on_chip.{name}"] = _figure(node, "bytes", sources)
    for key, unit in _PLAIN.items():
        if key in fields:
            figures[key] = _figure(fields[key], unit, sources)
    for level, node in _named(fields.get("links")):
        figures |= _link(node, f"links.{level}", texts, sources)
    return ProfileContents(texts, dict(base.figures) | figures, sources)


def _named(section: Node | None) -> Iterable[tuple[str, Node]]:
    """Yield the entries of a section whose keys are names that the profile chooses."""
    for key, node in section.entries() if section else ():
        if not _NAME.fullmatch(key.scalar):
            raise key.error(f"{key.scalar!r} is not a name; use lower-case letters, digits, '_' and '-'")
        yield key.scalar, node


def _add_sources(section: Node, sources: dict[str, SourceDocument]) -> None:
    for item in section.items():
        fields = item.fields(_SOURCE_KEYS, _SOURCE_KEYS)
        source = SourceDocument(**{key: node.text() for key, node in fields.items()})
        if source.id in sources:
            raise fields["id"].error(f"a second source with the id {source.id!r}")
        sources[source.id] = source


def _link(
    node: Node, name: str, texts: dict[str, str], sources: Mapping[str, SourceDocument]
) -> dict[str, HardwareFigure | None]:
    """Return the figures of a level of links; add its topology to `texts`."""
    stated = f"{name}.topology" in texts
    fields = node.fields(("topology", "bandwidth", "count", "devices", "wraparound", *_LEVEL), () if stated else ("topology",))
    if "topology" in fields:
        texts[f"{name}.topology"] = fields["topology"].choice(TOPOLOGIES)
    figures: dict[str, HardwareFigure | None] = {}
    if "bandwidth" in fields:
        bases = {"per": ("link", "device", "node"), "directions": ("one", "both")}
        figures[f"{name}.bandwidth"] = _figure(fields["bandwidth"], "bytes_per_s", sources, bases)
    if "count" in fields:
        figures[f"{name}.count"] = _figure(fields["count"], "count", sources, {"per": ("device", "node")})
    if "devices" in fields:
        devices = _figure(fields["devices"], "count", sources)
        if devices is not None and bool(devices.axes) != (texts[f"{name}.topology"] == "torus"):
            raise fields["devices"].error(
                "the devices of a torus are written by axis, such as 16x16; other links have a number"
            )
        figures[f"{name}.devices"] = devices
    if "wraparound" in fields:
        if texts[f"{name}.topology"] != "torus":
            raise fields["wraparound"].error("only the axes of a torus can wrap around")
        figures[f"{name}.wraparound"] = _figure(fields["wraparound"], "count", sources, {"when": ("exactly", "multiple")})
    for key, unit in _LEVEL.items():
        if key in fields:
            figures[f"{name}.{key}"] = _figure(fields[key], unit, sources)
    return figures


def _figure(
    node: Node, unit: Unit, sources: Mapping[str, SourceDocument], bases: Mapping[str, tuple[str, ...]] | None = None
) -> HardwareFigure | None:
    """Return the figure of `node`; `bases` are further keys with their choices."""
    if node.kind == "null":
        return None
    choices = bases or {}
    fields = node.fields(("value", "source", "note", "confidence", *choices), ("value", "source", *choices))
    source = fields["source"].text()
    if source not in sources:
        raise fields["source"].error(f"no source has the id {source!r}{did_you_mean(source, sources)}")
    value = fields["value"]
    by_axis = unit == "count" and _AXES.fullmatch(value.scalar)
    axes = tuple(int(size) for size in value.scalar.split("x")) if by_axis else ()
    return HardwareFigure(
        value=prod(axes) if axes else _quantity(value, unit),
        unit=unit,
        stated=value.scalar,
        source=source,
        note=fields["note"].text() if "note" in fields else "",
        per=fields["per"].choice(choices["per"]) if "per" in choices else "",
        directions=fields["directions"].choice(choices["directions"]) if "directions" in choices else "",
        axes=axes,
        when=fields["when"].choice(choices["when"]) if "when" in choices else "",
        confidence=fields["confidence"].choice(CONFIDENCES) if "confidence" in fields else "primary",
    )


def _quantity(node: Node, unit: Unit) -> float:
    """Return a positive number in the base unit.

    A number without a unit is in the base unit already. Bandwidths need a unit, because sources state them in bits as often as
    in bytes. Times and clocks need one too.
    """
    if unit == "flag":
        if node.kind != "bool":
            raise node.error(f"{node.scalar or node.kind!r} is neither true nor false")
        return int(node.scalar == "true")
    match = _QUANTITY.fullmatch(node.scalar) if node.kind in ("number", "text") else None
    if match is None:
        written = repr(node.scalar) if node.scalar else f"a {node.kind}"
        raise node.error(f"{written} is not {_EXAMPLES[unit]}")
    factors = _UNITS[unit]
    if not match["unit"] and unit in _NEED_UNITS:
        raise node.error(f"{node.scalar!r} has no unit: write {_EXAMPLES[unit]}")
    if match["unit"] and match["unit"] not in factors:
        raise node.error(f"{match['unit']!r} is not a unit of {_EXAMPLES[unit]}{did_you_mean(match['unit'], factors)}")
    value = Fraction(match["number"]) * factors.get(match["unit"], 1)
    if value <= 0 or value > _LARGEST:
        raise node.error(f"{node.scalar!r} is out of range: a figure is above zero and at most 1e24")
    if unit == "ratio" and value > 1:
        raise node.error(f"{node.scalar!r} is out of range: a share is at most 1")
    if value.denominator == 1:
        return int(value)
    if unit not in _FRACTIONS:
        raise node.error(f"{node.scalar!r} is not a whole number in the base unit")
    return float(value)
