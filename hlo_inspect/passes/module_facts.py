"""What every command says of a module: its header, its devices, and how much could not be read."""

from __future__ import annotations

from hlo_inspect.analysis.collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import FactSpec, Section, Value


class ModuleFacts(Pass):
    """The module's name, partitions, replicas and devices, and the lines that could not be read.

    The number of devices is the header's, else it follows from the ids in device groups and shardings.
    """

    name = "module_facts"
    wants = Wants(opcodes=OPCODES, targets=TARGETS)
    specs = (
        FactSpec("module.name", "text", "the module's name"),
        FactSpec("module.is_scheduled", "bool", "whether the order of instructions is the schedule"),
        FactSpec("module.num_partitions", "count", "partitions of the program that the header prints, else 1"),
        FactSpec("module.replica_count", "count", "replicas that the header prints, else 1"),
        FactSpec("module.shapes", "text", "per_device, global or mixed", frozenset({"per_device", "global", "mixed"})),
        FactSpec(
            "module.devices", "count", "devices of the program, of all slices: header, or the ids in groups and shardings"
        ),
        FactSpec("module.slices", "count", "slices of the program, joined by a data-centre network"),
        FactSpec("module.unparsed_lines", "count", "lines inside the module that could not be read"),
    )

    def run(self, context: Context) -> Section:
        module, header = context.module, context.module.header
        reads_every_line = module.wants.reads_every_line
        facts: dict[str, Value] = {
            "module.name": module.name,
            "module.is_scheduled": header.is_scheduled,
            "module.num_partitions": header.num_partitions if module.origin is None else None,
            "module.replica_count": header.replica_count if module.origin is None else None,
            "module.shapes": context.shapes_are,
            "module.devices": context.device_counts.devices,
            "module.slices": context.device_counts.slices,
            "module.unparsed_lines": module.unparsed_lines if reads_every_line else None,
        }
        notes = []
        if not reads_every_line:
            notes.append("module.unparsed_lines: this command skipped lines that it did not need; `summary` reads them all")
        if context.device_counts.devices is None:
            notes.append("module.devices: neither the header nor any device group or sharding says how many there are")
        if context.shapes_are is None:
            is_cut = module.problems.hold_a_cut and header.printed
            missing = "the text is cut off, and the missing part" if is_cut else "the header is missing that"
            notes.append(f"module.shapes: {missing} says whether the arrays are those of one device")
        if module.origin is not None:
            notes += [f"{name}: {module.origin} does not hold it" for name in ("module.num_partitions", "module.replica_count")]
        return Section(facts, notes=notes)
