"""The line of Python of each finding, its label, and the fingerprint: neither has names, lines or numbers of the dump."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.opcodes import base_opcode
from hlo_inspect.hlo.tokens import ScanError
from hlo_inspect.hlo.values.op_names import Origin
from hlo_inspect.report.model import Finding

FINGERPRINT_DIGITS = 16
MAX_STEPS = 16
"""Bitcasts that are followed from the root of a fusion."""


def with_places(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings with their fields `source`, unless a rule states it, `op_name`, `label` and `fingerprint`."""
    from hashlib import sha256  # few modules have findings

    finder = _InstructionFinder(context)
    for finding in findings:
        line = finding.location.line if finding.location is not None else None
        instruction = finder.find(line, finding.subject) if line is not None and finding.subject is not None else None
        origin = _origin(context, instruction) if instruction is not None else Origin()
        label = _label(context, finding, instruction)
        fingerprint = sha256(f"{finding.rule}\n{label}".encode()).hexdigest()[:FINGERPRINT_DIGITS]
        yield finding._replace(
            source=finding.source or origin.source or None, op_name=origin.op_name, label=label, fingerprint=fingerprint
        )


class _InstructionFinder:
    """The instructions of a module by line and name; its computations are sorted for the first finding."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._computations: list[Computation] = []

    def find(self, line: int, name: str) -> Instruction | None:
        """Return the instruction of that name in a line; None if it was not read."""
        if not self._computations:
            self._computations = sorted(self._context.module.computations.values(), key=attrgetter("line"))
        number = bisect_right(self._computations, line, key=attrgetter("line")) - 1
        if number < 0:
            return None
        computation = self._computations[number]
        if not len(computation.rows):
            return next((kept for kept in computation.instructions if (kept.line, kept.name) == (line, name)), None)
        view = self._context.views.for_computation(computation.name)
        row = view.index(name)
        try:
            return view.instruction(row) if row is not None and view.lines[row] == line else None
        except ScanError:
            return None


def _origin(context: Context, instruction: Instruction) -> Origin:
    try:
        metadata = instruction.attr("metadata")
    except ScanError:
        return Origin()
    return context.provenances.get(metadata).origin if metadata is not None else Origin()


def _label(context: Context, finding: Finding, instruction: Instruction | None) -> str:
    """Return opcode and shape of the instruction, or the shape of the parameter that a finding names; and the module."""
    if instruction is not None:
        return f"{_opcode(context, instruction)} {instruction.shape} of {context.module.name}"
    leaves = (leaf for leaf in context.interface.parameters if leaf.name == finding.subject)
    leaf = next(leaves, None) if finding.subject is not None else None
    return f"parameter {leaf.shape} of {context.module.name}" if leaf is not None else context.module.name


def _opcode(context: Context, instruction: Instruction) -> str:
    """Return the opcode of an instruction without `-start`; for a fusion that of its root, as another compiler may not fuse."""
    name = instruction.computation.name
    opcode = base_opcode(instruction.opcode)
    if opcode != "fusion" or name not in context.views.computations:
        return opcode
    view = context.views.for_computation(name)
    row = view.row_at(instruction.line, instruction.name)
    fused = context.views.fused(view, row) if row is not None else None
    inner = context.views.for_computation(fused.name) if fused is not None else view
    root = inner.root if fused is not None else None
    for _ in range(MAX_STEPS):
        if root is None or inner.opcodes[root] != "bitcast":
            break
        root = inner.operand_row(root, 0)
    return opcode if root is None or inner.opcodes[root] in {"tuple", "parameter"} else base_opcode(inner.opcodes[root])
