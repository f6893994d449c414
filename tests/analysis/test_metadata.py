"""Where an instruction comes from, in both spellings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.metadata import Origin, origin
from hlo_inspect.hlo.header import StackFrames

DATA = Path(__file__).parents[1] / "data"

TABLES = (
    'FileNames\n1 "/train/main.py"\n2 "/train/layers.py"\n',
    'FunctionNames\n1 "main"\n',
    "FileLocations\n1 {file_name_id=1 function_name_id=1 line=10}\n2 {file_name_id=2 function_name_id=1 line=27 end_line=29}\n",
    "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {file_location_id=2 parent_frame_id=2}\n",
)


def frames(*tables: str) -> StackFrames:
    found = StackFrames()
    for table in tables:
        found.add(table)
    return found


def from_metadata(metadata: str, *tables: str) -> Origin:
    return origin(f"{{{metadata}}}", frames(*tables))


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('op_name="jit(f)/dot" source_file="/train/a.py" source_line=12', Origin("jit(f)/dot", "/train/a.py:12")),
        ('source_line=12 source_file="/train/a.py" op_name="jit(f)/dot"', Origin("jit(f)/dot", "/train/a.py:12")),
        (
            'op_type="mul" op_name="jit(f)/mul" source_file="a.py" source_line=7 source_end_line=9',
            Origin("jit(f)/mul", "a.py:7"),
        ),
        ('op_name="f" source_file="a.py"', Origin("f", "a.py")),
        ('op_name="f" source_line=12', Origin("f", "")),
        ('op_name="f"', Origin("f", "")),
        (r"""op_name="state[\'w\']" """, Origin("state['w']", "")),
        (r'op_name="f" source_file="/train/odd \"name\" {1}.py" source_line=3', Origin("f", '/train/odd "name" {1}.py:3')),
        ("", Origin()),
    ],
)
def test_inline(metadata: str, expected: Origin) -> None:
    assert from_metadata(metadata) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ('op_name="f" stack_frame_id=1', Origin("f", "/train/main.py:10")),
        ('op_name="f" scheduling_name="stack" stack_frame_id=2', Origin("f", "/train/layers.py:27")),
        ('op_name="f" stack_frame_id=0', Origin("f", "")),
        ('op_name="f" stack_frame_id=3', Origin("f", "")),
    ],
)
def test_by_the_tables(metadata: str, expected: Origin) -> None:
    assert from_metadata(metadata, *TABLES) == expected


@pytest.mark.parametrize("missing", range(4))
def test_a_table_that_is_not_there(missing: int) -> None:
    tables = [table for number, table in enumerate(TABLES) if number != missing]
    expected = "/train/main.py:10" if TABLES[missing].startswith("FunctionNames") else ""
    assert from_metadata('op_name="f" stack_frame_id=1', *tables).source == expected


def test_no_metadata() -> None:
    assert origin("", frames(*TABLES)) == Origin("", "")


def test_what_stands_in_a_string_is_no_field() -> None:
    metadata = 'op_name="source_line=99 stack_frame_id=2" source_file="a.py" source_line=5'
    assert from_metadata(metadata).source == "a.py:5"
    assert from_metadata('op_name="stack_frame_id=2" stack_frame_id=1', *TABLES).source == "/train/main.py:10"


def test_a_dump_that_points_into_its_tables(read: Callable[..., Context]) -> None:
    """The line of each instruction as counted by hand in the handmade dump."""
    places = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))["stack_frames.txt"]["sources"]
    text = (DATA / "handmade/stack_frames.txt").read_text(encoding="utf-8")
    module = read(
        text.replace("%outer = f32[4]{0} negate(%p)", '%outer = f32[4]{0} custom-call(%p), custom_call_target="x"')
    ).module
    found = {i.name: origin(i.attribute("metadata"), module.frames).source for i in module.instructions if i.name in places}
    assert found == {name: f"{file}:{line}" for name, (file, line) in places.items()}
