"""The first lines of the page that a person reads first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hlo_inspect.analysis.collectives.executed_collectives import NOT_EXECUTED
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step_calls import attention_of_step, total_of_step
from hlo_inspect.analysis.cost.figures import countable
from hlo_inspect.analysis.memory.host_transfers import host_parameters
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.analysis.time.kernel_times import no_bytes_reason
from hlo_inspect.figure import Quantity, at_least, exact, least, reason
from hlo_inspect.figure import total as total_quantity
from hlo_inspect.findings import LARGE_MODULE
from hlo_inspect.graph.parameters import ParameterLeaf
from hlo_inspect.graph.slices import DCN
from hlo_inspect.hlo.opcodes import POINT_TO_POINT
from hlo_inspect.hlo.values.op_names import RECOMPUTE
from hlo_inspect.hlo.values.shapes import on_host, space_name, total
from hlo_inspect.optimizer.overview import Overview
from hlo_inspect.passes.memory_words import array_groups, fit_parts, total_moved
from hlo_inspect.passes.partitioning import BEFORE_PARTITIONING, is_before_partitioning
from hlo_inspect.passes.unread_lines import unread_collective
from hlo_inspect.passes.warning_tables import warnings_rows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, sentence

if TYPE_CHECKING:
    from hlo_inspect.analysis.time.step_times import StepTimes

_AXES = 4
"""At most this many mesh axes are named with their bytes."""

_HOST_WORDS = {"send": "to", "recv": "from"}
_KINDS = {"training step": "train step"}


def headline_rows(context: Context) -> Iterator[HeadlineRow]:
    """Yield at most seven lines; --quick leaves out costs, the optimizer and the largest array."""
    if not context.module.quoted_lines:
        yield HeadlineRow("", tuple(_program(context)))
    if not context.request.quick and context.module.entry is not None:
        yield HeadlineRow("compute", tuple(_compute(context)))
        time = tuple(_time(context))
        yield from [HeadlineRow("time", time)] if time else []
    yield HeadlineRow("collectives", tuple(_collectives(context)))
    yield from warnings_rows(context)
    if context.interface.parameters_known:
        yield HeadlineRow("memory", tuple(_memory(context)))
    if not context.request.quick:
        rows = {"largest": tuple(_largest_array(context)), "host": tuple(_host(context))}
        yield from (HeadlineRow(label, parts) for label, parts in rows.items() if parts)


def _is_large(context: Context) -> bool:
    return context.module.opcode_counts.total() > LARGE_MODULE


def _program(context: Context) -> Parts:
    """Yield the kind of program, its size, and its devices."""
    program = context.program
    parameters = context.interface.parameters
    if program.kind in ("training step", "optimizer update"):
        overview = context.optimizer
        yield from sentence("{}: ", _KINDS.get(program.kind, program.kind))
        yield from _optimizer(overview)
        yield from _size(overview.bytes_of(row.weight for row in overview.rows), context)
    elif program.cache:
        yield from sentence("{} with a cache of {}", program.kind, Amount(len(program.cache), "count", "array"))
        yield from _size(total(leaf.shape.bytes for leaf in program.cache), context)
        yield from sentence(" among {}", Amount(len(parameters), "count", "parameter"))
    else:
        yield _named(context)
        if context.interface.parameters_known:
            yield " on " if program.opcode else ": "
            yield Amount(len(parameters), "count", "parameter")
            yield from _size(total(leaf.shape.bytes for leaf in parameters), context)


def _optimizer(overview: Overview) -> Parts:
    """Yield the rule and its number of weights; those that no rule explains are counted apart."""
    rules = Counter(row.rule for row in overview.rows)
    without_rule = rules.pop("unknown", 0)
    if not rules:
        name = "an optimizer without a rule" if overview.name == "unknown" else overview.name or "an optimizer"
        yield from sentence("{} on {}", name, Amount(without_rule, "count", "weight"))
        return
    name = "an optimizer" if overview.name is None else "several optimizers" if len(rules) > 1 else next(iter(rules))
    yield from sentence("{} on {}", name, Amount(rules.total(), "count", "weight"))
    if without_rule:
        yield from sentence(", {} without a recognized rule", Amount(without_rule, "count"))


def _named(context: Context) -> str:
    program = context.program
    if program.opcode == "custom-call":
        targets = set(context.custom_call_targets)
        return f"a custom call of {targets.pop()}" if len(targets) == 1 and all(targets) else "a custom call"
    if program.opcode:
        return f"one reduction, {program.opcode}," if program.kind == "reduction" else f"one {program.opcode}"
    if program.kind == "program" and program.has_matmuls is not None:
        return f"program {'with' if program.has_matmuls else 'without'} matrix multiplications"
    return program.kind


def _size(size: int | None, context: Context) -> Parts:
    """Yield in brackets the bytes, the devices that hold them, and their mesh."""
    devices, mesh = context.device_counts.devices, context.mesh
    yield from sentence(" ({}", Amount(size, "bytes"))
    if devices is not None:
        yield " on " if devices == 1 else " on each of " if context.shapes_are == "per_device" else " over "
        yield Amount(devices, "count", "device")
        if mesh.shape and devices > 1:
            yield ", mesh of this partial module " if mesh.partial_reason else ", mesh "
            yield " ".join(f"{name}={size}" for name, size in zip(mesh.names, mesh.shape, strict=False))
    yield ")"


def _compute(context: Context) -> Parts:
    step, unknown = context.cost.step, context.cost.unknown_calls
    matmul, flops, size = (_as_read(step[figure], context) for figure in ("matmul_flops", "flops", "bytes"))
    if least(matmul):
        yield from sentence("{} matmul", Amount(matmul, "flops"))
        again = sum(
            least(tally.bounds("matmul_flops")) for phase, tally in context.cost.tally("phase").by_label() if phase == RECOMPUTE
        )
        if again:
            yield from sentence(" ({} recompute)", Amount(again / least(matmul), "share"))
        yield ", "
        yield from _attention(context)
    elif least(flops) or not unknown:
        yield from sentence("{}, ", Amount(flops, "flops"))
    accessed = "{} as written, before fusion" if no_bytes_reason(context.module) else "{} accessed"
    yield from sentence(accessed, Amount(size, "bytes"))
    yield from _kernels(context)
    if unknown:
        targets = {call.target for call in unknown}
        what = targets.pop() if len(targets) == 1 and all(targets) else Amount(len(unknown), "count", "custom call")
        yield from sentence("; FLOPs of {} unknown", what)


def _kernels(context: Context) -> Parts:
    """Yield the runs of kernels in a step; nothing before fusion, when instructions are no kernels."""
    if not no_bytes_reason(context.module):
        runs = countable(total_quantity(kernel.runs for kernel in context.kernels.launched))
        yield from sentence(" in {}", Amount(_as_read(runs, context), "count", "kernel run"))


def _as_read(quantity: Quantity, context: Context) -> Quantity:
    """Return a figure that counts nothing for unreadable lines: a lower bound if there are such lines."""
    return at_least(least(quantity), "the work of some lines is unknown") if context.module.unread else quantity


def _attention(context: Context) -> Parts:
    """Yield the share of attention in the multiplications, and the part that a static mask leaves out."""
    attention, masked = attention_of_step(context.cost.calls), total_of_step(context.cost.calls, "masked_flops")
    if least(attention):
        yield from sentence("{} of it attention", Amount(attention, "flops"))
        if least(masked):
            yield from sentence(" ({} masked out)", Amount(masked, "flops"))
        yield ", "


def _time(context: Context) -> Parts:
    """Yield the bound and the estimate of a step; for a large program those of its FLOPs and bytes alone."""
    profile, times = context.on_machine.profile, context.on_machine.kernel_times
    if profile is None or times is None:
        return
    from hlo_inspect.analysis.time.collective_times import ALL
    from hlo_inspect.analysis.time.step_times import bytes_time, flops_time

    alone = {
        "compute": least(flops_time(context.cost.opcodes, times)),
        "memory": least(bytes_time(context.cost.opcodes, times)),
        "collectives": least(context.on_machine.collective_seconds.get(ALL, 0.0)),
    }
    times_of_step = None if _is_large(context) else context.on_machine.step_times
    seconds = max(alone.values()) if times_of_step is None else least(times_of_step.step)
    if not seconds:
        return
    yield from sentence("{} a step on {}", Amount(at_least(seconds, "a bound"), "seconds"), profile.name)
    if times_of_step is None:
        yield f" by {max(alone, key=lambda name: alone[name])} alone; `hlo-inspect time` adds the other parts"
        return
    if least(times_of_step.estimate_step) > seconds:
        estimate = Amount(times_of_step.estimate_step, "seconds")
        yield from sentence(", estimate {}", estimate)
    yield from _estimate_shares(context, times_of_step)


def _estimate_shares(context: Context, times: StepTimes) -> Parts:
    """Yield the shares of the estimate that are exposed collectives and fixed costs of kernels."""
    from hlo_inspect.passes.time.time_tables import fixed_seconds

    step = least(times.estimate_step)
    fixed = least(fixed_seconds(context))
    shares = [("exposed collectives", least(times.estimate_exposed))] if context.collectives else []
    shares = [] if reason(times.estimate_exposed) else shares
    shares += [("fixed costs of kernels", fixed)] if fixed else []
    at_most = "at most " if reason(times.estimate_step) else ""
    for index, (words, seconds) in enumerate(shares if step else ()):
        yield from sentence(f"{', ' if index else ': '}{at_most}{{}} {words}", Amount(seconds / step, "share"))


def _collectives(context: Context) -> Parts:
    executed, unread = context.executed, unread_collective(context.module)
    everything = executed.total.beside(unread)
    sites = sum(not collective.is_point_to_point for collective in context.collectives)
    if sites:
        yield Amount(everything.count, "count", "run")
        if exact(everything.count) != sites:
            yield from sentence(" of {}", Amount(sites, "count", "site"))
        yield from sentence(", {} sent", Amount(everything.wire_bytes, "bytes"))
        expected = tuple(_expected(context))
        yield " as written" if expected else ""
        yield from _axes(context)
        yield from expected
        recompute = executed.phases.get(RECOMPUTE, NOT_EXECUTED)
        if least(recompute.count) and not context.leaves_phases_open:
            again = Amount(recompute.count, "count", "run"), Amount(recompute.wire_bytes, "bytes")
            yield from sentence("; recompute {}, {}", *again)
    elif not context.collectives:
        if is_before_partitioning(context.shapes_are, context.device_counts.devices):
            yield f"?: {BEFORE_PARTITIONING}"
        else:
            nothing = "none before the text ends" if context.module.problems.is_truncated else "none"
            yield f"?: {unread}" if unread else nothing
    if least(executed.slice_sends.count):
        yield "; " if sites else ""
        yield from sentence("{} between slices ({})", Amount(executed.slice_sends.wire_bytes, "bytes"), DCN)
        sites += 1
    counts = [(kind, executed.kinds.get(kind, NOT_EXECUTED).count) for kind in POINT_TO_POINT]
    for index, (kind, count) in enumerate([(kind, count) for kind, count in counts if least(count)]):
        yield "; " if sites or index else ""
        yield from sentence("{} {}", Amount(count, "count"), kind)
        with_host = [collective.inner.attr("is_host_transfer") for collective in context.collectives if collective.kind == kind]
        yield f" {_HOST_WORDS[kind]} the host" if all(with_host) else ""


def _expected(context: Context) -> Parts:
    """Yield what XLA's collective passes will make of a text from before them, if they change the bytes."""
    expected = context.expected
    if expected is None:
        return
    before, after = (least(figures.kinds.get("all-reduce", NOT_EXECUTED).count) for figures in (context.executed, expected))
    if after < before:
        text = "; XLA makes {} reduce-scatters: {}"
        yield from sentence(text, Amount(before - after, "count", "all-reduce"), Amount(expected.total.wire_bytes, "bytes"))


def _axes(context: Context) -> Parts:
    """Yield the bytes sent along each axis of the mesh, the most first; for a single axis its name."""
    in_total = context.device_counts.slices == 1
    sent = [(label, figures.wire_bytes) for label, figures in context.executed.axes.items() if in_total or label != DCN]
    sent.sort(key=lambda item: (-least(item[1]), item[0] or ""))
    named = [(label or "without an axis", size) for label, size in sent]
    if len(named) == 1:
        yield f" along {named[0][0]}" if sent[0][0] else ""
        return
    for index, (label, size) in enumerate(named[:_AXES]):
        yield from sentence(", {} {}" if index else ": {} {}", label, Amount(size, "bytes"))
    if len(named) > _AXES:
        yield ", …"


def _memory(context: Context) -> Parts:
    interface = context.interface
    parameters = [leaf for leaf in interface.parameters if not on_host(leaf.shape)]
    size = total(leaf.shape.bytes for leaf in parameters)
    yield from _fit(context)
    yield from sentence("arguments {}", Amount(size, "bytes"))
    fit = None if context.module.header.is_scheduled else context.on_machine.memory_fit
    if fit is not None and fit.excess:
        yield from sentence(f": do not fit in the {{}} of {fit.memory} of {fit.profile.name}", Amount(fit.capacity, "bytes"))
    devices = context.device_counts.devices
    if devices and devices > 1 and context.shapes_are != "per_device":
        yield from sentence(" over {}", Amount(devices, "count", "device"))
    if interface.donation_known:
        yield from _donated(parameters, size)
    if interface.outputs_known and interface.donation_known:
        outputs = (output for output in interface.outputs if output.alias is None and not on_host(output.shape))
        unaliased = total(output.shape.bytes for output in outputs)
        if unaliased is None or unaliased:
            yield from sentence(", unaliased outputs {}", Amount(unaliased, "bytes"))
    yield from _peak_of_memory(context)


def _fit(context: Context) -> Parts:
    """Yield the need of a scheduled program, and if it fits, if the memory of the hardware is known."""
    if context.request.quick or not context.module.header.is_scheduled or _is_large(context):
        return
    fit = context.on_machine.memory_fit
    if fit is None or fit.needed is None or fit.left is None:
        return
    yield from sentence("needs {}", Amount(fit.needed, "bytes"))
    if fit.left < 0:
        yield ": "
        yield from fit_parts(fit)
    else:
        yield from sentence(", {} left", Amount(fit.left, "bytes"))
    yield "; "


def _peak_of_memory(context: Context) -> Parts:
    """Yield the peak of a scheduled program, from XLA's files if they state it."""
    module = context.module
    if context.request.quick or not module.header.is_scheduled:
        return
    peak = context.sidecars.peak_bytes
    if peak is None and _is_large(context):
        yield "; `hlo-inspect memory` shows the peak"
        return
    peak = context.memory.figures["peak_bytes"] if peak is None else peak
    if peak is not None:
        yield from sentence("; peak {}", Amount(peak, "bytes"))
    device = None if _is_large(context) else context.memory.device
    heap = device.peak_heap if device is not None else None
    if heap is not None and heap.space:  # a memory on the chip, which the need leaves out
        yield from sentence(", {} of it in {}", Amount(heap.trace.peak, "bytes"), space_name(heap.space))


def _donated(parameters: Sequence[ParameterLeaf], size: int | None) -> Parts:
    donated = [leaf for leaf in parameters if leaf.donated]
    if not donated:
        yield ", none donated"
        return
    yield from sentence(", {} of {} donated", Amount(len(donated), "count"), Amount(len(parameters), "count"))
    of_them = total(leaf.shape.bytes for leaf in donated)
    if size and of_them is not None:
        yield from sentence(" ({} of the bytes)", Amount(of_them / size, "share"))


def _largest_array(context: Context) -> Parts:
    """Yield the largest array that is no parameter, with its maker."""
    made = array_groups(context.largest_arrays.largest_made)
    if not made:
        return
    array, count = made[0][0], len(made[0])
    yield f"{count:,} × " if count > 1 else ""
    size = Amount(array.shape.padded_bytes, "bytes")
    yield from sentence("{} {} {}", size, str(array.shape), array.name if count == 1 else array.opcode)
    if array.relation is not None:
        yield f" ({array.relation.phrase})"
    source = printed(array.labels.source)
    yield f", {source}" if source else ""
    yield ", before the text ends" if context.module.problems.is_truncated else ""


def _host(context: Context) -> Parts:
    """Yield the parameters in the host's memory, and the copies between host and device."""
    parameters, transfers = host_parameters(context.interface), context.host_transfers
    if parameters:
        size = Amount(total(leaf.shape.bytes for leaf in parameters), "bytes")
        yield from sentence("{}, {}", Amount(len(parameters), "count", "parameter"), size)
    for direction, words in (("to device", "to the device"), ("to host", "to the host")):
        moved = total_moved([transfer for transfer in transfers if transfer.direction == direction])
        if least(moved):
            yield "; " if parameters or direction == "to host" else ""
            yield from sentence("{} {} a step", words, Amount(moved, "bytes"))
