"""Damage dumps by chance and check that hlo-inspect survives them.

    python -m tests.fuzz.mutate --count 200000 DUMP…

A dump is a file or a folder, compressed or not. Most mutants are one text; some are several modules in one text, and some a
directory, in which one file is whole and has to be reported. Every mutation has a seed, which is printed if it fails.

A failure is an exception other than `HloInspectError`, or a report that is no JSON or that a format cannot render. A control
character of the input in the output is one too. So is more time or memory than a text of that size may take
(`ALLOWED_SECONDS` and the constants after it). `--first` starts at another seed: `--first SEED --count 1 DUMP…` repeats one.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import resource
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import hlo_inspect
from benchmarks.measure import PEAK_UNIT
from benchmarks.shapes import SHAPES
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.opcodes import TABLE
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes import PASSES
from hlo_inspect.report.formats import FORMATS, FORMATS_OF_ROWS, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.fuzz.commands import ARGUMENTS, LAYOUT, Files
from tests.fuzz.cycles import add_cycle
from tests.time_limit import TimeLimitError, time_limit

MARKS = b"{ } ( ) [ ] \" ' /* */ // , = \\ % # <= -> -1 ? ... - 1e999 nan".split()
SNIPPETS = [
    *(
        b" = ",
        b"\n",
        b"\r",
        b"\t",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\x1b[31m",
        "\u202e\u0663\u00e9".encode(),
    ),
    *(b"9" * 25, b"1" + b"0" * 400, b"(" * 300, b"{" * 300, b"[" * 50, b"((" + b"(f32[2], " * 120, b"}\n\n", b"ROOT "),
    *(b"ENTRY ", b"HloModule m\n", b"HloModule m, ", b"ENTRY %e (p: f32[]) -> f32[] {\n", b"x = f32[] add(", b"token[]"),
    *(b"f32[0]", b"f32[<=9]", b"f32[?]", b"s4[3]{0:E(4)}", b"f99[2]", b"(f32[2], (s32[], ()))", b"{1,0:T(8,128)(2,1)S(5)}"),
    *(
        b", replica_groups={{0,1},{2",
        b", replica_groups=[9999,9999]<=[99980001]",
        b", replica_groups=mesh['a'=0] {'a'}",
        b"T(0,0)",
    ),
    *(
        b", to_apply=%nobody",
        b", calls=%",
        b", body=%body, condition=%body",
        b", metadata={op_name=",
        b", backend_config={",
        b"#1#2",
    ),
    *(
        b', custom_call_target="',
        b", source_target_pairs={{0}}",
        b", input_output_alias={ {9}: (99, {9}) }",
        b", is_scheduled=true",
    ),
    *(
        b"StackFrames\n1 {file_location_id=99999999999999999999}\n",
        b", metadata={stack_frame_id=7}",
        b"while(",
        b"parameter(0)",
    ),
]
GARBAGE = MARKS + SNIPPETS

OPCODES = sorted(TABLE)
ENDS = ("async-done", "async-update", "all-reduce-done", "collective-permute-done")
_OPCODE = re.compile(rb"[\])} ] ([a-z][a-z-]+)\(")
"""The opcode of an instruction, after its shape and before its operands."""
_TUPLE = re.compile(rb" = \(([^()\n]*)\) tuple\(([^()\n]*)\)")
_ATTRIBUTE = re.compile(rb", ([a-z_]+)=(\{(?:[^{}\n]|\{[^{}\n]*\})*\}|\[[^\n, ]*|[^,\n{ ]+)")
VALUES = b"{} {{}} {0} {{0,1}} {{0,1},{2}} [2,2]<=[4] [2,2]<=[2,2]T(0,0) {replicated} -1 nobody".split()
"""Values of attributes, of which some fit to each."""
WIDTHS = (0, 1, 2, 50, 3000)

LIMIT_SECONDS = 60
ALLOWED_SECONDS, SECONDS_PER_BYTE, SECONDS_PER_MODULE = 1.0, 25e-6, 0.02
"""Seconds of a reading whatever the text is, by its bytes and by its modules: three times those of `benchmarks.scaling`."""
ALLOWED_BYTES, BYTES_PER_BYTE, BYTES_PER_MODULE = 40 << 20, 1500, 1 << 20
"""The same for memory, above what the process had before: all reports are held together."""
HOSTILE_CHARS = [1 << 11] * 5 + [1 << 13] * 3 + [1 << 16, 1 << 17]
COMMANDS = tuple(ARGUMENTS)
PASS_NAMES = [pass_.name for pass_ in PASSES]
READ_APART = [pass_.name for pass_ in PASSES if not pass_.wants.graph]
"""Passes that read a text without its graph. Passes with the graph read it as all passes together do."""
FORMAT_NAMES = [name for name in FORMATS if name != "json"]


class Mutator:
    """Maker of a damaged text for each seed. Most damage is small: at least half of the texts stay readable in part."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - damage, not secrets

    def __call__(self, text: bytes, only: str = "") -> bytes:
        """Return the damaged text; `only` names the damage to use."""
        if only:
            damaged: bytes = getattr(self, only)(text)
            return damaged
        for _ in range(self.chance.choice([1, 1, 2, 3, 8])):
            text = self.chance.choice(self._damages())(text)
        return self.hostile(text) if self.chance.random() < 0.04 else text

    def _damages(self) -> list[Callable[[bytes], bytes]]:
        on_bytes = (self.flip, self.insert, self.insert, self.drop, self.repeat, self.number)
        on_lines = (self.drop_lines, self.repeat_lines, self.move_lines, self.join_lines, self.split_line, self.cut)
        on_rows = (self.opcode, self.opcode, self.operands, self.operands, self.cycle, self.cycle)
        return [*on_bytes, *on_lines, *on_rows, self.attribute, self.tuple_width]

    def _position(self, text: bytes) -> int:
        return self.chance.randint(0, len(text))

    def flip(self, text: bytes) -> bytes:
        changed = bytearray(text)
        for _ in range(self.chance.choice([1, 1, 5, 50]) if changed else 0):
            changed[self.chance.randrange(len(changed))] = self.chance.choice([self.chance.randrange(1, 256), *b'{}()[]"=,%\n'])
        return bytes(changed)

    def insert(self, text: bytes) -> bytes:
        start = self._position(text)
        return text[:start] + self.chance.choice(GARBAGE) + text[start:]

    def drop(self, text: bytes) -> bytes:
        start = self._position(text)
        return text[:start] + text[start + self.chance.choice([1, 1, 10, 200]) :]

    def repeat(self, text: bytes) -> bytes:
        start, size = self._position(text), self.chance.choice([1, 20, 300])
        return text[:start] + text[start : start + size] * self.chance.choice([2, 2, 20]) + text[start + size :]

    def number(self, text: bytes) -> bytes:
        """Replace a number by another."""
        start = self._position(text)
        while start < len(text) and not text[start : start + 1].isdigit():
            start += 1
        end = start
        while end < len(text) and text[end : end + 1].isdigit():
            end += 1
        return text[:start] + self.chance.choice([b"0", b"-1", b"7", b"2147483648", b"9" * 19, b"9" * 30, b""]) + text[end:]

    def _lines(self, text: bytes) -> tuple[list[bytes], int, int]:
        lines = text.splitlines(keepends=True)
        start = self.chance.randint(0, len(lines))
        return lines, start, start + self.chance.choice([1, 1, 2, 10])

    def drop_lines(self, text: bytes) -> bytes:
        lines, start, end = self._lines(text)
        return b"".join(lines[:start] + lines[end:])

    def repeat_lines(self, text: bytes) -> bytes:
        lines, start, end = self._lines(text)
        return b"".join(lines[:start] + lines[start:end] * self.chance.choice([2, 2, 50]) + lines[end:])

    def move_lines(self, text: bytes) -> bytes:
        lines, start, end = self._lines(text)
        rest = lines[:start] + lines[end:]
        to = self.chance.randint(0, len(rest))
        return b"".join(rest[:to] + lines[start:end] + rest[to:])

    def join_lines(self, text: bytes) -> bytes:
        lines, start, end = self._lines(text)
        return b"".join(lines[:start] + [line.rstrip(b"\r\n") for line in lines[start:end]] + lines[end:])

    def split_line(self, text: bytes) -> bytes:
        start = self._position(text)
        return text[:start] + self.chance.choice([b"\n", b"\r\n", b"\n\n  "]) + text[start:]

    def opcode(self, text: bytes) -> bytes:
        """Replace the opcodes of some instructions by another, half of the times by an end of an asynchronous pair."""
        other = self.chance.choice(OPCODES if self.chance.random() < 0.5 else ENDS).encode()
        for _ in range(self.chance.choice([1, 5, 25])):
            match = _OPCODE.search(text, self._position(text))
            if match is not None:
                text = text[: match.start(1)] + other + text[match.end(1) :]
        return text

    def operands(self, text: bytes) -> bytes:
        """Take the operands of an instruction away, or some of them."""
        match = _OPCODE.search(text, self._position(text))
        end = text.find(b")", match.end()) if match is not None else -1
        if match is None or end < 0:
            return text
        kept = text[match.end() : end].split(b", ")
        kept = kept[: self.chance.choice([0, 0, 1, max(len(kept) - 1, 0)])]
        return text[: match.end()] + b", ".join(kept) + text[end:]

    def cycle(self, text: bytes) -> bytes:
        """Add a cycle to a computation."""
        return add_cycle(text, self.chance)

    def attribute(self, text: bytes) -> bytes:
        """Take an attribute of an instruction or of the module away, or replace its value."""
        matches = list(_ATTRIBUTE.finditer(text))
        if not matches:
            return text
        match, other = self.chance.choice(matches), self.chance.choice(matches)
        value = self.chance.choice([b"", other[2], *VALUES])
        written = b", %b=%b" % (match[1], value) if value else b""
        return text[: match.start()] + written + text[match.end() :]

    def tuple_width(self, text: bytes) -> bytes:
        """Give a tuple more elements or fewer: its shape, its operands, or mostly both."""
        matches = list(_TUPLE.finditer(text))
        if not matches:
            return text
        match, width = self.chance.choice(matches), self.chance.choice(WIDTHS)
        shape, operands = (
            b", ".join((part.split(b", ") * width)[:width]) if self.chance.random() < 0.8 else part for part in match.groups()
        )
        return text[: match.start()] + b" = (%b) tuple(%b)" % (shape, operands) + text[match.end() :]

    def cut(self, text: bytes) -> bytes:
        """Cut off the end, or less often the start; most of the text stays."""
        start = self.chance.randint(len(text) // 2, len(text))
        return text[:start] if self.chance.random() < 0.7 else text[len(text) - start :]

    def hostile(self, text: bytes) -> bytes:
        """Add the lines of a shape that can cost more than its size, in a computation of the text or beside it."""
        shape, most = self.chance.choice(SHAPES), self.chance.choice(HOSTILE_CHARS)
        size = self.chance.randint(1, 60)
        added = shape.make(size).encode()
        while len(added) < most // 2:
            size *= 2
            added = shape.make(size).encode()
        inside = added.partition(b"{\n")[2] if self.chance.random() < 0.3 else added
        lines, start, _ = self._lines(text)
        return b"".join(lines[:start]) + inside + b"\n" + b"".join(lines[start:])


def reports(text: bytes, passes: Sequence[str]) -> list[Report]:
    """Return the reports of the passes; none if the package refuses the text."""
    try:
        return list(hlo_inspect.inspect_all(text, passes))
    except hlo_inspect.HloInspectError as error:
        if not str(error):
            raise ValueError("an error without a message") from error
        return []


def read(text: bytes, passes: Sequence[str]) -> list[Report]:
    """Return the reports, which have to render as JSON."""
    made = reports(text, passes)
    render(made, "json")
    return made


def render(rendered: Sequence[Report], name: str) -> None:
    """Render reports in one format. It must not fail, and its output must not have a control character of the input."""
    out = io.StringIO()
    try:
        FORMATS[name](rendered, out, RenderOptions())
    except hlo_inspect.UsageError:  # one CSV or TSV holds tables of one kind
        if name not in FORMATS_OF_ROWS:
            raise
    if name == "json":
        json.loads(out.getvalue())
    text = out.getvalue().replace("\t", "") if name == "tsv" else out.getvalue()
    if not text.translate(LAYOUT).isprintable():
        raise ValueError(f"a control character in {name}")


def render_all(rendered: Sequence[Report]) -> None:
    """Render reports in every format."""
    for name in FORMATS:
        render(rendered, name)


def read_directory(texts: Sequence[bytes], whole: bytes) -> None:
    """Read a directory of damaged files and a whole one, whose module must be reported whatever the others are."""
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate((*texts, b"\0\1" * 99, b"\x1f\x8b\x08" + whole[:99], whole)):
            Path(folder, f"module_{number:04}.jit_step.after_optimizations.txt").write_bytes(text)
        with Inspection(Request(["summary", "collectives"])) as inspection:
            items = list(inspection.read([Path(folder)]))
    answered = [report for report in items if isinstance(report, Report)]
    if not any(f"module_{len(texts) + 2:04}" in report.input.path for report in answered) and reports(whole, ["summary"]):
        raise ValueError("the whole file of a directory is not reported")
    render_all(answered)


def forget_peak() -> None:
    """Reset the peak of this process to its present memory, if the system can (Linux)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the peak memory of this process since it was reset."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT


def read_all(text: bytes, alone: Sequence[str] = READ_APART) -> list[Report]:
    """Read a text with every pass together and with some alone, and return the reports of the former."""
    for name in alone:
        read(text, [name])
    return read(text, PASS_NAMES)


def seconds_for(text: bytes) -> float:
    """Return the processor's time for all passes together."""
    start = time.process_time()
    reports(text, PASS_NAMES)
    return time.process_time() - start


@dataclass
class Dump:
    """An undamaged text and how long it takes to read."""

    path: Path
    text: bytes
    seconds: float


def read_text(path: Path, max_bytes: int) -> bytes | None:
    """Return the text at `path`, or None if it is longer than `max_bytes`."""
    text = b""
    for piece in open_source(path).pieces():
        text += piece.encode()
        if len(text) > max_bytes:
            return None
    return text


def load(path: Path, max_bytes: int) -> Dump | None:
    """Return the dump at `path`, or None if it is larger than `max_bytes`."""
    text = read_text(path, max_bytes)
    return None if text is None else Dump(path, text, min(seconds_for(text) for _ in range(2)))


def allowed_seconds(dump: Dump, text: bytes, modules: int) -> float:
    """Return the seconds that a mutant may take: by its size, or by the seconds per byte of the undamaged text."""
    like_undamaged = 10 * dump.seconds * max(1.0, len(text) / len(dump.text))
    by_size = ALLOWED_SECONDS + SECONDS_PER_BYTE * len(text) + SECONDS_PER_MODULE * modules
    return max(by_size, min(like_undamaged, 2 * by_size))


def mutant(dump: Dump, seed: int, other: Dump, only: str = "") -> tuple[bytes, bytes | None]:
    """Return the text of a seed; some hold several modules, one of `other`.

    With a second text both are files of a directory.
    """
    mutator = Mutator(seed)
    text = mutator(dump.text, only)
    chance = mutator.chance.random()
    if chance < 0.1:
        text += mutator(other.text) + text
    return text, mutator(other.text) if chance > 0.97 else None


def failure(dump: Dump, seed: int, other: Dump, only: str = "") -> str | None:
    """Describe the fault of reading a mutant; None if there is none.

    All passes read it, for one mutant in four also a command. Reports are rendered as JSON and in another format. Commands and
    formats take turns with the seeds.
    """
    text, second = mutant(dump, seed, other, only)
    try:
        with time_limit(LIMIT_SECONDS):
            if second is not None:
                read_directory([text, second], dump.text)
                return None
            forget_peak()
            before, start = peak_bytes(), time.process_time()
            made = reports(text, PASS_NAMES)
            render(made, "json")
            render(made, FORMAT_NAMES[seed % len(FORMAT_NAMES)])
            took, memory = time.process_time() - start, peak_bytes() - before
            if seed % 4 == 0:
                with Files(dump.text, text) as written:
                    written.run(COMMANDS[seed // 4 % len(COMMANDS)])
            if memory > ALLOWED_BYTES + BYTES_PER_BYTE * len(text) + BYTES_PER_MODULE * len(made):
                return f"took {memory >> 20} MB, for {len(text):,} bytes"
            limit = allowed_seconds(dump, text, len(made))
            if took > limit:
                took = min(seconds_for(text) for _ in range(2))
    except (Exception, TimeLimitError):  # any exception is a fault
        return traceback.format_exc()
    return f"took {took:.2f} s for {len(text):,} bytes, the undamaged text {dump.seconds:.3f} s" if took > limit else None


def files(paths: Sequence[Path]) -> list[Path]:
    candidates = [file for path in paths for file in (sorted(path.rglob("*.txt*")) if path.is_dir() else [path])]
    return [file for file in candidates if file.is_file() and file.stat().st_size]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=1000, help="mutations over all dumps")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--max-bytes", type=int, default=400_000, help="leave larger texts out")
    damages = sorted({damage.__name__ for damage in (*Mutator(0)._damages(), Mutator(0).hostile)})
    parser.add_argument("--only", default="", choices=damages, help="one kind of damage instead of all")
    options = parser.parse_args()
    dumps = [dump for path in files(options.dumps) if (dump := load(path, options.max_bytes)) is not None]
    failed = 0
    for number in range(options.count):
        seed, dump = options.first + number, dumps[(options.first + number) % len(dumps)]
        trouble = failure(dump, seed, dumps[seed % 7 % len(dumps)], options.only)
        if trouble is not None:
            failed += 1
            sys.stdout.write(f"FAIL --first {seed} --count 1 {dump.path}\n{trouble}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.count} mutations of {len(dumps)} dumps, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
