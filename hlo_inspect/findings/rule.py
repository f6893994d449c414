"""The base of a rule: one kind of finding, with code, name and severity. Its docstring is its documentation."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.report.model import Finding, Severity, StakeUnit
from hlo_inspect.report.rule_page import HEADINGS, RulePage
from hlo_inspect.report.units import format_value

if TYPE_CHECKING:
    from hlo_inspect.graph.parameters import ParameterLeaf
    from hlo_inspect.graph.view import View

WORTH_DONATING = 1 << 10  # bytes; scalars and counters are not worth a finding
WORTH_SAVING = 1 << 20  # bytes of device memory
WORTH_SENDING = 1 << 20  # bytes of a step that a device sends to others
WORTH_KEEPING = 4 << 20  # bytes of a step that recomputation or the host would keep from the device
WORTH_COPYING = 1 << 20  # bytes of a step that a device copies

Resource = Literal["memory", "traffic", "wire", "host", "flops", "time"]
"""Units of stakes: bytes of memory, bytes read and written there, bytes sent to devices, to the host, FLOPs, seconds."""


_STAKE_UNITS: dict[Resource, StakeUnit] = {"flops": "flops", "time": "s"}


class Rule(ABC):
    """A kind of finding.

    Policies and scripts use `code` and `name` (that of its file, in kebab-case), which never change. `resource` is what stakes
    are counted in; if the rule `saves`, mending a finding saves its stake. No finding has a stake below `least(context)`: the
    rule's `threshold`, unless the user sets another. The docstring is a line, then the four `HEADINGS`, each in a line of its
    own, with their texts indented below them.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity] = "warning"
    resource: ClassVar[Resource] = "memory"
    saves: ClassVar[bool] = True
    threshold: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2].replace("_", "-")

    @abstractmethod
    def check(self, context: Context) -> Iterator[Finding]:
        """Yield the findings on a module, in the order of its text."""

    def finding(
        self,
        context: Context,
        message: str,
        line: int | None,
        subject: str | None = None,
        stake: float | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding of this rule at a line of the input. `severity` replaces that of the rule if it is less severe.

        `stake` is in FLOPs or seconds if the rule's `resource` is `flops` or `time`, else in bytes, of one step on one device.
        """
        unit = _STAKE_UNITS.get(self.resource, "bytes")
        place = context.module.location(line)
        return Finding(self.code, severity or self.severity, message, place, subject, stake, unit, self.name)

    def finding_on(self, context: Context, collective: Collective, message: str, stake: float | None) -> Finding:
        """Return a finding on a collective."""
        return self.finding(context, message, collective.start.line, collective.start.name, stake)

    def finding_at(
        self, context: Context, place: tuple[View, int], message: str, stake: int, severity: Severity | None = None
    ) -> Finding:
        """Return a finding on a row of a computation."""
        view, row = place
        return self.finding(context, message, view.lines[row], view.names[row], stake, severity)

    def least(self, context: Context) -> int | float:
        """Return the least stake that is a finding, in the unit of the rule's stakes."""
        return context.thresholds.get(self.name, self.threshold)

    @classmethod
    def page(cls) -> RulePage:
        """Return the documentation, from the docstring."""
        summary, *rest = inspect.cleandoc(cls.__doc__ or "").split("\n")
        texts: dict[str, list[str]] = {}  # without any if Python leaves docstrings out
        for line in rest:
            if line in HEADINGS:
                texts[line] = []
            elif texts:
                texts[next(reversed(texts))].append(line)
        what, why, fix, example = (inspect.cleandoc("\n".join(texts.get(heading, ()))) for heading in HEADINGS)
        threshold = format_value(cls.threshold, "flops" if cls.resource == "flops" else "bytes") if cls.threshold else ""
        return RulePage(cls.code, cls.name, cls.severity, summary, what, why, fix, example, threshold)


class WireRule(Rule):
    """A kind of finding on bytes that devices send."""

    resource = "wire"
    threshold = WORTH_SENDING


def is_small(context: Context) -> bool:
    """Return True if no array of the peak can be worth a finding on device memory."""
    peak = context.memory.figures["peak_bytes"]
    return peak is not None and peak < WORTH_SAVING


def least_worth(context: Context) -> int:
    """Return the least bytes that are worth a finding on device memory: 1 MiB and 1 % of the peak."""
    return max(WORTH_SAVING, (context.memory.figures["peak_bytes"] or 0) // 100)


def entry_line(context: Context) -> int:
    """Return the line of the entry computation for findings on its parameters, or that of the header if there is no entry."""
    entry = context.module.entry
    return entry.line if entry is not None else context.module.first_line


def size(of_bytes: int) -> str:
    """Format bytes as the messages of findings have them: `61.7 MiB`."""
    return format_value(of_bytes, "bytes")


def numbered(leaves: Sequence[ParameterLeaf], limit: int = 4) -> str:
    """Format numbers as `parameters 3, 5 and 7`; of more than `limit` the first."""
    numbers = list(dict.fromkeys(str(leaf.number) for leaf in leaves))
    if len(numbers) == 1:
        return f"parameter {numbers[0]}"
    if len(numbers) > limit:
        return f"{len(numbers)} parameters ({', '.join(numbers[:limit])}, …)"
    return f"parameters {', '.join(numbers[:-1])} and {numbers[-1]}"


def counted(kinds: Iterable[str]) -> str:
    """Count the kinds: `2 first moments and 1 master weight`."""
    words = [f"{count} {kind}" + ("s" if count > 1 else "") for kind, count in Counter(kinds).items()]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
