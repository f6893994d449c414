"""`collect` and `query` on many modules: modules a second, memory, size of the store, times of queries, cost of a module.

`python -m benchmarks.fleet [DUMP ...] [--modules N] [--jobs N] [--sample N]`. Modules are copies of the dumps with other names
and constants. Of 16 files, 8 are plain, 4 compressed by gzip, and 4 are logs of four modules.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from benchmarks.measure import PEAK_UNIT, ROOT
from hlo_inspect.cli.main import run

DATA = ROOT / "tests" / "data"
MOST_BYTES = 40_000
"""The largest dump that is copied unless dumps are named."""
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


def small_dumps() -> list[Path]:
    """Return the dumps of the tests that are copied by default."""
    paths = [path for folder in ("cpu", "gpu", "tpu") for path in sorted((DATA / folder).glob("*.after.txt"))]
    return [path for path in paths if path.stat().st_size <= MOST_BYTES]


def renamed(text: str, number: int) -> str:
    """Return a dump with the name of the module and its constants changed."""
    other = _NAME.sub(rf"\g<1>jit_f{number % 997}", text, count=1)
    return _CONSTANT.sub(lambda match: f"constant({float(match[1]) + number / 1024})", other)


def write_fleet(folder: Path, dumps: Sequence[Path], modules: int) -> None:
    """Write the modules, 1,000 in a directory."""
    texts = [dump.read_text(encoding="utf-8") for dump in dumps]
    number = 0
    while number < modules:
        directory = folder / f"job{number // 1000:03d}"
        directory.mkdir(parents=True, exist_ok=True)
        text = renamed(texts[number % len(texts)], number)
        name = f"module_{number % 1000:04d}.jit_f{number % 997}.cpu_after_optimizations.txt"
        form = number % 16
        if form < 8:
            (directory / name).write_text(text)
            number += 1
        elif form < 12:
            (directory / f"{name}.gz").write_bytes(gzip.compress(text.encode(), 1))
            number += 1
        else:
            count = min(4, modules - number)
            several = (renamed(texts[index % len(texts)], index) for index in range(number, number + count))
            (directory / name).write_text("step 1 done\n" + "\n".join(several))
            number += count


def timed(arguments: Sequence[str]) -> tuple[float, float]:
    """Run a command in this process and return its seconds and processor seconds."""
    begin, processor = time.perf_counter(), time.process_time()
    with redirect_stdout(StringIO()):
        if run(list(arguments)):
            raise SystemExit(f"{' '.join(arguments)} failed")
    return time.perf_counter() - begin, time.process_time() - processor


def collect(folder: Path, store: Path, jobs: int) -> tuple[float, float, int, int]:
    """Collect in a process of its own; return seconds, processor seconds, and peaks of parent and child in bytes."""
    command = [sys.executable, "-c", _COLLECT, "collect", str(folder), "--store", str(store), "-j", str(jobs)]
    options = ["--tables", "collectives", "--label-from", f"{folder}/{{job}}/*", "-q"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=True)
    status, seconds, cpu, own, child = json.loads(done.stderr.splitlines()[-1])
    if status:
        raise SystemExit(done.stderr)
    return seconds, cpu, own * PEAK_UNIT, child * PEAK_UNIT


def cost_apart(folder: Path, sample: int) -> float:
    """Return the processor seconds of `summary` and `fingerprint` on the first plain files, run apart in this process."""
    paths = [str(path) for path in sorted(folder.rglob("*.txt"))[:sample]]
    timed(["summary", *paths[:1], "--format", "json"])
    timed(["fingerprint", *paths[:1], "--format", "json"])
    return timed(["summary", *paths, "--format", "json"])[1] + timed(["fingerprint", *paths, "--format", "json"])[1]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="*", type=Path)
    parser.add_argument("--modules", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, store = Path(name) / "dumps", Path(name) / "store"
        write_fleet(folder, options.dumps or small_dumps(), options.modules)
        seconds, cpu, parent, child = collect(folder, store, options.jobs)
        size = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
        text = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        modules = f"{options.modules:,} modules, {text / 1e6:.0f} MB, -j {options.jobs}"
        print(f"{modules}: {seconds:.0f} s, {cpu:.0f} s of processor time", flush=True)
        each = f"{1000 * cpu / options.modules:.1f} ms of processor time each"
        print(f"{options.modules / seconds:.1f} modules a second; {each}", flush=True)
        print(f"memory: parent {parent / 2**20:.0f} MiB, child {child / 2**20:.0f} MiB; store {size / 2**20:.1f} MiB")
        again, cpu_again, *_ = collect(folder, store, options.jobs)
        print(f"again, nothing to read: {again:.1f} s, {cpu_again:.1f} s of processor time")
        for title, sql in QUERIES.items():
            settings = ["--set", "label=job"] if sql == "findings-by-rule-and-label" else []
            taken, _ = timed(["query", str(store), sql, *settings])
            print(f"query, {title}: {taken:.2f} s")
        (Path(name) / "sample").mkdir()
        plain = [path for path in sorted(folder.rglob("*.txt")) if not path.read_bytes().startswith(b"step")][: options.sample]
        for number, path in enumerate(plain):
            path.rename(Path(name) / "sample" / f"{number}_{path.name}")
        apart = cost_apart(Path(name) / "sample", options.sample)
        _, together, *_ = collect(Path(name) / "sample", Path(name) / "sampled", 1)
        _, start, *_ = collect(Path(name) / "sample", Path(name) / "sampled", 1)
        work = f"collect {together:.1f} s of processor time, {start:.1f} s of it start and imports"
        print(f"{len(plain)} modules: {work}; summary and fingerprint apart {apart:.1f} s")


if __name__ == "__main__":
    main()
