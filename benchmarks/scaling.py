"""Growth of time and memory with the input: each shape of text is doubled three times.

    python -m benchmarks.scaling [WORD ...] [--command NAME] [--markdown]

prints processor time and peak memory of the largest of four sizes, and the exponents of their growth: 1 is linear. WORD selects
shapes by parts of their names. The exit status is 1 if an exponent is above 1.15. The cost of an empty module, or of the shape
at size 1 if that is less, is subtracted. Each run is a process of its own, forked after all imports, so that runs do not affect
each other. The least of three runs counts, since other work on the machine only adds to it. The sizes take turns, and a shape
above 1.15 is run up to nine times more. Costs below a floor (20 ms, 4 MB) have no exponent.

The growth of memory is the growth of Python's peak of allocated bytes (`tracemalloc`), in one more run. The peak of the process
is less exact: it includes steps of the allocator, and lacks memory that earlier work left free.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import resource
import signal
import sys
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import hlo_inspect
from benchmarks.measure import PEAK_UNIT
from benchmarks.shapes import SHAPES, TextShape
from benchmarks.training_step import training_step
from hlo_inspect.passes import PASSES
from hlo_inspect.report.formats import FORMATS, RenderOptions

DOUBLINGS = 3
ALLOWED = 1.15
FLOOR_SECONDS, FLOOR_BYTES = 0.02, 4e6
LIMIT_SECONDS = 60
LIMIT_BYTES = 6 << 30
ROUNDS = 3
MORE = 3  # factor of rounds for a shape that seems to grow too fast
TRACING = 10  # factor of the time that a traced run may take
SAMPLE = Path(__file__).parent.parent / "tests/data/cpu/scan_fsdp.after.txt"


class Cost(NamedTuple):
    """Cost of one run: processor time and growth of the process's peak; if traced, the most bytes allocated at once."""

    seconds: float
    peak_bytes: float


def sample_repeated(n: int) -> str:
    """Repeat a real step."""
    return (SAMPLE.read_text() + "\n") * n


ALL_SHAPES = (
    *SHAPES,
    TextShape("a real step repeated", sample_repeated, 2),
    TextShape("layers of many shapes", training_step, 20),
)


def work(text: str, passes: Sequence[str]) -> None:
    """Make the reports of a text and render each as JSON, as a command does."""
    try:
        for report in hlo_inspect.inspect_all(text.encode(), passes, profile="h100-sxm"):
            FORMATS["json"]([report], io.StringIO(), RenderOptions())
    except hlo_inspect.InputError:
        return


def measure_once(text: str, passes: Sequence[str], *, traced: bool = False) -> Cost | None:
    """Return the cost in a process of its own; None if it exceeds its time or memory.

    The bytes are Python's allocated bytes if `traced`, else the peak of the process.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            limit = LIMIT_SECONDS * (TRACING if traced else 1)
            signal.setitimer(signal.ITIMER_PROF, limit)  # of the processor, which other processes may use too
            resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            begin = time.process_time()
            if traced:
                tracemalloc.start()
            work(text, passes)
            seconds = time.process_time() - begin
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * PEAK_UNIT
            peak = tracemalloc.get_traced_memory()[1] if traced else grown
            os.write(writer, json.dumps([seconds, peak]).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return Cost(*json.loads(answer)) if answer else None


def measure(text: str, passes: Sequence[str], rounds: int) -> Cost | None:
    """Return the least cost of some runs."""
    return least([measure_once(text, passes) for _ in range(rounds)])


def least(costs: Sequence[Cost | None]) -> Cost | None:
    """Return the least time and the least memory of the runs; None if a run did not end."""
    ended = [cost for cost in costs if cost is not None]
    if len(ended) < len(costs):
        return None
    return Cost(min(cost.seconds for cost in ended), min(cost.peak_bytes for cost in ended))


def exponent(values: Sequence[float], sizes: Sequence[int], floor: float) -> float | None:
    """Return the slope of log(value) over log(size) by least squares; None if the values are near the floor."""
    points = [(math.log(size), math.log(max(value, floor / 2))) for value, size in zip(values, sizes, strict=True)]
    if values[-1] < 2 * floor:
        return None
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    across = sum((x - middle[0]) ** 2 for x, _ in points)
    return float(sum((x - middle[0]) * (y - middle[1]) for x, y in points) / across)


class Row(NamedTuple):
    """Costs of four sizes of one shape."""

    name: str
    sizes: list[int]
    costs: list[Cost | None]
    allocated: list[Cost | None]

    @property
    def exponents(self) -> tuple[float | None, float | None]:
        """Exponents of time and memory; infinite if a run did not end."""
        if None in (*self.costs, *self.allocated):
            return math.inf, math.inf
        seconds = exponent([cost.seconds for cost in self.costs if cost is not None], self.sizes, FLOOR_SECONDS)
        peaks = [cost.peak_bytes for cost in self.allocated if cost is not None]
        return seconds, exponent(peaks, self.sizes, FLOOR_BYTES)


def row(shape: TextShape, passes: Sequence[str], rounds: int, empty: Cost) -> Row:
    """Measure one shape at four sizes, up to the first size that does not end.

    A refused text may cost less than an `empty` module.
    """
    alone = measure(shape.make(1), passes, rounds) or empty
    floor = Cost(min(alone.seconds, empty.seconds), min(alone.peak_bytes, empty.peak_bytes))
    texts: list[str] = []
    runs: list[list[Cost | None]] = []
    allocated: list[Cost | None] = []
    for doubling in range(DOUBLINGS + 1):
        texts.append(shape.make(shape.first << doubling))
        runs.append([measure_once(texts[-1], passes)])
        if runs[-1][0] is None:
            break
        allocated.append(measure_once(texts[-1], passes, traced=True))
    while True:
        result = Row(
            shape.name, [len(text) for text in texts], [_subtract_floor(floor, least(costs)) for costs in runs], allocated
        )
        seconds = result.exponents[0]
        is_too_much = seconds is not None and ALLOWED < seconds < math.inf
        if len(runs[0]) >= (rounds * (1 + MORE) if is_too_much else rounds):
            return result
        for text, costs in zip(texts, runs, strict=True):
            costs.append(measure_once(text, passes))


def _subtract_floor(floor: Cost, cost: Cost | None) -> Cost | None:
    return None if cost is None else Cost(cost.seconds - floor.seconds, cost.peak_bytes - floor.peak_bytes)


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def cells(costs: Row) -> list[str]:
    """Return the cells of a row of the table, from the smallest and the largest size."""
    last = costs.costs[-1]
    took = ["does not end", ""] if last is None else [f"{last.seconds:.2f}", f"{last.peak_bytes / 1e6:.0f}"]
    seconds, memory = costs.exponents
    return [
        costs.name,
        f"{costs.sizes[0]:,}",
        f"{costs.sizes[-1]:,}",
        *took,
        _shown(seconds),
        _shown(memory),
    ]


HEADINGS = ["shape", "bytes, smallest", "bytes, largest", "s", "MB", "exponent of time", "exponent of memory"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only shapes with one of these in their names")
    parser.add_argument("--command", help="one command instead of all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    passes = [options.command] if options.command else [pass_.name for pass_ in PASSES]
    work(SHAPES[0].make(2), passes)  # runs the late imports
    empty = measure(SHAPES[0].make(1), passes, options.rounds) or Cost(0, 0)
    missed = 0
    sys.stdout.write(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}\n")
    for shape in ALL_SHAPES:
        if options.words and not any(word in shape.name for word in options.words):
            continue
        measured_row = row(shape, passes, options.rounds, empty)
        missed += any(number is not None and number > ALLOWED for number in measured_row.exponents)
        sys.stdout.write(f"| {' | '.join(cells(measured_row))} |\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
