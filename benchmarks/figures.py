"""The measured figures: meaning, required value and target of each."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import hlo_inspect
from benchmarks.measure import ROOT, least_of_commands, processor_seconds, round_robin
from benchmarks.planted import changed_text
from hlo_inspect.cli.main import run
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.inspection.source_reports import without_collection
from hlo_inspect.report.formats import RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import needed_tables, shown_tables
from hlo_inspect.request import PhasesFrom, Request

EVERYTHING = ("summary", "params", "fusions", "collectives", "cost", "optimizer")
"""Passes of the row `everything`, the same since the first version. Later passes have rows of their own."""

PROFILE = "h100-sxm"
PLANTED = 500
TINY = ROOT / "tests/data/handmade/nested_operands.txt"
TINY_MODULES = 10_000


class Figure(NamedTuple):
    """Row of the table. If `larger_is_better`, it is a speed relative to another; else a smaller value is better."""

    name: str
    unit: str
    owed: float | None
    aim: float | None
    larger_is_better: bool = True

    def holds(self, value: float) -> bool | None:
        """Return True if the value is as good as `owed`; None if nothing is owed."""
        if self.owed is None:
            return None
        return value >= self.owed if self.larger_is_better else value <= self.owed


def _smaller(name: str, unit: str, owed: float | None, aim: float | None) -> Figure:
    return Figure(name, unit, owed, aim, larger_is_better=False)


COLLECTIVES = Figure("collectives", "x XLA", 7, 15)
QUICK = Figure("summary --quick", "x XLA", 3, 4)
ALL = Figure("everything", "x XLA", 1, 1.5)
GRAPH_PHASES = Figure("phases by graph", "x XLA", 0.7, 1.5)
MEMORY = Figure("memory", "x XLA", 0.7, 1.5)
TIME = Figure("time", "x XLA", 0.7, 1.5)
DIFF = Figure("diff, 500 changes", "x XLA", 0.3, 1)
PAGE = _smaller("report", "x summary", None, None)
LAYERS = _smaller("twice the layers", "x time", 2, None)
GRAPH_BYTES = _smaller("memory of the graph", "B/instruction", 150, 100)
TINY_MODULE = _smaller("tiny module of 10,000", "x XLA's time", None, None)
START = _smaller("start of collectives", "x imports", 1.6, 1.3)
HELP = _smaller("start of --help", "x import click", 1.3, 1.15)
TWO_PROCESSES = Figure("-j 2 on one module", "x -j 1", 1.5, 1.7)
LARGE_PEAK = _smaller("peak of summary of 1 GB", "GB", 1.5, 1)

REAL = {
    "summary": Figure("summary of real programs", "x XLA", 0.45, 0.8),
    "cost": Figure("cost of real programs", "x XLA", 0.55, 1.0),
    f"time --profile {PROFILE}": Figure("time of real programs", "x XLA", 0.35, 0.6),
    "collectives": Figure("collectives of real programs", "x XLA", 0.8, 1.4),
    "summary --quick": Figure("summary --quick of real programs", "x XLA", 2.0, 3),
    "memory": Figure("memory of real programs", "x XLA", 0.6, 1),
}
"""The figures of `benchmarks.real` by command: geometric means, with whole pages and default options."""
REAL_START = _smaller("start of collectives without names", "x imports", 2, 1.6)
REAL_PEAK = _smaller("peak of summary of a real program", "x text", 15, 10)
REAL_MODULE = _smaller("summary of one of many modules", "ms", 15, 8)

FIGURES = (
    *(COLLECTIVES, QUICK, ALL, GRAPH_PHASES, MEMORY, TIME, DIFF, PAGE, LAYERS, GRAPH_BYTES),
    *(TINY_MODULE, START, HELP, TWO_PROCESSES, LARGE_PEAK),
    *REAL.values(),
    *(REAL_START, REAL_PEAK, REAL_MODULE),
)


def _page(
    *passes: str, phases: PhasesFrom = "names", profile: str | None = None, quick: bool = False
) -> Callable[[Path], Report]:
    """Read a dump for its page: all facts, findings and notes, and the rows and sums of tables that the page shows."""
    page = RenderOptions()

    def read(path: Path) -> Report:
        needed = partial(needed_tables, options=page)
        with Inspection(Request(passes, phases=phases, profile=profile, quick=quick), ReportNeeds(needed)) as inspection:
            (report,) = inspection.reports(path)
        return replace(report, tables=shown_tables(report, page, for_people=True))

    return read


READINGS: dict[Figure, Callable[[Path], Report]] = {
    COLLECTIVES: _page("collectives"),
    QUICK: _page("summary", quick=True),
    ALL: _page(*EVERYTHING),
    GRAPH_PHASES: _page("collectives", phases="graph"),
    MEMORY: _page("memory", quick=True),
    TIME: _page("time", profile=PROFILE),
}
"""Function timed for each figure, against XLA's parser on the same text."""


def speeds(path: Path, parse: Callable[[str], object], rounds: int) -> dict[Figure, float]:
    """Return the speed of each reading of a dump relative to XLA's parser."""
    text = path.read_text(encoding="utf-8", errors="replace")
    functions: dict[Figure | None, Callable[[], object]] = {None: partial(parse, text)}
    for figure, reading in READINGS.items():
        functions[figure] = partial(reading, path)
    seconds = round_robin(functions, rounds)
    return {figure: seconds[None] / seconds[figure] for figure in READINGS}


def speed_of_diff(path: Path, parse: Callable[[str], object], rounds: int, folder: Path) -> dict[Figure, float]:
    """Return the speed of a diff of the dump and a version with planted changes, relative to XLA's parser on both."""
    old = path.read_text(encoding="utf-8", errors="replace")
    new = changed_text(old, PLANTED)
    other = folder / f"changed.{path.name}"
    other.write_text(new, encoding="utf-8", newline="\n")
    both: dict[Figure | None, Callable[[], object]] = {
        None: lambda: (parse(old), parse(new)),
        DIFF: partial(_command, "diff", path, other),
    }
    seconds = round_robin(both, rounds)
    return {DIFF: seconds[None] / seconds[DIFF]}


def time_of_page(path: Path, rounds: int) -> dict[Figure, float]:
    """Return the time of the page relative to that of the summary."""
    seconds = round_robin({None: partial(_command, "summary", path), PAGE: partial(_command, "report", path)}, rounds)
    return {PAGE: seconds[PAGE] / seconds[None]}


def _command(name: str, *inputs: Path) -> None:
    status = run([name, *map(str, inputs), "-q", "-o", os.devnull])
    if status:
        raise RuntimeError(f"hlo-inspect {name} ended with status {status}")


def growth_by_layers(texts: Mapping[int, Path], rounds: int) -> dict[Figure, float]:
    """Return the factor of the time of everything if the layers double; `texts` are paths by number of layers."""
    seconds = round_robin({number: partial(READINGS[ALL], path) for number, path in texts.items()}, rounds)
    least, most = min(texts), max(texts)
    doublings = (most // least).bit_length() - 1
    return {LAYERS: (seconds[most] / seconds[least]) ** (1 / doublings)}


def graph_bytes(path: Path) -> dict[Figure, float]:
    """Return the bytes of Python objects per instruction of a module that is read with its graph, without the text."""
    gc.collect()
    tracemalloc.start()
    try:
        with without_collection():
            modules = list(read_modules(open_source(path), Wants(graph=True)))
        gc.collect()
        traced = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    instructions = sum(module.opcode_counts.total() for module in modules)
    return {GRAPH_BYTES: (traced - path.stat().st_size) / instructions}


def tiny_modules(parse: Callable[[str], object]) -> dict[Figure, float]:
    """Return the time of one of many tiny modules in a summary, relative to XLA's parser."""
    text = TINY.read_text(encoding="utf-8") + "\n"
    many = (text * TINY_MODULES).encode()
    ours = processor_seconds(lambda: [None for _ in hlo_inspect.inspect_all(many, "summary", quick=True)])
    theirs = processor_seconds(lambda: [parse(text) for _ in range(TINY_MODULES)])
    return {TINY_MODULE: ours / theirs}


def start_times(dump: Path, rounds: int) -> dict[Figure, float]:
    """Return the processor time of whole commands, divided by the time to import click, or click and rich."""
    commands = {
        "click": ("-c", "import click"),
        "rich": ("-c", "import click, rich.table, rich.console"),
        "help": ("-m", "hlo_inspect", "--help"),
        "collectives": ("-m", "hlo_inspect", "collectives", str(dump)),
    }
    least = least_of_commands(commands, rounds)
    return {START: least["collectives"] / least["rich"], HELP: least["help"] / least["click"]}
