"""HI305: arrays that the forward pass keeps for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.checkpoint_inputs import is_checkpoint_input
from hlo_inspect.analysis.provenance import NO_SCOPE, NOT_PRINTED, printed
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.report.model import Finding

if TYPE_CHECKING:
    from hlo_inspect.analysis.memory.live_arrays import LiveArray

LEAST_SHARE = 0.25
"""Least share of the peak."""

LEAST_USED = 0.5
"""Least share of the memory of known hardware that the program needs."""

_SHOWN = 4


class SavedActivations(Rule):
    """Activations saved for the backward pass are large.

    What it finds
        Arrays, live at the peak, that the forward pass writes and the backward pass reads. In total they take a quarter of
        the peak or more. Inputs of `jax.checkpoint` do not count, as it has to keep them. Nothing is reported if the program
        needs less than half of the memory of the hardware, if this is known. The finding groups the arrays by scope, or by
        source line without a scope, the largest first.

    Why it matters
        Saved activations grow with batch size and sequence length. They often decide if a step fits.

    How to fix it
        Apply `jax.checkpoint` to the function of a scope: the backward pass then computes its activations again. It frees at
        most the bytes of the finding. In a scan it frees nearly all of them; for unrolled layers XLA may undo it. A policy
        saves expensive activations; offloading moves them to the host.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          x = f32[512,1024]{1,0} parameter(0)
          a = f32[512,1024]{1,0} exponential(x), metadata={op_name="jit(f)/jvp(layer)/exp"}
          b = f32[512,1024]{1,0} sine(a), metadata={op_name="jit(f)/jvp(layer)/sin"}
          g = f32[512,1024]{1,0} cosine(b), metadata={op_name="jit(f)/transpose(jvp(layer))/cos"}
          h = f32[512,1024]{1,0} multiply(g, a), metadata={op_name="jit(f)/transpose(jvp(layer))/mul"}
          ROOT r = f32[8]{0} custom-call(h), custom_call_target="reads"
        }
    """

    code = "HI305"
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        if is_small(context) or _has_room(context):
            return
        saved = _saved(context)
        whole, peak = sum(array.bytes for array in saved), context.memory.figures["peak_bytes"] or 0
        if whole < least_worth(context) or whole < LEAST_SHARE * peak:
            return
        totals: dict[str, int] = {}
        for array in saved:
            scope = array.scope if array.scope not in {NO_SCOPE, NOT_PRINTED} else array.source
            scope = "(no scope or line)" if scope == NOT_PRINTED else scope
            totals[scope] = totals.get(scope, 0) + array.bytes
        largest = sorted(totals.items(), key=lambda item: -item[1])
        named = ", ".join(f"{scope} {size(total)}" for scope, total in largest[:_SHOWN])
        more = f" and {len(largest) - _SHOWN} more" if len(largest) > _SHOWN else ""
        arrays = "1 array" if len(saved) == 1 else f"{len(saved)} arrays"
        are = "is" if len(saved) == 1 else "are"
        message = (
            f"{arrays} ({size(whole)} in total, {100 * whole / peak:.0f} % of the peak) {are} saved for the backward "
            f"pass; jax.checkpoint can free at most these; largest: {named}{more}"
        )
        finding = self.finding(context, message, saved[0].line, saved[0].name, whole)
        yield finding._replace(source=printed(saved[0].labels.source) or None)


def _saved(context: Context) -> list[LiveArray]:
    """Return the saved arrays that `jax.checkpoint` does not have to keep, the largest first."""
    from hlo_inspect.analysis.memory.live_arrays import ACTIVATION

    device, saved = context.memory.device, [array for array in context.live_arrays if array.role == ACTIVATION]
    if device is None:
        return []
    return [array for array in saved if not is_checkpoint_input(context.views, device, array, context.phase_of)]


def _has_room(context: Context) -> bool:
    """Return True if the program needs less than half of the memory of known hardware."""
    profile, needed = context.on_machine.profile, context.memory.figures["needed_bytes"]
    usable = profile.usable_memory if profile is not None else None
    return usable is not None and needed is not None and needed < LEAST_USED * usable
