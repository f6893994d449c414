"""HI309: donated parameters whose memory is idle while temporaries take other memory.

`BufferAssigner` places temporaries into the memory of a parameter only if `input_output_alias` names it
(`AssignSpecialHloBuffer`, xla/service/buffer_assignment.cc); a `buffer_donor` alone is not enough. Temporaries that fit go
into aliased parameters, but for those that the parameter's last use makes or that the output is made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.allocations import Allocation
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.report.model import Finding

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.live_arrays import LiveArray


class IdleDonatedParameter(Rule):
    """Donated buffers idle while a temporary needs memory.

    What it finds
        Donated parameter arrays, if a temporary of the peak fits into their buffer. The temporary is defined after the last
        use of the parameter, and last used before an output takes the buffer. A temporary of the parameter's shape may be
        made by that last use, and read for the output. Below 1 MiB or 1 % of the peak nothing is reported.

    Why it matters
        XLA puts temporaries into a donated parameter's buffer only if an output uses that buffer at the end. Since jaxlib
        0.7.2 it may not even then, if a loop reads the temporary. The donated memory is idle, and the peak larger.

    How to fix it
        Return the new value of the parameter in its shape, type and sharding. If it is returned so, make it of the parameter
        once more instead of keeping the temporary. The bytes are an upper bound: another position may become the peak.

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
    donated = {(leaf.number, leaf.index): leaf for leaf in leaves if leaf.donated}
    idle = [
        allocation
        for allocation in device.assignment.allocations
        if (allocation.parameter, allocation.index) in donated and allocation.bytes >= least
    ]
    temporaries = [array for array in live if array.kind == "heap" and array.bytes >= least]
    donations = []
    for allocation in sorted(idle, key=lambda candidate: candidate.bytes):
        leaf = donated[allocation.parameter or 0, allocation.index]
        last, next_write = _idle_time(device, allocation, least)
        fitting = [
            array
            for array in temporaries
            if array.space == allocation.space
            and array.bytes <= allocation.bytes
            and _is_between(array, last, next_write, array.shape == leaf.shape)
        ]
        if fitting:
            largest = max(fitting, key=lambda array: array.bytes)
            temporaries.remove(largest)
            name = device.schedule.name(last) if last >= 0 else ""
            donations.append(IdleDonation(leaf, allocation.bytes, name, largest))
    return donations


def _idle_time(device: DeviceMemory, allocation: Allocation, least: int) -> tuple[int, int]:
    """Return the last use of a parameter, -1 if none, and the time at which its buffer is written again, else past the end.

    Values below `least` bytes, such as counters of loops, do not count: they have room elsewhere.
    """
    times, buffers = device.values.times, (buffer for buffer in allocation.buffers if device.sizes[buffer] >= least)
    values = sorted((value for buffer in buffers for value in device.buffers.members[buffer]), key=times.__getitem__)
    last = max(device.uses.get(values[0]), default=-1)
    return last, min((times[value] for value in values if times[value] > times[values[0]]), default=device.schedule.end + 1)


def _is_between(array: LiveArray, last: int, next_write: int, shares: bool) -> bool:
    """Return True if a temporary lives from the last use to the next write; if it `shares`, these may make and read it."""
    if array.live_from is None or array.live_to is None:
        return False
    return last < array.live_from + shares and array.live_to < next_write + shares
