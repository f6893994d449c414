"""What is wrong with the loops and calls of a program, for every pass that counts by them."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.report.model import Finding


def loop_findings(context: Context) -> list[Finding]:
    """Trip counts that are printed and make no sense, and computations that call themselves."""
    graph, module = context.call_graph, context.module
    findings = [
        Finding("HI501", "warning", loop.fault, module.location(loop.instruction.line), loop.instruction.name)
        for loop in graph.loops
        if loop.fault is not None
    ]
    for name in sorted(set(graph.calls) - set(graph.order)):
        line = module.computations[name].line if name in module.computations else None
        findings.append(Finding("HI502", "error", f"computation {name} calls itself", module.location(line), name))
    return findings
