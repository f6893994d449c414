"""Speed of hlo-inspect against XLA's own parser, and its memory: one command measures all.

    python -m benchmarks.run [DUMP ...]
    python -m benchmarks.run [DUMP ...] --size 1GB

prints a table, appends a line of JSON to `benchmarks/history.jsonl`, and draws `benchmarks/trend.svg` of all such lines. The
exit status is 1 if a generated text does not give the facts that `benchmarks.generate` stated beside it. A missed figure is
only printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from benchmarks import figures, large
from benchmarks.figures import FIGURES, Figure
from benchmarks.generate import generate, read_base, size_in_bytes
from benchmarks.history import HISTORY, append, read_history
from benchmarks.large import MEGABYTE
from benchmarks.measure import ROOT, stay_on_one_core
from benchmarks.trend import TREND, draw
from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.hlo.input.source import open_source

BASE = ROOT / "tests/data/cpu/scan_fsdp.after.txt"
START_BYTES = 120_000
DEFAULT_SIZE = 4 * MEGABYTE
LAYERS = (1, 2, 4, 8)
LAYER_BYTES = MEGABYTE // 4
COMPRESSED = {".gz", ".bz2", ".xz", ".zst"}
WITHOUT_DUMP = "any"
"""Key of the figures that do not depend on a dump."""


def xla_parser() -> Callable[[str], object] | None:
    """Return XLA's parser of HLO text, or None if jaxlib is not installed."""
    if find_spec("jaxlib") is None:
        return None
    parser: Callable[[str], object] = import_module("jaxlib._hlo").hlo_module_from_text
    return parser


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Return the dump as a plain file, so that no row measures decompression."""
    if path.suffix not in COMPRESSED:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        with plain.open("w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(open_source(path).pieces())
        yield plain


def dump_figures(path: Path, parse: Callable[[str], object], rounds: int, folder: Path) -> dict[Figure, float]:
    """Return the figures of one dump."""
    values = figures.speeds(path, parse, rounds)
    values |= figures.speed_of_diff(path, parse, rounds, folder)
    values |= figures.graph_bytes(path)
    if "report" in COMMANDS and find_spec("jinja2") is not None:  # the extra [html]
        values |= figures.time_of_page(path, rounds)
    return values


def general_figures(base: Path, parse: Callable[[str], object], rounds: int, folder: Path) -> dict[Figure, float]:
    """Return the figures of start, growth and many modules."""
    source = read_base(base)
    small = folder / "small.txt"
    generate(source, small, START_BYTES, whole_entry=True)
    texts = {number: folder / f"layers.{number}.txt" for number in LAYERS}
    for number, path in texts.items():
        generate(source, path, number * LAYER_BYTES, whole_entry=True)
    values = figures.start_times(small, max(rounds, 12))
    values |= figures.growth_by_layers(texts, rounds)
    return values | figures.tiny_modules(parse)


def print_table(rows: Iterable[tuple[str, ...]]) -> None:
    lines = list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join((line[0].ljust(len(first)), *others)))
    print()


def rows_of(measured: dict[Figure, float]) -> Iterator[tuple[str, ...]]:
    yield ("", "measured", "owed", "aim", "", "")
    for figure in FIGURES:
        if figure in measured:
            value = measured[figure]
            holds = {None: "", True: "holds", False: "missed"}[figure.holds(value)]
            limits = ("" if limit is None else f"{limit:g}" for limit in (figure.owed, figure.aim))
            yield (figure.name, f"{value:.2f}", *limits, figure.unit, holds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure hlo-inspect beside XLA's parser.")
    parser.add_argument("dumps", nargs="*", type=Path, metavar="DUMP", help="default: text generated from a dump of the tests")
    parser.add_argument("--size", type=size_in_bytes, help="measure memory alone, on generated text of this size (1GB)")
    parser.add_argument("--two-processes", action="store_true", help="measure -j 2 alone, on generated text of 112 MB")
    parser.add_argument("--rounds", type=int, default=7, help="of which the least is taken (default 7)")
    parser.add_argument("--no-history", action="store_true", help="only print")
    arguments = parser.parse_args()
    base = arguments.dumps[0] if arguments.dumps else BASE
    right = True
    if arguments.two_processes:
        measured = {WITHOUT_DUMP: large.speed_of_two_processes(base, 1 + arguments.rounds // 3)}
    elif arguments.size:
        stay_on_one_core()
        measured = {WITHOUT_DUMP: {}}
        for form in ("calls", "one_entry"):
            with large.temporary_text(base, arguments.size, form) as path:
                values, one_right = large.measure_size(path)
                measured[WITHOUT_DUMP] |= values
                right = right and one_right
    else:
        stay_on_one_core()
        measured = measured_dumps(arguments.dumps, arguments.rounds)
    for name, values in measured.items():
        if values:
            print(name)
            print_table(rows_of(values))
    if not arguments.no_history and any(measured.values()):
        append(measured)
        draw(read_history())
        print(f"{HISTORY}, {TREND}")
    return 0 if right else 1


def measured_dumps(dumps: list[Path], rounds: int) -> dict[str, dict[Figure, float]]:
    parse = xla_parser()
    if parse is None:
        raise SystemExit("jaxlib is not installed: there is nothing to measure against (pip install '.[xla]')")
    measured: dict[str, dict[Figure, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not dumps:
            text = folder / "generated.txt"
            generate(read_base(BASE), text, DEFAULT_SIZE, whole_entry=False)
            dumps = [text]
        for dump in dumps:
            with unpacked(dump.resolve()) as path:
                measured[path.name.partition(".hlo")[0]] = dump_figures(path, parse, rounds, folder)
        measured[WITHOUT_DUMP] = general_figures(BASE, parse, rounds, folder)
    return measured


if __name__ == "__main__":
    sys.exit(main())
