"""HI510: Python on the host that each step calls."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.host_callbacks import find_callbacks
from hlo_inspect.figure import Figure, Quantity, least
from hlo_inspect.findings.rule import Rule, size
from hlo_inspect.report.model import Finding, Severity

OF_DEBUG = "debug_"
"""The begin of the last part of an `op_name` of a callback of `jax.debug`."""


class HostCallback(Rule):
    """A step calls Python on the host.

    What it finds
        Custom calls of Python (`xla_ffi_python_gpu_callback` and its relatives), and on TPU sends to the host. Calls of one
        source line are one finding. It is a warning if the callback is of `jax.debug`. It is an info if it is a
        `pure_callback` or an `io_callback`, which the program needs. The stake is the bytes that one device sends to the
        host in a step.

    Why it matters
        The device copies the operands to the host in each call, and Python handles one call at a time. A forgotten
        `jax.debug.print` in a scan runs once in each iteration.

    How to fix it
        Remove the print, or call it every thousandth step under `jax.lax.cond`. Return values that you want to log as outputs
        of the step.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          x = f32[1024,1024]{1,0} parameter(0)
          c = () custom-call(x), custom_call_target="xla_ffi_python_gpu_callback", custom_call_has_side_effect=true,
            metadata={op_name="jit(step)/debug_print" source_file="train.py" source_line=9}
          ROOT n = f32[1024,1024]{1,0} negate(x)
        }
    """

    code = "HI510"
    resource = "host"

    def check(self, context: Context) -> Iterator[Finding]:
        for callback in find_callbacks(context.views, context.call_graph, context.provenances):
            stake = int(least(callback.sent))
            if callback.calls == 0:
                continue
            severity: Severity = "warning" if callback.word.startswith(OF_DEBUG) else "info"
            place = " in ".join(filter(None, (callback.word, callback.source.rpartition("/")[2])))
            maker = f" by {place}" if place else ""
            times = "once" if callback.calls == 1 else f"{_at_least(callback.calls)}{least(callback.calls):,} times"
            sent = f"{_at_least(callback.sent)}{size(stake)}"
            message = f"each step calls Python on the host {times}{maker}; a device sends it {sent}"
            yield self.finding_at(context, (callback.view, callback.row), message, stake, severity)


def _at_least(quantity: Quantity) -> str:
    return ">= " if isinstance(quantity, Figure) else ""
