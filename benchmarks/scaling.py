"""How time and memory grow with the input: each shape of text is doubled three times.

    python -m benchmarks.scaling [WORD ...] [--command NAME] [--markdown]

prints for each shape, or for those with one of the words in their names, processor time and peak memory of the largest of four
sizes, and the exponents of their growth: 1 is linear. The exit status is 1 where an exponent is above 1.15. Counted is what
exceeds an empty module, or the shape at size 1 where that takes less. Each run is a process of its own, forked when everything
is imported, so that no run sees what another left. The least of three runs counts, since other work on the machine only adds to
it; the sizes take turns, and a shape above 1.15 is run up to nine times more. What is below a floor (20 ms, 4 MB) says nothing
about growth and has no exponent.

The growth of memory is that of the most bytes that Python had allocated at once (`tracemalloc`), in one more run: the peak of
the process has steps of the allocator in it, and lacks what earlier work left free.
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
from hlo_inspect.passes import PASSES
from hlo_inspect.report import FORMATS, RenderOptions

DOUBLINGS = 3
ALLOWED = 1.15
FLOOR_SECONDS, FLOOR_BYTES = 0.02, 4e6
LIMIT_SECONDS = 60
LIMIT_BYTES = 6 << 30
ROUNDS = 3
MORE = 3  # times as many rounds for what seems to grow too fast
TRACING = 10  # so much longer a traced run may take
SAMPLE = Path(__file__).parent.parent / "tests/data/cpu/scan_fsdp.after.txt"


class Cost(NamedTuple):
    """Of one run: processor time and the growth of the process's peak, or traced the most bytes allocated at once."""

    seconds: float
    peak_bytes: float


def sample_repeated(n: int) -> str:
    """A real step, as many times."""
    return (SAMPLE.read_text() + "\n") * n


ALL_SHAPES = (*SHAPES, TextShape("a real step repeated", sample_repeated, 2))


def work(text: str, passes: Sequence[str]) -> None:
    """What a command does with a text: reports, and each of them as JSON."""
    try:
        for report in hlo_inspect.inspect_all(text.encode(), passes, profile="h100-sxm"):
            FORMATS["json"]([report], io.StringIO(), RenderOptions())
    except hlo_inspect.InputError:
        return


def measured(text: str, passes: Sequence[str], *, traced: bool = False) -> Cost | None:
    """The cost in a process of its own; `None` where it does not end in time, or in the memory that it may have. The bytes that
    are allocated are `traced`, or the peak of the process is taken.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            limit = LIMIT_SECONDS * (TRACING if traced else 1)
            signal.setitimer(signal.ITIMER_PROF, limit)  # of the processor, which others may have too
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
    """The least cost of some runs."""
    return least([measured(text, passes) for _ in range(rounds)])


def least(costs: Sequence[Cost | None]) -> Cost | None:
    """The least time and the least memory of some runs; `None` where one did not end."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    return Cost(min(cost.seconds for cost in known), min(cost.peak_bytes for cost in known))


def exponent(values: Sequence[float], sizes: Sequence[int], floor: float) -> float | None:
    """The slope of the values over the sizes, both as logarithms, by least squares; `None` where all are near the floor."""
    points = [(math.log(size), math.log(max(value, floor / 2))) for value, size in zip(values, sizes, strict=True)]
    if values[-1] < 2 * floor:
        return None
    middle = [sum(axis) / len(points) for axis in zip(*points, strict=True)]
    across = sum((x - middle[0]) ** 2 for x, _ in points)
    return float(sum((x - middle[0]) * (y - middle[1]) for x, y in points) / across)


class Row(NamedTuple):
    """What four sizes of one shape cost."""

    name: str
    sizes: list[int]
    costs: list[Cost | None]
    allocated: list[Cost | None]

    @property
    def exponents(self) -> tuple[float | None, float | None]:
        """Of time and of memory; infinite where a run did not end."""
        if None in (*self.costs, *self.allocated):
            return math.inf, math.inf
        seconds = exponent([cost.seconds for cost in self.costs if cost is not None], self.sizes, FLOOR_SECONDS)
        held = [cost.peak_bytes for cost in self.allocated if cost is not None]
        return seconds, exponent(held, self.sizes, FLOOR_BYTES)


def row(shape: TextShape, passes: Sequence[str], rounds: int, empty: Cost) -> Row:
    """Measures one shape at four sizes; it stops where one does not end. A text that is refused may take less than an `empty`
    module.
    """
    alone = measure(shape.make(1), passes, rounds) or empty
    floor = Cost(min(alone.seconds, empty.seconds), min(alone.peak_bytes, empty.peak_bytes))
    texts: list[str] = []
    runs: list[list[Cost | None]] = []
    allocated: list[Cost | None] = []
    for doubling in range(DOUBLINGS + 1):
        texts.append(shape.make(shape.first << doubling))
        runs.append([measured(texts[-1], passes)])
        if runs[-1][0] is None:
            break
        allocated.append(measured(texts[-1], passes, traced=True))
    while True:
        found = Row(shape.name, [len(text) for text in texts], [_above(floor, least(costs)) for costs in runs], allocated)
        seconds = found.exponents[0]
        is_too_much = seconds is not None and ALLOWED < seconds < math.inf
        if len(runs[0]) >= (rounds * (1 + MORE) if is_too_much else rounds):
            return found
        for text, costs in zip(texts, runs, strict=True):
            costs.append(measured(text, passes))


def _above(floor: Cost, cost: Cost | None) -> Cost | None:
    return None if cost is None else Cost(cost.seconds - floor.seconds, cost.peak_bytes - floor.peak_bytes)


def _shown(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"


def cells(one: Row) -> list[str]:
    """The cells of a row of the table, from the smallest and the largest size."""
    last = one.costs[-1]
    took = ["does not end", ""] if last is None else [f"{last.seconds:.2f}", f"{last.peak_bytes / 1e6:.0f}"]
    seconds, memory = one.exponents
    return [one.name, f"{one.sizes[0]:,}", f"{one.sizes[-1]:,}", *took, _shown(seconds), _shown(memory)]


HEADINGS = ["shape", "bytes, smallest", "bytes, largest", "s", "MB", "exponent of time", "exponent of memory"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="only shapes with one of these in their names")
    parser.add_argument("--command", help="one command instead of all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    passes = [options.command] if options.command else [one.name for one in PASSES]
    work(SHAPES[0].make(2), passes)  # imports what is imported late
    empty = measure(SHAPES[0].make(1), passes, options.rounds) or Cost(0, 0)
    missed = 0
    sys.stdout.write(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}\n")
    for shape in ALL_SHAPES:
        if options.words and not any(word in shape.name for word in options.words):
            continue
        one = row(shape, passes, options.rounds, empty)
        missed += any(number is not None and number > ALLOWED for number in one.exponents)
        sys.stdout.write(f"| {' | '.join(cells(one))} |\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
