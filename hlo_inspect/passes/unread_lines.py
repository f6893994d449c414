"""Figures of a module with lines that cannot be read: counts of what such a line may be are lower bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hlo_inspect.figure import Figure, at_least
from hlo_inspect.hlo.collective_kinds import DEVICE_ATTRIBUTES, is_named_as_collective
from hlo_inspect.hlo.module import CUT_ROW, Module
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS, POINT_TO_POINT, STARTING_COLLECTIVES, TABLE
from hlo_inspect.passes.partial_modules import NO_SUMS, is_sum_of_whole
from hlo_inspect.report.table import LOWER_BOUND, Table, Value

_OPCODES_OF_FAMILIES = {"fusions": "fusion", "custom_calls": "custom-call", "params": "parameter"}
_KINDS = frozenset({*COLLECTIVE_KINDS, *POINT_TO_POINT})
_FLOPS, _SENT = "flops", frozenset({"wire_bytes", "executed_wire_bytes"})


def unread_collective(module: Module, kind: str = "") -> str:
    """Return the reason why a collective, of `kind` if given, may be missing; empty if none can be."""
    unread = module.unread
    opcodes = [word for word in unread if word in STARTING_COLLECTIVES or is_named_as_collective(word)]
    of_kind = [word for word in opcodes if not kind or word not in TABLE or TABLE[word].base == kind]
    words = of_kind or ([] if opcodes else [word for word in DEVICE_ATTRIBUTES if word in unread])
    if words:
        return f"line {unread[words[0]]} cannot be read and may be a collective ({words[0]})"
    return _cut_row(module, "collective")


def _cut_row(module: Module, opcode: str) -> str:
    """Return the reason why any instruction may be missing; empty if no line ends before its opcode."""
    line = module.unread.get(CUT_ROW)
    return f"line {line} ends before its opcode and may be a {opcode}" if line is not None else ""


def unread_facts(facts: Mapping[str, Value], module: Module) -> dict[str, Value]:
    """Return the facts with lower bounds for what unreadable lines may add to."""
    bounded = dict(facts)
    if "module.instructions" in facts:  # all opcodes are counted; those that do not occur have no fact
        words = TABLE if CUT_ROW in module.unread else module.unread
        bounded = {f"opcode.{word}": 0 for word in words if word in TABLE} | bounded
    for name, value in bounded.items():
        reason = "" if name.endswith(LOWER_BOUND) else _reason(name, module)
        if reason and isinstance(value, Figure):
            bounded[name] = at_least(value.least, value.reason)
        elif reason and isinstance(value, int | float):
            bounded[name] = at_least(0 if name in NO_SUMS else value, reason)
    return bounded


def unread_notes(facts: Mapping[str, Value], module: Module) -> Iterator[str]:
    """Yield why facts are lower bounds only, for those that would be known without the unreadable lines."""
    for name, value in unread_facts(facts, module).items():
        if isinstance(value, Figure) and not isinstance(facts.get(name), Figure):
            yield f"{name}: {value.reason}"


def unread_tables(tables: Iterable[Table], module: Module) -> Iterator[Table]:
    """Yield the tables; a page marks the totals that unreadable lines may add to as lower bounds."""
    collective = unread_collective(module)
    for table in tables:
        names = {column.name for column in table.columns}
        is_of_collectives = not names.isdisjoint(_SENT)
        is_open = collective != "" if is_of_collectives else _FLOPS in names
        nothing = f"?: {collective}" if collective and is_of_collectives else table.nothing
        yield replace(table, lacks_rows=bool(table.rows), nothing=nothing) if is_open else table


def _reason(fact: str, module: Module) -> str:
    """Return why a fact is a lower bound only; empty if unreadable lines do not matter for it."""
    family, _, rest = fact.partition(".")
    if family in {"collectives", "alpa"}:
        kind = rest.partition(".")[0]
        return unread_collective(module, kind if kind in _KINDS else "")
    opcode = rest if family == "opcode" else _OPCODES_OF_FAMILIES.get(family, "")
    opcode = "custom-call" if fact == "cost.unknown_custom_calls" else opcode
    if opcode:
        line = module.unread.get(opcode)
        return f"line {line} cannot be read and may be a {opcode}" if line is not None else _cut_row(module, opcode)
    return f"line {module.unread['']} cannot be read" if is_sum_of_whole(fact) else ""
