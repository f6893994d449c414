"""Exports of texts and dumps for tests: the report, and the traces read back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hlo_inspect.analysis.context import Context
from hlo_inspect.export.step_export import step_export
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.export.traces import Node, Traces, load

HEADER = "HloModule step, is_scheduled=true, num_partitions={}, entry_computation_layout={{()->()}}\n"
ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def reported(source: str | Path, *, also: tuple[str, ...] = (), **options: Any) -> tuple[Report, Context]:
    """Return the report of an export to Chakra, unless `simulator` names another, and the analyses of the module."""
    contexts: list[Context] = []
    request = Request(("export", *also), **{"simulator": "chakra", **options})
    with Inspection(request) as inspection:
        inspection.set_report_sink(lambda _, context: contexts.append(context))
        (report,) = inspection.reports(source)
    return report, contexts[0]


def traces(source: str | Path, folder: Path, **options: Any) -> Traces:
    """Return the traces of all ranks that an export writes to a folder."""
    _, context = reported(source, **options)
    context.once(step_export).write(str(folder))
    return load(folder)


def module(*entry: str, ranks: int = 2, before: str = "") -> str:
    """Return a scheduled module for this number of partitions, with an entry of these lines."""
    body = "".join(f"  {line}\n" for line in entry)
    return f"{HEADER.format(ranks)}\n{ADD}\n{before}\nENTRY %main () -> f32[] {{\n{body}}}\n"


def named(nodes: list[Node]) -> dict[str, Node]:
    """Return the nodes by the first word of their names; each has a name of its own."""
    by_name = {node.name: node for node in nodes}
    assert len(by_name) == len(nodes)
    return by_name


def waits_for(nodes: list[Node], node: Node) -> set[str]:
    """Return the names of all nodes that a node waits for, through any others."""
    by_number = {other.id: other for other in nodes}
    reached: set[int] = set()
    waiting = [node]
    while waiting:
        new = waiting.pop().deps - reached
        reached |= new
        waiting += [by_number[number] for number in new]
    return {by_number[number].name for number in reached}


def left_out(report: Report) -> tuple[Counter[str], Counter[str]]:
    """Return runs and bytes by kind of what the files do not hold."""
    runs: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for row in report.table("not_expressed").records():
        assert isinstance(row["runs"], int)
        runs[str(row["kind"])] += row["runs"]
        size = row["executed_operand_bytes"]
        sizes[str(row["kind"])] += size if isinstance(size, int) else 0
    return runs, sizes
