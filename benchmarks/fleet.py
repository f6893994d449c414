"""`collect` and `query` on many modules: modules a second, memory, size of the store, times of queries, cost of a module.

`python -m benchmarks.fleet [PATH ...] [--modules N] [--jobs N] [--sample N]`. Modules are copies of dumps, or of the small
dumps below directories, with other names and constants. Of 16 files, 8 are plain, 4 compressed by gzip, and 4 are logs of four
modules. Each tenth directory is a zip archive.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import PEAK_UNIT, ROOT
from hlo_inspect.cli.main import run

DATA = ROOT / "tests" / "data"
MOST_BYTES = 40_000
"""The largest dump of a directory that is copied."""
JOB_MODULES = 1000
"""Modules of a directory or archive."""
UNREADABLE = 3
"""The status of a collection that had unreadable inputs."""
_NAME = re.compile(r"^(HloModule )[\w.\-]+", re.MULTILINE)
_CONSTANT = re.compile(r"constant\((\d+\.\d*)\)")
QUERIES = {
    "count by platform": "SELECT platform, count(*) FROM modules GROUP BY ALL",
    "largest parameters": 'SELECT "module.name", "params.bytes" FROM modules ORDER BY 2 DESC LIMIT 10',
    "collectives by kind": "SELECT kind, count(*), sum(executed_wire_bytes) FROM collectives GROUP BY ALL",
    "findings by rule": "findings-by-rule-and-label",
    "programs of one name": "changed-programs",
}

# A process of its own measures its own peak, and the largest of the processes that it started.
_COLLECT = """
import json, resource, sys, time
from hlo_inspect.cli.main import run
begin = time.perf_counter()
status = run(sys.argv[1:])
own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
cpu = sum((own.ru_utime, own.ru_stime, children.ru_utime, children.ru_stime))
print(json.dumps([status, time.perf_counter() - begin, cpu, own.ru_maxrss, children.ru_maxrss]), file=sys.stderr)
"""


def small_dumps(paths: Sequence[Path]) -> list[Path]:
    """Return the dumps among the paths and the small dumps below them."""
    dumps = [path for path in paths if path.is_file()]
    for folder in paths:
        texts = [path for path in sorted(folder.rglob("*.txt")) if path.is_file() and path.stat().st_size <= MOST_BYTES]
        dumps += [path for path in texts if path.read_bytes().startswith(b"HloModule ")]
    return dumps


def renamed(text: str, number: int) -> str:
    """Return a dump with the name of the module and its constants changed."""
    other = _NAME.sub(rf"\g<1>jit_f{number % 997}", text, count=1)
    return _CONSTANT.sub(lambda match: f"constant({float(match[1]) + number / 1024})", other)


def write_fleet(folder: Path, dumps: Sequence[Path], modules: int) -> list[str]:
    """Write the modules and return the inputs."""
    texts = [dump.read_text(encoding="utf-8", errors="replace") for dump in dumps]
    archives = []
    for first in range(0, modules, JOB_MODULES):
        directory = folder / f"job{first // JOB_MODULES:03d}"
        directory.mkdir(parents=True)
        write_job(directory, texts, range(first, min(first + JOB_MODULES, modules)))
        if first // JOB_MODULES % 10 == 9:
            archive = shutil.make_archive(str(directory), "zip", folder, directory.name)
            shutil.rmtree(directory)
            archives.append(f"zip://{directory.name}::{archive}")
    return [str(folder), *archives]


def write_job(directory: Path, texts: Sequence[str], numbers: range) -> None:
    """Write the modules of these numbers."""
    left = deque(numbers)
    while left:
        number = left.popleft()
        text = renamed(texts[number % len(texts)], number)
        path = directory / f"module_{number % JOB_MODULES:04d}.jit_f{number % 997}.cpu_after_optimizations.txt"
        form = number % 16
        if form < 8:
            path.write_text(text)
        elif form < 12:
            Path(f"{path}.gz").write_bytes(gzip.compress(text.encode(), 1))
        else:
            others = [renamed(texts[other % len(texts)], other) for other in (left.popleft() for _ in range(min(3, len(left))))]
            path.write_text("\n".join(("step 1 done", text, *others)))


def timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Run a command in this process and return its seconds and processor seconds."""
    begin, processor = time.perf_counter(), time.process_time()
    with redirect_stdout(StringIO()):
        if run(list(arguments)):
            raise SystemExit(f"{' '.join(arguments)} failed")
    return time.perf_counter() - begin, time.process_time() - processor


class Collected(NamedTuple):
    """Seconds, processor seconds, peaks of parent and child in bytes, and the closing table of a collection."""

    seconds: float
    cpu: float
    parent: int
    child: int
    counts: dict[str, str]


def collect(inputs: Sequence[str], store: Path, jobs: int, *options: str) -> Collected:
    """Collect in a process of its own."""
    command = [sys.executable, "-c", _COLLECT, "collect", *inputs, "--store", str(store), "-j", str(jobs), *options]
    done = subprocess.run([*command, "-q", "--format", "csv"], cwd=ROOT, capture_output=True, text=True, check=True)
    status, seconds, cpu, own, child = json.loads(done.stderr.splitlines()[-1])
    if status not in (0, UNREADABLE):
        raise SystemExit(done.stderr)
    names, values = (line.split(",") for line in done.stdout.splitlines())
    return Collected(seconds, cpu, own * PEAK_UNIT, child * PEAK_UNIT, dict(zip(names, values, strict=True)))


def cost_apart(folder: Path, sample: int) -> float:
    """Return the processor seconds of `summary` and `fingerprint` on the first plain files, run apart in this process."""
    paths = [str(path) for path in sorted(folder.rglob("*.txt"))[:sample]]
    timed(["summary", *paths[:1], "--format", "json"])
    timed(["fingerprint", *paths[:1], "--format", "json"])
    return timed(["summary", *paths, "--format", "json"])[1] + timed(["fingerprint", *paths, "--format", "json"])[1]


def print_collection(inputs: Sequence[str], store: Path, jobs: int) -> None:
    """Print what a collection and its repetition cost."""
    options = ("--tables", "collectives", "--label-from", f"{inputs[0]}/{{job}}/*")
    first = collect(inputs, store, jobs, *options)
    modules = int(first.counts["modules"])
    text, size = (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) for folder in (Path(inputs[0]), store)
    )
    print(f"{modules:,} modules, {text / 1e6:.0f} MB, -j {jobs}: {first.seconds:.0f} s, {first.cpu:.0f} s of processor time")
    print(f"{modules / first.seconds:.1f} modules a second, {1000 * first.cpu / modules:.1f} ms of processor time each")
    print(f"memory: parent {first.parent / 2**20:.0f} MiB, child {first.child / 2**20:.0f} MiB; store {size / 2**20:.1f} MiB")
    again = collect(inputs, store, jobs, *options)
    counts = f"{again.counts['read']} read, {again.counts['skipped']} skipped"
    print(f"again: {counts}, {again.seconds:.1f} s, {again.cpu:.1f} s of processor time", flush=True)


def print_cost(folder: Path, sample: int) -> None:
    """Print the processor time of `collect` on some plain files, and that of its passes apart."""
    copies = folder.with_name("sample")
    copies.mkdir()
    plain = [path for path in sorted(folder.rglob("*.txt")) if not path.read_bytes().startswith(b"step")][:sample]
    for number, path in enumerate(plain):
        shutil.copy(path, copies / f"{number}_{path.name}")
    apart = cost_apart(copies, sample)
    work, start = (collect([str(copies)], folder.with_name("sampled"), 1).cpu for _ in range(2))
    ratio = f"{(work - start) / apart:.2f} times"
    print(f"{len(plain)} modules: collect {work:.1f} s of processor time, {start:.1f} s if nothing is to read;", end=" ")
    print(f"summary and fingerprint apart {apart:.1f} s: {ratio}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[DATA / folder for folder in ("cpu", "gpu", "tpu")])
    parser.add_argument("--modules", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name) / "dumps", Path(name) / "store"
        inputs = write_fleet(folder, small_dumps(options.paths), options.modules)
        print_collection(inputs, store, options.jobs)
        for title, sql in QUERIES.items():
            settings = ["--set", "label=job"] if sql == "findings-by-rule-and-label" else []
            taken, _ = timed(["query", str(store), sql, *settings])
            print(f"query, {title}: {taken:.2f} s", flush=True)
        print_cost(folder, options.sample)


if __name__ == "__main__":
    main()
