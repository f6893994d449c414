"""The base of a pass: one question about a module or a workload file, answered as facts and tables."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Figure, Quantity
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import LOWER_BOUND, Column, Unit, Value
from hlo_inspect.report.table_spec import TableSpec
from hlo_inspect.report.units import format_value

if TYPE_CHECKING:
    from hlo_inspect.workloads.totals import WorkloadTotals


class Question(ABC):
    """The question of a command: the docstring is the command's help, its first paragraph the short one.

    `specs` names every fact that it gives, and `tables` every table. The facts and notes of the passes in `includes` always
    belong to its answer, their tables do not; `unless_quick` are passes that belong to it in the same way unless `--quick` is
    set.
    `aliases` are other names of the command. `writes` are the forms in which it can write its input (`--to`).
    A command that `takes_name` can describe one instruction: its name follows the inputs. One that `takes_recorded` shows the
    measured times of a recorded profile too. One that `compares_profiles` takes several hardware profiles. `formats` are extra
    formats of its reports; `passes_of_formats` names those that render the report of another pass. `findings_of` selects the
    findings of its report: those of all rules, those of the rules of this question, or those that name one instruction. If
    `uses_profile`, its times are those of the accelerator that the dump names, unless the user names one.
    """

    name: ClassVar[str]
    specs: ClassVar[tuple[FactSpec, ...]] = ()
    tables: ClassVar[tuple[TableSpec, ...]] = ()
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


_PLACEHOLDER = lazy_pattern(r"<\w+>")


class Fact(NamedTuple):
    """A fact beside the line that computes it: its promise, and a getter that takes its value from an analysis.

    The fields are those of `FactSpec`. A name with a segment in angle brackets is a family: the getter takes a value of each
    member.
    """

    name: str
    unit: Unit
    meaning: str
    get: Callable[[Any], Value]
    members: frozenset[str] | None = None
    absent: str = ""

    @property
    def spec(self) -> FactSpec:
        return FactSpec(self.name, self.unit, self.meaning, self.members, self.absent)

    def named(self, member: str) -> str:
        """Return the name of the fact of a member."""
        return _PLACEHOLDER.sub(lambda _: member, self.name)


def specs_of(*groups: Sequence[Fact]) -> tuple[FactSpec, ...]:
    """Return the specifications of all facts of the groups."""
    return tuple(fact.spec for group in groups for fact in group)


class FactSheet:
    """The facts that a pass finds, by name, and a note for each that is unknown: `FACT: reason`."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.notes: list[str] = []

    def put(self, name: str, value: Value, why: str = "", *, with_bound: bool = False, unit: Unit = "count") -> None:
        """Set a fact. If it is unknown, a note says `why`, else the reason of the figure; without a reason it is absent.

        The note has the bounds in that `unit` if both limit the fact. `with_bound` sets the lower bound of an unknown figure
        even if that is 0.
        """
        self.values[name] = value
        if isinstance(value, Figure):
            if with_bound:
                self.values[f"{name}{LOWER_BOUND}"] = value.least
            limits = f": {format_value(value, unit)}" if value.greatest is not None else ""
            self.notes.append(f"{name}: {why or value.reason + limits}")
        elif value is None and why:
            self.notes.append(f"{name}: {why}")

    def put_all(self, facts: Iterable[Fact], source: object, member: str = "") -> None:
        """Set the facts to the values that their getters take from `source`, those of a family for a `member`."""
        for fact in facts:
            self.put(fact.named(member) if member else fact.name, fact.get(source), unit=fact.unit)


def bounded(
    name: str,
    unit: Unit,
    figure: Callable[[Any], Quantity | None] | None = None,
    detail: int = 0,
    *,
    optional: bool = False,
    summed: bool = True,
    page_name: str = "",
    meaning: str = "",
) -> Column:
    """Return a column of figures that may be known in part; None for a row without."""
    return Column(name, unit, summed, detail, optional, bounded=True, page_name=page_name, meaning=meaning, get=figure)
