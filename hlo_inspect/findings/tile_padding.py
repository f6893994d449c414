"""HI303: arrays whose tiles take several times their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.report.model import Finding

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.live_arrays import LiveArray


class TilePadding(Rule):
    """Tiles make an array at least twice as large.

    What it finds
        Arrays, live at the peak, that take at least twice the bytes of their elements. Their padding is at least 1 MiB and at
        least 1 % of the peak. Equal arrays are one finding.

    Why it matters
        TPU pads the two minor dimensions to tiles, for example of 8 x 128 numbers. A minor dimension of 2 takes 64 times its
        bytes, in memory and in traffic.

    How to fix it
        Make a large dimension the last one: transpose the array, join small dimensions, or split off the small one. For
        example, `f32[2,65536]` takes far fewer bytes than `f32[65536,2]`.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          x = f32[65536,2]{1,0:T(8,128)} parameter(0)
          ROOT y = f32[8]{0:T(1024)} custom-call(x), custom_call_target="reads"
        }
    """

    code = "HI303"

    def check(self, context: Context) -> Iterator[Finding]:
        if is_small(context):
            return
        groups: dict[str, list[LiveArray]] = {}
        for array in context.live_arrays:
            if 2 * array.padding >= array.bytes > 0:
                groups.setdefault(f"{array.shape} of {array.bytes}", []).append(array)
        for group in groups.values():
            padding = sum(array.padding for array in group)
            first = group[0]
            if padding >= least_worth(context):
                times = first.bytes / max(1, first.bytes - first.padding)
                count = f"{len(group)} arrays" if len(group) > 1 else "an array"
                message = f"{first.shape} takes {times:.3g} times its size in tiles: {size(padding)} of padding in {count}"
                yield self.finding(context, message, first.line, first.name, padding)
