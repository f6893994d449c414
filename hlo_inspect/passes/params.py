"""The entry's parameters and outputs: which is donated to which, which is not and why, which is not used."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf
from hlo_inspect.hlo.values.shapes import total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass, unknown, with_lower_bound
from hlo_inspect.passes.parameter_tables import parameter_tables
from hlo_inspect.report.model import FactSpec, Section, Value

Leaves = Sequence[ParameterLeaf] | Sequence[Output]


class Params(Pass):
    """Entry parameters and outputs: shape, bytes, sharding, role in the optimizer, donated or not and why not, used or not.

    A page shows totals by role, what is not donated, and the rest with equal arrays together; --sites and other formats have
    one row for each array. Bytes are those of the printed shapes. Aliases and donors are the header's
    `input_output_alias` and `buffer_donor`; a parameter is unused when no instruction of the entry reads it. Where the text
    does not hold the entry, the header's layout is used. With --quick no parameter has a role.
    """

    name = "params"
    aliases = ("parameters",)
    unless_quick = ("optimizer",)
    wants = Wants(entry=True, unused=True)
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
        return Section(facts, parameter_tables(context), notes)


def _add(facts: dict[str, Value], name: str, is_known: bool, found: int | None) -> None:
    """The fact where all of it is known, else what was found as a lower bound."""
    with_lower_bound(facts, name, found if is_known else None, found or None)


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
