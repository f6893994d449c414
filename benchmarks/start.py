"""Processor time of whole commands on small dumps, of which most is the start: `python -m benchmarks.start [TREE …]`.

Each figure is the least of all rounds, in times of `import click, rich.table, rich.console`. The commands of all trees take
turns: this tree, and each checkout or commit that is named.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from benchmarks.answer_store import tree_of
from benchmarks.generate import generate, read_base
from benchmarks.measure import ROOT, least_of_commands, stay_on_one_core
from benchmarks.run import print_table

SMALL = ROOT / "tests/data/cpu/adamw_step.after.txt"
BASE = ROOT / "tests/data/cpu/scan_fsdp.after.txt"
LARGER_BYTES = 165_000
IMPORTS = "imports"
COMMANDS = {
    "collectives": ("collectives",),
    "check": ("check", "--assert", "collectives.count >= 0"),
    "summary": ("summary",),
}
OWED = {"collectives": (1.6, 2.2), "check": (2.2, 3.0), "summary": (3.0, 4.2)}
"""For the small dump and the one without names."""


def without_names(folder: Path) -> Path:
    """Write a dump of `LARGER_BYTES` without metadata, whose phases only the graph tells."""
    path = folder / "without_names.txt"
    generate(read_base(BASE), path, LARGER_BYTES * 2, whole_entry=True)
    text = re.sub(r", metadata=\{[^}]*\}", "", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


class Started(NamedTuple):
    """A command on a dump, run by the code of a tree."""

    command: str
    dump: Path
    tree: Path


def seconds(trees: Sequence[Path], dumps: Sequence[Path], rounds: int) -> tuple[float, dict[Started, float]]:
    """Return the seconds of the imports, and of each command on each dump by each tree."""
    calls = {
        Started(name, dump, tree): ("-m", "hlo_inspect", *arguments, str(dump))
        for name, arguments in COMMANDS.items()
        for dump in dumps
        for tree in trees
    }
    imports = Started(IMPORTS, ROOT, ROOT)
    commands = {imports: ("-c", "import click, rich.table, rich.console"), **calls}
    least = least_of_commands(commands, rounds, {started: started.tree for started in commands})
    return least[imports], {started: least[started] for started in calls}


def rows(trees: Sequence[Path], dumps: Sequence[Path], rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield a row for each command and dump: the figure of each tree, and what is owed."""
    imports, least = seconds(trees, dumps, rounds)
    yield ("command", "dump", "KB", *(tree.name[:12] for tree in trees), "owed")
    for name, owed in OWED.items():
        for dump, bar in zip_longest(dumps, owed):
            if dump is not None:
                figures = (f"{least[Started(name, dump, tree)] / imports:.2f}" for tree in trees)
                yield (name, dump.name, f"{dump.stat().st_size / 1e3:.0f}", *figures, str(bar or ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", metavar="TREE", help="checkouts or commits to measure beside this tree")
    parser.add_argument("--dump", type=Path, action="append", help="default: a dump of 26 KB, and one without names of 165 KB")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    stay_on_one_core()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dumps = [dump.resolve() for dump in options.dump or ()] or [SMALL, without_names(folder)]
        print_table(rows([ROOT, *(tree_of(tree, folder) for tree in options.trees)], dumps, options.rounds))


if __name__ == "__main__":
    main()
