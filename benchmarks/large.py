"""Large generated text: its peak memory, the check of its facts against the stated facts, and the speed of two processes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hlo_inspect
from benchmarks.figures import LARGE_PEAK, TWO_PROCESSES, Figure
from benchmarks.generate import expected_path, generate, read_base
from benchmarks.measure import ROOT, run_command

OUTPUT = ROOT / "benchmarks/out"
MEGABYTE = 10**6
SUMMARY_LIMIT = 200 * MEGABYTE
TWO_PROCESSES_SIZE = 112 * MEGABYTE


def peak_bound(facts: Mapping[str, Any]) -> int:
    """Return the bytes that `collectives` may take at most."""
    return 64 * MEGABYTE + 400 * int(facts["collectives.count"]) + 100 * int(facts["module.computations"])


def peak_of_collectives(path: Path, facts: Mapping[str, Any]) -> str:
    """Return the peak of `collectives`, and its limit."""
    command = run_command(["collectives", "--phases", "names", str(path)])
    bound = peak_bound(facts)
    holds = "holds" if command.peak_bytes <= bound else "above"
    return (
        f"peak RSS of collectives: {command.peak_bytes / MEGABYTE:.1f} MB, bound {bound / MEGABYTE:.1f} MB: {holds}; "
        f"{command.seconds:.2f} s"
    )


def check_facts(path: Path, *passes: str) -> bool:
    """Compare reports of a generated text with its stated facts, as far as these passes give them. Return True if all agree."""
    if not expected_path(path).exists():
        return True
    stated = json.loads(expected_path(path).read_text(encoding="utf-8"))
    report = hlo_inspect.inspect(path, passes=passes)
    facts = report.facts
    families = {spec.name.partition("<")[0] for spec in report.specs}
    due = {name: value for name, value in stated.items() if name.startswith(tuple(families))}
    wrong = [f"  {name}: {facts.get(name)}, not {value}" for name, value in due.items() if facts.get(name) != value]
    print("\n".join([f"{'WRONG' if wrong else 'right'}: {len(due)} stated facts of {', '.join(passes)}", *wrong, ""]))
    return not wrong


def measure_size(path: Path) -> tuple[dict[Figure, float], bool]:
    """Return the peak of `summary`, and True if reports of the generated text have its facts.

    The facts of `summary` are checked up to `SUMMARY_LIMIT` bytes, because that takes long.
    """
    print(f"{path.name}: {path.stat().st_size / MEGABYTE:.1f} MB")
    print(peak_of_collectives(path, json.loads(expected_path(path).read_text(encoding="utf-8"))))
    summary = run_command(["summary", "--quick", str(path)])
    print(f"peak RSS of summary --quick: {summary.peak_bytes / MEGABYTE:.1f} MB, {summary.seconds:.2f} s")
    small = path.stat().st_size <= SUMMARY_LIMIT
    right = all([check_facts(path, "collectives"), *([check_facts(path, "summary")] if small else [])])
    whole = path.stat().st_size >= 0.9e9
    return ({LARGE_PEAK: summary.peak_bytes / 1e9} if whole else {}), right


def speed_of_two_processes(base: Path, rounds: int) -> dict[Figure, float]:
    """Return the speed of `-j 2` on one module relative to `-j 1`.

    It is measured in wall-clock time, so two cores must be free.
    """
    seconds = {"1": float("inf"), "2": float("inf")}
    with temporary_text(base, TWO_PROCESSES_SIZE, "one_entry") as path:
        for _ in range(rounds):
            for jobs, least in seconds.items():
                begin = time.perf_counter()
                run_command(["summary", "-q", "-j", jobs, str(path)])
                seconds[jobs] = min(least, time.perf_counter() - begin)
    return {TWO_PROCESSES: seconds["1"] / seconds["2"]}


@contextmanager
def temporary_text(base: Path, size: int, form: str) -> Iterator[Path]:
    """Generate a text of about `size` bytes from a dump in one form, and remove it at the end."""
    path = OUTPUT / f"{base.name.split('.')[0]}.{form}.{size}.txt"
    generate(read_base(base), path, size, whole_entry=form == "one_entry")
    try:
        yield path
    finally:
        path.unlink()
        expected_path(path).unlink()
