"""What a cost is attributed to: the kind of fusion, the phase of a training step and the line of source."""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.op_names import Provenance
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.header import StackFrames

NOT_TOLD = "(not told)"
"""The source of what has no metadata, and the kind of a fusion that does not print it or what it calls."""
NOT_FUSED = "(not a fusion)"


class Labels(NamedTuple):
    kind: str
    phase: str
    source: str


class Labeller:
    """Labels rows by what their attributes say."""

    def __init__(self, frames: StackFrames) -> None:
        self._provenance = Provenance(frames)

    def of(self, view: View, index: int) -> Labels:
        phase, source = self._provenance.of(view, index)
        is_fusion = view.opcodes[index].removesuffix("-start") == "fusion"
        return Labels(_fusion_kind(view, index) if is_fusion else NOT_FUSED, phase, source or NOT_TOLD)


def _fusion_kind(view: View, index: int) -> str:
    try:
        fusion = view.instruction(index)
    except scan.ScanError:
        return NOT_TOLD
    return (fusion.callee("calls") and fusion.attr("kind")) or NOT_TOLD
