"""The entry's parameters and outputs: which is donated to which, which is not and why, which is not used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.parameters import FITS, Interface, Output, ParameterLeaf
from hlo_inspect.hlo.header import ShapeIndex
from hlo_inspect.hlo.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass, unknown, with_lower_bound
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

Leaves = Sequence[ParameterLeaf] | Sequence[Output]


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
        facts: dict[str, Value] = {}
        _add(facts, "params.count", interface.known, interface.count)
        _add(facts, "params.leaf_count", interface.known, len(parameters))
        size = _bytes(parameters)
        _add(facts, "params.bytes", interface.known and interface.complete, size)
        aliased = [p for p in parameters if p.alias]
        donors = [p for p in parameters if p.donor and not p.alias]
        tells_donation = interface.known and interface.donation_known
        groups: dict[str, tuple[bool, Leaves]] = {
            "params.aliased": (tells_donation, aliased),
            "params.donor": (tells_donation, donors),
            "params.donated": (tells_donation, aliased + donors),
            "params.unused": (interface.known and interface.uses_known, [p for p in parameters if p.unused]),
            "outputs": (interface.outputs_known, outputs),
            "outputs.aliased": (interface.outputs_known and interface.donation_known, [o for o in outputs if o.alias]),
        }
        for name, (is_known, leaves) in groups.items():
            end = "." if name == "outputs" else "_"
            _add(facts, f"{name}{end}count", is_known, len(leaves))
            _add(facts, f"{name}{end}bytes", is_known, _bytes(leaves))
        notes = [f"{name}: {_why_unknown(name, interface)}" for name in unknown(facts)]
        return Section(facts, _tables(context), notes)


def _add(facts: dict[str, Value], name: str, is_known: bool, found: int | None) -> None:
    """The fact where all of it is known, else what was found as a lower bound."""
    with_lower_bound(facts, name, found if is_known else None, found or None)


def _tables(context: Context) -> Iterator[Table]:
    yield _parameter_table(context, context.optimizer.roles if "optimizer" in context.also else {})
    yield _output_table(context)


def _why_unknown(fact: str, interface: Interface) -> str:
    is_output = fact.startswith("outputs.")
    if not (interface.outputs_known if is_output else interface.known):
        return f"the text ends before the {'result' if is_output else 'end'} of the entry computation"
    if fact.startswith("params.unused") and not interface.uses_known:
        return "the text names no operands, or does not hold the whole entry"
    if not interface.donation_known and any(word in fact for word in (".aliased", ".donor", ".donated")):
        return "the text lacks the header, or a part of it, which names what is donated"
    return "the size of a shape is not known"


def _bytes(leaves: Leaves) -> int | None:
    return total(leaf.shape.bytes for leaf in leaves)


def _index_text(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _parameter_table(context: Context, roles: Mapping[tuple[int, ShapeIndex], str]) -> Table:
    specs = context.partition_specs
    columns = (
        Column("number", "number", get=lambda p: p.number),
        Column("index", detail=9, get=lambda p: _index_text(p.index)),
        Column("name", detail=4, get=lambda p: p.name),
        Column("shape", get=lambda p: str(p.shape)),
        Column("dtype", detail=9, get=lambda p: p.shape.dtype),
        Column("bytes", "bytes", summed=True, get=lambda p: p.shape.bytes),
        Column("padded_bytes", "bytes", summed=True, detail=6, get=lambda p: p.shape.padded_bytes),
        Column("memory_space", "number", detail=9, get=lambda p: p.shape.layout.memory_space if p.shape.layout else 0),
        Column("role", detail=1, width=8, optional=True, get=lambda p: roles.get((p.number, p.index))),
        Column("sharding", detail=9, get=lambda p: p.sharding.text if p.sharding else ""),
        Column("partition_spec", detail=3, get=lambda p: specs.text(p.sharding, None if p.index else p.instruction)),
        Column("aliased_output", detail=1, width=6, get=_aliased_output),
        Column("donated", "bool", get=lambda p: p.donated),
        Column("not_donated_because", detail=2, get=_why_not_donated),
        Column("unused", "bool", detail=1, get=lambda p: p.unused),
        Column("path", detail=2, get=lambda p: p.path),
        Column("line", "number", detail=5, optional=True, get=lambda p: p.line),
    )
    return Table.of("params", "Parameters", columns, context.interface.parameters)


def _aliased_output(leaf: ParameterLeaf) -> str | None:
    if leaf.alias is not None:
        return _index_text(leaf.alias.output_index)
    return None if leaf.donated is None else ""


def _why_not_donated(leaf: ParameterLeaf) -> str:
    if leaf.donated:
        return ""
    return f"not asked for: {FITS}" if leaf.could_be_donated else leaf.kept_because


def _output_table(context: Context) -> Table:
    interface, specs = context.interface, context.partition_specs

    def aliased_parameter(output: Output) -> str | None:
        if output.alias is not None:
            return str(output.alias.parameter)
        return "" if interface.donation_known else None

    columns = (
        Column("index", get=lambda o: _index_text(o.index)),
        Column("shape", get=lambda o: str(o.shape)),
        Column("bytes", "bytes", summed=True, get=lambda o: o.shape.bytes),
        Column("aliased_parameter", get=aliased_parameter),
        Column("sharding", detail=9, get=lambda o: o.sharding.text if o.sharding else ""),
        Column("partition_spec", detail=3, get=lambda o: specs.text(o.sharding)),
    )
    title = "Outputs" if interface.outputs_known else "Outputs (not in the text)"
    return Table.of("outputs", title, columns, interface.outputs)
