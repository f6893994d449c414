"""The findings, in one explicit list: a rule is one file here, imported when it is asked for. Problems of reading, of policies
and of workload files have a table each.
"""

from __future__ import annotations

import re
from collections.abc import Container
from functools import cache
from typing import TYPE_CHECKING

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.registry import Registry

if TYPE_CHECKING:
    from hlo_inspect.rules.base import Rule, RulePage

_CODE = lazy_pattern(r"HI[0-9]{3}", re.ASCII)

PASSES_OF_RULES: dict[str, tuple[str, ...]] = {
    "undonated-parameter": ("params", "memory"),
    "unused-parameter": ("params",),
    "dangling-alias": ("params",),
    "unreadable-device-groups": ("collectives",),
    "uneven-device-groups": ("collectives",),
    "contradictory-devices": ("collectives",),
    "sharding-device-count": ("collectives",),
    "mesh-mismatch": ("collectives",),
    "mesh-not-sought": ("collectives",),
    "invalid-trip-count": ("collectives", "cost"),
    "recursive-computation": ("collectives", "cost"),
    "excessive-runs": ("collectives", "cost"),
    "invalid-custom-call-config": ("cost", "custom-calls"),
    "unfollowed-dataflow": ("optimizer",),
    "undonated-optimizer-state": ("optimizer",),
    "replicated-optimizer-state": ("optimizer",),
    "unaccountable-memory": ("memory",),
    "differing-memory-files": ("memory",),
    "tile-padding": ("memory",),
    "large-constant": ("memory",),
    "saved-activations": ("memory",),
    "copied-donated-parameter": ("memory",),
    "kept-gathered-parameter": ("memory",),
    "whole-layer-stack": ("memory",),
    "idle-donated-parameter": ("memory",),
}
"""The passes of whose answers each rule is a part: it is imported, and runs once, when one of them does."""

RULES: Registry[Rule] = Registry(__name__, PASSES_OF_RULES)


def rules_of(passes: Container[str]) -> list[Rule]:
    """The rules that are a part of the answers of some passes."""
    return [RULES.of(rule) for rule, its_passes in PASSES_OF_RULES.items() if any(one in passes for one in its_passes)]


@cache
def rule_pages() -> tuple[RulePage, ...]:
    """The documentation of every finding that exists, by code."""
    from hlo_inspect.rules.check_problems import CHECK_PROBLEMS
    from hlo_inspect.rules.reading_problems import READING_PROBLEMS
    from hlo_inspect.rules.workload_problems import WORKLOAD_PROBLEMS

    return (*READING_PROBLEMS, *CHECK_PROBLEMS, *(rule.page() for rule in RULES), *WORKLOAD_PROBLEMS)


def find_rule(name: str) -> RulePage:
    """The documentation of the rule of that code or kebab-case name; `UsageError` with the nearest codes and names."""
    pages = rule_pages()
    for page in pages:
        if name in (page.code, page.name):
            return page
    hint = did_you_mean(name, [one for page in pages for one in (page.code, page.name)])
    if _CODE.fullmatch(name):  # the codes of a group are neighbours
        nearest = sorted((page.code for page in pages), key=lambda code: abs(int(code[2:]) - int(name[2:])))[:3]
        hint = did_you_mean(name, nearest, cutoff=0)
    raise UsageError(f"there is no rule {name!r}{hint}; `hlo-inspect rules` lists all")
