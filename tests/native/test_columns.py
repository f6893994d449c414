"""Columns of texts, worked out by hand, and texts that the native reader refuses."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import pytest

from hlo_inspect.hlo.columns import CALLS_AHEAD, IS_ENTRY, USES_ELEMENTS, Columns, Texts
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES, LITERAL_OPCODES
from hlo_inspect.native import library
from hlo_inspect.native.library import NativeReader, Reading

ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %a, %b), metadata={op_name="f(x)/add"}
}
"""
ENTRY = """
ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0), sharding={devices=[2]<=[2]}
  %all-reduce.1 = f32[8]{0} all-reduce(%p), channel_id=7, replica_groups={{0,1}}, to_apply=%add
  ROOT %all-reduce.2 = f32[8]{0} all-reduce(%all-reduce.1), channel_id=8, replica_groups={{0,1}}, to_apply=%add
}
"""


@pytest.fixture
def reader() -> Iterator[NativeReader]:
    loaded = library.library()
    if loaded is None:
        pytest.skip("no library")
    with NativeReader(loaded, sorted(LITERAL_OPCODES), ["channel_id"], CALLEE_ATTRIBUTES) as made:
        yield made


def read(reader: NativeReader, text: str, *, is_final: bool = True) -> Reading:
    return reader.read(f"before {text} after", len("before "), len("before ") + len(text), is_final=is_final)


def test_columns(reader: NativeReader) -> None:
    text = ADD + ENTRY + "other text\n"
    assert read(reader, text) == Reading.ENTRY_READ
    assert reader.position == len(ADD + ENTRY)
    columns = Columns(reader.take_columns(), text, 0, 10)
    assert [columns.name(number) for number in range(columns.count)] == ["add", "main"]
    assert [columns.line_of(number) for number in range(columns.count)] == [10, 16]
    assert [columns.extent(number) for number in range(columns.count)] == [(0, 3), (3, 6)]
    assert list(columns.computation_flags) == [0, IS_ENTRY]
    assert columns.signature(1) == "ENTRY %main (p: f32[8]) -> f32[8] {"
    assert [columns.row_name(row) for row in range(6)] == ["a", "b", "sum", "p", "all-reduce.1", "all-reduce.2"]
    assert columns.head_texts == ["f32[] parameter", "f32[] add", "f32[8]{0} parameter", "f32[8]{0} all-reduce"]
    assert list(columns.heads) == [0, 0, 1, 2, 3, 3]
    assert [list(columns.rows_of_head(head)) for head in range(4)] == [[0, 1], [2], [3], [4, 5]]
    assert [list(columns.operands_of(row)) for row in range(6)] == [[], [], [0, 1], [], [3], [4]]
    assert columns.tail(2) == 'f32[] %a, %b), metadata={op_name="f(x)/add"}'
    assert list(columns.roots) == [2, 5]
    assert [(columns.names[callee], columns.row_of_call(call)) for call, callee in enumerate(columns.callees)] == [
        ("add", 4),
        ("add", 5),
    ]
    assert {CALLEE_ATTRIBUTES[role] for role in columns.roles} == {"to_apply"}
    assert [columns.metadata_text(number) if number >= 0 else "" for number in columns.metadata][2:4] == [
        '{op_name="f(x)/add"}',
        "",
    ]
    equal = ", channel_id=, replica_groups={{0,1}}, to_apply="
    forms = [columns.form_texts[number] for number in columns.attribute_forms]
    assert forms == ["", "", "", ", sharding={devices=[2]<=[2]}", equal, equal]
    assert columns.end() == (len(ADD + ENTRY), 11)


def test_a_text_that_grows(reader: NativeReader) -> None:
    text = ADD + ENTRY
    for size in range(len(ADD) + 3):  # the line after the first computation begins
        assert read(reader, text[:size], is_final=False) == Reading.INCOMPLETE
    assert reader.computations == 1
    assert read(reader, text, is_final=False) == Reading.INCOMPLETE  # a comma may follow
    assert read(reader, text, is_final=True) == Reading.ENTRY_READ
    assert list(reader.take_columns()["operands"]) == [0, 1, 3, 4]


def test_elements_of_tuples_and_callees_that_follow(reader: NativeReader) -> None:
    text = """%f (t: (f32[], f32[])) -> f32[] {
  %t = (f32[], /*index=1*/f32[]) parameter(0)
  %c = f32[] call(%t#0), to_apply=%g
  ROOT %s = f32[] add((f32[], f32[]) %t#1, %c)
}
%g (a: f32[]) -> f32[] {
  ROOT %a = f32[] parameter(0)
}
"""
    read(reader, text)
    columns = Columns(reader.take_columns(5), "line\n" + text, 5, 1)
    assert [flags & USES_ELEMENTS for flags in columns.row_flags] == [0, USES_ELEMENTS, USES_ELEMENTS, 0]
    assert list(columns.computation_flags) == [CALLS_AHEAD, 0]
    assert [list(columns.operands_of(row)) for row in range(4)] == [[], [0], [0, 1], []]


REFUSED = {
    "an operand without a row": ("%a, %b), m", "%a, %c), m"),
    "a name with two rows": ("%b = f32[] parameter", "%a = f32[] parameter"),
    "no root": ("ROOT ", ""),
    "two roots": ("%b = ", "ROOT %b = "),
    "no shape": ("= f32[] add", "= add"),
    "operands left out": ("f32[] %a, %b)", "%a, ...(+1)"),
    "an instruction in place": ("f32[] %a, %b)", "f32[] negate(%a), %b)"),
    "an open bracket": ("f32[] %a, %b)", "f32[] %a, %b"),
    "brackets that do not fit": ("x)/add", 'x)", y=[}, z="'),
    "an open string": ('add"}', "add}"),
    "a backslash at the end": ('add"}', 'add\\"}'),
    "a comment": ("%b), ", "%b), /* of a person */ "),
    "a line comment": ('add"}', 'add"} // sum'),
    "a blank at the end": ('add"}', 'add"} '),
    "a comma at the end": ('add"}', 'add"},'),
    "no value": ('metadata={op_name="f(x)/add"}', "metadata="),
    "two metadata": (", metadata", ", metadata={}, metadata"),
    "UTF-8": ("f(x)", "f(ü)"),
    "a control character": ("f(x)", "f(\x1b)"),
    "a tab": ("  %b", "\t%b"),
    "a blank line": ("  %b", "\n  %b"),
    "a computation in place": (", metadata", ", to_apply={ ROOT %x = f32[] constant(1) }, metadata"),
    "a nesting of 65 brackets": ('f(x)/add"', f'f(x)", deep={"[" * 64 + "]" * 64}, y="'),
    "the comma of an attribute on the next line": ("}\n\n", "}\n,\n"),
    "an unknown end": ('add"}\n}', 'add"}\n} end'),
    "an operand named null": ("%a, %b), m", "%a, null), m"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_refused(reader: NativeReader, change: str) -> None:
    old, new = REFUSED[change]
    text = ADD + "\n" + ENTRY
    assert text.count(old) >= 1
    before = "%first (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n\n"
    assert read(reader, before + text.replace(old, new, 1)) == Reading.REFUSED
    assert (reader.computations, reader.position) == (1, len(before) - 1)
    columns = reader.take_columns()
    assert [len(columns[name]) for name in ("head", "operands", "callee", "row_flags", "metadata")] == [1, 0, 0, 1, 1]


def test_memory_is_bounded_by_the_text(reader: NativeReader) -> None:
    rows = "".join(f"  %x.{number} = f32[8]{{0}} add(%x.{number - 1}, %x.{number - 1})\n" for number in range(1, 5000))
    text = f"%f (x: f32[8]) -> f32[8] {{\n  %x.0 = f32[8]{{0}} parameter(0)\n{rows}  ROOT %y = f32[8]{{0}} negate(%x.1)\n}}\n"
    read(reader, text)
    sizes = [len(column) * column.itemsize for column in reader.take_columns().values()]
    assert sum(sizes) < 80 * 5001


def test_texts_are_a_sequence() -> None:
    texts = Texts("abcdef", array("i", [0, 1, 3]), array("i", [1, 3, 6]), range(3))
    assert (len(texts), list(texts), texts[0], texts[-1]) == (3, ["a", "bc", "def"], "a", "def")
    assert (list(texts[1:]), list(texts[::-1])) == (["bc", "def"], ["def", "bc", "a"])
    with pytest.raises(IndexError):
        texts[3]
