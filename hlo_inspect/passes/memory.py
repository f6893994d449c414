"""Device memory: what fills it."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis import calls
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.platforms import MAX_SPACES
from hlo_inspect.errors import UsageError
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.buffer_tables import buffer_tables
from hlo_inspect.passes.memory_page import live_tables, memory_headline
from hlo_inspect.passes.memory_tables import host_copies, largest_arrays
from hlo_inspect.passes.out_of_memory_tables import out_of_memory_rows, out_of_memory_tables, reports_of
from hlo_inspect.report.model import FactSpec, Section, Table, Value

_TEMPORARIES_OF_TPU = (
    "the arena itself; memory_analysis() on TPU rounds it up to 16,384 bytes, or counts gaps twice where the compiler is older"
)


class Memory(Pass):
    """Device memory: does it fit, what is live at the peak, and the largest arrays of any text.

    From a scheduled text it works out XLA's buffer assignment: what the program needs (arguments,
    outputs, constants, temporaries), the peak and where it is, every array that is live there with what it is for, from when to
    when it lives, padding and memory space, and the live bytes over the schedule. The rows add up to the peak. Roles come from
    the optimizer, from phases and from what an array is to a parameter; a saved activation is written by the forward pass and
    read by the backward pass. With --profile it says whether the program fits. On TPU HBM and the memories on the chip have
    heaps of their own.

    Without a schedule arguments and outputs alone are known, as logical sizes.

    The largest arrays are those that the text makes, alike ones in one row: what makes them, their bytes with the padding of
    tiles where the text has tiles, and what they are to a parameter of the entry: a copy, transpose, conversion or slice of it,
    its gradient or its new value. Arrays below 1 % of the largest are left out. With --quick gradients and roles in the
    optimizer are not known.

    With NAME, an instruction, it shows the life of the buffers that hold its result: defined, written, read, freed, and what
    lies in the same place at other times.
    """

    name = "memory"
    takes_name = True
    asks_phases = True
    also = ("optimizer",)
    wants = calls.WANTS | Wants(entry=True, graph=True, checked=True)
    specs = (
        FactSpec("memory.argument_bytes", "bytes", "entry parameters on the device, with padding"),
        FactSpec("memory.output_bytes", "bytes", "results on the device, with the table of the result tuple"),
        FactSpec("memory.alias_bytes", "bytes", "parameters whose place an output takes"),
        FactSpec("memory.constant_bytes", "bytes", "constants"),
        FactSpec(
            "memory.temp_bytes", "bytes", "temporaries on the device: the packed heap and tables, without what TPU rounds up"
        ),
        FactSpec("memory.needed_bytes", "bytes", "argument + output - alias + constants + temporaries"),
        FactSpec("memory.peak_bytes", "bytes", "what is static and the highest point of the heap"),
        FactSpec("memory.xla_peak_bytes", "bytes", "what memory_analysis() calls the peak: on CPU without temporaries"),
        FactSpec("memory.live_peak_bytes", "bytes", "temporaries on the device that are live at most"),
        FactSpec("memory.heap_bytes", "bytes", "the packed heap of temporaries on the device"),
        FactSpec("memory.host_bytes", "bytes", "what is in the memory of the host"),
        FactSpec("memory.padding_bytes", "bytes", "what tiles and alignment add to the arrays of the peak"),
        FactSpec(
            "memory.space.<n>.peak_bytes",
            "bytes",
            "what is static in a memory space and the highest point of its heap",
            frozenset(map(str, range(MAX_SPACES))),
        ),
    )

    def run(self, context: Context) -> Section:
        found = context.memory
        facts: dict[str, Value] = {f"memory.{name}": value for name, value in found.figures.items()}
        facts |= {f"memory.space.{space}.peak_bytes": value for space, value in found.spaces.items()}
        notes = [f"memory.{name}: {reason}" for name, reason in found.reasons.items()]
        if found.platform.is_tpu and found.device is not None:
            notes.append(f"memory.temp_bytes: {_TEMPORARIES_OF_TPU}")
        rows = (*out_of_memory_rows(reports_of(context)), *memory_headline(context))
        return Section(facts, _tables(context), notes, rows)


def _tables(context: Context) -> Iterator[Table]:
    device = context.memory.device
    name = context.query.name
    if name is not None:
        if device is None:
            raise UsageError(f"the live range of {name} is not known: {context.memory.reason}")
        yield from buffer_tables(context, device, name)
        return
    if device is not None:
        yield from live_tables(context, device)
    yield from out_of_memory_tables(reports_of(context), context.live_arrays)
    yield largest_arrays(context)
    yield from host_copies(context)
