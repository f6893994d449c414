"""HI301: instructions that leave the memory of a scheduled program unknown."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.findings.rule import Rule
from hlo_inspect.report.model import Finding

MAX_FINDINGS = 20


class UnaccountableMemory(Rule):
    """The memory of a scheduled program cannot be computed.

    What it finds
        Faults of a module with `is_scheduled=true`. An operand is undefined, or used before its definition. An instruction,
        for example a loop, does not have the shape of the value that it passes on. A computation that runs is not in the
        text. An alias has another size, or names an output or parameter that does not exist. The size of an array is unknown.

    Why it matters
        The figures that depend on it are unknown (`null`). XLA refuses such a module: the text was edited, joined from two
        dumps, or is damaged.

    How to fix it
        Dump the module again.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          w = f32[8]{0} parameter(0)
          a = f32[8]{0} negate(b)
          b = f32[8]{0} negate(w)
          ROOT c = f32[8]{0} add(a, b)
        }
    """

    code = "HI301"
    saves = False

    def check(self, context: Context) -> Iterator[Finding]:
        faults = [fault for fault in context.memory.faults if not fault.of_operands]
        unnamed = {fault.subject: fault for fault in context.memory.faults if fault.of_operands}
        faults = [fault for fault in faults if fault.subject not in unnamed]  # the fault of the operands explains them
        if unnamed:
            first, more = next(iter(unnamed.values())), len(unnamed) - 1
            others = f", and operands of {more} other instructions have none" if more else ""
            yield self.finding(context, first.message + others, first.line, first.subject)
        for fault in faults[:MAX_FINDINGS]:
            yield self.finding(context, fault.message, fault.line, fault.subject)
        if len(faults) > MAX_FINDINGS:
            yield self.finding(context, f"{len(faults) - MAX_FINDINGS} more of this kind", None)
