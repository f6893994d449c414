"""Compare what two trees of hlo-inspect answer: the proof that a change of the code changes no answer.

    python -m benchmarks.answers TREE_A TREE_B [DUMP_OR_DIRECTORY ...] [-j N] [--sample K]

A tree is a checkout or a commit. Each tree answers in processes of its own. The answers stay in a file by the content of the
tree's code, so only a changed tree runs again. Prints the first differences by kind, and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path
from queue import SimpleQueue

from benchmarks.answer_differences import ADDED, Difference, differences
from benchmarks.answer_lines import Input, Line, find_inputs
from benchmarks.answer_store import Store, Worker, tree_of, unpacked

ROOT = Path(__file__).parents[1]
DEFAULT = (ROOT / "tests" / "data", ROOT.parent / "shared" / "dumps")
UPPER_BOUNDS = ("fact *.upper_bound", "column *_upper_bound", "row *.upper_bound")
KINDS = ("status", "error", "fact", "table", "column", "row", "total", "note", "finding", "page", "file", "other")
MB = 1_000_000


class Comparison:
    """Two trees, and what they answer otherwise, by kind, label and change."""

    def __init__(self, trees: Sequence[Path], kept: Path, allowed: Sequence[str], commands: Sequence[str]) -> None:
        self.stores = [Store(tree, kept) for tree in trees]
        self.allowed = allowed
        self.commands = commands
        self.places: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        self.lines = 0
        self._idle: SimpleQueue[list[Worker]] = SimpleQueue()

    def run(self, inputs: Sequence[Input], jobs: int) -> None:
        """Compare the answers about all inputs."""
        workers = [[Worker(store.tree) for store in self.stores] for _ in range(jobs)]
        for pair in workers:
            self._idle.put(pair)
        try:
            with ThreadPoolExecutor(jobs) as pool:
                for number, (input_, each) in enumerate(zip(inputs, pool.map(self._compare, inputs), strict=True), 1):
                    self._note(input_, each)
                    if number % 50 == 0 or number == len(inputs):
                        print(f"{number:,} of {len(inputs):,} inputs, {len(self.places)} differences", file=sys.stderr)
        finally:
            for worker in [worker for pair in workers for worker in pair]:
                with closing(worker):
                    pass

    def _compare(self, input_: Input) -> list[tuple[Sequence[str], Difference]]:
        pair = self._idle.get()
        try:
            lines = self._lines(input_)
            old, new = (store.packed(input_, lines, worker) for store, worker in zip(self.stores, pair, strict=True))
        finally:
            self._idle.put(pair)
        return [
            (line, difference)
            for line, first, second in zip(lines, old, new, strict=True)
            if first != second
            for difference in differences(line, unpacked(first), unpacked(second))
        ]

    def _lines(self, input_: Input) -> list[Line]:
        return [line for line in input_.lines if not self.commands or line[0] in self.commands]

    def _note(self, input_: Input, differing: list[tuple[Sequence[str], Difference]]) -> None:
        self.lines += len(self._lines(input_))
        for line, difference in differing:
            if difference.change == ADDED and any(fnmatchcase(difference.name, pattern) for pattern in self.allowed):
                continue
            place = f"{' '.join(line)}\n      {input_.path}\n      {difference.detail}"
            self.places[difference.kind, difference.label, difference.change].append(place)

    def print(self, shown: int, width: int) -> None:
        """Print the differences by kind, those that occur most often first."""
        for kind in KINDS:
            rows = sorted(
                ((key, places) for key, places in self.places.items() if key[0] == kind), key=lambda row: -len(row[1])
            )
            if not rows:
                continue
            print(f"\n{kind}: {sum(len(places) for _, places in rows):,}")
            for (_, label, change), places in rows[:shown]:
                print(f"  {label} {change}: {len(places):,}, first: {places[0][:width]}")
            if len(rows) > shown:
                print(f"  and {len(rows) - shown:,} more labels (--show)")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, metavar="TREE", help="a checkout, or a commit of this repository")
    parser.add_argument("dumps", nargs="*", type=Path, metavar="DUMP", help="default: tests/data and ../shared/dumps")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--sample", type=int, default=1, metavar="K", help="take each K-th input")
    parser.add_argument("--limit", type=int, default=5, metavar="MB", help="leave out texts of more MB")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], metavar="NAME,…", help="compare these commands only"
    )
    parser.add_argument("--show", type=int, default=8, metavar="N", help="labels that are shown of each kind")
    parser.add_argument("--width", type=int, default=600, help="characters of a first difference")
    parser.add_argument("--allow", action="append", default=[], metavar="PATTERN", help="permit additions: 'fact time.*'")
    parser.add_argument("--allow-upper-bounds", action="store_true", help=f"permit the additions {', '.join(UPPER_BOUNDS)}")
    parser.add_argument(
        "--kept", type=Path, default=Path(tempfile.gettempdir(), "hlo-inspect-answers"), help="folder of answers"
    )
    options = parser.parse_args(arguments)
    start = time.monotonic()
    every = list(find_inputs(options.dumps or [folder for folder in DEFAULT if folder.is_dir()]))
    inputs = [input_ for input_ in every if input_.size <= options.limit * MB]
    if len(inputs) < len(every):
        print(f"{len(every) - len(inputs)} inputs of more than {options.limit} MB are left out (--limit)", file=sys.stderr)
    trees = [tree_of(name, options.kept) for name in options.trees]
    comparison = Comparison(
        trees, options.kept, (*options.allow, *(UPPER_BOUNDS if options.allow_upper_bounds else ())), options.only
    )
    comparison.run(inputs[:: options.sample], options.jobs)
    comparison.print(options.show, options.width)
    asked = " and ".join(f"{store.asked:,}" for store in comparison.stores)
    verdict = f"{sum(map(len, comparison.places.values())):,} differences" if comparison.places else "no difference"
    print(
        f"{verdict} in {comparison.lines:,} command lines about {len(inputs[:: options.sample]):,} inputs; "
        f"{asked} lines ran, {time.monotonic() - start:.0f} s"
    )
    return 1 if comparison.places else 0


if __name__ == "__main__":
    sys.exit(main())
