"""The times of a step on several accelerators side by side, or before and after a change of the profile's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.utilization import longest_parts
from hlo_inspect.figure import Figure
from hlo_inspect.passes.base import FactSheet
from hlo_inspect.passes.cost.step_facts import put_times
from hlo_inspect.passes.time.time_tables import parts_and_resources, time_parts
from hlo_inspect.report.table import Column, Table, Unit, Value, lower_bound, plain
from hlo_inspect.report.table_spec import TableSpec


class _ComparedFigure(NamedTuple):
    """A figure on each machine. `gaps` say what each machine lacks; empty if nothing."""

    figure: str
    unit: Unit
    values: Sequence[Value]
    gaps: Sequence[str] = ()


def _value(index: int, row: _ComparedFigure) -> Value:
    return row.values[index]


def _ratio(index: int, row: _ComparedFigure) -> float | None:
    """Return the first machine's time over that of another: its speed relative to the first.

    None if they are not times of the same work, because the machines lack different figures.
    """
    first, other = row.values[0], row.values[index]
    if not isinstance(first, int | float) or not isinstance(other, int | float) or not other or row.unit != "seconds":
        return None
    if row.gaps[0] != row.gaps[index]:
        return None
    return round(first / other, 3)


_AT_LEAST = {
    "time.step_s": "step, at least",
    "time.kernels_s": "kernels, at least",
    "time.exposed_collective_s": "exposed collectives at bounds",
    "time.compute_s": "all FLOPs alone",
    "time.memory_s": "all bytes alone",
    "time.collective_s": "all collectives alone",
}
_BY_MODEL = {
    "time.estimate_step_s": "step by the model",
    "time.estimate_kernels_s": "kernels by the model",
    "time.estimate_exposed_collective_s": "exposed collectives by the model",
}


COMPARED = TableSpec("compared", "The step on each hardware profile", page_rows=0).with_columns(
    Column("figure", width=32, meaning="figure of the step"),
    Column("unit", detail=9, meaning="unit of the figure"),
)
"""Behind these columns each machine has one of its figures, and each but the first one of its ratios."""


def comparison(context: Context) -> Table | None:
    """Return the figures on each machine of the request, with ratios to the first; None for a single machine."""
    machines = _machines(context)
    if len(machines) < 2:
        return None
    columns = list(COMPARED.columns)
    for index, (name, _) in enumerate(machines):
        columns.append(Column(name, "number", unit_of="unit", optional=True, get=partial(_value, index)))
        if index:
            title = "times_as_fast" if len(machines) == 2 else f"{name}_times_as_fast"
            meaning = "the first profile's figure divided by that of the last one"
            columns.append(Column(title, "number", optional=True, meaning=meaning, get=partial(_ratio, index)))
    rows = [row for row in _rows([machine for _, machine in machines]) if any(value is not None for value in row.values)]
    return COMPARED.of(rows, columns=columns)


def _machines(context: Context) -> list[tuple[str, Context]]:
    """Return the machines by the names of their columns."""
    several = context.on_each_profile()
    if len(several) > 1:
        named = [(_profile_name(machine), machine) for machine in several]
        repeated = Counter(name for name, _ in named)
        return [
            (f"{name}_{number}" if repeated[name] > 1 else name, machine) for number, (name, machine) in enumerate(named, 1)
        ]
    before = context.without_changes()
    if before is context or context.on_machine.profile is None:
        return []
    return [(_profile_name(context), before), ("changed", context)]


def _profile_name(machine: Context) -> str:
    profile = machine.on_machine.profile
    return profile.name if profile is not None else ""


def _time_facts(machine: Context) -> Mapping[str, Value]:
    facts = FactSheet()
    put_times(machine, facts)
    return facts.values


def _rows(machines: Sequence[Context]) -> Iterator[_ComparedFigure]:
    facts = [_time_facts(machine) for machine in machines]
    for name, label in _AT_LEAST.items():
        amounts = [row[name] for row in facts]
        reasons = [amount.reason if isinstance(amount, Figure) else "" for amount in amounts]
        gaps = [why.replace(_profile_name(machine), "") for machine, why in zip(machines, reasons, strict=True)]
        yield _ComparedFigure(label, "seconds", [lower_bound(amount) or None for amount in amounts], gaps)
    for name, label in _BY_MODEL.items():
        yield _ComparedFigure(label, "seconds", [plain(row[name]) for row in facts], [""] * len(facts))
    yield _ComparedFigure("MFU, at most", "share", [row["time.mfu_bound"] for row in facts])
    longest = [longest_parts(parts_and_resources(machine, time_parts(machine))) for machine in machines]
    yield _ComparedFigure("binds", "text", [next(iter(names), None) for names in longest])
    yield _ComparedFigure("next to bind", "text", [next(iter(names[1:]), None) for names in longest])
