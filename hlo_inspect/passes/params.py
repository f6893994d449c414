"""The entry's parameters and outputs: which is donated to which, which is not and why, which is not used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.parameters import FITS, Interface, Output, ParameterLeaf
from hlo_inspect.hlo.header import ShapeIndex
from hlo_inspect.hlo.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass, unknown
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value


class Params(Pass):
    """Entry parameters and outputs: shape, bytes, sharding, role in the optimizer, donated or not and why not, used or not.

    There is one row for each array. Bytes are those of the printed shapes. Aliases and donors are the header's
    `input_output_alias` and `buffer_donor`; a parameter is unused when no instruction of the entry reads it. Where the text
    does not hold the entry, the header's layout is used. With --quick no parameter has a role.
    """

    name = "params"
    aliases = ("parameters",)
    also = ("optimizer",)
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

    def run(self, context: Context) -> Section:
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
        facts |= {
            "outputs.count": len(outputs) if interface.outputs_known else None,
            "outputs.bytes": _bytes(outputs) if interface.complete else None,
            "outputs.aliased_count": len(taken),
            "outputs.aliased_bytes": _bytes(taken),
        }
        notes = [f"{name}: {_why_unknown(name, interface)}" for name in unknown(facts)]
        return Section(facts, _tables(context), notes)


def _tables(context: Context) -> Iterator[Table]:
    yield _parameter_table(context.interface, context.optimizer.roles if "optimizer" in context.also else {})
    yield _output_table(context.interface)


def _why_unknown(fact: str, interface: Interface) -> str:
    if fact.startswith("params.unused") and not interface.uses_known:
        return "the text names no operands, or does not hold the whole entry"
    return "the size of a shape is not known, or the text does not hold the whole entry"


def _bytes(leaves: Iterable[ParameterLeaf] | Iterable[Output]) -> int | None:
    return total(leaf.shape.bytes for leaf in leaves)


def _index_text(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _parameter_table(interface: Interface, roles: Mapping[tuple[int, ShapeIndex], str]) -> Table:
    columns = (
        Column("number", "number", get=lambda p: p.number),
        Column("index", detail=9, get=lambda p: _index_text(p.index)),
        Column("name", detail=4, get=lambda p: p.name),
        Column("shape", get=lambda p: str(p.shape)),
        Column("dtype", detail=9, get=lambda p: p.shape.dtype),
        Column("bytes", "bytes", summed=True, get=lambda p: p.shape.bytes),
        Column("padded_bytes", "bytes", summed=True, detail=6, get=lambda p: p.shape.padded_bytes),
        Column("memory_space", "number", detail=9, get=lambda p: p.shape.layout.memory_space if p.shape.layout else 0),
        Column("role", detail=1, optional=True, get=lambda p: roles.get((p.number, p.index))),
        Column("sharding", detail=3, get=lambda p: p.sharding.text if p.sharding else ""),
        Column("aliased_output", detail=1, get=lambda p: _index_text(p.alias.output_index) if p.alias else ""),
        Column("donated", "bool", get=lambda p: p.donated),
        Column("not_donated_because", detail=2, get=_why_not_donated),
        Column("unused", "bool", detail=1, get=lambda p: p.unused),
        Column("path", detail=2, get=lambda p: p.path),
        Column("line", "number", detail=5, optional=True, get=lambda p: p.line),
    )
    return Table.of("params", "Parameters", columns, interface.parameters)


def _why_not_donated(leaf: ParameterLeaf) -> str:
    if leaf.donated:
        return ""
    return f"not asked for: {FITS}" if leaf.could_be_donated else leaf.kept_because


def _output_table(interface: Interface) -> Table:
    columns = (
        Column("index", get=lambda o: _index_text(o.index)),
        Column("shape", get=lambda o: str(o.shape)),
        Column("bytes", "bytes", summed=True, get=lambda o: o.shape.bytes),
        Column("aliased_parameter", get=lambda o: str(o.alias.parameter) if o.alias else ""),
        Column("sharding", detail=3, get=lambda o: o.sharding.text if o.sharding else ""),
    )
    return Table.of("outputs", "Outputs", columns, interface.outputs)
