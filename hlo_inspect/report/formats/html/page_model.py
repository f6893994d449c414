"""The parts of a page, as plain data: views, sections, pictures. Nothing here knows HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Table

Drawing = Mapping[str, Any]
"""The marks of a picture in `data`, its axes in `layout`, as the files of `drawing/` draw them.

A part of `data` has a `type`, one of `assets.DRAWINGS`. Its lists have an item for each mark: places, sizes, texts, `hovers`,
and in `keys` its row as `TABLE:ROW`. Colours are names of the palette, as `$forward`.
"""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a picture that has several, such as FLOPs and bytes; `label` is on its button.

    `text` has its figures for readers who cannot see it; if it is empty, that of the picture is used.
    """

    label: str
    figure: Drawing
    text: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of one table of the report.

    `name` is unique in a view, `sentence` says what to see in it, and `text` has its figures for readers who cannot see it.
    `table` is the name of the table. `measures` are the figures to choose from, the first of them `figure`; empty if there is
    only one.
    `height` is in pixels; the width is that of the page.
    """

    name: str
    title: str
    sentence: str
    text: str
    figure: Drawing
    table: str
    measures: tuple[Measure, ...] = ()
    height: int = 360

    @property
    def is_single(self) -> bool:
        """True if each figure has one mark at most: its text says as much."""
        figures = [measure.figure for measure in self.measures] or [self.figure]
        return all(sum(len(part.get("hovers", "??")) for part in figure["data"]) <= 1 for figure in figures)

    @classmethod
    def of_measures(
        cls, name: str, title: str, sentence: str, measures: Sequence[Measure], table: str, *, text: str = "", height: int = 360
    ) -> Chart:
        """Return a picture with the first of several figures, or with the only one; `text` is by default that of the figure."""
        several = tuple(measures) if len(measures) > 1 else ()
        return cls(name, title, sentence, text or measures[0].text, measures[0].figure, table, several, height)


@dataclass(frozen=True, slots=True)
class TableGroup:
    """Tables that answer one question by different keys: a page shows one of them at a time, with a switch.

    `choices` are the labels of the tables on the switch, by the names of the tables. A group of one has the title of its table.
    """

    title: str
    choices: Mapping[str, str]

    @classmethod
    def of_one(cls, name: str) -> TableGroup:
        """Return the group of a table that answers a question alone."""
        return cls("", {name: ""})


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a view under a heading: pictures, then groups of tables; tables that a view lacks are left out.

    `text` says what the section is about, after the first lines of the page of `command`. If it has neither pictures nor rows,
    `nothing` says why. Pictures come first, and the first table is open only without pictures. If the section
    `begins_with_tables`, these come first, and the first of them is open.
    """

    name: str
    title: str
    pictures: tuple[Chart, ...] = ()
    groups: tuple[TableGroup, ...] = ()
    text: str = ""
    nothing: str = ""
    command: str = ""
    begins_with_tables: bool = False

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables in all groups."""
        return tuple(name for group in self.groups for name in group.choices)


@dataclass(frozen=True, slots=True)
class PageView:
    """A part of a page that is shown at one time: a module, the index of all modules, or two modules compared.

    `name` is empty for the first. `tables` are those of the report, and others that the sections name; no two have one name.
    `links` gives each row of a table, by its name, the address within the page that its first column leads to, or "".
    `siblings` are the views that it names at its top, itself among them: the title of each, by its name. `text` is a sentence
    about the whole view.
    """

    name: str
    title: str
    report: Report
    sections: tuple[PageSection, ...]
    tables: tuple[Table, ...]
    links: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    siblings: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """All views of a file, and the documentation of their findings: reports on rules by the code of the rule."""

    views: tuple[PageView, ...]
    documentation: Mapping[str, Report]
