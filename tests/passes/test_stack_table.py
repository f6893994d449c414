"""The call stacks of the lines that a table shows."""

from __future__ import annotations

import io

import pytest

import hlo_inspect
from hlo_inspect.report.formats import FORMATS
from hlo_inspect.report.render_options import RenderOptions
from tests.tables import column

TEXT = """HloModule m, num_partitions=2

FileNames
1 "/train/main.py"
2 "/venv/lib/python3.11/site-packages/jax/_src/lax/parallel.py"

FunctionNames
1 "main"
2 "psum"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10}
2 {file_name_id=2 function_name_id=2 line=99}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT sum = f32[] add(x, y)
}

ENTRY main {
  p = f32[8] parameter(0)
  a = f32[8] all-reduce(p), replica_groups={}, to_apply=add, metadata={op_name="psum" stack_frame_id=2}
  ROOT b = f32[8] all-reduce(a), replica_groups={}, to_apply=add, metadata={op_name="psum" stack_frame_id=2}
}
"""


def page(*, verbose: bool) -> str:
    stream = io.StringIO()
    FORMATS["table"]([hlo_inspect.inspect(TEXT, "collectives")], stream, RenderOptions(width=120, verbose=verbose))
    return stream.getvalue()


def test_each_stack_stands_once() -> None:
    """Two collectives of one stack: the user's line is the caller of the library's."""
    report = hlo_inspect.inspect(TEXT, "collectives")
    assert set(column(report.table("collectives"), "source")) == {"/train/main.py:10"}
    assert report.table("call_stacks").rows == (
        ("/train/main.py:10", 0, "/venv/lib/python3.11/site-packages/jax/_src/lax/parallel.py:99", "psum"),
        ("/train/main.py:10", 1, "/train/main.py:10", "main"),
    )


def test_only_a_verbose_page_shows_it() -> None:
    assert "Call stacks" not in page(verbose=False)
    assert "jax/_src/lax/parallel.py:99" in page(verbose=True)


@pytest.mark.parametrize("command", ["top", "collectives"])
def test_pages_with_a_source_line_have_the_stacks(command: str) -> None:
    rows = hlo_inspect.inspect(TEXT, command).table("call_stacks").rows
    assert [row[2] for row in rows] == ["/venv/lib/python3.11/site-packages/jax/_src/lax/parallel.py:99", "/train/main.py:10"]


def test_fusions_have_the_stacks_of_theirs() -> None:
    fusion = "ROOT b = f32[8] fusion(a), kind=kLoop, calls=add"
    text = TEXT.replace("ROOT b = f32[8] all-reduce(a), replica_groups={}, to_apply=add", fusion)
    assert [row[3] for row in hlo_inspect.inspect(text, "fusions").table("call_stacks").rows] == ["psum", "main"]
