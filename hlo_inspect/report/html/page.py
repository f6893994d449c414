"""The page as HTML: what is static by a template, the data of tables and pictures in blocks that the page's script reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.html import assets
from hlo_inspect.report.html.data import json_block, table_data
from hlo_inspect.report.html.model import Chart, Measure, Page, PageSection, PageView
from hlo_inspect.report.layout import Grid, make_grid
from hlo_inspect.report.model import Finding, Passage, Table
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.page import (
    headline_text,
    input_details,
    module_details,
    number_of,
    paragraphs,
    split_headline,
)
from hlo_inspect.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_STATIC_WIDTH = 160  # characters: what a printed page shows of a table


def write_page(page: Page, stream: TextIO, options: RenderOptions) -> None:
    """Writes the page piece by piece, so that no more than one block of data is in memory beside the reports."""
    scripts = (assets.plotly_script(), assets.tables_script(), assets.own("page.js"))
    head = {
        "title": page.views[0].title if page.views else "",
        "policy": assets.policy(scripts),
        "styles": (assets.tables_style(), assets.own("style.css")),
        "version": __version__,
    }
    stream.write(_template("head.html", **head))
    stream.write(_template("navigation.html", views=page.views) if len(page.views) > 1 else "")
    for view in page.views:
        stream.write(_template("view.html", view=_ViewText(view, page.documentation, options)))
        stream.writelines(_blocks(view, options))
    stream.write(_template("foot.html", version=__version__, kinds=("text/javascript", "module", "module"), scripts=scripts))


@dataclass(frozen=True, slots=True)
class _SectionText:
    """A section with the tables that the view has."""

    section: PageSection
    pictures: tuple[Chart, ...]
    tables: tuple[Table, ...]

    @property
    def is_empty(self) -> bool:
        return not self.pictures and not any(table.rows for table in self.tables)


class _ViewText:
    """What the template asks of a view, as text."""

    def __init__(self, view: PageView, documentation: Mapping[str, Sequence[Passage]], options: RenderOptions) -> None:
        report = view.report
        tables = {table.name: table for table in view.tables}
        self.view = view
        self.prefix = f"{view.name}/" if view.name else ""
        self.details = [*module_details(report), *input_details(report)]
        warnings, headline = split_headline(report)
        self.warnings = [headline_text(row, options.raw_bytes) for row in warnings]
        self.headline = [(printable(row.label), headline_text(row, options.raw_bytes)) for row in headline]
        self.findings = report.findings
        self.notes = [printable(note) for note in report.notes]
        self.passages = report.passages
        self.sections = [
            _SectionText(one, one.pictures, tuple(tables[name] for name in one.tables if name in tables))
            for one in view.sections
        ]
        self._documentation = documentation
        self._options = options

    def documentation(self, finding: Finding) -> Sequence[Passage]:
        return self._documentation.get(finding.rule, ())

    def grid(self, table: Table) -> Grid:
        """The first rows, as they stand on paper and where scripts do not run."""
        top = self._options.top
        shown = table.top(table.page_rows if top is None else top)
        return make_grid(replace(shown, title=table.title), _STATIC_WIDTH, raw_bytes=self._options.raw_bytes)


def _blocks(view: PageView, options: RenderOptions) -> Iterator[str]:
    """The data of a view's pictures and tables."""
    named = {name for section in view.sections for name in section.tables}
    for section in view.sections:
        for picture in section.pictures:
            measures = picture.measures or (Measure("", picture.figure),)
            figures = [{"label": one.label, "figure": one.figure} for one in measures]
            yield _block(view, "picture", picture.name, {"figures": figures, "height": picture.height, "table": picture.table})
    for table in view.tables:
        if table.name in named and table.rows:
            data = table_data(table.top(options.top or 0), options.raw_bytes)
            if view.links.get(table.name):
                data["links"] = view.links[table.name]
            yield _block(view, "table", table.name, data)


def _block(view: PageView, kind: str, name: str, data: object) -> str:
    tag = _template("block.html", view=view.name, kind=kind, name=name)
    return f"{tag}{json_block(data)}</script>\n"


def _template(name: str, /, **values: object) -> str:
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    """Every value is escaped, except the files of this package and of its extra."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(__name__.rpartition(".")[0]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"asset": Markup, "printable": printable, "paragraphs": paragraphs, "counted": number_of}
    return environment
