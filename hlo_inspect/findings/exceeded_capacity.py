"""HI312: the program needs more memory than a device has."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, entry_line, size
from hlo_inspect.report.model import Finding


class ExceededCapacity(Rule):
    """The program needs more memory than a device has.

    What it finds
        A scheduled program whose arguments, outputs, constants and temporaries need more than the usable memory of the
        device. Without a schedule, arguments that alone need more. The device is that of `--profile`, else the accelerator that
        the dump names. The stake is what is too much.

    Why it matters
        The program stops with an out-of-memory error when it is loaded or when its first step runs.

    How to fix it
        Shard weights and optimizer states over more devices. Donate the arguments that the step replaces, recompute
        activations (`jax.checkpoint`), or use a smaller batch. `hlo-inspect memory` lists what is live at the peak.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          x = bf16[262144,262144]{1,0} parameter(0)
          ROOT y = bf16[262144,262144]{1,0} negate(x)
        }
    """

    code = "HI312"
    severity = "error"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        fit = context.on_machine.memory_fit
        if fit is None or not fit.excess:
            return
        needed = size(fit.capacity + fit.excess) + ("" if fit.needed is not None else " for its arguments alone")
        limit = f"{fit.profile.name} has {size(fit.capacity)} of {fit.memory}"
        message = f"needs {needed}, but {limit}: {size(fit.excess)} too much"
        yield self.finding(context, message, entry_line(context), stake=fit.excess)
