"""The passes, in one explicit list: a question is one file here."""

from __future__ import annotations

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.passes.custom_calls import CustomCalls
from hlo_inspect.passes.fusions import Fusions
from hlo_inspect.passes.memory import Memory
from hlo_inspect.passes.module_facts import ModuleFacts
from hlo_inspect.passes.optimizer import Optimizer
from hlo_inspect.passes.params import Params
from hlo_inspect.passes.summary import Summary
from hlo_inspect.passes.top import Top
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
)


def find_pass(name: str) -> Pass:
    """The pass of that name or alias; `UsageError` lists the names there are."""
    for one in (*PASSES, MODULE_FACTS):
        if name in (one.name, *one.aliases):
            return one
    names = [one.name for one in PASSES]
    raise UsageError(f"no pass {name!r}; there are: {', '.join(names)}{did_you_mean(name, names)}")


def all_specs() -> tuple[FactSpec, ...]:
    """Every fact that some pass can give."""
    return tuple(spec for one in (MODULE_FACTS, *PASSES) for spec in one.specs)
