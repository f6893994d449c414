"""HI309: donated parameters whose memory is idle while temporaries take other memory.

`BufferAssigner` places temporaries into the memory of a parameter only if `input_output_alias` names it
(`AssignSpecialHloBuffer`, xla/service/buffer_assignment.cc); a `buffer_donor` alone is not enough. It places every
temporary that fits into the aliased parameters, so none of those is idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.live_arrays import LiveArray
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.report.model import Finding


class IdleDonatedParameter(Rule):
    """Donated buffers idle while a temporary needs memory.

    What it finds
        Parameter arrays in `buffer_donor` without an aliased output, if a temporary of the peak fits into their buffer. The
        temporary is defined after the last use of the parameter. Below 1 MiB or 1 % of the peak nothing is reported.

    Why it matters
        XLA puts temporaries into a donated parameter's buffer only if an output uses that buffer at the end. No output does,
        so the donated memory is idle.

    How to fix it
        Return an array of the parameter's shape, type and sharding, usually its new value. Check if the new value is returned
        in another type or sharding. The bytes are an upper bound, because another position may become the peak.

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
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        device = context.memory.device
        if device is None or is_small(context):
            return
        for idle in find_idle_donations(device, context.interface.parameters, context.live_arrays, least_worth(context)):
            temporary = idle.temporary
            since = f"after {idle.last_read}" if idle.last_read else "the whole step"
            message = (
                f"{size(idle.bytes)} of donated parameter {idle.leaf.number} are idle {since}; "
                f"{temporary.name}, {size(temporary.bytes)}, could use this memory"
            )
            yield self.finding(context, message, idle.leaf.line, idle.leaf.name, temporary.bytes)


class IdleDonation(NamedTuple):
    """A donated parameter that no output takes, and a temporary of the peak that fits into it.

    `last_read` is the last instruction that reads the parameter, `""` if none does. The temporary is made after it.
    """

    leaf: ParameterLeaf
    bytes: int
    last_read: str
    temporary: LiveArray


def find_idle_donations(
    device: DeviceMemory, leaves: Iterable[ParameterLeaf], live: Sequence[LiveArray], least: int
) -> list[IdleDonation]:
    """Return the idle donations, smallest first. Each has the largest temporary that fits it and that no other donation has.

    Temporaries below `least` bytes are left out.
    """
    donors = {(leaf.number, leaf.index): leaf for leaf in leaves if leaf.donor and leaf.alias is None}
    idle = [
        allocation
        for allocation in device.assignment.allocations
        if (allocation.parameter, allocation.index) in donors and allocation.bytes >= least
    ]
    temporaries = [array for array in live if array.kind == "heap" and array.bytes >= least]
    donations = []
    for allocation in sorted(idle, key=lambda candidate: candidate.bytes):
        values = [value for buffer in allocation.buffers for value in device.buffers.members[buffer]]
        last = max((time for value in values for time in device.uses.get(value)), default=-1)
        fitting = [
            array
            for array in temporaries
            if array.space == allocation.space
            and array.bytes <= allocation.bytes
            and array.live_from is not None
            and array.live_from > last
        ]
        if fitting:
            largest = max(fitting, key=lambda array: array.bytes)
            temporaries.remove(largest)
            leaf = donors[allocation.parameter or 0, allocation.index]
            name = device.schedule.name(last) if last >= 0 else ""
            donations.append(IdleDonation(leaf, allocation.bytes, name, largest))
    return donations
