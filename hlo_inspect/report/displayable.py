"""The display of reports and tables in a Python session and in a notebook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class Displayable:
    """Base of objects that Python sessions show as a page once `show_with` has set how, until then by name."""

    __slots__ = ()

    as_text: ClassVar[Callable[[Any], str] | None] = None
    as_html: ClassVar[Callable[[Any], str] | None] = None

    def __repr__(self) -> str:
        return Displayable.as_text(self) if Displayable.as_text else object.__repr__(self)

    def _repr_html_(self) -> str | None:
        """Return the HTML that IPython and Jupyter show."""
        return Displayable.as_html(self) if Displayable.as_html else None


def show_with(as_text: Callable[[Any], str], as_html: Callable[[Any], str]) -> None:
    """Show tables and reports by these functions: the renderers, which the report does not know."""
    Displayable.as_text, Displayable.as_html = as_text, as_html
