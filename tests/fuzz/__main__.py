"""Run whole commands over damaged inputs for some minutes and sum up what failed.

    python -m tests.fuzz --minutes 60

Each seed is one command line over inputs that it damages, with a format and sometimes --strict. Inputs are texts of one module
or several, compressed ones, directories, workload files, saved reports, serialized HLO and recorded profiles. Texts are of
tests/data; some are given a cycle or a tuple of thousands, and some directories a link to itself and a name that is no UTF-8.
The two sides of a diff may differ in two attributes alone. A failure is an exception, an unexpected exit status, or a status 3
without a message. Unreadable JSON, a control character in the output and more than a minute of the processor are failures too.
Some seeds throw an error in one module, and the reports of the others must be there. `--first SEED --count 1` repeats a seed.
`--with-fault NAME` puts a mended fault back.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES, SHOW, find_pass
from hlo_inspect.report.formats import CI_FORMATS, FORMATS
from tests.fuzz.commands import LAYOUT, STATUSES
from tests.fuzz.isolation import fault_of_isolation
from tests.fuzz.mended_faults import MENDED
from tests.fuzz.mutate import LIMIT_SECONDS, Mutator
from tests.profiler.spaces import metadata_plane, plane, space
from tests.profiler.test_modules import TEXT
from tests.time_limit import TimeLimitError, time_limit

DATA = Path(__file__).parent.parent / "data"
MAX_BYTES = 60_000
TOLD = 10
"""Seeds of one fault that the summary names."""

INPUTS = ("{new}", "{new}", "{several}", "{compressed}", "{directory}", "{serialized}")
COMMANDS: dict[str, tuple[str, ...]] = {
    **{pass_.name: () for pass_ in PASSES},
    "list": (),
    "lint": (),
    "check": ("--assert", "cost.flops > 0", "--assert", "collectives.count known", "--fail-on", "error"),
    "report": (),
}
"""Commands of one input, with their options."""

OTHERS: tuple[tuple[str, ...], ...] = (
    ("diff", "{old}", "{new}"),
    ("diff", "{old}", "{one_side}"),
    ("diff", "{one_side}", "{old}", "--fail-if", "different"),
    ("diff", "{old_report}", "{report}"),
    ("diff", "{directory}", "{several}", "--fail-if", "different"),
    ("check", "{new}", "--baseline", "{report}", "--fail-if", "different"),
    ("history", "{passes}", "*"),
    ("normalize", "{new}"),
    ("normalize", "{several}"),
    ("show", "{new}", "{line}", "--depth", "3"),
    ("ranks", "{ranks}"),
    ("recompiles", "{passes}"),
    ("workload", "{workload}"),
    ("workload", "{workload}", "--to", "simai"),
    ("workload", "{workload}", "--to", "astra-sim"),
    ("measured", "{recorded}"),
    ("measured", "{recorded}", "{program}"),
    ("time", "{program}", "--measured", "{recorded}"),
)
"""Command lines of other inputs."""

SEVERAL = ("{several}", "{directory}")
ISOLATED, STRICT, TWO_PROCESSES = 0.08, 0.02, 0.02
"""Shares of seeds that throw an error in one module, and that ask XLA's parser or two processes, which take long."""


class Samples(NamedTuple):
    """Undamaged inputs."""

    texts: Sequence[bytes]
    reports: Sequence[bytes]
    protos: Sequence[bytes]
    profile: bytes


class Case(NamedTuple):
    """A command line of a seed, with the exit status or the fault."""

    arguments: list[str]
    fault: str


class Inputs:
    """The inputs of one seed in a folder."""

    def __init__(self, folder: Path, seed: int, samples: Samples) -> None:
        self._folder = folder
        damage = Mutator(seed)
        self.chance = damage.chance
        old, other = (self.chance.choice(samples.texts) for _ in range(2))
        new, second = damage(old), damage(other)
        self.places = {"line": str(new.count(b"\n") // 2 + 1)}
        self._add("old", old)
        self._add("new", new)
        self._add("one_side", damage(damage(old, "attribute"), "attribute"))
        self._add("several", second + b"\n" + new + b"\n" + old)
        packed = gzip.compress((new + b"\n") * 2)
        self._add("compressed", damage.flip(packed) if self.chance.random() < 0.5 else packed)
        report = self.chance.choice(samples.reports)
        self._add("old_report", report)
        self._add("report", damage(report))
        self._add("serialized.pb", damage(self.chance.choice(samples.protos)) if samples.protos else new)
        recorded = damage.flip(samples.profile) if self.chance.random() < 0.5 else damage(samples.profile)
        self._add("recorded.xplane.pb", recorded)
        self._add("program", TEXT.replace("%s", "").encode())
        self._add("workload", damage((DATA / "workloads" / self.chance.choice(["simai.txt", "astra_sim.txt"])).read_bytes()))
        stem = "module_{}.jit_step.after_optimizations.txt"
        pair = {stem.format("0001"): new, stem.format("0002"): second, stem.format("0003"): old}
        self._add_folder("directory", pair | {"module_0004.jit_step.after_optimizations.txt.gz": packed[: len(packed) // 2]})
        if self.chance.random() < 0.2:
            (folder / "directory" / stem.format("0005")).symlink_to(stem.format("0005"))
            (folder / "directory" / os.fsdecode(b"module_0006.\xff.after_optimizations.txt")).write_bytes(old)
        self._add_folder("ranks/0", {stem.format("0001"): old})
        self._add_folder("ranks/1", {stem.format("0001"): new})
        self.places["ranks"] = str(folder / "ranks" / "{rank}")
        passes = {"before_optimizations": old, "0001.simplification.after_algsimp.before_dce": new, "after_optimizations": old}
        self._add_folder("passes", {f"module_0001.jit_step.{name}.txt": text for name, text in passes.items()})

    def _add(self, name: str, content: bytes) -> None:
        path = self._folder / name
        path.write_bytes(content)
        self.places[name.partition(".")[0]] = str(path)

    def _add_folder(self, name: str, files: dict[str, bytes]) -> None:
        folder = self._folder / name
        folder.mkdir(parents=True)
        for file, content in files.items():
            (folder / file).write_bytes(content)
        self.places[name] = str(folder)

    def arguments(self) -> tuple[list[str], str]:
        """Return a command line and its format."""
        chance = self.chance
        if chance.random() < 0.7:
            command = chance.choice(list(COMMANDS))
            written = (command, chance.choice(INPUTS), *COMMANDS[command])
        else:
            written = chance.choice(OTHERS)
        command, form = written[0], ""
        formats = [*FORMATS]
        if command in {"lint", "check"}:
            formats += CI_FORMATS
        elif command == SHOW or command in PASSES.names:
            formats += [name for name in find_pass(command).formats if name != "svg"] if command != SHOW else ["dot", "mermaid"]
        if command not in {"normalize", "report"} and "--to" not in written:
            form = chance.choice(formats)
            written += ("--format", form)
        if command == "report":
            written += ("-q", "-o", str(self._folder / "page.html"))
        if command in PASSES.names or command in {"list", "lint"}:
            if chance.random() < STRICT and find_spec("jaxlib"):
                written += ("--strict",)
            if chance.random() < TWO_PROCESSES:
                written += ("-j", "2")
        return self._placed(written), form

    def isolated(self) -> list[str]:
        """Return a command line of one pass over several modules."""
        return self._placed((self.chance.choice(PASSES.names), self.chance.choice(SEVERAL)))

    def _placed(self, words: Sequence[str]) -> list[str]:
        places = {f"{{{name}}}": place for name, place in self.places.items()}
        return [places.get(word, word) for word in words]


def fault_of(arguments: list[str], form: str) -> str:
    """Run a command line; describe its fault, or return an empty text."""
    out, errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    try:
        with (
            time_limit(LIMIT_SECONDS),
            mock.patch.dict(os.environ, {"HLO_INSPECT_DEBUG": "1"}),
            redirect_stdout(out),
            redirect_stderr(errors),
        ):
            status = run(arguments)
    except (Exception, TimeLimitError):  # any exception is a fault
        return traceback.format_exc()
    if status not in STATUSES:
        return f"exit status {status}"
    if status == 3 and not errors.getvalue().strip():
        return "exit status 3 without a message"
    out.seek(0)
    text = out.read()
    if form == "json" and text:
        try:
            json.loads(text)
        except ValueError as error:
            return f"JSON that cannot be read back: {error}"
    if "--to" in arguments:  # a file of the dialect, with the names of the input as they are
        text = ""
    shown = text.replace("\t", "") if form == "tsv" else text
    if not (shown + errors.getvalue()).translate(LAYOUT).isprintable():
        return "a control character in the output"
    return ""


def case(seed: int, samples: Samples) -> Case:
    """Run the case of a seed."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(Path(folder), seed, samples)
        if inputs.chance.random() < ISOLATED:
            arguments = inputs.isolated()
            fault = fault_of_isolation(arguments)
        else:
            arguments, form = inputs.arguments()
            fault = fault_of(arguments, form)
        return Case([word.replace(folder, "FOLDER") for word in arguments], fault)


def sample_texts() -> list[bytes]:
    """Return the small texts of tests/data, in one order everywhere."""
    paths = sorted(path for path in DATA.rglob("*") if path.suffix in {".txt", ".hlo"} and path.stat().st_size < MAX_BYTES)
    return [text for path in paths if b"ENTRY" in (text := path.read_bytes())]


def saved_reports(texts: Sequence[bytes]) -> list[bytes]:
    """Return reports of a few texts as `--format json` writes them."""
    reports = []
    for text in texts[:4]:
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(text)
            file.flush()
            out = io.StringIO()
            with redirect_stdout(out):
                run(["summary", file.name, "--format", "json"])
        reports.append(out.getvalue().encode())
    return reports


def serialized() -> list[bytes]:
    """Return a few serialized modules, of texts that XLA printed; none without jaxlib."""
    if find_spec("jaxlib") is None:
        return []
    hlo = import_module("jaxlib._hlo")
    paths = sorted((DATA / "cpu").glob("*.after.txt"))[:4]
    return [hlo.hlo_module_from_text(path.read_text()).as_serialized_hlo_module_proto() for path in paths]


def recorded_profile() -> bytes:
    """Return a recorded profile of one program; nothing without jaxlib."""
    if find_spec("jaxlib") is None:
        return b""
    stats: dict[str, int | str] = {"hlo_op": "double", "program_id": 3, "run_id": 1, "device_ordinal": 0}
    return space(
        metadata_plane({"jit_step(3)": TEXT.replace("%s", "")}),
        plane("/host:CPU", {"thread": [("double", 2000 + 100 * number, 50, stats) for number in range(9)]}),
    )


def all_samples() -> Samples:
    texts = sample_texts()
    return Samples(texts, saved_reports(texts), serialized(), recorded_profile())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=sys.maxsize, help="the most seeds")
    parser.add_argument("--with-fault", default="", choices=MENDED, help="put a mended fault back")
    options = parser.parse_args()
    samples = all_samples()
    end = time.monotonic() + 60 * options.minutes
    commands: Counter[str] = Counter()
    faults: dict[str, list[int]] = {}
    seed = options.first
    while seed < options.first + options.count and time.monotonic() < end:
        with MENDED[options.with_fault]():
            done = case(seed, samples)
        commands[done.arguments[0]] += 1
        if done.fault:
            line = done.fault.strip().splitlines()[-1]
            if len(faults.setdefault(line, [])) == 0:
                sys.stdout.write(f"FAIL --first {seed} --count 1: {' '.join(done.arguments)}\n{done.fault}\n")
                sys.stdout.flush()
            faults[line].append(seed)
        seed += 1
    sys.stdout.write(
        f"{commands.total():,} command lines over {len(samples.texts)} texts, seeds {options.first} to {seed - 1}\n"
    )
    sys.stdout.write(", ".join(f"{name} {count}" for name, count in sorted(commands.items())) + "\n")
    for line, seeds in faults.items():
        sys.stdout.write(f"{len(seeds):,} x {line} (seeds {', '.join(map(str, seeds[:TOLD]))})\n")
    sys.stdout.write(f"{len(faults):,} faults\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
