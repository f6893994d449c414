"""HI506: optimizer state that devices hold in copies."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.state_savings import ReplicatedState, bytes_of_a_device, replicated_state
from hlo_inspect.findings.rule import Rule, counted, entry_line, size
from hlo_inspect.report.model import Finding
from hlo_inspect.report.units import format_value

WORTH_DIVIDING = 16 << 20  # bytes per device: a smaller saving is not worth another sharding
WORTH_SHARE = 0.01  # share of the bytes of parameters per device, for the same reason


class ReplicatedOptimizerState(Rule):
    """Data-parallel devices replicate the optimizer's state.

    What it finds
        Moments, master weights and other optimizer state that several devices hold in equal copies. These devices divide
        another parameter, which the step only reads, so they are the data-parallel devices. The bytes at stake are the saving
        of one device: all but the largest of n parts. The saving is at least 16 MiB and at least 1 % of the device's
        parameters.

    Why it matters
        Each device computes the same update and holds the same state. With state sharded over n devices, each holds 1/n of it
        and gathers the new weights. This is ZeRO stage 1 (Rajbhandari et al. 2020, arXiv:1910.02054).

    How to fix it
        Shard the optimizer's state over the batch axis. In JAX set `out_shardings` of the jitted `init` and `step`, with
        `NamedSharding(mesh, PartitionSpec("data"))` for the moments.

    Example
        HloModule step, num_partitions=8

        ENTRY main {
          moment = f32[64,64]{1,0} parameter(1), sharding={replicated}
          batch = f32[64,64]{1,0} parameter(4), sharding={devices=[8,1]<=[8]}
          ROOT sum = f32[64,64]{1,0} add(moment, batch)
        }
    """

    code = "HI506"
    severity = "info"
    threshold = WORTH_DIVIDING

    def check(self, context: Context) -> Iterator[Finding]:
        per_device = context.shapes_are == "per_device"
        interface, counts = context.shardings.interface, context.device_counts
        for state in replicated_state(context.optimizer, interface, counts, per_device=per_device):
            whole = bytes_of_a_device(interface, counts, per_device=per_device)
            if state.saved >= max(self.least(context), WORTH_SHARE * whole):
                share = format_value(state.saved / whole, "share")
                saved = f"{size(state.saved)} a device ({share} of {size(whole)} of parameters)"
                what = f"{counted(kind for _, kind in state.members)} {'is' if len(state.members) == 1 else 'are'} replicated"
                how = f"Sharding like that of parameter {state.among} saves {saved}"
                message = f"{what} over {_devices(context, state)}. {how}"
                yield self.finding(context, message, entry_line(context), state.members[0][0].name, state.saved)


def _devices(context: Context, replicated: ReplicatedState) -> str:
    """Return the devices that hold copies, by the mesh axes that divide the other parameter and not the state."""
    leaves = {leaf.number: leaf for leaf in reversed(context.shardings.interface.parameters)}
    state, read = (
        context.partition_specs.get(leaf.sharding, None if leaf.index else leaf.instruction)
        for leaf in (replicated.members[0][0], leaves[replicated.among])
    )
    own = {axis for axes in state or () for axis in axes}
    between = [axis for axes in read or () for axis in axes if axis not in own]
    devices = f"{replicated.parts} devices"
    return f"mesh axis {', '.join(between)} ({devices})" if between else f"{devices} of data parallelism"
