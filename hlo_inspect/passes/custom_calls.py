"""Custom calls: the work of kernels and libraries that HLO only names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.calls import (
    CallFigure,
    StepCall,
    step_by_target,
    total_of_step,
    with_unknown,
)
from hlo_inspect.figure import Figure, Quantity, add, exact, least, multiply, or_unknown
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import TRANSFERS, is_marker
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import Pass, bounded, with_lower_bound
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import FactSpec, Passage, Section
from hlo_inspect.report.table import Column, Table, Value

_FACTS: dict[str, CallFigure] = {
    "custom_calls.flops": "flops",
    "custom_calls.least_flops": "least_flops",
    "custom_calls.matmul_flops": "matmul_flops",
    "custom_calls.transcendentals": "transcendentals",
}


class CustomCalls(Pass):
    """List custom calls by target: the work of each, its source, and what is unknown.

    Figures are those of all runs in a step. Attention, matrix multiplications, convolutions, linear algebra and sorting are
    counted by target, shapes and `backend_config`. Pallas kernels count by their own estimate, else by names of JAX's library.
    `known_by` names the source: config, shapes, estimate, name, leading term, marker (does nothing), or a --custom-calls file.

    Least FLOPs leave out pairs of queries and keys that a static mask excludes. Sequence lengths that are known only at run
    time count in full, so the figures are upper bounds. Bytes are operands and results without workspaces, or those of an
    estimate. Other targets have bytes only; the page ends with a --custom-calls template for them.
    """

    name = "custom-calls"
    wants = KERNEL_WANTS
    specs = (
        FactSpec("custom_calls.flops", "flops", "FLOPs of custom calls, all runs of a step"),
        FactSpec("custom_calls.least_flops", "flops", "the same without pairs that a static attention mask excludes"),
        FactSpec("custom_calls.matmul_flops", "flops", "FLOPs of custom calls in matrix multiplications"),
        FactSpec("custom_calls.transcendentals", "count", "transcendental functions of custom calls, all runs of a step"),
        FactSpec("custom_calls.bytes", "bytes", "operand and result bytes of custom calls in one step, without workspaces"),
        FactSpec("custom_calls.unknown_count", "count", "custom calls whose work is unknown"),
    )

    def run(self, context: Context) -> Section:
        calls = context.cost.calls
        figures = {name: total_of_step(calls, figure) for name, figure in _FACTS.items()}
        figures = {name: with_unknown(amount, calls) for name, amount in figures.items()}
        figures["custom_calls.bytes"] = total_of_step(calls, "bytes")
        facts: dict[str, Value] = {}
        for name, amount in figures.items():
            with_lower_bound(facts, name, exact(amount), least(amount))
        facts["custom_calls.unknown_count"] = sum(call.is_unknown for call in calls)
        notes = [f"{name}: {amount.reason}" for name, amount in figures.items() if isinstance(amount, Figure)]
        full = sum(call.cost.at_full_lengths for call in calls)
        if full:
            notes.append(f"custom_calls.flops: {full:,} calls count at full lengths; the true ones are known at run time")
        return Section(facts, custom_call_tables(calls), notes, passages=_stanza(calls))


# -- what a user can fill in --------------------------------------------------------------------------------------------------

MAX_STANZAS = 12


def _stanza(calls: Iterable[StepCall]) -> Iterator[Passage]:
    """Yield a file of --custom-calls with the unknown targets."""
    kernels = dict.fromkeys((call.target, call.kernel, call.is_kernel) for call in calls if call.is_unknown)
    if not kernels:
        return
    lines = ["custom_calls:"]
    for target, kernel, is_kernel in list(kernels)[:MAX_STANZAS]:
        lines += [f"  - target: {_quoted(target)}", *([f"    kernel: {_quoted(kernel)}"] if is_kernel else [])]
        lines += ["    flops: 0  # for example 2 * operands[0].dims[0] * operands[0].dims[1] * result.dims[1]"]
    if len(kernels) > MAX_STANZAS:
        lines.append(f"  # and {len(kernels) - MAX_STANZAS} more")
    yield Passage("Template for --custom-calls FILE.yaml", "\n".join(lines), verbatim=True)


def _quoted(text: str) -> str:
    """Quote a text, as YAML and JSON write it."""
    return json.dumps(text, ensure_ascii=False)


_Group = Sequence[StepCall]


def _figure(figure: CallFigure) -> Callable[[_Group], Quantity]:
    return lambda group: total_of_step(group, figure)


def _known_by(group: _Group) -> str | None:
    """Return all ways in which calls of one target are known, or None."""
    return ", ".join(dict.fromkeys(call.cost.known_by for call in group if call.cost.known_by)) or None


_COLUMNS = (
    Column("target", get=lambda group: group[0].target),
    Column("count", "count", summed=True, get=len),
    bounded("runs", "count", _figure("runs"), 1),
    bounded("flops", "flops", _figure("flops")),
    bounded("least_flops", "flops", _figure("least_flops"), 3),
    bounded("matmul_flops", "flops", _figure("matmul_flops"), 2),
    bounded("transcendentals", "count", _figure("transcendentals"), 4),
    bounded("bytes", "bytes", _figure("bytes"), page_name="bytes_accessed"),
    Column("known_by", detail=1, optional=True, get=_known_by),
    Column("line", "number", detail=5, get=lambda group: group[0].line),
)
_AS_PRINTED = (
    Column("operand_bytes", "bytes", summed=True, detail=9, get=lambda group: _printed(group, operand_bytes)),
    Column("result_bytes", "bytes", summed=True, detail=9, get=lambda group: _printed(group, result_bytes)),
)


def _printed(group: _Group, size: Callable[[Instruction], int | None]) -> int | None:
    """Return the bytes of arrays as the calls print them, each call once."""
    return total(size(call.instruction) for call in group)


def custom_call_tables(calls: Sequence[StepCall]) -> Iterator[Table]:
    """Yield the tables of targets, of transfers between host and device, and of unknown calls."""
    yield from _by_target("custom_calls", "custom_call_groups", _COLUMNS, calls)
    transfers = [call for call in calls if call.target in TRANSFERS]
    yield from (table for table in (_transfers(transfers), _unknown_calls(calls)) if table.rows)


def custom_calls_by_target(context: Context, *, with_cost: bool) -> Iterator[Table]:
    """Yield one row per target: the figures of its calls in one step, or its calls counted as they are printed."""
    if with_cost:
        columns = (*_COLUMNS, *_AS_PRINTED)
        yield from _by_target("custom_calls_by_target", "custom_call_target_groups", columns, context.cost.calls)
        return
    counted, counts = (Column("target"), Column("count", "count", summed=True)), context.custom_call_targets.most_common()
    yield Table("custom_calls_by_target", "Custom calls by target, each site once", counted, tuple(counts))


def _by_target(name: str, page_name: str, columns: tuple[Column, ...], calls: Sequence[StepCall]) -> Iterator[Table]:
    """Yield one row per target, and for pages a table in which all markers are one row."""
    title, groups = "Custom calls of one step by target", step_by_target(calls)
    markers = [group for group in groups if is_marker(group[0].target)]
    if len(markers) < 2:
        yield Table.of(name, title, columns, groups)
        return
    target, *others = columns
    merged = [call for group in markers for call in group]
    rows = [*(group for group in groups if not is_marker(group[0].target)), merged]
    named = target._replace(get=lambda row: f"[{len(markers)} marker targets]" if row is merged else row[0].target)
    yield Table.of(name, title, columns, groups, page_as=page_name)
    yield Table.of(page_name, title, (named, *others), rows)


def _transfers(calls: Iterable[StepCall]) -> Table:
    """Return the bytes moved between host and device memory, by target."""
    columns = (
        Column("target", get=lambda group: group[0].target),
        Column("count", "count", summed=True, get=len),
        bounded("runs", "count", _figure("runs")),
        bounded("bytes", "bytes", _moved),
    )
    return Table.of("host_transfers", "Host transfers of one step by target", columns, step_by_target(calls))


def operand_bytes(call: Instruction) -> int | None:
    """Return the bytes of all operands; an operand that is used twice counts twice. None if they were not read."""
    shapes = call.operand_shapes
    return None if shapes is None else total([None if shape is None else shape.array_bytes for shape in shapes])


def result_bytes(call: Instruction) -> int | None:
    return None if call.shape is None else call.shape.array_bytes


def _moved(group: _Group) -> Quantity:
    whole: Quantity = 0
    for call in group:
        size = result_bytes(call.instruction)
        amount = or_unknown(size, "a shape is unknown")
        whole = add(whole, multiply(amount, call.runs))
    return whole


def _unknown_calls(calls: Iterable[StepCall]) -> Table:
    """Return one row per target and kernel, with the line of its first call."""
    unknown = [call for call in calls if call.is_unknown]
    kernels = group_rows(unknown, lambda call: (call.target, call.kernel))
    columns = (
        Column("target", get=lambda group: group[0].target),
        Column("kernel", get=lambda group: group[0].kernel),
        Column("count", "count", summed=True, get=len),
        bounded("runs", "count", _figure("runs"), 1),
        bounded("bytes", "bytes", _figure("bytes"), page_name="bytes_accessed"),
        Column("line", "number", get=lambda group: group[0].line),
    )
    largest_first = sorted(kernels, key=lambda group: -least(total_of_step(group, "bytes")))
    return Table.of("unknown_custom_calls", "Custom calls whose work is unknown", columns, largest_first)
