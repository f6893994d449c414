"""The page as HTML: templates, and blocks with the data of tables and pictures for the page's script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.formats.html import assets
from hlo_inspect.report.formats.html.charts.palette import css_variables
from hlo_inspect.report.formats.html.page_model import Measure, Page, PageView
from hlo_inspect.report.formats.html.table_data import table_data
from hlo_inspect.report.formats.html.view_texts import ViewText
from hlo_inspect.report.page import paragraphs
from hlo_inspect.report.render_options import RenderOptions, naming, with_relative_paths
from hlo_inspect.report.table import Table, number_of
from hlo_inspect.report.units import decimal_factors
from hlo_inspect.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def write_page(page: Page, stream: TextIO, options: RenderOptions) -> None:
    """Write the page piece by piece, so that only one block of data is in memory beside the reports.

    The views after the first are packed: the page's script makes them when they are shown.
    """
    script, libraries = assets.page_script(), assets.libraries(_kinds(page))
    styles = (assets.tables_style(), css_variables(), assets.read_asset("style.css"))
    title = printable(page.views[0].title) if page.views else ""
    policy = assets.policy((script, *libraries.values()))
    stream.write(render_template("head.html", title=title, policy=policy, styles=styles, version=__version__))
    for number, view in enumerate(page.views):
        pieces = _view(view, page, options)
        if number == 0:
            stream.writelines(pieces)
        else:
            stream.write(render_template("packed.html", name=view.name, text=assets.packed_pieces(pieces)))
    quantities = json_block(decimal_factors())
    stream.write(render_template("foot.html", version=__version__, quantities=quantities, script=script, libraries=libraries))


def _kinds(page: Page) -> set[str]:
    """Return the kinds of pictures that the page has."""
    charts = [chart for view in page.views for section in view.sections for chart in section.pictures if not chart.is_single]
    figures = [figure for chart in charts for figure in (chart.figure, *(measure.figure for measure in chart.measures))]
    return {trace["type"] for figure in figures for trace in figure["data"]}


def _view(view: PageView, page: Page, options: RenderOptions) -> Iterator[str]:
    """Yield a view and its data, piece by piece."""
    with naming(view.report):
        shown = {table.name: table for table in with_relative_paths(view.tables)}
        yield render_template("view.html", view=ViewText(view, shown, page.documentation, options))
        yield from _blocks(view, shown, options)


def _blocks(view: PageView, shown: Mapping[str, Table], options: RenderOptions) -> Iterator[str]:
    """Yield the data of a view's pictures and tables."""
    pictures = [picture for section in view.sections for picture in section.pictures if not picture.is_single]
    for picture in pictures:
        measures = picture.measures or (Measure("", picture.figure),)
        figures = [
            {"label": measure.label, "figure": measure.figure, "text": measure.text or picture.text} for measure in measures
        ]
        yield _block(view, "picture", picture.name, {"figures": figures, "height": picture.height, "table": picture.table})
    named = {name for section in view.sections for name in section.tables} | BEHIND_NAMES
    for whole in view.tables:
        if whole.name in named and whole.rows:
            table, others = whole.top(options.top or 0), shown[whole.name].top(options.top or 0)
            if table.name == _INSTRUCTIONS and table.columns[-1].name == _LINE:
                lines = assets.packed_pieces([json_block([row[-1] for row in table.rows])])
                yield render_template("lines.html", view=view.name, text=lines)
                table = replace(table, columns=table.columns[:-1], rows=[row[:-1] for row in table.rows])
            data = table_data(table, others, options.raw_bytes)
            links = view.links.get(table.name)
            yield _block(view, "table", table.name, {**data, "links": links} if links else data)


def _block(view: PageView, kind: str, name: str, data: Mapping[str, object]) -> str:
    tag = render_template("block.html", view=view.name, kind=kind, name=name, rows=data.get("rows"))
    return f"{tag}{json_block(data)}</script>\n"


def render_template(name: str, /, **values: object) -> str:
    """Return the text of the template of that name. Every value is escaped, except the files of this package and of its extra.

    A lone surrogate, which UTF-8 does not have, becomes a question mark.
    """
    return _environment().get_template(name).render(**values).encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("hlo_inspect.report.formats.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "asset": Markup,
        "packed": assets.packed,
        "printable": printable,
        "paragraphs": paragraphs,
        "counted": number_of,
    }
    return environment


_INSTRUCTIONS, _LINE = "instructions", "text"
"""The table of instructions, and its last column, which waits compressed."""

BEHIND_NAMES = frozenset({_INSTRUCTIONS, "call_stacks"})
"""Tables that describe what other tables name."""

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def json_block(value: object) -> str:
    """Return JSON for the inside of a script element.

    Unprintable characters are escapes: those that turn the direction of the text, or a lone surrogate of a file's name that is
    not UTF-8.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    hidden = {
        ord(c): f"\\u{ord(c):04x}" for c in set(text) if not c.isprintable() and "\x7e" < c < "\U00010000" and c != "\u00a0"
    }
    return text.translate(hidden) if hidden else text
