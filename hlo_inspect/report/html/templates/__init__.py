"""The templates of pages. Every value is escaped, except the files of this package and of its extra."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hlo_inspect.errors import printable
from hlo_inspect.report.html.assets import packed
from hlo_inspect.report.page import number_of, paragraphs

if TYPE_CHECKING:
    from jinja2 import Environment


def render_template(name: str, /, **values: object) -> str:
    """The text of the template of that name. A surrogate alone, which UTF-8 does not have, becomes a question mark."""
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
        "packed": packed,
        "printable": printable,
        "paragraphs": paragraphs,
        "counted": number_of,
    }
    return environment
