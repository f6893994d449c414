"""What a cost is attributed to: the kind of fusion, the phase of a training step and the line of source."""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.analysis.op_names import UNKNOWN, Origin, Scope, origin, phase_of, scope_of
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import StackFrames
from hlo_inspect.hlo.values import parse_metadata

NOT_TOLD = "(not told)"
"""The source of what has no metadata, and the kind of a fusion that does not print it or what it calls."""
NOT_FUSED = "(not a fusion)"

_OP_NAME = re.compile(r'\{op_name="([^"\\]*+)"(?=[ }])')
"""The field that metadata starts with; what follows is the same for many."""
_METADATA = re.compile(r', metadata=(\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\})(?=, [a-z]|$)')


class Labels(NamedTuple):
    kind: str
    phase: str
    source: str


class Labeller:
    """Labels rows by what their attributes say; what metadata means is looked up once for each that is spelled alike."""

    def __init__(self, frames: StackFrames) -> None:
        self._frames = frames
        self._told: dict[str, tuple[str, str]] = {}
        self._sources: dict[str, str] = {}
        self._scopes: dict[str, Scope] = {}

    def of(self, view: View, index: int) -> Labels:
        kind = NOT_FUSED
        phase, source = self._phase_and_source(view, index)
        if view.opcodes[index].removesuffix("-start") == "fusion":
            kind = _fusion_kind(view, index)
        return Labels(kind, phase, source)

    def _phase_and_source(self, view: View, index: int) -> tuple[str, str]:
        """The phase and the line of source. Strings that stand before the metadata may hold what looks like it."""
        tail = view.rows[index][3]
        place = tail.find(", metadata=")
        if place < 0 and "metadata=" not in tail:
            return UNKNOWN, NOT_TOLD
        plain = _METADATA.match(tail, place) if place >= 0 and _is_outside_of_strings(tail, place) else None
        text = plain[1] if plain is not None else _attribute(view, index, "metadata")
        known = self._told.get(text)
        if known is None:
            found = self._origin(text)
            scope = self._scopes.get(found.op_name)
            if scope is None:
                scope = self._scopes[found.op_name] = scope_of(found.op_name)
            known = self._told[text] = (phase_of(found, scope), found.source or NOT_TOLD)
        return known

    def _origin(self, metadata: str) -> Origin:
        """What metadata says; the source is looked up once for all that differ in their `op_name`."""
        name = _OP_NAME.match(metadata)
        if name is None or "op_name" in (rest := metadata[name.end() :]):
            return origin(parse_metadata(metadata), self._frames)
        source = self._sources.get(rest)
        if source is None:
            source = self._sources[rest] = origin(parse_metadata("{" + rest), self._frames).source
        return Origin(name[1], source)


def _is_outside_of_strings(tail: str, place: int) -> bool:
    return tail.count('"', 0, place) % 2 == 0 and tail.find("\\", 0, place) < 0


def _fusion_kind(view: View, index: int) -> str:
    try:
        fusion = view.instruction(index)
    except scan.ScanError:
        return NOT_TOLD
    return (fusion.callee("calls") and fusion.attr("kind")) or NOT_TOLD


def _attribute(view: View, index: int, name: str) -> str:
    """The text of an attribute of a row, empty where it has none that can be read."""
    try:
        return view.instruction(index).attribute(name)
    except scan.ScanError:
        return ""
