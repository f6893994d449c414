"""What a cost is attributed to: the kind of fusion, the phase of a training step and the line of source."""

from __future__ import annotations

import re
from typing import NamedTuple

from hlo_inspect.analysis.cost.body import Body
from hlo_inspect.analysis.cost.model import UnknownCostError
from hlo_inspect.analysis.metadata import origin
from hlo_inspect.analysis.phases import phase_of
from hlo_inspect.analysis.scopes import UNKNOWN, scope_of
from hlo_inspect.hlo.header import StackFrames

NOT_TOLD = "(not told)"
"""The source of what has no metadata, and the kind of a fusion that does not print it."""
NOT_FUSED = "(not a fusion)"

_METADATA = re.compile(r', metadata=(\{[^{}"\n]*+(?:"[^"\\\n]*+"[^{}"\n]*+)*+\})(?=, [a-z]|$)')


class Labels(NamedTuple):
    kind: str
    phase: str
    source: str


class Labeller:
    """Labels rows by what their attributes say; what metadata means is looked up once for each that is spelled alike."""

    def __init__(self, frames: StackFrames) -> None:
        self._frames = frames
        self._origins: dict[str, tuple[str, str]] = {}

    def of(self, body: Body, index: int) -> Labels:
        kind = NOT_FUSED
        phase, source = self._origin(body, index)
        if body.opcodes[index].removesuffix("-start") == "fusion":
            try:
                kind = body.fusing(index).kind or NOT_TOLD
            except UnknownCostError:
                kind = NOT_TOLD
        return Labels(kind, phase, source)

    def _origin(self, body: Body, index: int) -> tuple[str, str]:
        """The phase and the line of source. Strings that stand before the metadata may hold what looks like it."""
        tail = body.rows[index][3]
        place = tail.find(", metadata=")
        if place < 0 and "metadata=" not in tail:
            return UNKNOWN, NOT_TOLD
        plain = _METADATA.match(tail, place) if place >= 0 and '"' not in tail[:place] else None
        text = plain[1] if plain is not None else _metadata(body, index)
        known = self._origins.get(text)
        if known is None:
            found = origin(text, self._frames)
            known = self._origins[text] = (phase_of(found, scope_of(found.op_name)), found.source or NOT_TOLD)
        return known


def _metadata(body: Body, index: int) -> str:
    try:
        return body.operation(index).attributes.get("metadata", "")
    except UnknownCostError:
        return ""
