"""Repeats a part of a dump, and looks whether a command takes more than its share of time.

    python -m tests.fuzz.growth --count 400 DUMP…

A dump is a file or a folder. Each seed gives one command and one growing text. Even seeds go through the shapes of
`benchmarks.shapes`, first with all passes together, then with one command after another. Odd ones take a dump in which some
lines, an element of a list, a few characters or a bracket stand many times; lines with or without names of their own, and one
part in three is damaged first. The text grows until the command takes long enough to be measured. Linear work
takes 4 times as long as for a quarter of the repetitions, quadratic work 16 times; more than `MOST_GROWTH` fails, and so does a
command that fails. `--first SEED --count 1 DUMP…` repeats one seed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.shapes import SHAPES
from tests.fuzz.commands import ARGUMENTS, Files
from tests.fuzz.mutate import PASS_NAMES, Mutator, files, read, read_text
from tests.time_limit import TimeLimitError, time_limit

EVERYTHING = "everything"
COMMANDS = (EVERYTHING, "collectives", "diff", "normalize", *sorted({*ARGUMENTS} - {"collectives", "diff", "normalize"}))
FIRST_BYTES, LAST_BYTES = 1 << 17, 1 << 21
ENOUGH_SECONDS = 0.3
"""A command that takes so long is measured well; a text for which it takes less is made larger."""

MOST_GROWTH = 8.0
ROUNDS = 3  # repeated measurements of a text that seems to grow too much
LIMIT_SECONDS = 120
_DEFINED = re.compile(rb"%?([A-Za-z_][\w.\-]*+)(?= = | \()", re.ASCII)
_CLOSERS = {b"(": b")", b"{": b"}", b"[": b"]"}


class GrowingText(NamedTuple):
    """A text for each number of repetitions, and what is repeated."""

    what: str
    make: Callable[[int], bytes]


def growing(text: bytes, seed: int) -> GrowingText:
    """Return the growing text of a seed, made of a dump."""
    mutator = Mutator(seed)
    if seed % 2 == 0:
        shape = SHAPES[seed // 2 % len(SHAPES)]
        return GrowingText(f"the shape {shape.name!r}", lambda count: shape.make(count).encode())
    ways = (_lines, _lines, _element, _element, _characters, _bracket)
    return mutator.chance.choice(ways)(text, mutator)


def command_of(seed: int) -> str:
    """Return the command of a seed."""
    return COMMANDS[(seed // 2 // len(SHAPES) if seed % 2 == 0 else seed // 2) % len(COMMANDS)]


def _lines(text: bytes, mutator: Mutator) -> GrowingText:
    lines = text.splitlines(keepends=True)
    start = mutator.chance.randrange(len(lines))
    end = start + mutator.chance.choice([1, 1, 2, 5, 20])
    block = _damaged(b"".join(lines[start:end]), mutator)
    before, after = b"".join(lines[:start]), b"".join(lines[end:])
    names = set(_DEFINED.findall(block)) if mutator.chance.random() < 0.7 else set()
    what = f"lines {start + 1} to {end}{' with names of their own' if names else ''}"
    name = re.compile(rb"(?<![\w.\-])[A-Za-z_][\w.\-]*+", re.ASCII)

    def numbered(number: int) -> bytes:
        return name.sub(lambda match: match[0] + (b".%d" % number if match[0] in names else b""), block)

    return GrowingText(what, lambda count: before + b"".join(map(numbered, range(count))) + after)


def _element(text: bytes, mutator: Mutator) -> GrowingText:
    """Repeat the text behind a comma or a bracket."""
    starts = [match.end() for match in re.finditer(rb"[,({\[]", text)]
    start = mutator.chance.choice(starts or [0])
    end = next((match.start() for match in re.finditer(rb"[,)}\]\n]", text[start:])), 1) + start
    return _repeated(text, start, _damaged(text[start:end], mutator) + b",")


def _characters(text: bytes, mutator: Mutator) -> GrowingText:
    start = mutator.chance.randrange(len(text))
    return _repeated(text, start, _damaged(text[start : start + mutator.chance.choice([1, 2, 8, 40])], mutator))


def _bracket(text: bytes, mutator: Mutator) -> GrowingText:
    """Nest a bracket or a quote; some are not closed."""
    starts = [match.start() for match in re.finditer(rb"[({\[\"]", text)]
    start = mutator.chance.choice(starts or [0])
    mark = text[start : start + 1]
    closer = _CLOSERS.get(mark, b"")
    end = text.find(closer, start) if closer and mutator.chance.random() < 0.7 else -1
    if end < 0:
        return _repeated(text, start, mark)
    before, inner, after = text[:start], text[start + 1 : end], text[end + 1 :]
    return GrowingText(f"{mark!r} around {inner!r}", lambda count: before + mark * count + inner + closer * count + after)


def _damaged(part: bytes, mutator: Mutator) -> bytes:
    return mutator(part) if mutator.chance.random() < 0.33 else part


def _repeated(text: bytes, start: int, part: bytes) -> GrowingText:
    return GrowingText(f"{part!r} at {start}", lambda count: text[:start] + part * count + text[start:])


def seconds_for(command: str, old: bytes, new: bytes) -> float:
    """Return the processor's time for a command."""
    with Files(old, new) as damaged, time_limit(LIMIT_SECONDS):
        start = time.process_time()
        if command == EVERYTHING:
            read(new, PASS_NAMES)
        else:
            damaged.run(command)
        return time.process_time() - start


def excess(command: str, old: bytes, text: GrowingText) -> str | None:
    """Describe how much more than its share a command takes for a growing text; None if it does not."""
    count = 4
    if len(text.make(2 * count)) <= len(text.make(count)):
        return None
    new, size, took = b"", FIRST_BYTES, 0.0
    while took < ENOUGH_SECONDS and size <= LAST_BYTES:
        while len(new) < size:
            count *= 2
            new = text.make(count)
        took = seconds_for(command, old, new)
        size *= 4
    if took < ENOUGH_SECONDS:
        return None
    quarter = text.make(count // 4)
    small = seconds_for(command, old, quarter)
    for _ in range(ROUNDS):
        if took <= MOST_GROWTH * small:
            return None
        small, took = min(small, seconds_for(command, old, quarter)), min(took, seconds_for(command, old, new))
    return f"took {took:.2f} s for {len(new):,} bytes and {small:.3f} s for {len(quarter):,}"


def failure(old: bytes, seed: int, command: str = "") -> str | None:
    """Describe the fault of the growth of a seed; None if there is none."""
    text = growing(old, seed)
    command = command or command_of(seed)
    try:
        fault = excess(command, old, text)
    except (Exception, TimeLimitError):  # any exception is a fault
        fault = traceback.format_exc()
    return f"{command}, {text.what}: {fault}" if fault is not None else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=100, help="growing texts over all dumps")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--max-bytes", type=int, default=20_000, help="leave larger dumps out")
    parser.add_argument("--command", default="", choices=["", *COMMANDS], help="one command instead of all in turn")
    options = parser.parse_args()
    texts = [(path, text) for path in files(options.dumps) if (text := read_text(path, options.max_bytes))]
    failed = 0
    for seed in range(options.first, options.first + options.count):
        path, text = texts[seed % len(texts)]
        trouble = failure(text, seed, options.command)
        if trouble is not None:
            failed += 1
            sys.stdout.write(f"FAIL --first {seed} --count 1 {path}\n{trouble}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.count} growing texts of {len(texts)} dumps, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
