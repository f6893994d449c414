"""HI309: donated parameters whose memory is idle while temporaries take other memory."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.idle_donations import find_idle_donations
from hlo_inspect.findings.base import Rule, least_worth, size
from hlo_inspect.report.model import Finding


class IdleDonatedParameter(Rule):
    """Donated parameters that could have carried a temporary.

    What it finds
        Arrays of the entry's parameters in `buffer_donor` that no output takes, and a temporary that is live at the peak, made
        after the parameter is read for the last time, and no larger. Those below 1 MiB or 1 % of the peak are left out.

    Why it matters
        XLA puts temporaries into the memory of a donated parameter only where an output takes that memory at the end. The
        parameter was given away, and its memory is idle.

    How to fix it
        Return an array of the parameter's shape, type and sharding, the new value most likely: see whether it is
        returned in another type, or with another sharding. The bytes are an upper bound: another moment may become the peak.

    Example
        HloModule step, is_scheduled=true, buffer_donor={ (0, {}) }

        ENTRY main {
          cache = f32[512,1024]{1,0} parameter(0)
          x = f32[8]{0} custom-call(cache), custom_call_target="reads"
          y = f32[512,1024]{1,0} custom-call(x), custom_call_target="writes"
          ROOT r = f32[8]{0} custom-call(y), custom_call_target="reads"
        }
    """

    code = "HI309"
    name = "idle-donated-parameter"
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        device = context.memory.device
        if device is None:
            return
        for idle in find_idle_donations(device, context.interface.parameters, context.live_arrays, least_worth(context)):
            one = idle.temporary
            since = f"after {idle.last_read}" if idle.last_read else "all the time"
            message = (
                f"{size(idle.bytes)} of the donated parameter {idle.leaf.number} are idle {since}, as no output takes "
                f"their place: {one.name}, {size(one.bytes)}, could be there"
            )
            yield self.finding(context, message, idle.leaf.line, idle.leaf.name, one.bytes)
