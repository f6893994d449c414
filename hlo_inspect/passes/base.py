"""What a pass is: one question about a module or a workload file, answered as facts and tables."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.report.model import LOWER_BOUND, Column, FactSpec, Section, Unit, Value

if TYPE_CHECKING:
    from hlo_inspect.workloads.totals import WorkloadTotals


class Question(ABC):
    """What a command answers: the docstring is the command's help, its first paragraph the short one.

    `specs` names every fact that it gives. `includes` are passes whose facts and notes always belong to its answer, but not
    their tables; `unless_quick` are those that belong to it in the same way except with `--quick`.
    `aliases` are other names of the command. `writes` are the forms in which it can write its input (`--to`).
    A command that `takes_name` can be asked about one instruction: its name follows the inputs. One that `compares_profiles`
    takes several hardware profiles. `formats` are those that its reports can be rendered in beside those of all;
    `passes_of_formats` names those that render the report of another pass. `findings_of` says which findings its report has:
    those of all rules, those of the rules of this question, or, if it is about one instruction, those that name it. If
    `uses_profile`, its times are those of the accelerator that the dump names, unless the user names one.
    """

    name: ClassVar[str]
    specs: ClassVar[tuple[FactSpec, ...]]
    includes: ClassVar[tuple[str, ...]] = ()
    unless_quick: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    takes_name: ClassVar[bool] = False
    compares_profiles: ClassVar[bool] = False
    formats: ClassVar[tuple[str, ...]] = ()
    passes_of_formats: ClassVar[Mapping[str, str]] = {}
    findings_of: ClassVar[Literal["all", "question", "none"]] = "question"
    uses_profile: ClassVar[bool] = False

    @classmethod
    def help(cls) -> str:
        """The help text of the command."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """What the list of commands says of it."""
        return cls.help().partition("\n\n")[0].replace("\n", " ")


class Pass(Question):
    """One question about a module, and the command of that name.

    `wants` is what the reader has to keep for it, and `table_wants` what it has to keep beside that for its tables, which are
    made where the pass was asked for by its name, and for those in which a pass that includes it shows them unless quick;
    `profile_wants` what they need more where a hardware profile is named. What `asks_phases` needs the graph of a module where
    names leave phases open.

    What a pass answers depends on the module and on `context.request`, never on which other passes run.
    """

    wants: ClassVar[Wants]
    table_wants: ClassVar[Wants] = Wants()
    profile_wants: ClassVar[Wants] = Wants()
    asks_phases: ClassVar[bool] = False

    @abstractmethod
    def run(self, context: Context) -> Section:
        """Every fact of `specs`, of a family those members that occur; the command's own table first."""


class WorkloadPass(Question):
    """One question about a simulator's workload file. A pass about modules may have the same name and be the command."""

    @abstractmethod
    def run(self, totals: WorkloadTotals) -> Section:
        """Every fact of `specs`; the command's own table first."""


def unknown(facts: Mapping[str, Value]) -> list[str]:
    """The names of the facts that need a note."""
    return [name for name, value in facts.items() if value is None]


def with_lower_bound(facts: dict[str, Value], name: str, value: Value, lower: Value) -> None:
    """Sets the fact `name`, and beside a value that is unknown the fact `<name>.lower_bound` where a part of it is known."""
    facts[name] = value
    if value is None and lower is not None:
        facts[f"{name}{LOWER_BOUND}"] = lower


class PartlyKnown(Protocol):
    """A figure that is `least` or more; `exact` is `None` where it may be more."""

    @property
    def exact(self) -> Value: ...
    @property
    def least(self) -> Value: ...


def bounded(
    name: str,
    unit: Unit,
    figure: Callable[[Any], PartlyKnown | None],
    detail: int = 0,
    *,
    optional: bool = False,
    summed: bool = True,
    page_name: str = "",
) -> Column:
    """A column of figures that may be known in part, with their lower bounds; `None` for a row without."""

    def exact(row: object) -> Value:
        found = figure(row)
        return None if found is None else found.exact

    def least(row: object) -> Value:
        found = figure(row)
        return None if found is None else found.least

    return Column(name, unit, summed, detail, optional, page_name=page_name, get=exact, least=least)
