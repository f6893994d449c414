"""Each known rate, opcode cost and custom-call rule is replaced by unknown, one at a time.

A fact or a cell of a table that changes then has to be a bound, or null, that holds its value from before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.cost import roofline
from hlo_inspect.analysis.cost.bytes_accessed import accessed_bytes
from hlo_inspect.analysis.cost.custom_calls.call_cost import MARKER, unknown
from hlo_inspect.analysis.cost.custom_calls.step_calls import call_cost
from hlo_inspect.analysis.cost.figures import UnknownCostError
from hlo_inspect.analysis.cost.work import ELEMENTWISE, work_of
from hlo_inspect.analysis.hardware import HardwareProfile, load_profile
from hlo_inspect.analysis.time import utilization
from hlo_inspect.analysis.time.profile_choice import MachineOptions
from hlo_inspect.figure import Figure, greatest, least
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.passes.custom_calls import CustomCalls
from hlo_inspect.passes.time import Time
from hlo_inspect.passes.top import Top
from hlo_inspect.report.table import Table, Value
from tests.conftest import EVERYTHING

DATA = Path(__file__).parents[1] / "data"
DUMPS = (
    ("gpu/sgd_unused.after.txt", "h100-sxm"),
    ("gpu/gathered_matmul.after.txt", "mi300x"),
    ("tpu/gathered_matmul.after.txt", "tpu-v5e"),
    ("tpu/collectives.after.txt", "tpu-v5e"),
    ("handmade/attention_in_a_loop.txt", "h100-sxm"),
    ("handmade/custom_calls.txt", "a100-sxm-80gb"),
)
COUNTS_OF_UNKNOWN = {"cost.unknown_custom_calls", "custom_calls.unknown_count"}
COUNTING = "hlo_inspect.analysis.cost.computation"
RATES = ("bandwidth", "latency", "kernel_overhead")
"""Last names of the figures of a profile that are tried; rates of units are tried by unit."""

TABLES = {"kernels", "custom_calls", "cost", "cost_by_phase", "time_by_phase", "collectives"}
KEYS = {"name", "computation", "target", "opcode", "phase"}
UNITS = {"flops", "bytes", "count", "seconds"}

Patch = Callable[[pytest.MonkeyPatch], None]


def module_of(name: str) -> Module:
    (module,) = read_modules(open_source(DATA / name), EVERYTHING)
    return module


def facts_of(module: Module, profile: HardwareProfile) -> dict[str, Value]:
    """Return facts and cells by name. A bound of a fact that stands beside it is none of them, but part of its figure."""
    context = Context(module, options=ParsedOptions(MachineOptions((profile,))))
    facts: dict[str, Value] = {}
    for pass_ in (Cost(), CustomCalls(), Collectives(), Top(), Time()):
        section = pass_.run(context)
        facts |= section.facts
        facts |= {name: cell for table in section.tables for name, cell in cells_of(table)}
    return {name: value for name, value in facts.items() if name not in COUNTS_OF_UNKNOWN and not name.endswith("_bound")}


def cells_of(table: Table) -> Iterator[tuple[str, Value]]:
    """Yield the figures of a table by row and column; not those of what the step takes beyond its parts, which are a rest."""
    rows = table.rows if table.name in TABLES else ()
    keys = [tuple(str(row[i]) for i, column in enumerate(table.columns) if column.name in KEYS) for row in rows]
    for key, row in zip(keys, rows, strict=True):
        if keys.count(key) == 1 and not (table.name == "time_by_phase" and "unknown" in key):
            names = [column.name for column in table.columns]
            figures = (i for i, column in enumerate(table.columns) if column.unit in UNITS and column.name != "line")
            yield from ((f"{table.name} {key} {names[i]}", row[i]) for i in figures)


def lost_gap(before: Value, after: Value) -> bool:
    """Return True if a changed number is no bound of the one from before."""
    if before == after or after is None or not isinstance(before, int | float | Figure) or isinstance(before, bool):
        return False
    if not isinstance(after, Figure):
        return isinstance(before, Figure) or after != pytest.approx(before, rel=1e-9)
    most, limit = greatest(before), greatest(after)
    is_above = limit is not None and (most is None or most > limit * (1 + 1e-9))
    return is_above or least(after) > least(before) * (1 + 1e-9)


def unit_switches(module: Module, profile: HardwareProfile) -> Iterator[tuple[str, Patch]]:
    units = {key.unit for key in Context(module).cost.opcodes.rows if key.unit.startswith(("matmul.", "vector."))}

    def without(unit: str) -> Patch:
        stated_rate = roofline.rate

        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            for user in (roofline, utilization):
                monkeypatch.setattr(user, "rate", lambda name, profile: None if name == unit else stated_rate(name, profile))

        return patch

    yield from ((f"rate of {unit}", without(unit)) for unit in sorted(units))


def opcode_switches(module: Module) -> Iterator[tuple[str, Patch]]:
    opcodes = {opcode for name in module.computations for opcode in set(Context(module).views.for_computation(name).opcodes)}

    def raising(opcode: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def changed(op: Any, *more: Any) -> Any:
            if op.opcode == opcode:
                raise UnknownCostError("a test dropped it")
            return rule(op, *more)

        return changed

    def without_work(opcode: str) -> Patch:
        elementwise = {name: column for name, column in ELEMENTWISE.items() if name != opcode}

        def patch(monkeypatch: pytest.MonkeyPatch) -> None:
            monkeypatch.setattr(f"{COUNTING}.ELEMENTWISE", elementwise)
            monkeypatch.setattr(f"{COUNTING}.work_of", raising(opcode, work_of))

        return patch

    def without_bytes(opcode: str) -> Patch:
        return lambda monkeypatch: monkeypatch.setattr(f"{COUNTING}.accessed_bytes", raising(opcode, accessed_bytes))

    for opcode in sorted(opcodes):
        yield f"work of {opcode}", without_work(opcode)
        yield f"bytes of {opcode}", without_bytes(opcode)


def call_switches(module: Module) -> Iterator[tuple[str, Patch]]:
    targets = {call.target for call in Context(module).cost.calls if call.cost != MARKER}

    def without(target: str) -> Patch:
        def cost(op: Any, *more: Any) -> Any:
            return unknown(op) if op.custom_call_target == target else call_cost(op, *more)

        return lambda monkeypatch: monkeypatch.setattr("hlo_inspect.analysis.cost.custom_calls.step_calls.call_cost", cost)

    yield from ((f"rule of {target}", without(target)) for target in sorted(targets))


def profiles_without_a_figure(profile: HardwareProfile) -> Iterator[tuple[str, HardwareProfile]]:
    for name, figure in profile.figures.items():
        if figure is not None and name.rpartition(".")[2] in RATES:
            yield name, profile.with_figures({name: None}, ())


@pytest.mark.parametrize(("name", "profile_name"), DUMPS)
def test_no_fact_is_exact_in_whose_computation_a_part_was_dropped(
    name: str, profile_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, profile = module_of(name), load_profile(profile_name)
    before, changes = facts_of(module, profile), 0
    lost: list[str] = []

    def compare(switch: str, after: Mapping[str, Value]) -> None:
        nonlocal changes
        changes += before != after
        lost.extend(
            f"{switch}: {fact} {value} {after.get(fact)}" for fact, value in before.items() if lost_gap(value, after.get(fact))
        )

    for switch, patch in (*unit_switches(module, profile), *opcode_switches(module), *call_switches(module)):
        with monkeypatch.context() as patched:
            patch(patched)
            compare(switch, facts_of(module, profile))
    for figure, without in profiles_without_a_figure(profile):
        compare(figure, facts_of(module, without))
    assert lost == []
    assert changes > 5
