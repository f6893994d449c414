"""What every command says of a module: its header, its devices, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.analysis.collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.module import Module, Wants
from hlo_inspect.hlo.problems import Problem
from hlo_inspect.passes.base import Pass
from hlo_inspect.report.model import FactSpec, Finding, Severity, Table, Value

SEVERITIES: dict[str, Severity] = {
    "HI001": "warning",  # lines that cannot be read
    "HI002": "error",  # the module is cut off
    "HI003": "warning",  # a header attribute that makes no sense
    "HI004": "warning",  # an opcode that XLA does not have
    "HI005": "warning",  # bytes that are not UTF-8
    "HI006": "warning",  # an element type that XLA does not have
    "HI007": "error",  # a name that is defined twice
    "HI008": "error",  # an operand that is not defined
    "HI009": "error",  # a computation that is not defined
    "HI010": "error",  # a second ENTRY or ROOT
    "HI013": "warning",  # a layout that does not fit its shape
}


class Reading(Pass):
    """The module's own facts, and one finding for each fault of its text."""

    name = "reading"
    wants = Wants(opcodes=OPCODES, targets=TARGETS)
    specs = (
        FactSpec("module.name", "text", "the module's name"),
        FactSpec("module.is_scheduled", "bool", "whether the order of instructions is the schedule"),
        FactSpec("module.num_partitions", "count", "partitions of the program that the header prints, else 1"),
        FactSpec("module.replica_count", "count", "replicas that the header prints, else 1"),
        FactSpec("module.shapes", "text", "per_device, global or mixed", frozenset({"per_device", "global", "mixed"})),
        FactSpec("module.devices", "count", "devices of the program: header, or the ids in groups and shardings"),
        FactSpec("module.unparsed_lines", "count", "lines inside the module that could not be read"),
    )

    def facts(self, context: Context) -> dict[str, Value]:
        module, header = context.module, context.module.header
        return {
            "module.name": module.name,
            "module.is_scheduled": header.is_scheduled,
            "module.num_partitions": header.num_partitions,
            "module.replica_count": header.replica_count,
            "module.shapes": context.shapes_are,
            "module.devices": context.device_counts.devices,
            "module.unparsed_lines": module.unparsed_lines if module.wants.reads_every_line else None,
        }

    def tables(self, context: Context) -> list[Table]:
        return []

    def findings(self, context: Context) -> list[Finding]:
        module = context.module
        problems = [*module.problems, *_faults(module)]
        findings = [Finding(p.code, SEVERITIES[p.code], _told(p), p.location, p.subject) for p in problems]
        for code, count in module.problems.left_out.items():
            findings.append(Finding(code, SEVERITIES[code], f"{count:,} more of this kind", module.location(None)))
        return findings

    def notes(self, context: Context, unknown: Sequence[str]) -> list[str]:
        notes = []
        if not context.module.wants.reads_every_line:
            notes.append("module.unparsed_lines: this command skipped lines that it did not need; `summary` reads them all")
        if context.device_counts.devices is None:
            notes.append("module.devices: neither the header nor any group or sharding tells")
        return notes


def _told(problem: Problem) -> str:
    return problem.message if problem.times == 1 else f"{problem.message} ({problem.times:,} times, first here)"


def _faults(module: Module) -> list[Problem]:
    """Kept instructions whose attributes turned out to make no sense."""
    return [
        Problem("HI001", f"{name}: {message}", module.location(line), name)
        for computation in module.computations.values()
        for name, (line, message) in computation.faults.items()
    ]
