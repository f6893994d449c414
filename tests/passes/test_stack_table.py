"""The call stacks of the lines that a table shows: only a verbose page has them. Their rows are in tests/cases."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.formats import FORMATS
from hlo_inspect.report.render_options import RenderOptions
from tests.cases.case import cases_of

TEXT = next(cases_of(Path(__file__).parents[1] / "cases/passes/collectives/call_stacks.hlo")).text


@pytest.mark.parametrize("verbose", [True, False])
def test_only_a_verbose_page_shows_it(verbose: bool) -> None:
    page = io.StringIO()
    FORMATS["table"]([hlo_inspect.inspect(TEXT, "collectives")], page, RenderOptions(width=120, verbose=verbose))
    assert ("jax/_src/lax/parallel.py:99" in page.getvalue()) is verbose
