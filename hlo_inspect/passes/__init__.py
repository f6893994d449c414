"""The passes, in one explicit list: a question is one file here."""

from __future__ import annotations

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.passes.alpa import Alpa
from hlo_inspect.passes.base import Pass, WorkloadPass
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.passes.custom_calls import CustomCalls
from hlo_inspect.passes.fingerprint import Fingerprint
from hlo_inspect.passes.fusions import Fusions
from hlo_inspect.passes.memory import Memory
from hlo_inspect.passes.module_facts import ModuleFacts
from hlo_inspect.passes.optimizer import Optimizer
from hlo_inspect.passes.params import Params
from hlo_inspect.passes.summary import Summary
from hlo_inspect.passes.top import Top
from hlo_inspect.passes.workload import WorkloadFile
from hlo_inspect.passes.workload_collectives import WorkloadCollectives
from hlo_inspect.passes.workload_summary import WorkloadSummary
from hlo_inspect.report.model import FactSpec

MODULE_FACTS = ModuleFacts()
"""Runs with every command and is none itself."""

PASSES: tuple[Pass, ...] = (
    Summary(),
    Params(),
    Fusions(),
    Collectives(),
    Optimizer(),
    Cost(),
    Top(),
    Memory(),
    CustomCalls(),
    Fingerprint(),
)

ALPA = Alpa()
"""What `--cost-model` adds; checks can name its facts. It is no command of its own."""

WORKLOAD = WorkloadFile()
"""The pass about workload files that is a command of its own; the others answer those of modules of the same name."""

WORKLOAD_PASSES: tuple[WorkloadPass, ...] = (WORKLOAD, WorkloadCollectives(), WorkloadSummary())


def find_workload_pass(name: str) -> WorkloadPass | None:
    """The pass of that name about workload files, if there is one."""
    return next((one for one in WORKLOAD_PASSES if one.name == name), None)


def find_pass(name: str) -> Pass:
    """The pass of that name or alias; `UsageError` lists the names there are."""
    for one in (*PASSES, MODULE_FACTS, ALPA):
        if name in (one.name, *one.aliases):
            return one
    names = [one.name for one in (*PASSES, WORKLOAD)]
    raise UsageError(f"no pass {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def all_specs() -> tuple[FactSpec, ...]:
    """Every fact that some pass can give."""
    return tuple(spec for one in (MODULE_FACTS, *PASSES, ALPA, WORKLOAD) for spec in one.specs)
