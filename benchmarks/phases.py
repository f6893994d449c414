"""Phases of training steps by the graph of values, without metadata, compared with the phases by metadata.

    python -m benchmarks.phases DUMP_OR_DIRECTORY… [--wrong]

Each dump is read twice: as it is, with phases by name, and without its metadata, with phases by the graph. The table has the
share of the named phases that the graph confirms. Collectives count by operand bytes, kernels by accessed bytes, matrix
multiplications by their number. For kernels, confusions of forward and loss have a separate column: metadata decides them by
the name of a scope. Modules without a backward pass by name are left out.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases.graph_phases import GraphPhases
from hlo_inspect.figure import least
from hlo_inspect.graph.calls import place
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, RECOMPUTE, UNKNOWN, origin_of, phase_of, scope_of
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.request import Request

METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")
WANTS = Wants(graph=True, entry=True, checked=True)


def without_metadata(text: str) -> str:
    """Return the module without the metadata of its instructions."""
    return METADATA.sub("", text)


def text_of(path: Path) -> str:
    return "".join(open_source(path).pieces())


def modules(text: str) -> Iterator[Module]:
    from hlo_inspect.passes.collectives import Collectives
    from hlo_inspect.passes.cost import Cost

    yield from read_modules(open_source(text), WANTS | Collectives.wants | Cost.wants)


class Comparison:
    """Bytes or numbers by the phase of the names and the phase of the graph."""

    def __init__(self) -> None:
        self.sizes: Counter[tuple[str, str]] = Counter()
        self.wrong: list[tuple[int, str]] = []

    def add(self, named: str, by_graph: str, size: int, what: str) -> None:
        self.sizes[named, by_graph] += size
        if named not in (UNKNOWN, by_graph) and size:
            self.wrong.append((size, f"{named} -> {by_graph}: {what}"))

    def merge(self, other: Comparison) -> None:
        self.sizes += other.sizes

    def row(self, *, is_loss_forward: bool) -> str:
        total = sum(self.sizes.values())
        by_name = sum(size for (named, _), size in self.sizes.items() if named != UNKNOWN)
        labelled = sum(size for (_, graph), size in self.sizes.items() if graph != UNKNOWN)
        right = sum(size for (named, graph), size in self.sizes.items() if named == graph != UNKNOWN)
        both = {FORWARD, LOSS}
        swapped = sum(size for (named, graph), size in self.sizes.items() if {named, graph} == both) if is_loss_forward else 0
        open_ = sum(size for (named, graph), size in self.sizes.items() if named != UNKNOWN and graph == UNKNOWN)
        wrong = by_name - right - open_ - swapped

        def share(part: int, whole: int) -> str:
            return f"{part / whole:8.3%}" if whole else "       –"

        swaps = f" {share(swapped, by_name)}" if is_loss_forward else ""
        return f"{share(by_name, total)} {share(labelled, total)} {share(right, by_name)} {share(wrong, by_name)}{swaps}"


def compare(module: Module, hidden: Module) -> dict[str, Comparison]:
    """Compare the phases of a module; `hidden` is the same module without metadata."""
    comparisons: dict[str, Comparison] = defaultdict(Comparison)
    context, other = Context(module, Request(phases="names")), Context(hidden)
    graph = GraphPhases(other.views, other.optimizer, hidden.header)
    names = context.phases
    for collective, hidden_collective, named in zip(context.collectives, other.collectives, names.of_collectives, strict=True):
        if not collective.is_point_to_point:
            by_graph = next((graph.of_collective(*call) for call in graph.calls_of(place(hidden_collective.inner))), UNKNOWN)
            comparisons["collectives"].add(named.phase, by_graph, collective.operand_bytes or 0, collective.start.name)
    for kernel in context.kernels.launched:
        by_graph = next((graph.of_row(*call) for call in graph.calls_of(kernel.place)), UNKNOWN)
        phase = names.for_instruction(kernel.instruction).phase
        comparisons["kernels"].add(phase, by_graph, int(least(kernel.of_step("bytes"))), kernel.instruction.name)
    for name in module.computations:
        view = context.views.for_computation(name)
        for row, opcode in enumerate(view.opcodes):
            if opcode in {"dot", "convolution"}:
                origin = origin_of(view.instruction(row).attr("metadata"), module.frames)
                by_graph = next((graph.of_row(*call) for call in graph.calls_of(place(view.instruction(row)))), UNKNOWN)
                comparisons["matmuls"].add(phase_of(origin.innermost, scope_of(origin.op_name)), by_graph, 1, view.rows[row][1])
    if graph.reason:
        comparisons["reason"].wrong.append((0, graph.reason))
    return comparisons


def dumps(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        inside = (file for file in path.rglob("*") if file.suffix in {".xz", ".txt", ".hlo", ".gz"})
        yield from sorted(inside) if path.is_dir() else [path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--wrong", action="store_true", help="name what the graph tells otherwise")
    parser.add_argument("--each", action="store_true", help="one row a dump")
    arguments = parser.parse_args()
    groups: dict[str, dict[str, Comparison]] = {}
    counts: Counter[str] = Counter()
    for path in dumps(arguments.paths):
        text = text_of(path)
        start = time.process_time()
        for module, hidden in zip(modules(text), modules(without_metadata(text)), strict=True):
            by_kind = compare(module, hidden)
            named = {named for result in by_kind.values() for named, _ in result.sizes}
            if not named & {BACKWARD, RECOMPUTE}:
                continue
            group = path.parent.name
            counts[group] += 1
            for kind, result in by_kind.items():
                groups.setdefault(group, defaultdict(Comparison))[kind].merge(result)
            bad = {kind: result.row(is_loss_forward=kind == "kernels") for kind, result in by_kind.items() if kind != "reason"}
            if arguments.each:
                print(f"{path.name:50} {time.process_time() - start:6.1f} s", *[f"{kind} {row}" for kind, row in bad.items()])
                for _, reason in by_kind["reason"].wrong if "reason" in by_kind else ():
                    print("   ", reason)
            if arguments.wrong:
                for kind, result in by_kind.items():
                    for size, what in sorted(result.wrong, reverse=True)[:5]:
                        print(f"    {kind} {size:,} {what}")
    for group, by_kind in groups.items():
        for kind in ("collectives", "kernels", "matmuls"):
            row = by_kind[kind].row(is_loss_forward=kind == "kernels")
            print(f"{group:20} {counts[group]:4} {kind:12} known labelled right wrong: {row}")


if __name__ == "__main__":
    main()
