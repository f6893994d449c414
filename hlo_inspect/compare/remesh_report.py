"""The report of `remesh`: a row for each mesh that a program was compiled for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import NamedTuple

from hlo_inspect.report.facts import Facts
from hlo_inspect.report.model import Amount, HeadlineRow, Input, Report, sentence
from hlo_inspect.report.table import Column, Table, Unit, Value, figure_of
from hlo_inspect.report.table_spec import TableSpec

COMMAND = "remesh"

_FACTS = {
    "needed_bytes": "memory.needed_bytes",
    "sent_bytes": "collectives.executed_wire_bytes",
    "flops": "cost.executed_flops",
    "exposed_s": "time.estimate_exposed_collective_s",
    "estimate_s": "time.estimate_step_s",
}
"""Facts of the compiled programs, by the columns that show them."""


class MeshOutcome(NamedTuple):
    """A mesh, and the facts of the program compiled for it; without facts the reason why there are none."""

    mesh: str
    devices: int
    facts: Mapping[str, Value] | None
    reason: str = ""

    def value(self, column: str) -> Value:
        """Return the fact that a column shows."""
        return None if self.facts is None else figure_of(self.facts, _FACTS[column])


class _MeshRow(NamedTuple):
    outcome: MeshOutcome
    is_front: bool | None


def remesh_table(outcomes: Sequence[MeshOutcome]) -> Table:
    """Return a row for each mesh: the fastest first if times are known, else in the order of the meshes."""
    front = _front(outcomes)
    rows = [_MeshRow(outcome, None if front is None or outcome.facts is None else outcome in front) for outcome in outcomes]
    if front is not None:
        rows.sort(key=lambda row: (row.outcome.facts is None, _least(row.outcome.value("estimate_s"))))
    return _REMESH.of(rows)


def remesh_report(path: str, outcomes: Sequence[MeshOutcome], notes: Sequence[str]) -> Report:
    """Return the report on a program compiled for several meshes; `path` names the program."""
    compiled = sum(outcome.facts is not None for outcome in outcomes)
    return Report(
        COMMAND,
        Input(path, first_line=1, lines=0, bytes=0),
        facts=Facts({}, ()),
        tables=(remesh_table(outcomes),),
        notes=tuple(notes),
        title=f"{path} for {len(outcomes):,} meshes",
        headline=tuple(_headline(outcomes, compiled)),
    )


def refused_report(path: str, outcome: MeshOutcome, notes: Sequence[str]) -> Report:
    """Return the report on a program that is not compiled for its only mesh."""
    row = HeadlineRow("", (f"{outcome.mesh} is refused: {outcome.reason}",), "error")
    return replace(remesh_report(path, [outcome], notes), title=path, headline=(row,))


def _headline(outcomes: Sequence[MeshOutcome], compiled: int) -> Iterator[HeadlineRow]:
    if compiled < len(outcomes):
        yield HeadlineRow("", (f"{len(outcomes) - compiled} of {len(outcomes)} meshes are refused",), "warning")
    for label, column in (("fastest", "estimate_s"), ("smallest", "needed_bytes"), ("sends least", "sent_bytes")):
        with_value = [outcome for outcome in outcomes if isinstance(outcome.value(column), int | float)]
        if len(with_value) > 1:
            best = min(with_value, key=lambda outcome: (_least(outcome.value(column)), outcome.mesh))
            unit: Unit = "seconds" if column == "estimate_s" else "bytes"
            yield HeadlineRow(label, tuple(sentence("{}: {}", best.mesh, Amount(best.value(column), unit))))


def _front(outcomes: Sequence[MeshOutcome]) -> list[MeshOutcome] | None:
    """Return the outcomes that no other beats in both memory and time; None if a figure of a compiled program is unknown."""
    with_value = [outcome for outcome in outcomes if outcome.facts is not None]
    figures = [(outcome.value("needed_bytes"), outcome.value("estimate_s")) for outcome in with_value]
    if not with_value or not all(isinstance(value, int | float) for pair in figures for value in pair):
        return None
    plain = [(_least(needed), _least(time)) for needed, time in figures]
    return [
        outcome
        for outcome, own in zip(with_value, plain, strict=True)
        if not any(other != own and other[0] <= own[0] and other[1] <= own[1] for other in plain)
    ]


def _least(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else float("inf")


def _figure(name: str, unit: Unit, page_name: str, meaning: str, *, detail: int = 0) -> Column:
    """Return the column of a fact; times are absent without a hardware profile."""
    return Column(
        name,
        unit,
        optional=unit == "seconds",
        detail=detail,
        page_name=page_name,
        meaning=meaning,
        get=lambda row: row.outcome.value(name),
    )


_REMESH = TableSpec("remesh", "Meshes").with_columns(
    Column("mesh", width=16, meaning="axes of the mesh with their sizes, major axis first", get=attrgetter("outcome.mesh")),
    Column("devices", "count", meaning="devices of the mesh", get=attrgetter("outcome.devices")),
    _figure("needed_bytes", "bytes", "needed", "memory that a device needs"),
    _figure("sent_bytes", "bytes", "sent", "bytes that a device sends in one step"),
    _figure("flops", "flops", "FLOPs", "FLOPs of a device in one step"),
    _figure("exposed_s", "seconds", "exposed", "estimated time of collectives beside which no kernel runs", detail=1),
    _figure("estimate_s", "seconds", "estimate", "estimated time of a step; with a profile"),
    Column("front", "bool", optional=True, meaning="no other mesh needs less memory and less time", get=itemgetter(1)),
    Column(
        "reason",
        optional=True,
        width=40,
        wraps=True,
        meaning="why the program is not compiled for this mesh",
        get=lambda row: row.outcome.reason or None,
    ),
)
