"""HI504: instructions at which data flow is lost."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule, entry_line
from hlo_inspect.graph.frames import NO_INDEX, NO_NAME, NOT_DEFINED, Fault
from hlo_inspect.hlo.module import Module
from hlo_inspect.report.model import Finding

MAX_FAULTS = 20


class UnfollowedDataflow(Rule):
    """The data flow is lost at an instruction.

    What it finds
        Instructions with undefined, unreadable or missing operands, and instructions that depend on themselves. Expressions
        that are too large to compare are reported too. The rule reports up to 20 faults. Instructions whose operands or tuple
        index the printer left out count as one.

    Why it matters
        hlo-inspect does not follow the data flow out of such an instruction. It does not recognize an optimizer update that
        depends on it.

    How to fix it
        Look at the operands of the instruction: wrong ones come from a truncated or edited dump. If an expression of a real
        training step is too large, please report it.

    Example
        HloModule step

        ENTRY main {
          w = f32[8]{0} parameter(0)
          g = f32[8]{0} parameter(1)
          ROOT new = f32[8]{0} subtract(w)
        }
    """

    code = "HI504"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        faults_of_reason: dict[str, list[Fault]] = {}
        for fault in context.optimizer.faults:
            if _is_left_out(context.module, fault):
                continue
            is_common = fault.reason in (NO_NAME, NO_INDEX, NOT_DEFINED)
            reason = fault.reason if is_common else f"{fault.computation} {fault.instruction}"
            faults_of_reason.setdefault(reason, []).append(fault)
        for (computation, name, reason), *others in list(faults_of_reason.values())[:MAX_FAULTS]:
            more = f" and {len(others):,} more such instructions" if others else ""
            message = f"{computation}: {name} {reason}; the data flow out of it{more} is lost"
            yield self.finding(context, message, entry_line(context), name, _result_bytes(context, computation, name))


def _is_left_out(module: Module, fault: Fault) -> bool:
    """Return True if the operand that a fault misses may be among lines that a truncated text lacks."""
    computation = module.computations.get(fault.computation)
    return module.problems.is_truncated and (
        fault.reason == NOT_DEFINED or (computation is not None and computation.is_truncated)
    )


def _result_bytes(context: Context, computation: str, name: str) -> int:
    """Return the bytes of an instruction's result, as far as the text says."""
    if computation not in context.views.computations:
        return 0
    view = context.views.for_computation(computation)
    row = view.index(name)
    shape = view.shapes[row] if row is not None else None
    return (shape.array_bytes or 0) if shape is not None else 0
