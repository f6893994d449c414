"""The passes, in one explicit list. Each pass is one file here, imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.registry import Registry

if TYPE_CHECKING:
    from hlo_inspect.passes.base import Pass, Question, WorkloadPass
    from hlo_inspect.report.model import FactSpec
    from hlo_inspect.report.table_spec import TableSpec

WORKLOAD = "workload"
"""The pass about workload files that is a command of its own; the others answer those of modules of the same name."""

PASSES_OF_COMMANDS = (
    "summary",
    "params",
    "fusions",
    "collectives",
    "optimizer",
    "cost",
    "top",
    "time",
    "memory",
    "custom-calls",
    "fingerprint",
    WORKLOAD,
)
"""Passes that are commands."""

PASSES: Registry[Pass] = Registry(__name__, (name for name in PASSES_OF_COMMANDS if name != WORKLOAD))
"""The passes about modules. Each is a command."""

MODULE_FACTS = "module_facts"
"""Runs with every command and has no command of its own."""

ALPA = "alpa"
"""The facts that `--cost-model` adds; checks can name them. It is no command of its own."""

SHOW = "show"
"""The description of an instruction that a user names. It gives no facts of a module, so it is a command of another kind."""

TIME_EVENTS = "time-events"
"""The output of `time --format perfetto`. It is no command of its own."""

PICTURES = "pictures"
"""The tables that only the pictures of a page are drawn from. It is no command of its own."""

INSTRUCTIONS = "instructions"
"""The neighbours of instructions, for the page of `report`. It is no command of its own."""

MEASURED = "measured"
"""The measured times of a recorded profile. Its command takes a dump too."""

EXPORT = "export"
"""The step of a module as input of a network simulator. Its command writes files."""

FINDINGS = "findings"
"""The findings of all rules, without facts or tables: what `lint` reads. It is no command of its own."""

RELATIONS = "relations"
"""All that the tables of `query` on a dump need. It is no command of its own."""

OTHERS: Registry[Pass] = Registry(
    __name__, (MODULE_FACTS, ALPA, SHOW, TIME_EVENTS, PICTURES, INSTRUCTIONS, MEASURED, EXPORT, FINDINGS, RELATIONS)
)


FACT_PASSES: Mapping[str, tuple[str, ...]] = {
    "alpa": (ALPA,),
    "collectives": ("collectives",),
    "cost": ("cost",),
    "custom_calls": ("fusions", "custom-calls"),
    "export": (EXPORT,),
    "fingerprint": ("fingerprint",),
    "fusions": ("fusions",),
    "kernels": ("top",),
    "measured": (MEASURED,),
    "memory": ("memory",),
    "mesh": ("collectives",),
    "module": ("summary", MODULE_FACTS),
    "opcode": ("summary",),
    "optimizer": ("optimizer",),
    "outputs": ("params",),
    "params": ("params",),
    "time": ("cost",),
    "workload": (WORKLOAD,),
}
"""The passes that give the facts whose names begin with this word: a check imports these alone. The specs say the same."""

ASSERTABLE_TABLES: Mapping[str, str] = {
    "params": "params",
    "outputs": "params",
    "fusions": "fusions",
    "collectives": "collectives",
    "loops": "collectives",
    "optimizer": "optimizer",
    "matmuls_by_type": "cost",
    "kernels": "top",
    "live_at_peak": "memory",
    "largest_arrays": "memory",
    "parameter_copies": "memory",
    "custom_calls": "custom-calls",
}
"""The tables that assertions on rows can name, each with the pass that makes it. The specs say the same."""


class PassTable(NamedTuple):
    """A table of a pass about modules."""

    pass_name: str
    spec: TableSpec


@cache
def pass_tables() -> Mapping[str, PassTable]:
    """Return the tables of all passes about modules by name, those of commands first, without running a pass."""
    tables: dict[str, PassTable] = {}
    for pass_ in (*PASSES, *OTHERS):
        for spec in pass_.tables:
            tables.setdefault(spec.name, PassTable(pass_.name, spec))
    return tables


@cache
def workload_passes() -> tuple[WorkloadPass, ...]:
    """Return the passes about workload files, the first of which is the command `workload`."""
    from hlo_inspect.passes.workload import WorkloadCollectives, WorkloadFile, WorkloadSummary

    return WorkloadFile(), WorkloadCollectives(), WorkloadSummary()


def find_workload_pass(name: str) -> WorkloadPass | None:
    """Return the pass of that name about workload files, or None."""
    return next((pass_ for pass_ in workload_passes() if pass_.name == name), None)


def workload_pass() -> WorkloadPass:
    """Return the pass that is the command `workload`."""
    return workload_passes()[0]


def find_pass(name: str) -> Pass:
    """Return the pass of that name or alias. Raise UsageError with all names if there is none."""
    for registry in (PASSES, OTHERS):
        if name in registry.names:
            return registry.load(name)
    for pass_ in PASSES:
        if name in pass_.aliases:
            return pass_
    from hlo_inspect.errors import UsageError, did_you_mean

    names = [*PASSES.names, SHOW, WORKLOAD]
    raise UsageError(f"no pass {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def questions_about(fact: str) -> tuple[Question, ...]:
    """Return the passes whose facts begin with the same word as `fact`; all that give facts if there are none."""
    names = FACT_PASSES.get(fact.partition(".")[0]) or dict.fromkeys(chain.from_iterable(FACT_PASSES.values()))
    return tuple(workload_pass() if name == WORKLOAD else find_pass(name) for name in names)


def specs_about(fact: str) -> tuple[FactSpec, ...]:
    """Return the facts that begin with the same word as `fact`; all facts if there are none."""
    return tuple(spec for question in questions_about(fact) for spec in question.specs)


@cache
def all_specs() -> tuple[FactSpec, ...]:
    """Return every fact that some pass can give."""
    return tuple(
        spec
        for pass_ in (
            OTHERS.load(MODULE_FACTS),
            *PASSES,
            OTHERS.load(ALPA),
            OTHERS.load(MEASURED),
            OTHERS.load(EXPORT),
            workload_pass(),
        )
        for spec in pass_.specs
    )
