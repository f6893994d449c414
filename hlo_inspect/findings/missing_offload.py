"""HI311: arrays that the program puts into host memory and the compiler keeps on the device."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import least
from hlo_inspect.findings.rule import WORTH_KEEPING, Rule, entry_line, size
from hlo_inspect.report.model import Finding


class MissingOffload(Rule):
    """Arrays for host memory stay on the device.

    What it finds
        Requests for host memory that the optimized program does not follow, or follows in part. They stand in the text before
        optimizations, in the same dump directory. The stake is the bytes that they move to the host in one step, less those
        that the optimized program moves.

    Why it matters
        The program was written to fit with these arrays on the host. XLA removes the requests without a message if it cannot
        follow them.

    How to fix it
        Check that the backend supports host memory: CPU has none apart. On GPU and TPU, offload the array as it is, without an
        operation between the array and its request.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          p = f32[2048,1024]{1,0} parameter(0)
          ROOT h = f32[2048,1024]{1,0} custom-call(p), custom_call_target="MoveToHost"
        }
    """

    code = "HI311"
    threshold = WORTH_KEEPING

    def check(self, context: Context) -> Iterator[Finding]:
        requests = context.offload_requests
        if requests is None:
            return
        moves = (move for move in context.host_transfers if move.view.opcodes[move.row] != "custom-call")
        done = sum(int(least(move.moved)) for move in moves if move.direction == "to host")
        missing = requests.bytes - done
        if missing >= max(self.least(context), 1):
            count = "request" if requests.requests == 1 else f"{requests.requests} requests"
            message = f"{size(missing)} for host memory stay on the device, by {count} of {requests.file}:{requests.line}"
            yield self.finding(context, message, entry_line(context), None, missing)
