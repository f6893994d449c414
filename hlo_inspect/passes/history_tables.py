"""The report of `history`: a row for each compiler pass that changed something, and the changes of single instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hlo_inspect.analysis.pass_history import FollowedInstruction, ModuleState, PassTrace
from hlo_inspect.graph.neighbourhood.instruction_lookup import WILDCARD, fits
from hlo_inspect.hlo.input.dump_directory import CompiledModule, PassFile
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import HeadlineRow, Input, Report
from hlo_inspect.report.table import ALL_ROWS, Column, Table, Unit, Value, number_of
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "history"
_KINDS = (*COLLECTIVE_KINDS, *POINT_TO_POINT)


@dataclass(frozen=True, slots=True)
class PassRow:
    """A compiler pass that changed something, with the states before and after it.

    `rewritten` is the number of instructions of the latter that are new or changed.
    """

    file: PassFile
    before: ModuleState | None
    after: ModuleState
    rewritten: int | None


def _kind_column(kind: str) -> Column:
    name, meaning = kind.replace("-", "_"), f"{kind}s after the pass"
    return Column(name, "count", detail=9, optional=True, meaning=meaning, get=lambda row: row.after.collectives[kind] or None)


def _figure_column(name: str, unit: Unit, what: str, figure: str = "", **more: Any) -> Column:  # noqa: ANN401 - those of Column
    """Return the column of a figure of the module after the pass."""
    return Column(name, unit, meaning=f"{what} after the pass", get=attrgetter(f"after.{figure or name}"), **more)


def _largest_bytes(row: PassRow) -> Value:
    shape = row.after.largest_array
    return None if shape is None else shape.padded_bytes


def _change(row: PassRow) -> str:
    """Return the differences to the row before, the counts of instructions last."""
    if row.before is None:
        return ""
    old, new = row.before, row.after
    kinds = dict.fromkeys((*_KINDS, *old.collectives, *new.collectives))
    counts = [(kind, new.collectives[kind] - old.collectives[kind]) for kind in kinds]
    counts += [
        ("async", new.async_collectives - old.async_collectives),
        ("fusion", new.fusions - old.fusions),
        ("copy", new.copies - old.copies),
    ]
    more = new.instructions - old.instructions
    counts.append(("instruction" if abs(more) == 1 else "instructions", more))
    changes = [f"{difference:+,} {name}" for name, difference in counts if difference]
    return ", ".join([*changes, "scheduled"] if new.is_scheduled and not old.is_scheduled else changes)


_HISTORY = TableSpec("history", "Passes that changed the module", page_rows=ALL_ROWS).with_columns(
    Column(
        "file",
        detail=5,
        width=4,
        meaning="number of the file in the dump",
        get=lambda row: "" if row.file.number is None else f"{row.file.number:04d}",
    ),
    Column("pass", width=28, meaning="compiler pass", get=attrgetter("file.name")),
    Column("pipeline", detail=6, meaning="pipeline of the pass", get=attrgetter("file.pipeline")),
    Column("change", width=40, meaning="change by the pass", get=_change),
    Column("rewritten", "count", optional=True, meaning="instructions that are new or changed"),
    Column("collectives", "count", meaning="collectives after the pass", get=lambda row: sum(row.after.collectives.values())),
    *map(_kind_column, _KINDS),
    _figure_column("async_count", "count", "asynchronous collectives", "async_collectives", detail=4),
    _figure_column("fusions", "count", "fusions"),
    _figure_column("copies", "count", "copies", detail=2),
    _figure_column("instructions", "count", "instructions"),
    _figure_column("flops", "flops", "FLOPs of one step", bounded=True),
    _figure_column("bytes", "bytes", "bytes accessed in one step", detail=1, bounded=True),
    Column("largest_array_bytes", "bytes", detail=1, meaning="bytes of the largest array after the pass", get=_largest_bytes),
    Column("largest_array", detail=4, meaning="name of that array", get=lambda row: str(row.after.largest_array or "")),
)


def history_table(rows: Sequence[PassRow], *, on_page: bool) -> Table:
    """Return one row per pass, in the order in which they ran; the first row is the input of the compiler."""
    occurring = [kind.replace("-", "_") for kind in _KINDS if any(row.after.collectives[kind] for row in rows)]
    return _HISTORY.of(rows, columns=_HISTORY.with_flags({name: {"detail": 3} for name in occurring}), on_page=on_page)


def _trace_key(trace: PassTrace) -> tuple[str, ...]:
    which = trace.brought_by, trace.merged_by, trace.async_by, trace.became_by, trace.gone_by
    return trace.first.kind, trace.now.kind, trace.first.shape, trace.first.op_name, *which


def _became(group: Sequence[PassTrace]) -> Value:
    trace = group[0]
    return trace.now.kind if trace.now.kind != trace.first.kind else None


def _pass_column(name: str, meaning: str) -> Column:
    """Return the column of a pass that did something to the instruction, if one did."""
    return Column(name, optional=True, width=24, meaning=meaning, get=lambda group: getattr(group[0], name) or None)


_SPARSE = ("merged_by", "async_by", "became", "became_by", "gone_by")
_TRACES = TableSpec("traces", "Pass that introduced each instruction", page_rows=ALL_ROWS).with_columns(
    Column("kind", meaning="opcode of the instruction", get=lambda group: group[0].first.kind),
    Column("count", "count", summed=True, meaning="equal instructions that share the row", get=len),
    Column("shape", get=lambda group: group[0].first.shape),
    Column("operand_bytes", "bytes", summed=True, detail=5, get=lambda group: total(trace.first.bytes for trace in group)),
    Column("brought_in_by", width=24, is_chosen=True, meaning="pass that introduced it", get=lambda group: group[0].brought_by),
    _pass_column("merged_by", "pass that merged it with others"),
    _pass_column("async_by", "pass that made it asynchronous"),
    Column("became", optional=True, width=24, meaning="instruction that it became", get=_became),
    _pass_column("became_by", "pass that did this"),
    _pass_column("gone_by", "pass that removed it"),
    Column("name", detail=6, get=lambda group: group[0].now.name),
    Column("op_name", width=24, get=lambda group: group[0].first.op_name),
)
TABLES = (_HISTORY, _TRACES)


def traces_table(traces: Sequence[PassTrace]) -> Table:
    """Return one row per group of equal kind, shape and op_name, with the passes that changed them.

    Columns that are empty in all rows are in CSV and JSON only.
    """
    groups = group_rows(traces, _trace_key)
    sparse = [column for column in _TRACES.columns if column.name in _SPARSE]
    empty = [column.name for column in sparse if column.get and not any(map(column.get, groups))]
    return _TRACES.of(groups, columns=_TRACES.with_flags({name: {"detail": 9} for name in empty}))


def named_like(traces: Iterable[PassTrace], pattern: str) -> list[PassTrace]:
    """Return the traces that match `pattern`: a kind of collective or an opcode, a name, a part of an op_name.

    `*` matches any text.
    """
    wanted = pattern.removeprefix("%")
    return [trace for trace in traces if any(_is_like(state, wanted) for state in (trace.first, trace.now))]


def _is_like(state: FollowedInstruction, pattern: str) -> bool:
    plain, parts = pattern.removesuffix("-start").removesuffix("-done"), pattern.split(WILDCARD)
    if fits(state.kind, plain.split(WILDCARD)) or fits(state.name, parts):
        return True
    return bool(state.op_name) and fits(state.op_name, ["", *parts, ""])


def history_report(
    path: str,
    module: CompiledModule,
    rows: Sequence[PassRow],
    tables: Iterable[Table],
    notes: Sequence[str],
    left_out: Sequence[str],
) -> Report:
    """Return the report. The page begins with `notes`, on other content of the dump, and `left_out`, the unreadable files."""
    warnings = [HeadlineRow("", (note,), severity="warning") for note in left_out]
    return Report(
        COMMAND,
        Input(path, first_line=1, lines=0, bytes=module.bytes),
        facts={},
        tables=tuple(tables),
        notes=(*notes, *left_out),
        title=f"{module.name} in {path}",
        headline=(*warnings, *(HeadlineRow("", (note,)) for note in notes), *_headline(module, rows)),
    )


def _headline(module: CompiledModule, rows: Sequence[PassRow]) -> Iterator[HeadlineRow]:
    brought: Counter[str] = Counter()
    for row in rows:
        for kind, count in row.after.collectives.items():
            more = count - (row.before.collectives[kind] if row.before is not None else 0)
            if more > 0:
                brought[row.file.label] += more
    passes = sum(row.before is not None and row.file.number is not None for row in rows)
    changed = f"{passes:,} {'pass' if passes == 1 else 'passes'} changed the module"
    yield HeadlineRow("passes", (f"{changed}; the dump has {number_of(module.passes, 'file')} of passes",))
    if brought:
        listed = ", ".join(f"{count:,} from {label}" for label, count in brought.most_common(5))
        yield HeadlineRow("collectives", (listed,))
