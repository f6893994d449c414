"""Speed on real programs: commands with default options and whole pages, beside XLA's parser and its cost analysis.

    python -m benchmarks.real [DUMP_OR_DIRECTORY ...] [--rounds N] [--no-history]

prints the speed of each command on each dump, then the geometric mean and the worst case, and the time of each stage. Without
an argument the dumps are written by `benchmarks.training_step`. A speed is the time of XLA's parser on the same text divided by
the command's time. All run in turn in one process on one core; a time is the least processor time of all rounds.

Whole processes give the start of `collectives` on the smallest program with collectives and the peak memory of `summary` on the
largest one. One process gives the time of `summary` for each of many generated modules of 37 KB.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from math import exp, log
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import PROFILE, REAL, REAL_MODULE, REAL_PEAK, REAL_START, Figure
from benchmarks.history import append
from benchmarks.measure import least_of_commands, processor_seconds, round_robin, run_command, stay_on_one_core
from benchmarks.run import print_table, rows_of, unpacked, xla_parser
from benchmarks.training_step import training_step
from hlo_inspect.analysis.context import Context, parse_options
from hlo_inspect.cli.main import run
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.inspection.module_reports import ModuleReports
from hlo_inspect.inspection.source_reports import without_collection
from hlo_inspect.request import Request

PARSE, PARSE_AND_COST = "parse", "parse and cost"
"""XLA's parser alone, and followed by its cost analysis."""

MANY_COLLECTIVES = 40
"""Collectives above which a program counts for the row `collectives`."""

GENERATED_LAYERS = (20, 100)
MANY_MODULES, MODULE_LAYERS = 50, 13
"""Modules of the text of many, and layers of each: 37 KB."""
STAGED = Request("time", profile=PROFILE)
"""The command whose stages are measured."""


class Program(NamedTuple):
    """Dump as a plain file. `has_collectives` means more than `MANY_COLLECTIVES`."""

    name: str
    path: Path
    has_collectives: bool
    is_scheduled: bool

    def counts_for(self, figure: Figure) -> bool:
        """Return True if the program belongs to the programs of a figure."""
        if figure is REAL["collectives"]:
            return self.has_collectives
        return self.is_scheduled or figure is not REAL["memory"]


def read_program(path: Path) -> Program:
    """Return a dump with what decides which figures it counts for. Raise ValueError unless it holds one module."""
    (module,) = _modules(path)
    count = sum(module.opcode_counts[opcode] for opcode in STARTING_COLLECTIVES)
    return Program(path.name.partition(".")[0], path, count > MANY_COLLECTIVES, module.header.is_scheduled)


def _modules(path: Path) -> list[Module]:
    with without_collection():
        return list(read_modules(open_source(path), ModuleReports(STAGED).wants))


def run_page(command: str, path: Path) -> None:
    """Run a command with its default options, the page included. Raise RuntimeError if it fails."""
    name, *options = command.split()
    status = run([name, str(path), *options, "-q", "-o", os.devnull])
    if status:
        raise RuntimeError(f"hlo-inspect {command} ended with status {status}")


def cost_analysis() -> Callable[[object], object]:
    """Return XLA's cost analysis of a parsed module."""
    library = import_module("jaxlib._jax")
    return partial(library.hlo_module_cost_analysis, library.get_tfrt_cpu_client(asynchronous=False))


def seconds_of(
    program: Program, parse: Callable[[str], object], analyse: Callable[[object], object], rounds: int
) -> dict[str, float]:
    """Return the processor time of XLA and of each command."""
    text = program.path.read_text(encoding="utf-8", errors="replace")
    functions: dict[str, Callable[[], object]] = {
        PARSE: partial(parse, text),
        PARSE_AND_COST: lambda: analyse(parse(text)),
    }
    for command, figure in REAL.items():
        if program.counts_for(figure):
            functions[command] = partial(run_page, command, program.path)
    return round_robin(functions, rounds)


STAGES: Mapping[str, Callable[[Context], object]] = {
    "optimizer": lambda context: context.optimizer,
    "phases by the graph": lambda context: context.graph_phases,
    "cost": lambda context: context.cost.opcodes,
    "labels": lambda context: context.cost.tally("phase"),
    "kernels": lambda context: context.own_kernels,
    "times": lambda context: context.on_machine.step_times,
}
"""The stages of `time` in their order, after reading. Each uses what the former ones computed."""


def stage_seconds(path: Path, rounds: int) -> dict[str, float]:
    """Return the least processor time of each stage."""
    least: dict[str, float] = {}
    for _ in range(rounds):
        modules: list[Module] = []
        taken = {"reading": processor_seconds(lambda: modules.extend(_modules(path)))}  # noqa: B023 - called at once
        context = Context(modules[0], STAGED, parse_options(STAGED))
        with without_collection():
            for name, stage in STAGES.items():
                taken[name] = processor_seconds(partial(stage, context))
        least = {name: min(seconds, least.get(name, seconds)) for name, seconds in taken.items()}
    return least


def whole_commands(programs: Iterable[Program], rounds: int) -> dict[Figure, float]:
    """Return the figures of whole processes: start with collectives, and peak memory."""
    by_size = sorted(programs, key=lambda program: program.path.stat().st_size)
    figures: dict[Figure, float] = {}
    started = next((program.path for program in by_size if program.has_collectives), None)
    if started is not None:
        commands = {
            "imports": ("-c", "import click, rich.table, rich.console"),
            "collectives": ("-m", "hlo_inspect", "collectives", str(started)),
        }
        least = least_of_commands(commands, max(rounds, 12))
        figures[REAL_START] = least["collectives"] / least["imports"]
    largest = by_size[-1].path
    figures[REAL_PEAK] = run_command(("summary", str(largest))).peak_bytes / largest.stat().st_size
    return figures


def many_modules(folder: Path) -> dict[Figure, float]:
    """Return the milliseconds of `summary` for one of many modules."""
    path = folder / "many_steps.txt"
    path.write_text("\n".join([training_step(MODULE_LAYERS)] * MANY_MODULES), encoding="utf-8", newline="\n")
    seconds = round_robin({REAL_MODULE: partial(run_page, "summary", path)}, 1)
    return {REAL_MODULE: 1e3 * seconds[REAL_MODULE] / MANY_MODULES}


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [log(value) for value in values]
    return exp(sum(logarithms) / len(logarithms))


def speed_rows(seconds: Mapping[Program, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each program: XLA's milliseconds, and the speed of each command in times of XLA's parser."""
    yield ("program", f"{PARSE}, ms", f"{PARSE_AND_COST}, ms", *REAL)
    for program, taken in seconds.items():
        speeds = (f"{taken[PARSE] / taken[command]:.2f}" if command in taken else "" for command in REAL)
        yield (program.name, f"{1e3 * taken[PARSE]:.0f}", f"{1e3 * taken[PARSE_AND_COST]:.0f}", *speeds)


def stage_rows(stages: Mapping[Program, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each program with the milliseconds of its stages."""
    yield ("stages, ms", "reading", *STAGES)
    for program, taken in stages.items():
        yield (program.name, *(f"{1e3 * value:.0f}" for value in taken.values()))


def summary_rows(seconds: Mapping[Program, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each command: geometric mean and worst case, in times of XLA's parser and of its parser and analysis."""
    compared = (PARSE, PARSE_AND_COST)
    yield ("command", *(f"{kind}, {name}" for name in compared for kind in ("mean", "worst")), "owed", "aim")
    for command, figure in REAL.items():
        columns = [[taken[name] / taken[command] for taken in seconds.values() if command in taken] for name in compared]
        if columns[0]:
            values = [value(speeds) for speeds in columns for value in (geometric_mean, min)]
            yield (command, *(f"{value:.2f}" for value in values), f"{figure.owed:g}", f"{figure.aim:g}")


def figures_of(
    seconds: Mapping[Program, Mapping[str, float]], joined: Callable[[Sequence[float]], float]
) -> dict[Figure, float]:
    """Return each figure over the programs that count for it."""
    speeds = {
        figure: [taken[PARSE] / taken[command] for taken in seconds.values() if command in taken]
        for command, figure in REAL.items()
    }
    return {figure: joined(values) for figure, values in speeds.items() if values}


def dumps_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among the paths, and the dumps in the directories among them."""
    for path in paths:
        yield from sorted(path.glob("*.txt*")) if path.is_dir() else [path]


def write_steps(folder: Path) -> Iterator[Path]:
    """Write generated steps and yield their paths."""
    for layers in GENERATED_LAYERS:
        path = folder / f"step_of_{layers}_layers.txt"
        path.write_text(training_step(layers), encoding="utf-8", newline="\n")
        yield path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description="Measure commands on real programs.")
    parser.add_argument("dumps", nargs="*", type=Path, metavar="DUMP_OR_DIRECTORY", help="default: generated training steps")
    parser.add_argument("--rounds", type=int, default=5, help="of which the least is taken (default 5)")
    parser.add_argument("--no-history", action="store_true", help="only print")
    arguments = parser.parse_args()
    parse = xla_parser()
    if parse is None:
        raise SystemExit("jaxlib is not installed: there is nothing to measure against (pip install '.[xla]')")
    stay_on_one_core()
    analyse = cost_analysis()
    seconds, stages = {}, {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as unpacking:
        folder = Path(name)
        for dump in list(dumps_in(arguments.dumps) if arguments.dumps else write_steps(folder)):
            program = read_program(unpacking.enter_context(unpacked(dump.resolve())))
            seconds[program] = seconds_of(program, parse, analyse, arguments.rounds)
            stages[program] = stage_seconds(program.path, arguments.rounds)
        whole = whole_commands(seconds, arguments.rounds) | many_modules(folder)
    print_table(speed_rows(seconds))
    print_table(stage_rows(stages))
    print_table(summary_rows(seconds))
    print_table(rows_of(whole))
    if not arguments.no_history:
        name = "real programs" if arguments.dumps else "generated steps"
        append({name: figures_of(seconds, geometric_mean) | whole, f"{name}, worst": figures_of(seconds, min)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
