"""`ranks` on many ranks: its time beside that of hashing all files and reading the distinct texts, and its memory.

`python -m benchmarks.ranks [DUMP ...] [--ranks N] [--rounds N]`. Each dump is a module of each rank; two ranks deviate in one.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.cli.main import run
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.rank_reports import WANTS
from hlo_inspect.inspection.source_reports import without_collection

DATA = Path(__file__).parents[1] / "tests" / "data"
DUMPS = [
    DATA / "cpu" / f"{name}.after.txt" for name in ("adamw_step", "scan_fsdp", "collectives", "gathered_matmul", "control_flow")
]
NAME = re.compile(r"^HloModule [\w.\-]+", re.MULTILINE)
OPTIONS = 'xla_cpu_enable_fast_min_max: false\nxla_dump_to: "/dumps/{rank}"\n'


def write_job(folder: Path, dumps: Sequence[Path], ranks: int) -> None:
    """Write the dump of each rank. The first module deviates on ranks 1 and N - 1."""
    texts = ["".join(piece.decode() for piece in open_source(dump).raw_pieces()) for dump in dumps]
    for rank in range(ranks):
        directory = folder / str(rank)
        directory.mkdir()
        for number, text in enumerate(texts):
            own = NAME.sub(f"HloModule jit_module_{number}", text, count=1)
            if not number and rank in (1, ranks - 1):
                own = own.replace(" add(", " subtract(", rank)
            name = f"module_{number:04d}.jit_module_{number}"
            (directory / f"{name}.cpu_after_optimizations.txt").write_text(own)
            (directory / f"{name}.debug_options").write_text(OPTIONS.format(rank=rank))


def hash_and_read(folder: Path) -> None:
    """Hash all files, and read each distinct text with the hash of its program and schedule."""
    distinct: dict[bytes, Path] = {}
    for path in sorted(folder.glob("*/*")):
        digest = sha256(path.read_bytes()).digest()
        if path.suffix == ".txt":
            distinct.setdefault(digest, path)
    for path in distinct.values():
        with without_collection():
            for module in read_input(open_source(path), WANTS):
                canonical = Context(module).canonical
                _ = canonical.program, canonical.schedule


def seconds(work: Callable[[], object], rounds: int) -> float:
    """Return the least processor time of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", nargs="*", type=Path, default=DUMPS * 2)
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, redirect_stdout(StringIO()) as output:
        folder = Path(name)
        write_job(folder, options.dumps, options.ranks)
        run(["ranks", name, "--format", "json"])  # imports, and files in the cache
        own = seconds(lambda: run(["ranks", name, "--format", "json"]), options.rounds)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        least = seconds(lambda: hash_and_read(folder), options.rounds)
    if '"ranks.deviating": 2' not in output.getvalue():
        raise SystemExit("not two ranks deviate")
    job = f"{options.ranks:,} ranks x {len(options.dumps)} modules"
    print(f"{job}: {own:.2f} s, {own / least:.2f} times hash and read ({least:.2f} s)")
    print(f"memory of the process: {memory:.0f} MiB")


if __name__ == "__main__":
    main()
