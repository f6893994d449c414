"""One HTML file with everything inside: pictures, tables, findings. It opens anywhere and loads nothing.

Of the extra `[html]`: Jinja2 makes the page, Plotly draws, DataTables (as itables ships it) sorts, filters and searches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from hlo_inspect.report.html.assets import need_extra
from hlo_inspect.report.html.page import write_page
from hlo_inspect.report.html.views import page_of
from hlo_inspect.report.model import Report
from hlo_inspect.report.options import RenderOptions


def render_html(reports: Iterable[Report], stream: TextIO, options: RenderOptions) -> None:
    """One page of all reports. `MissingExtraError` where the extra `[html]` is not installed."""
    need_extra()
    write_page(page_of(reports), stream, options)
