"""The findings, in one explicit list: a rule is one file here, imported when it is used.

Problems of reading, of policies and of workload files have a table each.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.hlo.opcodes import SLICES, TABLE, opcodes_that_call
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.registry import Registry

if TYPE_CHECKING:
    from hlo_inspect.findings.rule import Rule
    from hlo_inspect.report.rule_page import RulePage

_CODE = lazy_pattern(r"HI[0-9]{3}", re.ASCII)

LARGE_MODULE = 10_000
"""Above this number of instructions a summary skips device memory and times, which take long.

Only `check` runs the rules on device memory then, if it counts findings.
"""

Reads = Literal["lines", "graph", "memory"]
"""Input of a rule: lines read one by one, values followed through the graph, or device memory too."""


class RuleEntry(NamedTuple):
    """The questions (names of passes) that a rule belongs to, and its input.

    A rule finds nothing in a module without one of its `opcodes`, or if its `analysis` is empty: it is then not imported. The
    analysis is a path of attributes from the context. `undecided` is a path to the reason why the module does not tell
    all that the rule needs, empty if it does.
    """

    passes: tuple[str, ...]
    reads: Reads
    opcodes: frozenset[str] = frozenset()
    analysis: str = ""
    undecided: str = ""


_GATHERS = frozenset(opcode.name for opcode in TABLE.values() if opcode.collective == "all-gather")
_LOOPS = opcodes_that_call("body")
_CALLS = opcodes_that_call("run", "body", "condition", "branch", "fused", "custom")


RULE_TABLE: dict[str, RuleEntry] = {
    "undonated-parameter": RuleEntry(("params", "memory"), "graph"),
    "unused-parameter": RuleEntry(("params",), "lines"),
    "replicated-weight": RuleEntry(("optimizer",), "graph", undecided="shardings.unknown"),
    "dangling-alias": RuleEntry(("params",), "lines", analysis="interface.faults"),
    "unreadable-device-groups": RuleEntry(("collectives",), "lines", analysis="collective_faults"),
    "uneven-device-groups": RuleEntry(("collectives",), "lines", analysis="collective_faults"),
    "contradictory-devices": RuleEntry(("collectives",), "lines", analysis="collective_faults"),
    "sharding-device-count": RuleEntry(("collectives",), "lines", analysis="module.device_marks.shardings"),
    "mesh-mismatch": RuleEntry(("collectives",), "lines", analysis="mesh.note"),
    "mesh-not-sought": RuleEntry(("collectives",), "lines", analysis="mesh.given_up"),
    "sliced-all-reduce": RuleEntry(("time",), "graph", SLICES),
    "sliced-all-gather": RuleEntry(("time",), "graph", SLICES),
    "constant-collective": RuleEntry(("time",), "graph"),
    "accumulated-all-reduce": RuleEntry(("time",), "graph", _LOOPS),
    "invariant-collective": RuleEntry(("time",), "graph", _LOOPS),
    "copied-loop-carry": RuleEntry(("top",), "graph", _LOOPS),
    "copied-update-slice": RuleEntry(("top",), "graph", _LOOPS),
    "involuntary-rematerialization": RuleEntry(("time",), "graph", analysis="compiler_warnings"),
    "small-collectives": RuleEntry(("time",), "graph"),
    "repeated-collective": RuleEntry(("time",), "graph"),
    "wide-collective": RuleEntry(("time",), "graph", frozenset({"convert"})),
    "invalid-trip-count": RuleEntry(("collectives", "cost"), "lines", _LOOPS),
    "recursive-computation": RuleEntry(("collectives", "cost"), "lines", _CALLS),
    "excessive-runs": RuleEntry(("collectives", "cost"), "lines", _CALLS),
    "host-callback": RuleEntry(("custom-calls", "time"), "graph", frozenset({"custom-call", "send"})),
    "invalid-custom-call-config": RuleEntry(("cost", "custom-calls"), "graph", frozenset({"custom-call"})),
    "unfollowed-dataflow": RuleEntry(("optimizer",), "graph"),
    "undonated-optimizer-state": RuleEntry(("optimizer",), "graph"),
    "replicated-optimizer-state": RuleEntry(("optimizer",), "graph", undecided="shardings.unknown"),
    "unaccountable-memory": RuleEntry(("memory",), "memory"),
    "differing-memory-files": RuleEntry(("memory",), "memory"),
    "widened-matmul": RuleEntry(("cost",), "graph", frozenset({"convert"})),
    "double-precision": RuleEntry(("cost",), "graph"),
    "tile-padding": RuleEntry(("memory",), "memory"),
    "large-constant": RuleEntry(("memory",), "memory", frozenset({"constant"})),
    "saved-activations": RuleEntry(("memory",), "memory"),
    "missing-recomputation": RuleEntry(("memory",), "graph"),
    "missing-offload": RuleEntry(("memory",), "graph"),
    "copied-donated-parameter": RuleEntry(("memory",), "memory"),
    "kept-gathered-parameter": RuleEntry(("memory",), "memory", _GATHERS),
    "whole-layer-stack": RuleEntry(("memory",), "memory", _LOOPS),
    "idle-donated-parameter": RuleEntry(("memory",), "memory"),
    "exceeded-capacity": RuleEntry(("memory",), "memory"),
    "copied-parameter": RuleEntry(("memory",), "memory"),
    "exposed-collective": RuleEntry(("time",), "memory", analysis="collectives"),
    "synchronous-collective": RuleEntry(("time",), "memory", analysis="collectives"),
    "launch-bound-step": RuleEntry(("time",), "memory"),
    "unsharded-batch": RuleEntry(("time",), "graph", frozenset({"dot"})),
    "narrow-gradient-sum": RuleEntry(("time",), "graph", frozenset({"convert"})),
}

RULES: Registry[Rule] = Registry(__name__, RULE_TABLE)


def module_pages() -> tuple[RulePage, ...]:
    """Return the documentation of the findings on modules, by code: without those of policies and of workload files."""
    from hlo_inspect.findings.reading_problems import READING_PROBLEMS

    return (*READING_PROBLEMS, *(rule.page() for rule in RULES))


@cache
def rule_pages() -> tuple[RulePage, ...]:
    """Return the documentation of every finding that exists, by code."""
    from hlo_inspect.findings.measured_problems import MEASURED_PROBLEMS
    from hlo_inspect.findings.reading_problems import CHECK_PROBLEMS, READING_PROBLEMS
    from hlo_inspect.findings.workload_problems import WORKLOAD_PROBLEMS

    rules = (rule.page() for rule in RULES)
    return (*READING_PROBLEMS, *CHECK_PROBLEMS, *rules, *WORKLOAD_PROBLEMS, *MEASURED_PROBLEMS)


def find_rule(name: str) -> RulePage:
    """Return the documentation of a rule by code or kebab-case name. Raise UsageError with the nearest codes and names."""
    pages = rule_pages()
    for page in pages:
        if name in (page.code, page.name):
            if not page.what:
                message = f"the page of {page.code} is a docstring, which Python leaves out with -OO or PYTHONOPTIMIZE=2"
                raise UsageError(message)
            return page
    hint = did_you_mean(name, [label for page in pages for label in (page.code, page.name)])
    if _CODE.fullmatch(name):  # the codes of a group are neighbours
        nearest = sorted((page.code for page in pages), key=lambda code: abs(int(code[2:]) - int(name[2:])))[:3]
        hint = did_you_mean(name, nearest, cutoff=0)
    raise UsageError(f"there is no rule {name!r}{hint}; `hlo-inspect rules` lists all")
