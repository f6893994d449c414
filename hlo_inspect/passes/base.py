"""The base of a pass: one question about a module or a workload file, answered as facts and tables."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Quantity, exact, least
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import LOWER_BOUND, Column, Unit, Value

if TYPE_CHECKING:
    from hlo_inspect.workloads.totals import WorkloadTotals


class Question(ABC):
    """The question of a command: the docstring is the command's help, its first paragraph the short one.

    `specs` names every fact that it gives. The facts and notes of the passes in `includes` always belong to its answer, their
    tables do not; `unless_quick` are passes that belong to it in the same way unless `--quick` is set.
    `aliases` are other names of the command. `writes` are the forms in which it can write its input (`--to`).
    A command that `takes_name` can describe one instruction: its name follows the inputs. One that `takes_recorded` shows the
    measured times of a recorded profile too. One that `compares_profiles` takes several hardware profiles. `formats` are extra
    formats of its reports; `passes_of_formats` names those that render the report of another pass. `findings_of` selects the
    findings of its report: those of all rules, those of the rules of this question, or those that name one instruction. If
    `uses_profile`, its times are those of the accelerator that the dump names, unless the user names one.
    """

    name: ClassVar[str]
    specs: ClassVar[tuple[FactSpec, ...]]
    includes: ClassVar[tuple[str, ...]] = ()
    unless_quick: ClassVar[tuple[str, ...]] = ()
    aliases: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]] = ()
    takes_name: ClassVar[bool] = False
    takes_recorded: ClassVar[bool] = False
    compares_profiles: ClassVar[bool] = False
    formats: ClassVar[tuple[str, ...]] = ()
    passes_of_formats: ClassVar[Mapping[str, str]] = {}
    findings_of: ClassVar[Literal["all", "question", "none"]] = "question"
    uses_profile: ClassVar[bool] = False

    @classmethod
    def help(cls) -> str:
        """Return the help text of the command."""
        return inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def summary(cls) -> str:
        """Return the line of the list of commands."""
        return cls.help().partition("\n\n")[0].replace("\n", " ")


class Pass(Question):
    """A question about a module, and the command of that name.

    `wants` is what the reader has to keep for it. `table_wants` is needed for its tables too: those of a command, and those
    that another pass shows unless quick. `profile_wants` is needed too if a hardware profile is named. If `asks_phases`, it
    needs the graph of a module in which names leave phases open.

    The answer of a pass depends on the module and on `context.request`, never on which other passes run.
    """

    wants: ClassVar[Wants]
    table_wants: ClassVar[Wants] = Wants()
    profile_wants: ClassVar[Wants] = Wants()
    asks_phases: ClassVar[bool] = False

    @abstractmethod
    def run(self, context: Context) -> Section:
        """Return every fact of `specs`, of a family the members that occur; the command's own table comes first."""


class WorkloadPass(Question):
    """A question about a simulator's workload file. A pass about modules may have the same name and be the command."""

    @abstractmethod
    def run(self, totals: WorkloadTotals) -> Section:
        """Return every fact of `specs`; the command's own table comes first."""


def unknown(facts: Mapping[str, Value]) -> list[str]:
    """Return the names of the facts that need a note."""
    return [name for name, value in facts.items() if value is None]


def with_lower_bound(facts: dict[str, Value], name: str, value: Value, lower: Value) -> None:
    """Set the fact `name`; if its value is unknown and a part is known, set `<name>.lower_bound` too."""
    facts[name] = value
    if value is None and lower is not None:
        facts[f"{name}{LOWER_BOUND}"] = lower


def bounded(
    name: str,
    unit: Unit,
    figure: Callable[[Any], Quantity | None],
    detail: int = 0,
    *,
    optional: bool = False,
    summed: bool = True,
    page_name: str = "",
) -> Column:
    """Return a column of figures that may be known in part, with their lower bounds; None for a row without."""

    def known(row: object) -> Value:
        quantity = figure(row)
        return None if quantity is None else exact(quantity)

    def lower(row: object) -> Value:
        quantity = figure(row)
        return None if quantity is None else least(quantity)

    return Column(name, unit, summed, detail, optional, page_name=page_name, get=known, least=lower)
