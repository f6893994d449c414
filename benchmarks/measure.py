"""Times and memory, measured so that a busy machine changes them as little as possible."""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

ROOT = Path(__file__).resolve().parent.parent

# A process's peak includes the memory of its parent at the fork, so a bare interpreter starts the command.
_LAUNCHER = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - begin
print(json.dumps([status, seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]))
"""
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of one unit of `ru_maxrss`."""


class Command(NamedTuple):
    """Cost of one run of a whole command."""

    seconds: float
    peak_bytes: int


def stay_on_one_core() -> None:
    """Keep this process and its children on one core, if the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def processor_seconds(function: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    gc.collect()
    begin = time.process_time()
    function()
    return time.process_time() - begin


K = TypeVar("K")


def round_robin(functions: Mapping[K, Callable[[], object]], rounds: int) -> dict[K, float]:
    """Return the least processor time of each function, after one call that is not counted.

    The functions take turns, so that a slow spell of the machine affects all of them. Other work only adds to a time.
    """
    seconds: dict[K, list[float]] = {name: [] for name in functions}
    for number in range(rounds + 1):
        for name, function in functions.items():
            taken = processor_seconds(function)
            if number:
                seconds[name].append(taken)
    return {name: min(times) for name, times in seconds.items()}


def least_of_commands(
    commands: Mapping[K, Sequence[str]], rounds: int, trees: Mapping[K, Path] | None = None
) -> dict[K, float]:
    """Return the least seconds of each call of Python with these arguments, in turn, after an uncounted call.

    A call runs in the tree that `trees` names for it, or in this one.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    least = dict.fromkeys(commands, float("inf"))
    for number in range(rounds + 1):
        for name, arguments in commands.items():
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            command = [sys.executable, *arguments]
            tree = trees[name] if trees else ROOT
            subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, check=True)
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
            least[name] = min(least[name], taken) if number else least[name]
    return least


def run_command(arguments: Sequence[str]) -> Command:
    """Run `hlo-inspect` with these arguments in a fresh process. Raise RuntimeError if it fails."""
    command = [sys.executable, "-c", _LAUNCHER, sys.executable, "-m", "hlo_inspect", *arguments]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout
    status, seconds, peak = json.loads(answer)
    if status:
        raise RuntimeError(f"hlo-inspect {' '.join(arguments)} ended with status {status}")
    return Command(seconds, peak * PEAK_UNIT)
