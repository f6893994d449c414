"""The passes, in one explicit list: a question is one file here and one test file."""

from __future__ import annotations

from hlo_inspect.errors import UsageError
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.passes.fusions import Fusions
from hlo_inspect.passes.optimizer import Optimizer
from hlo_inspect.passes.params import Params
from hlo_inspect.passes.reading import Reading
from hlo_inspect.passes.summary import Summary
from hlo_inspect.report.model import FactSpec

READING = Reading()
"""Runs with every command."""

PASSES: tuple[Pass, ...] = (Summary(), Params(), Fusions(), Collectives(), Optimizer(), Cost())
ALIASES = {"parameters": "params"}


def find_pass(name: str) -> Pass:
    """The pass of that name; `UsageError` lists the names there are."""
    for one in PASSES:
        if one.name == ALIASES.get(name, name):
            return one
    raise UsageError(f"no pass {name!r}; there are: {', '.join(one.name for one in PASSES)}")


def all_specs() -> tuple[FactSpec, ...]:
    """Every fact that some pass can give."""
    return tuple(spec for one in (READING, *PASSES) for spec in one.specs)
