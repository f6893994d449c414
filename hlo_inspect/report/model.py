"""The report: facts, tables, findings and notes as plain data.

A pass gives a `Section`; a `Report` is the sections of one command about one module. What comes after it (terminal, JSON, CSV,
Markdown, `check`) reads these objects and nothing else. Values are raw: bytes are integers of bytes, unknown is `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from hlo_inspect.errors import Location, UsageError, did_you_mean
from hlo_inspect.report.displayable import Displayable
from hlo_inspect.report.table import Plain, Table, Unit, Value

Severity = Literal["error", "warning", "info"]

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # most severe first

SCHEMA_VERSION = 1
"""The schema of JSON reports, as they are written and read."""

LEFT_OUT = "left_out"
"""The member of JSON that says what a limit of characters left out."""

PART_NOTE = "partial module"
"""Beginning of the note that says why facts about a whole module are unknown if only lines of it are quoted."""


class FactSpec(NamedTuple):
    """The promise of a pass about a fact.

    `name` is dotted; a segment in angle brackets makes it a family (`opcode.<opcode>`): a member that does not occur is 0.
    `members` lists the values of that segment, or those of a single text fact; None leaves it open.
    `absent` is the meaning of None without a note: that there is no such thing. Scripts rely on these: names and
    units are never changed.
    """

    name: str
    unit: Unit
    meaning: str
    members: frozenset[str] | None = None
    absent: str = ""


StakeUnit = Literal["s", "bytes", "flops"]
STAKE_UNITS: tuple[StakeUnit, ...] = get_args(StakeUnit)
"""The units of a stake: findings with an earlier one come first."""


class Finding(NamedTuple):
    """A report of a rule. `rule` is a stable code (HI0xx reading, HI1xx donation and parameters, HI2xx collectives, …).

    `subject` is the instruction or parameter it is about. `stake` is what mending it saves in one step on one device, in
    `stake_unit`. It is None if nothing is counted. `source` is the line of Python as
    `path:line`, `op_name` the name that the front end gave. `label` describes the finding without names and numbers of the
    dump, and `fingerprint` is its hash. Both survive new names, lines and channel numbers. `share` is the stake as a share of
    `share_of`: the step's time, bytes, sent bytes or FLOPs, or the memory that the program needs.
    """

    rule: str
    severity: Severity
    message: str
    location: Location | None = None
    subject: str | None = None
    stake: int | float | None = None
    stake_unit: StakeUnit = "bytes"
    name: str = ""
    source: str | None = None
    fingerprint: str = ""
    op_name: str = ""
    label: str = ""
    share: float | None = None
    share_of: str = ""


class Amount(NamedTuple):
    """A raw value within a line of text: "16 devices" is `Amount(16, "count", "device")`.

    `noun` follows the value, with an s unless the value is 1.
    """

    value: Value
    unit: Unit
    noun: str = ""


Parts = Iterator[str | Amount]
"""Texts and amounts in one line: a renderer puts nothing between them."""


def sentence(text: str, *values: str | Amount) -> Parts:
    """Yield the parts of a text with the values in the places of its `{}`. Texts of a dump are values, never in `text`."""
    said = ""
    for before, value in zip(text.split("{}"), (*values, ""), strict=True):
        said += before
        if isinstance(value, str):
            said += value
        else:
            yield from (said, value) if said else (value,)
            said = ""
    if said:
        yield said


class HeadlineRow(NamedTuple):
    """A line of the first block of a page: a label and its parts.

    A row without a label is a line of its own. `severity` colours a row that warns, as of a truncated text. `command` is that
    of its page, if a report is several pages in one.
    """

    label: str
    parts: tuple[str | Amount, ...]
    severity: Severity | None = None
    command: str = ""


class Section(NamedTuple):
    """The answer of one pass.

    `tables`, `headline` and `passages` are read once, and only if the user named the pass; a generator makes them then.
    `notes`, read once too, say why a fact is unknown: one line each that starts with its name. An answer about a single
    instruction names it (`about`: line and name). The report then has the findings of all rules that name it.
    `findings` are those that no rule can make, because they need more than the module.
    """

    facts: dict[str, Value]
    tables: Iterable[Table] = ()
    notes: Iterable[str] = ()
    headline: Iterable[HeadlineRow] = ()
    passages: Iterable[Passage] = ()
    about: tuple[int, str] | None = None
    findings: tuple[Finding, ...] = ()


class Input(NamedTuple):
    """The text that a report is about: 1-based first line of the module in the input, its lines and bytes.

    `counted` names the one of two inputs that lines and bytes are of.
    """

    path: str
    first_line: int
    lines: int
    bytes: int
    counted: str = ""

    @property
    def place(self) -> str:
        """The path, with the line where the module does not begin with the text."""
        return self.path if self.first_line == 1 else f"{self.path}:{self.first_line}"


class Passage(NamedTuple):
    """A text under a heading; `verbatim` if its line breaks and blanks have to stay, as in an example."""

    heading: str
    text: str
    verbatim: bool = False


class Verdict(NamedTuple):
    """The result of all checks of a command: the last line of its page."""

    text: str
    passed: bool


class IgnoredFinding(NamedTuple):
    """A finding that does not count, and the reason that the user gave."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True, repr=False)
class Report(Displayable):
    """The results of a command on one module. `specs` gives the unit of every fact that its passes can give.

    `headline` are the first lines of its page. A report that is about no module has a `title` instead of the module's name;
    `passages` are the texts of a page of documentation. The last report of checks has their `verdict`. `unanswered` are facts
    of the request that an input of its kind does not have. `findings_scope` says which findings these are if they are not
    those of all rules, and `left_out_rules` are the rules that did not run. `undecided_rules` are the codes of those
    that the module does not tell enough for. `failed_checks` are the assertions of a check that
    failed, as findings, and `ignored` the findings that an entry ignores: formats for CI have both. The rows of its tables are
    made: it holds no module.
    """

    command: str
    input: Input
    facts: Mapping[str, Plain]
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str | None = None
    specs: tuple[FactSpec, ...] = ()
    title: str = ""
    passages: tuple[Passage, ...] = ()
    headline: tuple[HeadlineRow, ...] = ()
    verdict: Verdict | None = None
    unanswered: tuple[FactSpec, ...] = ()
    findings_scope: str = ""
    left_out_rules: tuple[str, ...] = ()
    undecided_rules: tuple[str, ...] = ()
    failed_checks: tuple[Finding, ...] = ()
    ignored: tuple[IgnoredFinding, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple([table.made() for table in self.tables]))

    @property
    def module_name(self) -> str:
        """The module's name, of a report that is about none its title."""
        return str(self.facts.get("module.name", self.title))

    @property
    def module_facts(self) -> dict[str, Plain]:
        """The facts of the module, which reports of all commands have."""
        return {name: value for name, value in self.facts.items() if name.startswith("module.")}

    @property
    def module_specs(self) -> tuple[FactSpec, ...]:
        return tuple(spec for spec in self.specs if spec.name.startswith("module."))

    @property
    def answers_in_tables(self) -> bool:
        """True if a page begins with the tables: those of checks are the answer, findings come after them."""
        return any(table.name == "checks" for table in self.tables)

    def table(self, name: str) -> Table:
        """Return the table of that name as scripts read it: plain values, and bounds in columns of their own.

        Raise UsageError with all names if there is none.
        """
        return self.table_with_figures(name).flat()

    def table_with_figures(self, name: str) -> Table:
        """Return the table of that name, with figures in its cells. Raise UsageError with all names if there is none."""
        for table in self.tables:
            if table.name == name:
                return table
        names = [table.name for table in self.tables]
        raise UsageError(
            f"no table {name!r} in this report; there are: {', '.join(names) or 'none'}{did_you_mean(name, names)}"
        )


def reaching(findings: Iterable[Finding], least: Severity) -> list[Finding]:
    """Return the findings of a severity or above."""
    return [finding for finding in findings if SEVERITIES.index(finding.severity) <= SEVERITIES.index(least)]


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors, warnings that save nothing (faults of the text), then the largest saving, then as they came."""
    return sorted(findings, key=urgency)


def urgency(finding: Finding) -> tuple[int, float, int, float]:
    """Return the key by which findings that matter more come first."""
    saves, severity = finding.share is not None, SEVERITIES.index(finding.severity)
    rank = 2 if saves and severity else severity if severity < 2 else 3
    return rank, -(finding.share or 0.0), STAKE_UNITS.index(finding.stake_unit), -(finding.stake or 0)
