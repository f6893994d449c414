"""How well the graph of values tells the phases of training steps: metadata hidden, against what the metadata says.

    python -m benchmarks.phases DUMP_OR_DIRECTORY… [--wrong]

Each dump is read twice: as it is, where names tell phases, and without its metadata, where only the graph can. Of what names
tell the table says how much the graph tells likewise: collectives by operand bytes, kernels by the bytes that they read and
write, matrix multiplications by their number. Where a name says forward and the graph loss, or the other way round, is counted
apart for kernels: metadata decides that by the name of a scope. Modules without a backward pass by name are left out.
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
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.op_names import BACKWARD, FORWARD, LOSS, RECOMPUTE, UNKNOWN, origin_of, phase_of, scope_of
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.request import Request

METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")
SUFFIXES = {".gz", ".hlo", ".txt", ".xz", ".zst"}
WANTS = Wants(graph=True, entry=True, checked=True)


def without_metadata(text: str) -> str:
    """The same module as programs without names have it."""
    return METADATA.sub("", text)


def text_of(path: Path) -> str:
    return "".join(open_source(path).pieces())


def modules(text: str) -> Iterator[Module]:
    from hlo_inspect.passes.collectives import Collectives
    from hlo_inspect.passes.cost import Cost

    yield from read_modules(open_source(text), WANTS | Collectives.wants | Cost.wants)


class Comparison:
    """Bytes or numbers by what names say and what the graph says."""

    def __init__(self) -> None:
        self.sizes: Counter[tuple[str, str]] = Counter()
        self.wrong: list[tuple[int, str]] = []

    def add(self, named: str, told: str, size: int, what: str) -> None:
        self.sizes[named, told] += size
        if named not in (UNKNOWN, told) and size:
            self.wrong.append((size, f"{named} -> {told}: {what}"))

    def merge(self, other: Comparison) -> None:
        self.sizes += other.sizes

    def row(self, *, is_loss_forward: bool) -> str:
        total = sum(self.sizes.values())
        known = sum(size for (named, _), size in self.sizes.items() if named != UNKNOWN)
        labelled = sum(size for (_, told), size in self.sizes.items() if told != UNKNOWN)
        right = sum(size for (named, told), size in self.sizes.items() if named == told != UNKNOWN)
        both = {FORWARD, LOSS}
        swapped = sum(size for (named, told), size in self.sizes.items() if {named, told} == both) if is_loss_forward else 0
        open_ = sum(size for (named, told), size in self.sizes.items() if named != UNKNOWN and told == UNKNOWN)
        wrong = known - right - open_ - swapped

        def share(part: int, whole: int) -> str:
            return f"{part / whole:8.3%}" if whole else "       –"

        swaps = f" {share(swapped, known)}" if is_loss_forward else ""
        return f"{share(known, total)} {share(labelled, total)} {share(right, known)} {share(wrong, known)}{swaps}"


def compare(module: Module, hidden: Module) -> dict[str, Comparison]:
    """`hidden` is the same module without metadata."""
    found: dict[str, Comparison] = defaultdict(Comparison)
    context, other = Context(module, Request(phases="names")), Context(hidden)
    graph = GraphPhases(other.views, other.optimizer, hidden.header)
    names = context.phases
    for collective, hidden_one, named in zip(context.collectives, other.collectives, names.of_collectives, strict=True):
        if not collective.is_point_to_point:
            told = next((graph.of_collective(*call) for call in graph.calls_of(hidden_one.inner)), UNKNOWN)
            found["collectives"].add(named.phase, told, collective.operand_bytes or 0, collective.start.name)
    for kernel in context.kernels.launched:
        told = next((graph.of_row(*call) for call in graph.calls_of(kernel.instruction)), UNKNOWN)
        phase = names.of(kernel.instruction).phase
        found["kernels"].add(phase, told, kernel.of_step("bytes").least, kernel.instruction.name)
    for name in module.computations:
        view = context.views.of(name)
        for row, opcode in enumerate(view.opcodes):
            if opcode in {"dot", "convolution"}:
                origin = origin_of(view.instruction(row).attr("metadata"), module.frames)
                told = next((graph.of_row(*call) for call in graph.calls_of(view.instruction(row))), UNKNOWN)
                found["matmuls"].add(phase_of(origin.innermost, scope_of(origin.op_name)), told, 1, view.rows[row][1])
    if graph.reason:
        found["reason"].wrong.append((0, graph.reason))
    return found


def dumps(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        yield from (
            sorted(one for one in path.rglob("*") if one.suffix in {".xz", ".txt", ".hlo", ".gz"}) if path.is_dir() else [path]
        )


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
            found = compare(module, hidden)
            named = {named for one in found.values() for named, _ in one.sizes}
            if not named & {BACKWARD, RECOMPUTE}:
                continue
            group = path.parent.name
            counts[group] += 1
            for kind, one in found.items():
                groups.setdefault(group, defaultdict(Comparison))[kind].merge(one)
            bad = {kind: one.row(is_loss_forward=kind == "kernels") for kind, one in found.items() if kind != "reason"}
            if arguments.each:
                print(f"{path.name:50} {time.process_time() - start:6.1f} s", *[f"{kind} {row}" for kind, row in bad.items()])
                for _, reason in found["reason"].wrong if "reason" in found else ():
                    print("   ", reason)
            if arguments.wrong:
                for kind, one in found.items():
                    for size, what in sorted(one.wrong, reverse=True)[:5]:
                        print(f"    {kind} {size:,} {what}")
    for group, found in groups.items():
        for kind in ("collectives", "kernels", "matmuls"):
            row = found[kind].row(is_loss_forward=kind == "kernels")
            print(f"{group:20} {counts[group]:4} {kind:12} known labelled right wrong: {row}")


if __name__ == "__main__":
    main()
