"""Times and memory, measured so that a busy machine misleads as little as can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

# A process's peak counts what it was forked from, so the command is started by an interpreter that holds nothing.
_LAUNCHER = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - begin
print(json.dumps([status, seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of one unit of ru_maxrss


class Command(NamedTuple):
    """How one run of a whole command ended."""

    seconds: float
    peak_bytes: int


def stay_on_one_core() -> None:
    """Keeps this process and its children on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def round_robin(functions: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median seconds of each function. They take turns, so that a slow spell of the machine meets all of them; the
    first turn warms up and does not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 1):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - begin)
    return {name: median(times[1:]) for name, times in seconds.items()}


def run_command(arguments: Sequence[str]) -> Command:
    """Runs `hlo-inspect` with these arguments in a fresh process; `RuntimeError` if it fails."""
    command = [sys.executable, "-c", _LAUNCHER, sys.executable, "-m", "hlo_inspect", *arguments]
    told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    status, seconds, peak = json.loads(told)
    if status:
        raise RuntimeError(f"hlo-inspect {' '.join(arguments)} ended with status {status}")
    return Command(seconds, peak * _PEAK_UNIT)
