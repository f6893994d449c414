"""How fast hlo-inspect is beside XLA's own parser, and how much memory it takes: one command prints all.

    python -m benchmarks.run [DUMP ...]
    python -m benchmarks.run [DUMP ...] --size 1GB

The exit status is 1 when a text that `benchmarks.generate` wrote does not give the facts that were stated beside it. A target
that is missed is printed, no more.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import hlo_inspect
from benchmarks.generate import expected_path, generate, read_base, size_in_bytes
from benchmarks.measure import ROOT, round_robin, run_command, stay_on_one_core
from hlo_inspect.hlo.reader import read_modules
from hlo_inspect.hlo.source import open_source
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.source_reports import without_collection

BASE = ROOT / "tests/data/cpu/scan_fsdp.after.txt"
OUTPUT = ROOT / "benchmarks/out"
MEGABYTE = 10**6
DEFAULT_SIZE = 10 * MEGABYTE
SUMMARY_LIMIT = 200 * MEGABYTE
COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
XLA = "XLA's parser"


class Target(NamedTuple):
    """A row of the table: what is timed, how many times as fast as XLA it has to be, and the command that a user would type."""

    name: str
    function: Callable[[Path], object]
    ratios: tuple[float, float, float]
    command: str = ""


def _inspect(*passes: str) -> Callable[[Path], object]:
    return lambda path: hlo_inspect.inspect(path, passes=passes, phases="names")


def _with_graph(path: Path) -> object:
    return hlo_inspect.inspect(path, "collectives", phases="graph")


def _read(path: Path) -> object:
    with without_collection():  # as every command reads
        return list(read_modules(open_source(path), Wants(every_line=True)))


EVERYTHING = ("summary", "params", "fusions", "collectives", "cost", "optimizer")
"""What the row of that name has been measured with from the first version on: passes that came later have rows of their own."""

TARGETS = (
    Target("reader, operands lazy", _read, (3, 5, 8)),
    Target("collectives", _inspect("collectives"), (5, 9, 15), "collectives"),
    Target("collectives, phases by graph", _with_graph, (0.5, 1, 1.5), "collectives"),
    Target("summary", _inspect("summary"), (1.5, 2.5, 4), "summary"),
    Target("everything", _inspect(*EVERYTHING), (0.5, 1.5, 3)),
)
LEVELS = ("first landing", "tuned", "aim")


def peak_bound(facts: Mapping[str, Any]) -> int:
    """The most that `collectives` may take, in bytes."""
    return 64 * MEGABYTE + 400 * int(facts["collectives.count"]) + 100 * int(facts["module.computations"])


def xla_parser() -> Callable[[str], object] | None:
    """XLA's parser of HLO text, if jaxlib is installed."""
    if find_spec("jaxlib") is None:
        return None
    parser: Callable[[str], object] = import_module("jaxlib._hlo").hlo_module_from_text
    return parser


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The dump as a plain file, so that no row measures decompression."""
    if path.suffix not in COMPRESSED:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        with plain.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(open_source(path).pieces())
        yield plain


def print_title(path: Path) -> None:
    print(f"{path.name}: {path.stat().st_size / MEGABYTE:.1f} MB")


def print_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join((line[0].ljust(len(first)), *others)))
    print()


def speed_rows(path: Path, parse: Callable[[str], object] | None, rounds: int) -> Iterator[tuple[str, ...]]:
    text = path.read_text(encoding="utf-8", errors="replace")
    functions: dict[str, Callable[[], object]] = {} if parse is None else {XLA: partial(parse, text)}
    functions |= {target.name: partial(target.function, path) for target in TARGETS}
    seconds = round_robin(functions, rounds)
    if parse is not None:
        yield (XLA, "1", "", "", "", "", f"{seconds[XLA]:.3f} s", "")
    for target in TARGETS:
        ratio = seconds[XLA] / seconds[target.name] if parse else None
        reached = [level for level, needed in zip(LEVELS, target.ratios, strict=True) if ratio and ratio >= needed]
        whole = [run_command([target.command, str(path)]).seconds for _ in range(rounds)] if target.command else []
        yield (
            target.name,
            f"{ratio:.2f}" if ratio else "",
            *(f"{needed:g}" for needed in target.ratios),
            (reached[-1] if reached else "none") if ratio else "",
            f"{seconds[target.name]:.3f} s",
            f"{median(whole):.3f} s" if whole else "",
        )


def print_memory(path: Path, facts: Mapping[str, Any]) -> None:
    command = run_command(["collectives", "--phases", "names", str(path)])
    bound = peak_bound(facts)
    row = (
        f"{command.peak_bytes / MEGABYTE:.1f} MB",
        f"{bound / MEGABYTE:.1f} MB",
        "yes" if command.peak_bytes <= bound else "no",
        f"{command.seconds:.2f} s",
    )
    print_table(("peak RSS of collectives", "bound", "holds", "whole command"), [row])


def check_facts(path: Path, *passes: str) -> bool:
    """Prints whether a generated text gives the facts that are stated beside it, in so far as these passes give them."""
    if not expected_path(path).exists():
        return True
    stated = json.loads(expected_path(path).read_text(encoding="utf-8"))
    found = hlo_inspect.inspect(path, passes=passes)
    families = {spec.name.partition("<")[0] for spec in found.specs}
    due = {name: value for name, value in stated.items() if name.startswith(tuple(families))}
    wrong = [f"  {name}: {found.facts.get(name)}, not {value}" for name, value in due.items() if found.facts.get(name) != value]
    print("\n".join([f"{'WRONG' if wrong else 'right'}: {len(due)} stated facts of {', '.join(passes)}", *wrong, ""]))
    return not wrong


def measure(path: Path, parse: Callable[[str], object] | None, rounds: int) -> bool:
    """Prints every row for one dump; false if it gives other facts than it has to."""
    print_title(path)
    columns = ("", "ratio", *LEVELS, "holds", "time", "whole command")
    print_table(columns, speed_rows(path, parse, rounds))
    print_memory(path, hlo_inspect.inspect(path, passes=("summary",)).facts)
    return all([check_facts(path, "collectives"), check_facts(path, "summary")])


def measure_dumps(dumps: Iterable[Path], rounds: int) -> Iterator[bool]:
    parse = xla_parser()
    if parse is None:
        print("jaxlib is not installed: times only, no ratios to XLA's parser\n")
    for dump in dumps:
        with unpacked(dump.resolve()) as path:
            yield measure(path, parse, rounds)


def measure_size(path: Path) -> bool:
    """Prints memory and whole-command time for one generated text; false if it gives other facts than it has to.

    The summary of a larger text would be all that this takes time for, and keeps more than a small machine has.
    """
    print_title(path)
    print_memory(path, json.loads(expected_path(path).read_text(encoding="utf-8")))
    small = path.stat().st_size <= SUMMARY_LIMIT
    return all([check_facts(path, "collectives"), *([check_facts(path, "summary")] if small else [])])


def generated(base: Path, size: int) -> Iterator[Path]:
    """Text of about `size` bytes from a dump in both forms, one after the other; each is removed when it is done with."""
    source = read_base(base)
    for form in ("calls", "one_entry"):
        path = OUTPUT / f"{base.name.split('.')[0]}.{form}.txt"
        generate(source, path, size, whole_entry=form == "one_entry")
        yield path
        path.unlink()
        expected_path(path).unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure hlo-inspect beside XLA's parser.")
    parser.add_argument("dumps", nargs="*", type=Path, metavar="DUMP", help="default: text generated from a dump of the tests")
    parser.add_argument(
        "--size", type=size_in_bytes, help="measure memory on text of this size that is generated from each dump"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of which the median is taken (default 5)")
    arguments = parser.parse_args()
    stay_on_one_core()
    if arguments.size:
        texts = (text for dump in arguments.dumps or [BASE] for text in generated(dump, arguments.size))
        outcomes = [measure_size(text) for text in texts]
    else:
        outcomes = list(measure_dumps(arguments.dumps or generated(BASE, DEFAULT_SIZE), arguments.rounds))
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
