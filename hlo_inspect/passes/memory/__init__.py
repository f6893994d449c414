"""Device memory and the arrays that fill it."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.fit import MemoryFit
from hlo_inspect.analysis.memory.host_transfers import OffloadRequests
from hlo_inspect.analysis.memory.live_arrays import loop_around
from hlo_inspect.analysis.memory.platforms import MAX_SPACES
from hlo_inspect.analysis.memory.program_memory import ProgramMemory
from hlo_inspect.analysis.provenance import printed
from hlo_inspect.errors import UsageError
from hlo_inspect.graph import calls
from hlo_inspect.hlo.values.op_names import UNKNOWN
from hlo_inspect.hlo.values.shapes import space_name
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import FactSheet, Pass
from hlo_inspect.passes.memory import buffer_tables as buffers
from hlo_inspect.passes.memory import memory_tables as tables
from hlo_inspect.passes.memory import xla_reports
from hlo_inspect.passes.memory.buffer_tables import buffer_tables
from hlo_inspect.passes.memory.memory_tables import host_copies, largest_arrays, live_tables, parameter_copies
from hlo_inspect.passes.memory.xla_reports import out_of_memory_rows, out_of_memory_tables, reports_of
from hlo_inspect.passes.memory_words import fit_parts
from hlo_inspect.report.model import Amount, FactSpec, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Table

_PREALLOCATED = 0.75
"""The share of a GPU's memory that JAX preallocates by default (JAX documentation, GPU memory allocation)."""
_TEMPORARIES_OF_TPU = (
    "size of the packed heap and pointer tables. On TPU memory_analysis() may print more: it rounds up to 16,384 bytes. "
    "Older compilers also count gaps twice"
)


_FIGURES = {
    "argument_bytes": "entry parameters on the device, padding included",
    "output_bytes": "outputs on the device, with the table of the result tuple",
    "alias_bytes": "outputs that use a parameter's buffer",
    "constant_bytes": "constants",
    "temp_bytes": "temporaries on the device: computed, before TPU's rounding, unless XLA's file states them",
    "xla_temp_bytes": "temporaries that XLA's buffer assignment beside the text states, on CPU and GPU",
    "needed_bytes": "argument + output - alias + constants + temporaries",
    "peak_bytes": "static allocations plus the peak of the heap, without host memory",
    "xla_peak_bytes": "peak by memory_analysis(): with host memory, on CPU without temporaries",
    "live_peak_bytes": "largest sum of live temporaries on the device",
    "heap_bytes": "heap of temporaries on the device, as packed",
    "host_bytes": "bytes in host memory",
    "padding_bytes": "padding (tiles and alignment) of the arrays at the peak",
    "capacity_bytes": "usable memory of a device of the named or recognized hardware",
    "left_bytes": "capacity - needed, negative if the program does not fit",
}
_OF_XLA = "xla_temp_bytes"
_NO_CAPACITY = "no hardware profile that states its memory is named or recognized: choose one with --profile"
_ABSENT = {
    _OF_XLA: "no buffer assignment of XLA for CPU or GPU lies beside the text",
    "capacity_bytes": _NO_CAPACITY,
    "left_bytes": _NO_CAPACITY,
}
_SPACE_PEAK = FactSpec(
    "memory.space.<n>.peak_bytes",
    "bytes",
    "static allocations of a memory space plus the peak of its heap",
    frozenset(map(str, range(MAX_SPACES))),
)


def _facts(memory: ProgramMemory, fit: MemoryFit | None) -> FactSheet:
    facts = FactSheet()
    peaks = {f"space.{space}.peak_bytes": size for space, size in memory.spaces.items()}
    for name, size in {_OF_XLA: None, **memory.figures, **peaks}.items():
        facts.put(f"memory.{name}", size, memory.reasons.get(name, ""))
    facts.put("memory.capacity_bytes", fit.capacity if fit is not None else None)
    unknown = memory.reasons.get("needed_bytes", "") if fit is not None else ""
    facts.put("memory.left_bytes", fit.left if fit is not None else None, unknown)
    return facts


class Memory(Pass):
    """Show device memory: does it fit, what is live at the peak, and the largest arrays.

    For a scheduled module the command computes XLA's buffer assignment. It shows what the program needs: arguments, outputs,
    constants and temporaries. It shows the peak, its position, and every array live there with role, live range, padding and
    memory space. The rows add up to the peak. Roles come from the optimizer, from phases and from an array's relation to a
    parameter. A saved activation is an array that the forward pass writes and the backward pass reads. With --profile the
    page says whether the program fits. On TPU, HBM and each on-chip memory have a heap of their own.

    Source line and scope of an array belong to the instruction that makes its elements. For a stack that a loop writes layer by
    layer this is the instruction that makes a layer, not the loop. Arrays that come from a parameter have its path.

    Host transfers count the bytes that move: of a stack in host memory one layer per iteration. In a dump directory a note says
    if the text before optimizations asks for host memory and the optimized program does not use it.

    For a module without a schedule only the sizes of arguments and outputs are known, without padding.

    The largest arrays are those that instructions define, merged if equal. Each has its defining instruction, its bytes with
    tile padding, and its relation to an entry parameter: copy, transpose, conversion, slice, gradient or new value. Arrays
    below 1 % of the largest are left out. With --quick gradients and roles in the optimizer are unknown.

    Copies of parameters are all arrays that an instruction copies, transposes or converts from a parameter or a part of it.
    Gathered parameters are not among them.

    With NAME, an instruction, the command shows the buffers of its result: definition, writes, reads, end of life, and other
    values in the same memory.
    """

    name = "memory"
    takes_name = True
    findings_of = "all"
    uses_profile = True
    asks_phases = True
    unless_quick = ("optimizer",)
    wants = calls.WANTS | Wants(entry=True, graph=True, checked=True)
    specs = (
        *(FactSpec(f"memory.{name}", "bytes", meaning, absent=_ABSENT.get(name, "")) for name, meaning in _FIGURES.items()),
        _SPACE_PEAK,
    )
    tables = (*tables.TABLES, *xla_reports.TABLES, *buffers.TABLES)

    def run(self, context: Context) -> Section:
        facts = _facts(context.memory, context.on_machine.memory_fit)
        return Section(facts.values, _tables(context), [*facts.notes, *_notes(context)], _headline(context))


def _notes(context: Context) -> Iterator[str]:
    """Yield why figures differ from XLA's. An ignored offload is sought in another file, only for notes."""
    memory = context.memory
    if memory.platform.is_tpu and memory.device is not None:
        yield f"memory.temp_bytes: {_TEMPORARIES_OF_TPU}"
    fit = context.on_machine.memory_fit
    if fit is not None:
        yield f"memory.capacity_bytes: {fit.memory} by source {fit.source}"
    if context.ignored_offload is not None:
        yield _offload_note(context.ignored_offload)


def _offload_note(offload: OffloadRequests) -> str:
    """Say that XLA ignored requests for host memory."""
    calls = f"{offload.requests} custom call{'s' if offload.requests > 1 else ''}"
    return (
        f"{offload.file} asks for host memory in {calls} (first: line {offload.line}), but the optimized program has no array "
        "there. XLA ignored the offload; `history` shows the pass that dropped it, if the dump has all passes"
    )


def _tables(context: Context) -> Iterator[Table]:
    device = context.memory.device
    name = context.request.name
    if name is not None:
        if device is None:
            raise UsageError(f"the live range of {name} is unknown: {context.memory.reason}")
        yield from buffer_tables(context, device, name)
        return
    if device is not None:
        yield from live_tables(context, device)
    yield from out_of_memory_tables(reports_of(context), context.live_arrays)
    yield largest_arrays(context)
    yield from parameter_copies(context)
    yield from host_copies(context)


# -- first lines --------------------------------------------------------------------------------------------------------------


def _headline(context: Context) -> Iterator[HeadlineRow]:
    """Yield XLA's own words if memory did not suffice; whether the program fits, its parts and its peak.

    Without a schedule arguments and outputs alone are known.
    """
    yield from out_of_memory_rows(reports_of(context))
    memory, device = context.memory, context.memory.device
    if device is None:
        yield HeadlineRow("", tuple(_without_schedule(memory)))
        return
    yield HeadlineRow("", tuple(_needed(context, device)))
    yield HeadlineRow("made of", tuple(_parts(context.memory)))
    if device.heap_bytes:
        yield HeadlineRow("temporaries", tuple(_temporaries(device)))
    yield HeadlineRow("peak", tuple(_peak(context, device)))
    if device.platform.is_tpu:
        yield HeadlineRow("by memory", tuple(_memories(context, device)))
    if device.host_bytes:
        yield HeadlineRow("host", (Amount(device.host_bytes, "bytes"), " in host memory"))
    if context.gathered_parameters:
        yield HeadlineRow("gathered", tuple(_gathered(context)))
    if context.memory.stated:
        yield HeadlineRow("stated", (f"arguments, outputs, temporaries and the like by {context.sidecars.found[0]}",))
    platform = device.platform
    chosen = "given" if platform.mark.startswith("--") else "recognized"
    yield HeadlineRow("platform", (f"{platform.name}, {chosen} by {platform.mark}",))


def _amount(size: int | None) -> Amount:
    return Amount(size, "bytes")


def _without_schedule(memory: ProgramMemory) -> Parts:
    sizes = (_amount(memory.figures[name]) for name in ("argument_bytes", "output_bytes", "alias_bytes"))
    text = "arguments {}, outputs {}, {} of them aliased with arguments; temporaries and peak are unknown: {}"
    yield from sentence(text, *sizes, memory.reason)


def _needed(context: Context, device: DeviceMemory) -> Parts:
    devices, needed = context.device_counts.devices, context.memory.figures["needed_bytes"] or 0
    yield from sentence("needs {} of HBM" if device.platform.is_tpu else "needs {}", _amount(needed))
    if devices is not None and devices > 1:
        yield from sentence(" on each of {}", Amount(devices, "count", "device"))
    fit = context.on_machine.memory_fit
    if fit is None or fit.left is None:
        return
    yield ": "
    yield from fit_parts(fit)
    if device.platform.is_tpu:
        yield "; the program's own code takes a part of it (size unknown)"
    if device.platform.name == "gpu" and fit.left >= 0:
        text = (
            "; JAX preallocates {}" if needed <= _PREALLOCATED * fit.capacity else ", but not in the {} that JAX preallocates"
        )
        yield from sentence(text, Amount(_PREALLOCATED, "share"))
        yield " unless XLA_PYTHON_CLIENT_MEM_FRACTION is set"


def _parts(memory: ProgramMemory) -> Parts:
    """Yield the parts of the memory that the program needs."""
    words = (
        ("arguments {}", "argument_bytes"),
        (" + outputs {}", "output_bytes"),
        (" - aliased outputs {}", "alias_bytes"),
        (" + constants {}", "constant_bytes"),
        (" + temporaries {}", "temp_bytes"),
    )
    for word, figure in words:
        if memory.figures[figure] != 0 or figure in {"argument_bytes", "output_bytes"}:
            yield from sentence(word, _amount(memory.figures[figure]))


def _temporaries(device: DeviceMemory) -> Parts:
    yield from sentence(
        "{} live at most in HBM" if device.platform.is_tpu else "{} live at most", _amount(device.live_peak_bytes)
    )
    if 0 in device.heaps and device.heaps[0].fragmentation:
        yield from sentence(", {} in gaps between them", _amount(device.heaps[0].fragmentation))
    tables = device.temp_bytes - device.heap_bytes
    if tables > 0:
        yield from sentence(", {} in pointer tables of tuples", _amount(tables))


def _peak(context: Context, device: DeviceMemory) -> Parts:
    yield _amount(device.peak_bytes)
    time, heap = device.peak_time, device.peak_heap
    if time is None or heap is None:
        yield ", all of it static"
        return
    place = device.place(time)
    instruction = f"{place.name} (line {place.line})"
    if heap.space:
        yield from sentence(": static arrays and {} of temporaries in {}", _amount(heap.trace.peak), space_name(heap.space))
    else:
        yield from sentence(", {} of it temporaries", _amount(heap.trace.peak))
    yield f", at {instruction}"
    loop = loop_around(device, device.schedule.run_at[time])
    if loop:
        runs = context.call_graph.runs(place.computation)
        iterations = Amount(runs, "count", "iteration")
        yield from sentence(" in each of the {} of {}", iterations, loop)
    labels = context.labels_of(device.schedule.view(time), place.row)
    said = (labels.phase if labels.phase != UNKNOWN else "", printed(labels.source))
    yield from (f", {label}" for label in said if label)
    if device.padding_bytes:
        yield from sentence("; {} of it padding", _amount(device.padding_bytes))


def _memories(context: Context, device: DeviceMemory) -> Parts:
    """Yield the peak of HBM and of each memory on the chip; their heaps do not peak together."""
    spaces = device.space_peak_bytes()
    profile = context.on_machine.profile
    capacity = profile.value("on_chip.vmem") if profile is not None else None
    shown = [space for space in (0, 1, 3) if spaces.get(space)]
    for number, space in enumerate(shown):
        yield from sentence(", peak of {} {}" if number else "peak of {} {}", space_name(space), _amount(spaces[space]))
        if space == 1 and capacity is not None:
            yield from sentence(" of {}", Amount(capacity, "bytes"))


def _gathered(context: Context) -> Parts:
    """Yield the copies of parameters that are gathered from other devices, and say if they are kept for the backward pass."""
    copies = context.gathered_parameters
    kept = [copy for copy in copies if copy.is_kept]
    arrays, size = Amount(len(copies), "count", "gathered parameter array"), _amount(sum(copy.bytes for copy in copies))
    yield from sentence("{}, {}; ", arrays, size)
    if not kept:
        yield "none is kept"
    elif len(kept) == len(copies):
        yield "all are kept"
    else:
        yield from sentence("{} of {} kept", Amount(len(kept), "count"), _amount(sum(copy.bytes for copy in kept)))
    yield " from the forward to the backward pass"
