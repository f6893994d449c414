"""Speed of the native reader beside XLA's parser, on the same texts.

    python -m benchmarks.native DUMP... [--rounds N]

prints for each dump the time of XLA's parser, that of the library alone, and that of the whole reading of `summary`. The latter
includes the Python that makes a module of the columns. All run in turn in one process. Times are processor time, the least of
all rounds.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import exp, log
from pathlib import Path

from benchmarks.measure import round_robin, stay_on_one_core
from benchmarks.run import print_table, unpacked, xla_parser
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.inspection.module_reports import ModuleReports
from hlo_inspect.inspection.source_reports import without_collection
from hlo_inspect.native import library
from hlo_inspect.native.library import Library, NativeReader
from hlo_inspect.request import Request

_FIRST_COMPUTATION = re.compile(r"\n(?=(?:ENTRY )?%?[\w.\-]+ (?:\([^\n]*\) -> [^\n]* )?\{\n)")


def read_natively(loaded: Library, text: str, start: int) -> None:
    """Read the computations from an offset on, without making a module of them. Raise ValueError if one is refused."""
    with NativeReader(loaded, sorted(LITERAL_OPCODES), ["channel_id"], CALLEE_ATTRIBUTES) as reader:
        result = reader.read(text, start, len(text), is_final=True)
        if result == library.Reading.REFUSED:
            raise ValueError("the native reader refuses the text")


def read_module(path: Path) -> None:
    """Read a dump as `summary` does."""
    with without_collection():
        list(read_modules(open_source(path), ModuleReports(Request("summary")).wants))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    loaded, parse = library.library(), xla_parser()
    if loaded is None or parse is None:
        print("jaxlib is not installed" if parse is None else library.described(), file=sys.stderr)
        return 1
    stay_on_one_core()
    rows: list[tuple[str, ...]] = []
    speeds: list[float] = []
    for dump in options.dumps:
        with unpacked(dump) as path:
            text = path.read_text(encoding="utf-8")
            start = _FIRST_COMPUTATION.search(text)
            native = partial(read_natively, loaded, text, start.end() if start else 0)
            functions: dict[str, Callable[[], object]] = {
                "XLA": partial(parse, text),
                "library": native,
                "reading": partial(read_module, path),
            }
            seconds = round_robin(functions, options.rounds)
        speeds.append(seconds["XLA"] / seconds["library"])
        times = [f"{1000 * seconds[name]:.1f} ms" for name in functions]
        rows.append((dump.name, f"{len(text) / 1e6:.1f} MB", *times, f"{speeds[-1]:.1f}"))
    rows.append(("geometric mean", "", "", "", "", f"{exp(sum(map(log, speeds)) / len(speeds)):.1f}"))
    print_table([("dump", "text", "XLA", "library", "reading", "speed"), *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
