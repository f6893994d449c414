"""Gain of each optimization: the time of a command with it and without it, on the same dump.

    python -m benchmarks.switches DUMP... [--only NAME] [--rounds N]      measures each
    python -m benchmarks.switches --without NAME -- summary DUMP          runs a command without one

A switch replaces functions of the package by functions without the optimization. The package does not know about switches, and
the answers are the same. Seconds are processor time, the least of several runs that take turns. An optimization of the start of
a command is measured in whole processes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import count, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.measure import least_of_commands, round_robin
from hlo_inspect.analysis.phases.phases import Phases
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.tokens import Row, ScanError
from hlo_inspect.hlo.values.attribute_forms import AttributeForm

Function = Callable[..., Any]
Replacement = Callable[[Any], Any]
"""Function from a function or other value of the package to its replacement."""

_NUMBERS = count()


class Switch(NamedTuple):
    """Optimization: its description and the commands that measure it.

    `replaced` has replacements by `module:name` or `module:class.name` in `hlo_inspect`.
    """

    what: str
    commands: tuple[str, ...]
    replaced: Mapping[str, Replacement]


def _constant(value: object) -> Replacement:
    """Replace a function by one that returns this value for all arguments."""
    return lambda _: lambda *_arguments, **_options: value


def _make_at_once(table_of: Function) -> Function:
    return lambda *arguments, **options: table_of(*arguments, **options).made()


def _own_classes(_: Function) -> Function:
    """Make a method that returns a class of its own for each row of a view."""
    kept: dict[View, list[int]] = {}

    def of_rows(_: object, view: View) -> list[int]:
        if view not in kept:
            kept.clear()
            kept[view] = [next(_NUMBERS) for _ in view.rows]
        return kept[view]

    return of_rows


def _clear_first(*names: str) -> Replacement:
    """Make a method that empties these dicts of its object first."""

    def forgetting(method: Function) -> Function:
        def asked(self: object, argument: object) -> object:
            for name in names:
                getattr(self, name).clear()
            return method(self, argument)

        return asked

    return forgetting


def _keep_unpacked(_: Function) -> Function:
    """Make a packing of rows that returns them unpacked."""

    def kept(rows: Iterable[tuple[Row, int]], first: int, _forms: object) -> object:
        lines = [(row, line - first) for row, line in rows]
        return SimpleNamespace(rows=lambda first: [(row, first + line) for row, line in lines])

    return kept


def _by_instruction(_: Function) -> Function:
    """Make a method that returns the phase of the instruction of each row."""

    def phase(self: Phases, view: View, row: int) -> object:
        try:
            return self.for_instruction(view.instruction(row))
        except ScanError:
            return None

    return lambda self, view, rows: [phase(self, view, row) for row in rows]


_COST, _ALL = ("cost",), ("summary", "cost", "collectives", "optimizer", "time --profile h100-sxm")
_SKIMMED, _READ = ("collectives --phases names",), ("summary --quick",)

AT_START = "lazy patterns"

SWITCHES: dict[str, Switch] = {
    AT_START: Switch(
        "expressions are compiled at their first use",
        ("collectives", "summary", "memory"),
        {"lazy_pattern:lazy_pattern": lambda _: re.compile},
    ),
    "skipped computations": Switch(
        "computations that hold nothing wanted are passed over by one expression",
        _SKIMMED,
        {"hlo.read.selective:Selection.skip": lambda _: lambda _self, _text, start, line: (start, line)},
    ),
    "picked lines": Switch(
        "of a computation only the lines are read on which something wanted is",
        _SKIMMED,
        {"hlo.read.selective:Selection.pick": _constant(None)},
    ),
    "lines at once": Switch(
        "lines of a computation as printers write them are read by one expression, the others by the grammar",
        _READ,
        {"hlo.read.module_reader:ModuleReader._rows": _constant(value=False)},
    ),
    "native reader": Switch(
        "texts that are wanted whole are read by a library in C; without it as the row above",
        (*_READ, "summary"),
        {"native.library:library": _constant(None)},
    ),
    "head table": Switch(
        "shape and opcode are parsed once for all rows that have the same",
        _READ,
        {"hlo.rows:_MAX_HEADS": lambda _: -1},
    ),
    "attribute forms": Switch(
        "attributes that differ in callees, channel and metadata alone are read once",
        (*_READ, "summary"),
        {"hlo.values.attribute_forms:FormTable._form": lambda _: lambda _self, text: AttributeForm(text)},
    ),
    "packed rows": Switch(
        "scalars that loops count with take less memory; no time is gained",
        _SKIMMED,
        {"hlo.module:packed": _keep_unpacked},
    ),
    "rows on demand": Switch(
        "a table that a page leaves out has no rows",
        ("top", "time --profile h100-sxm", "collectives"),
        {"report.table_spec:TableSpec.of": _make_at_once},
    ),
    "classes": Switch(
        "what the text of a row or a computation decides is worked out once for its class",
        (*_ALL, "diff"),
        {
            "graph.row_classes:RowClasses.of_rows": _own_classes,
            "graph.row_classes:RowClasses.of_computation": lambda _: lambda _self, _name: next(_NUMBERS),
        },
    ),
    "equal calls": Switch(
        "the values of called computations that are alike are those of the first one",
        ("collectives",),
        {"graph.value_graph:BodyTemplates.find": _constant(None), "graph.value_graph:BodyTemplates.learn": _constant(None)},
    ),
    "equal fusions": Switch(
        "the expression of fusions that are alike is a copy",
        ("optimizer", "summary"),
        {"optimizer.dataflow:EqualFusions.recipe": _constant(None)},
    ),
    "equal updates": Switch(
        "the rules see one of several equal updates of weights",
        ("optimizer", "summary"),
        {"optimizer.matching.units:Units._read": _constant(None)},
    ),
    "equal metadata": Switch(
        "what metadata says is found once for all that have the same but for the number of a layer",
        ("summary", "cost"),
        {"analysis.provenance:Provenances.get": _clear_first("_by_metadata", "_parts_by_name")},
    ),
    "phases of rows": Switch(
        "the phases of rows are found without their instructions, once for equal metadata",
        ("cost", "time --profile h100-sxm"),
        {"analysis.phases.phases:Phases.of_rows": _by_instruction},
    ),
    "bounds of a packing": Switch(
        "a second packing stops when it cannot be lower",
        ("memory",),
        {
            "analysis.memory.heap:_highest_load": _constant((-1, 0)),
            "analysis.memory.heap:_dependent_groups": lambda _: lambda order, _tick: order,
        },
    ),
    "attributes as printed": Switch(
        "metadata and fusions in the spelling of printers are read by one expression, elements of tuples by none",
        ("summary", "cost"),
        {"graph.view:_METADATA": lambda _: re.compile("(?!)"), "graph.view:printed_element": _constant(None)},
    ),
}
"""Switches by name. Each is a row of README.md, with its gain."""


@contextmanager
def switched_off(name: str) -> Iterator[None]:
    """Switch an optimization off while the context lasts."""
    undone: list[tuple[Any, str, Any]] = []
    try:
        for place, replacement in SWITCHES[name].replaced.items():
            module, _, path = place.partition(":")
            owner: Any = import_module(f"hlo_inspect.{module}")
            *classes, attribute = path.split(".")
            for class_name in classes:
                owner = getattr(owner, class_name)
            given = vars(owner)[attribute]
            undone.append((owner, attribute, given))
            if isinstance(given, classmethod):
                setattr(owner, attribute, staticmethod(replacement(getattr(owner, attribute))))
            else:
                setattr(owner, attribute, replacement(given))
        yield
    finally:
        for owner, attribute, given in undone:
            setattr(owner, attribute, given)


def seconds(name: str, command: str, dump: Path, rounds: int) -> tuple[float, float]:
    """Return the processor time of a command with an optimization and without it."""
    first, *options = command.split()
    arguments = [first, *[str(dump)] * (2 if first == "diff" else 1), *options, "-q"]
    if name == AT_START:
        called = ("-m", "benchmarks.switches", "--without")
        least = least_of_commands({switch: (*called, switch, "--", *arguments) for switch in ("", name)}, rounds)
        return least[""], least[name]

    def slow() -> None:
        with switched_off(name):
            _run([*arguments, "-o", os.devnull])

    both = round_robin({"fast": lambda: _run([*arguments, "-o", os.devnull]), "slow": slow}, rounds)
    return both["fast"], both["slow"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.switches", description="Measure the gain of each optimization.")
    parser.add_argument("arguments", nargs="+", metavar="DUMP", help="with --without a command and its arguments, behind --")
    parser.add_argument("--only", action="append", choices=SWITCHES, help="measure only this optimization (repeatable)")
    parser.add_argument("--rounds", type=int, default=3, help="runs; the least time counts (default 3)")
    parser.add_argument("--without", choices=["", *SWITCHES], help="run a command without this optimization")
    given = parser.parse_args()
    if given.without is None:
        dumps = [Path(dump).resolve() for dump in given.arguments]
        for name in given.only or SWITCHES:
            for command, dump in product(SWITCHES[name].commands, dumps):
                fast, slow = seconds(name, command, dump, given.rounds)
                print(f"{name:30}{command:28}{dump.name:40.40}{fast:8.3f}{slow:8.3f}{slow / fast - 1:+8.0%}", flush=True)
        return 0
    if not given.without:
        return _run(given.arguments)
    with switched_off(given.without):
        return _run(given.arguments)


def _run(arguments: list[str]) -> int:
    from hlo_inspect.cli.main import run  # after the switch: this imports the functions that it replaces

    status: int = run(arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
