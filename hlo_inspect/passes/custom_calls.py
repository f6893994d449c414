"""Custom calls: the work of kernels and libraries that HLO only names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from hlo_inspect.analysis.collectives.logical_collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step_calls import CallFigure, StepCall, step_by_target, total_of_step
from hlo_inspect.figure import Quantity, least, multiply, or_unknown
from hlo_inspect.figure import total as sum_figures
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.opcodes import TRANSFERS, is_host_callback, is_marker
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.base import Fact, FactSheet, Pass, bounded, specs_of
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import Passage, Section
from hlo_inspect.report.table import Column, Table, TablePlace, Unit
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_member

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


def _unknown_count(calls: _Group) -> int:
    return sum(call.is_unknown for call in calls)


_WORK: tuple[tuple[CallFigure, Unit, str], ...] = (
    ("flops", "flops", "FLOPs of custom calls, all runs of a step"),
    ("least_flops", "flops", "the same without pairs that a static attention mask excludes"),
    ("matmul_flops", "flops", "FLOPs of custom calls in matrix multiplications"),
    ("transcendentals", "count", "transcendental functions of custom calls, all runs of a step"),
)


def _callbacks(figure: CallFigure) -> Callable[[_Group], Quantity]:
    """Return a getter of a figure of the calls that run Python on the host."""
    return lambda calls: total_of_step((call for call in calls if is_host_callback(call.target)), figure)


_MOVED = "operand and result bytes of custom calls in one step, without workspaces"
_FACTS = (
    *(Fact(f"custom_calls.{figure}", unit, meaning, _figure(figure)) for figure, unit, meaning in _WORK),
    Fact("custom_calls.bytes", "bytes", _MOVED, _figure("bytes")),
    Fact("custom_calls.host_callback_count", "count", "runs of calls of Python on the host in one step", _callbacks("runs")),
    Fact("custom_calls.host_callback_bytes", "bytes", "bytes that these move between device and host", _callbacks("bytes")),
    Fact("custom_calls.unknown_count", "count", "custom calls whose work is unknown", _unknown_count),
)


# -- tables -------------------------------------------------------------------------------------------------------------------


def _known_by(group: _Group) -> str | None:
    """Return all ways in which calls of one target are known, or None."""
    return ", ".join(dict.fromkeys(call.cost.known_by for call in group if call.cost.known_by)) or None


MOVED_BYTES = "bytes read and written by all runs in one step"
_TARGET = Column("target", get=lambda group: group[0].target)
_COUNT = Column("count", "count", summed=True, get=len)
_BYTES = bounded("bytes", "bytes", _figure("bytes"), page_name="bytes_accessed", meaning=MOVED_BYTES)
_COLUMNS = (
    _TARGET,
    _COUNT,
    bounded("runs", "count", _figure("runs"), 1),
    bounded("flops", "flops", _figure("flops")),
    bounded("least_flops", "flops", _figure("least_flops"), 3),
    bounded("matmul_flops", "flops", _figure("matmul_flops"), 2),
    bounded("transcendentals", "count", _figure("transcendentals"), 4)._replace(rounded=True),
    _BYTES,
    Column("known_by", detail=1, optional=True, get=_known_by),
    Column("line", "number", detail=5, get=lambda group: group[0].line),
)


def operand_bytes(call: Instruction) -> int | None:
    """Return the bytes of all operands; an operand that is used twice counts twice. None if they were not read."""
    shapes = call.operand_shapes
    return None if shapes is None else total([None if shape is None else shape.array_bytes for shape in shapes])


def result_bytes(call: Instruction) -> int | None:
    return None if call.shape is None else call.shape.array_bytes


def _printed(size: Callable[[Instruction], int | None]) -> Callable[[_Group], int | None]:
    """Return a getter of the bytes of arrays as the calls print them, each call once."""
    return lambda group: total(size(call.instruction) for call in group)


def _moved(group: _Group) -> Quantity:
    """Return the bytes that a target moves between device and host: the results, of a call of Python the operands too."""
    if is_host_callback(group[0].target):
        return total_of_step(group, "bytes")
    sizes = (or_unknown(result_bytes(call.instruction), "a shape is unknown") for call in group)
    return sum_figures(multiply(size, call.runs) for size, call in zip(sizes, group, strict=True))


_TITLE = "Custom calls of one step by target"
_CUSTOM_CALLS = TableSpec(
    "custom_calls",
    _TITLE,
    TablePlace("custom-calls", "Custom calls", "by target, short", 3),
    in_store=True,
    assertable=True,
    page_as="custom_call_groups",
).with_columns(*_COLUMNS)
_CUSTOM_CALL_GROUPS = TableSpec(
    "custom_call_groups", _TITLE, TablePlace("custom-calls", "Custom calls", "merged, short", 2)
).with_columns(*_COLUMNS)
_CALLS_BY_TARGET = TableSpec(
    "custom_calls_by_target",
    _TITLE,
    TablePlace("custom-calls", "Custom calls", "by target", 1),
    counts=(CountedRows(r"custom_calls\.count"), CountedRows(r"custom_calls\.target\.(.+)", (("target", is_member),))),
    page_as="custom_call_target_groups",
).with_columns(
    *_COLUMNS,
    Column("operand_bytes", "bytes", True, 9, meaning="bytes of the operands of all calls", get=_printed(operand_bytes)),
    Column("result_bytes", "bytes", True, 9, meaning="bytes of the results of all calls", get=_printed(result_bytes)),
)
_TARGET_GROUPS = TableSpec(
    "custom_call_target_groups", _TITLE, TablePlace("custom-calls", "Custom calls", "merged")
).with_columns(*_CALLS_BY_TARGET.columns)
_HOST_TRANSFERS = TableSpec(
    "host_transfers", "Host transfers of one step by target", TablePlace("memory", "Host transfers", "calls", 1)
).with_columns(_TARGET, _COUNT, bounded("runs", "count", _figure("runs")), bounded("bytes", "bytes", _moved))
_UNKNOWN_CALLS = TableSpec(
    "unknown_custom_calls",
    "Custom calls whose work is unknown",
    TablePlace("custom-calls", "Custom calls", "of unknown work", 4),
).with_columns(
    _TARGET,
    Column("kernel", get=lambda group: group[0].kernel),
    _COUNT,
    bounded("runs", "count", _figure("runs"), 1),
    _BYTES,
    Column("line", "number", get=lambda group: group[0].line),
)

BY_TARGET = (_CALLS_BY_TARGET, _TARGET_GROUPS)
"""The tables of custom calls in the answers of other commands."""


def custom_call_tables(calls: Sequence[StepCall]) -> Iterator[Table]:
    """Yield the tables of targets, of transfers between host and device, and of unknown calls."""
    yield from _by_target(_CUSTOM_CALLS, _CUSTOM_CALL_GROUPS, calls)
    transfers = [call for call in calls if call.target in TRANSFERS or is_host_callback(call.target)]
    if transfers:
        yield _HOST_TRANSFERS.of(step_by_target(transfers))
    kernels = group_rows([call for call in calls if call.is_unknown], lambda call: (call.target, call.kernel))
    if kernels:
        yield _UNKNOWN_CALLS.of(sorted(kernels, key=lambda group: -least(total_of_step(group, "bytes"))))


def custom_calls_by_target(context: Context, *, with_cost: bool) -> Iterator[Table]:
    """Yield one row per target: the figures of its calls in one step, or its calls counted as they are printed."""
    if with_cost:
        yield from _by_target(*BY_TARGET, context.cost.calls)
        return
    columns = [_TARGET._replace(get=itemgetter(0)), _COUNT._replace(get=itemgetter(1))]
    counts = context.custom_call_targets.most_common()
    yield replace(_CALLS_BY_TARGET.of(counts, title="Custom calls by target, each site once", columns=columns), page_as="")


def _by_target(table: TableSpec, page_table: TableSpec, calls: Sequence[StepCall]) -> Iterator[Table]:
    """Yield one row per target, and for pages a table in which all markers are one row."""
    groups = step_by_target(calls)
    markers = [group for group in groups if is_marker(group[0].target)]
    if len(markers) < 2:
        yield replace(table.of(groups), page_as="")
        return
    merged = [call for group in markers for call in group]
    rows = [*(group for group in groups if not is_marker(group[0].target)), merged]
    named = _TARGET._replace(get=lambda row: f"[{len(markers)} marker targets]" if row is merged else row[0].target)
    yield table.of(groups)
    yield page_table.of(rows, columns=(named, *page_table.columns[1:]))


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
    specs = specs_of(_FACTS)
    tables = (_CUSTOM_CALLS, _CUSTOM_CALL_GROUPS, _HOST_TRANSFERS, _UNKNOWN_CALLS)

    def run(self, context: Context) -> Section:
        calls = context.cost.calls
        facts = FactSheet()
        for fact in _FACTS:
            facts.put(fact.name, fact.get(calls), with_bound=True)
        notes = facts.notes
        full = sum(call.cost.at_full_lengths for call in calls)
        if full:
            notes.append(f"custom_calls.flops: {full:,} calls count at full lengths; the true ones are known at run time")
        return Section(facts.values, custom_call_tables(calls), notes, passages=_stanza(calls))
