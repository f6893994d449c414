"""HI307: gathered parameters that are kept for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, least_worth, size
from hlo_inspect.report.model import Finding

_NAMED = 4


class KeptGatheredParameter(Rule):
    """Gathered parameters stay live until the backward pass.

    What it finds
        Results of all-gathers of parameters that both the forward and the backward pass read. Each gathered array stays live
        between the two passes. If they take less than 1 MiB or 1 % of the peak in total, nothing is reported.

    Why it matters
        Weights are sharded so that no device holds all of them. Gathered weights that stay live undo this: each layer adds an
        array.

    How to fix it
        Gather again in the backward pass. Put `jax.checkpoint` around the layer, with a policy that does not save gathered
        weights, or scan over the layers.

    Example
        HloModule step, is_scheduled=true, num_partitions=2

        ENTRY main {
          w = f32[256,1024]{1,0} parameter(0)
          g = f32[512,1024]{1,0} all-gather(w), replica_groups={{0,1}}, dimensions={0}, channel_id=1, use_global_device_ids=true
          y = f32[8]{0} custom-call(g), custom_call_target="reads", metadata={op_name="jit(f)/jvp(layer)/dot"}
          d = f32[8]{0} custom-call(y), custom_call_target="reads", metadata={op_name="jit(f)/transpose(jvp(layer))/dot"}
          ROOT r = f32[8]{0} custom-call(d, g), custom_call_target="reads", metadata={op_name="jit(f)/transpose(jvp(l))/mul"}
        }
    """

    code = "HI307"

    def check(self, context: Context) -> Iterator[Finding]:
        kept = [array for array in context.gathered_parameters if array.is_kept]
        together = sum(array.bytes for array in kept)
        if not kept or together < least_worth(context):
            return
        numbers = [str(array.parameter) for array in kept]
        what = f"parameters {', '.join(numbers[:_NAMED])}" if len(kept) > 1 else f"parameter {numbers[0]}"
        more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
        live = "live" if len(kept) > 1 else "lives"
        message = f"gathered {what}{more}, {size(together)}, {live} from the forward to the backward pass"
        yield self.finding(context, message, kept[0].line, kept[0].name, together)
