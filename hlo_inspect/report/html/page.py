"""The page as HTML: what is static by templates, the data of tables and pictures in blocks that the page's script reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, TextIO

from hlo_inspect.errors import printable
from hlo_inspect.report.html import assets
from hlo_inspect.report.html.charts.palette import css_variables
from hlo_inspect.report.html.data import json_block, table_data
from hlo_inspect.report.html.model import Measure, Page, PageView
from hlo_inspect.report.html.view_text import BEHIND_NAMES, ViewText
from hlo_inspect.report.model import Table, number_of
from hlo_inspect.report.options import RenderOptions
from hlo_inspect.report.page import paragraphs
from hlo_inspect.report.quantities import decimal_factors
from hlo_inspect.report.relative_paths import with_relative_paths
from hlo_inspect.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def write_page(page: Page, stream: TextIO, options: RenderOptions) -> None:
    """Writes the page piece by piece, so that no more than one block of data is in memory beside the reports."""
    script, libraries = assets.own("page.js"), assets.libraries()
    styles = (assets.tables_style(), css_variables(), assets.own("style.css"))
    title = printable(page.views[0].title) if page.views else ""
    policy = assets.policy((script, *libraries.values()))
    stream.write(render_template("head.html", title=title, policy=policy, styles=styles, version=__version__))
    for view in page.views:
        shown = {table.name: table for table in with_relative_paths(view.tables)}
        stream.write(render_template("view.html", view=ViewText(view, shown, page.documentation, options)))
        stream.writelines(_blocks(view, shown, options))
    quantities = json_block(decimal_factors())
    stream.write(render_template("foot.html", version=__version__, quantities=quantities, script=script, libraries=libraries))


def _blocks(view: PageView, shown: Mapping[str, Table], options: RenderOptions) -> Iterator[str]:
    """The data of a view's pictures and tables."""
    pictures = [picture for section in view.sections for picture in section.pictures]
    for picture in pictures:
        measures = picture.measures or (Measure("", picture.figure),)
        figures = [{"label": one.label, "figure": one.figure, "text": one.text or picture.text} for one in measures]
        yield _block(view, "picture", picture.name, {"figures": figures, "height": picture.height, "table": picture.table})
    named = {name for section in view.sections for name in section.tables}
    named |= {picture.table for picture in pictures} | BEHIND_NAMES
    for table in view.tables:
        if table.name in named and table.rows:
            rows = options.top or 0
            data = table_data(table.top(rows), shown[table.name].top(rows), options.raw_bytes)
            links = view.links.get(table.name)
            yield _block(view, "table", table.name, {**data, "links": links} if links else data)


def _block(view: PageView, kind: str, name: str, data: Mapping[str, object]) -> str:
    tag = render_template("block.html", view=view.name, kind=kind, name=name, rows=data.get("rows"))
    return f"{tag}{json_block(data)}</script>\n"


def render_template(name: str, /, **values: object) -> str:
    """The text of the template of that name. Every value is escaped, except the files of this package and of its extra. A
    surrogate alone, which UTF-8 does not have, becomes a question mark.
    """
    return _environment().get_template(name).render(**values).encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("hlo_inspect.report.html"),
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
