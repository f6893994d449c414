"""Which parameter is donated to which output, what is not and what that costs, what nobody reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.parameters import FITS, Interface, Output, ParameterLeaf, saved_by_donating
from hlo_inspect.hlo.header import ShapeIndex
from hlo_inspect.hlo.module import Wants
from hlo_inspect.hlo.shapes import total
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import Column, FactSpec, Finding, Row, Table, Value

WORTH_DONATING = 1 << 10  # bytes; scalars and counters are not worth a finding


class Params(Pass):
    """The entry's parameters and outputs, leaf by leaf.

    Bytes are those of the printed shapes. Aliases and donors are the header's `input_output_alias` and `buffer_donor`; a
    parameter is unused when no instruction of the entry reads it. Where the text does not hold the entry, the header's
    layout is used.
    """

    name = "params"
    wants = Wants(entry=True)
    specs = (
        FactSpec("params.count", "count", "entry parameters"),
        FactSpec("params.leaf_count", "count", "arrays in the entry parameters"),
        FactSpec("params.bytes", "bytes", "bytes of the entry parameters"),
        FactSpec("params.aliased_count", "count", "parameter arrays aliased with an output"),
        FactSpec("params.aliased_bytes", "bytes", "bytes of these"),
        FactSpec("params.donor_count", "count", "parameter arrays donated by buffer_donor, not aliased"),
        FactSpec("params.donor_bytes", "bytes", "bytes of these"),
        FactSpec("params.donated_count", "count", "parameter arrays that are either"),
        FactSpec("params.donated_bytes", "bytes", "bytes of these"),
        FactSpec("params.unused_count", "count", "parameter arrays that nothing reads"),
        FactSpec("params.unused_bytes", "bytes", "bytes of these"),
        FactSpec("outputs.count", "count", "arrays in the entry result"),
        FactSpec("outputs.bytes", "bytes", "bytes of the entry result"),
        FactSpec("outputs.aliased_count", "count", "outputs that take a parameter's buffer"),
        FactSpec("outputs.aliased_bytes", "bytes", "bytes of these"),
    )

    def facts(self, context: Context) -> dict[str, Value]:
        interface = context.interface
        parameters, outputs = interface.parameters, interface.outputs
        aliased = [p for p in parameters if p.alias]
        donors = [p for p in parameters if p.donor and not p.alias]
        unused = [p for p in parameters if p.unused]
        taken = [o for o in outputs if o.alias]
        facts: dict[str, Value] = {
            "params.count": interface.count if interface.known else None,
            "params.leaf_count": len(parameters) if interface.known else None,
            "params.bytes": _bytes(parameters) if interface.complete else None,
        }
        groups: dict[str, list[ParameterLeaf]] = {
            "params.aliased": aliased,
            "params.donor": donors,
            "params.donated": aliased + donors,
            "params.unused": unused,
        }
        for name, leaves in groups.items():
            facts |= {f"{name}_count": len(leaves), f"{name}_bytes": _bytes(leaves)}
        if not interface.uses_known or not interface.known:
            facts |= {"params.unused_count": None, "params.unused_bytes": None}
        return facts | {
            "outputs.count": len(outputs) if interface.outputs_known else None,
            "outputs.bytes": _bytes(outputs) if interface.complete else None,
            "outputs.aliased_count": len(taken),
            "outputs.aliased_bytes": _bytes(taken),
        }

    def tables(self, context: Context) -> list[Table]:
        roles = context.optimizer.roles if context.module.wants.graph else {}  # known where the optimizer is asked for
        return [_parameter_table(context.interface, roles), _output_table(context.interface)]

    def findings(self, context: Context) -> list[Finding]:
        interface = context.interface
        module = context.module
        place = module.location(module.entry.line if module.entry else module.first_line)
        findings = [Finding("HI103", "warning", fault, module.location(module.first_line)) for fault in interface.faults]
        wasted = [p for p in interface.parameters if p.could_be_donated and (p.shape.bytes or 0) >= WORTH_DONATING]
        if wasted:
            size = saved_by_donating(wasted, interface.outputs)
            message = (
                f"{_listed(wasted)} could be donated: outputs of the same shape, type and sharding take no parameter's buffer"
            )
            message += f"; that would save up to {size:,} bytes"
            findings.append(Finding("HI101", "warning", message, place, wasted[0].name, size))
        unused = [p for p in interface.parameters if p.unused and not p.donated]
        if unused:
            size = _bytes(unused) or 0
            findings.append(Finding("HI102", "info", f"nothing reads {_listed(unused)}", place, unused[0].name, size))
        return findings

    def notes(self, context: Context, unknown: Sequence[str]) -> list[str]:
        return [f"{name}: {_why_unknown(name, context.interface)}" for name in unknown]


def _why_unknown(fact: str, interface: Interface) -> str:
    if fact.startswith("params.unused") and not interface.uses_known:
        return "the text names no operands, or does not hold the whole entry"
    return "the size of a shape is not known, or the text does not hold the whole entry"


def _bytes(leaves: Iterable[ParameterLeaf] | Iterable[Output]) -> int | None:
    return total(leaf.shape.bytes for leaf in leaves)


def _listed(leaves: list[ParameterLeaf], limit: int = 4) -> str:
    """`parameters 3, 5 and 7`, the first few by number."""
    numbers = list(dict.fromkeys(str(leaf.number) for leaf in leaves))
    if len(numbers) == 1:
        return f"parameter {numbers[0]}"
    if len(numbers) > limit:
        return f"{len(numbers)} parameters ({', '.join(numbers[:limit])}, …)"
    return f"parameters {', '.join(numbers[:-1])} and {numbers[-1]}"


def _index_text(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _parameter_table(interface: Interface, roles: Mapping[tuple[int, ShapeIndex], str]) -> Table:
    columns = (
        Column("number", "number"),
        Column("index", "text", detail=9),
        Column("name", "text", detail=4),
        Column("shape", "text"),
        Column("dtype", "text", detail=9),
        Column("bytes", "bytes", summed=True),
        Column("padded_bytes", "bytes", summed=True, detail=6),
        Column("memory_space", "number", detail=9),
        Column("role", "text", detail=1, optional=True),
        Column("sharding", "text", detail=3),
        Column("aliased_output", "text", detail=1),
        Column("donated", "bool"),
        Column("not_donated_because", "text", detail=2),
        Column("unused", "bool", detail=1),
        Column("path", "text", detail=2),
        Column("line", "number", detail=5, optional=True),
    )
    rows = tuple(_parameter_row(leaf, roles.get((leaf.number, leaf.index))) for leaf in interface.parameters)
    return Table("params", "Parameters", columns, rows)


def _parameter_row(leaf: ParameterLeaf, role: str | None) -> Row:
    return (
        leaf.number,
        _index_text(leaf.index),
        leaf.name,
        str(leaf.shape),
        leaf.shape.dtype,
        leaf.shape.bytes,
        leaf.shape.padded_bytes,
        leaf.shape.layout.memory_space if leaf.shape.layout else 0,
        role,
        leaf.sharding,
        _index_text(leaf.alias.output_index) if leaf.alias else "",
        leaf.donated,
        "" if leaf.donated else f"not asked for: {FITS}" if leaf.could_be_donated else leaf.kept_because,
        leaf.unused,
        leaf.path,
        leaf.line,
    )


def _output_table(interface: Interface) -> Table:
    columns = (
        Column("index", "text"),
        Column("shape", "text"),
        Column("bytes", "bytes", summed=True),
        Column("aliased_parameter", "text"),
        Column("sharding", "text", detail=3),
    )
    rows = tuple(
        (_index_text(o.index), str(o.shape), o.shape.bytes, str(o.alias.parameter) if o.alias else "", o.sharding)
        for o in interface.outputs
    )
    return Table("outputs", "Outputs", columns, rows)
