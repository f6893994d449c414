"""HI308: stacks of layers that are converted, copied or gathered whole before a loop that reads one layer at a time."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.parameter_copies import find_layer_stacks
from hlo_inspect.findings.rule import Rule, is_small, least_worth, size
from hlo_inspect.report.model import Finding


class WholeLayerStack(Rule):
    """A stack of layers is live whole; loops read one layer.

    What it finds
        Temporaries, live at the peak, that hold a converted, copied, transposed or gathered parameter. Only bodies of loops
        read them, one layer at a time. Savings below 1 MiB or 1 % of the peak are left out.

    Why it matters
        The whole parameter is in memory beside its converted copy. If the loop's body converted each layer after the slice,
        only one converted layer would be live at a time.

    How to fix it
        Convert the layer inside the scanned function. If XLA moves the conversion out of the loop, apply
        `jax.lax.optimization_barrier` to the layer. The bytes are an upper bound, because another position may become the
        peak. The forward and the backward loop each repeat the conversion.

    Example
        HloModule step, is_scheduled=true

        body {
          s = (s32[], bf16[8,256,1024]{2,1,0}) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          stack = bf16[8,256,1024]{2,1,0} get-tuple-element(s), index=1
          zero = s32[] constant(0)
          layer = bf16[1,256,1024]{2,1,0} dynamic-slice(stack, i, zero, zero), dynamic_slice_sizes={1,256,1024}
          next = s32[] custom-call(i, layer), custom_call_target="reads"
          ROOT t = (s32[], bf16[8,256,1024]{2,1,0}) tuple(next, stack)
        }

        condition {
          c = (s32[], bf16[8,256,1024]{2,1,0}) parameter(0)
          j = s32[] get-tuple-element(c), index=0
          eight = s32[] constant(8)
          ROOT less = pred[] compare(j, eight), direction=LT
        }

        ENTRY main {
          w = f32[8,256,1024]{2,1,0} parameter(0)
          half = bf16[8,256,1024]{2,1,0} convert(w)
          start = s32[] constant(0)
          init = (s32[], bf16[8,256,1024]{2,1,0}) tuple(start, half)
          loop = (s32[], bf16[8,256,1024]{2,1,0}) while(init), condition=condition, body=body
          ROOT n = s32[] get-tuple-element(loop), index=0
        }
    """

    code = "HI308"
    severity = "info"

    def check(self, context: Context) -> Iterator[Finding]:
        device = context.memory.device
        if device is None or is_small(context):
            return
        least = least_worth(context)
        for stack in find_layer_stacks(device, context.views, context.live_arrays, least):
            array, relation = stack.array, stack.array.relation
            saved = array.bytes - stack.layer_bytes
            if relation is not None and saved >= least:
                message = (
                    f"{array.shape}, {size(array.bytes)}, is a {relation.phrase}: {stack.layers} "
                    f"layers, one per iteration of {stack.loop}; computed inside the loop it saves up to {size(saved)}"
                )
                yield self.finding(context, message, array.line, array.name, saved)
