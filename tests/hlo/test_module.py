"""The kept parts of a module and its computations."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import MAX_UNPACKED, Computation, Module
from hlo_inspect.hlo.read import parser
from hlo_inspect.hlo.rows import NO_ROWS, HeadTable, Rows, join_rows, packed
from hlo_inspect.hlo.tokens import Row
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.values.shape_text import ShapeError
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import rows_of


def instruction(text: str, computation: Computation) -> Instruction:
    row = parser.parse_instruction(text, 0).row
    return Instruction(computation.enclosing(), row, HeadTable()[row[2]], 7)


def test_a_union_of_wants_has_the_wants_of_both() -> None:
    wants = Wants(frozenset({"dot"}), frozenset({"t"}), entry=True)
    other = Wants(frozenset({"add"}), every_line=True)
    assert wants | other == Wants(frozenset({"dot", "add"}), frozenset({"t"}), entry=True, every_line=True)
    assert not wants.reads_every_line
    assert (wants | other).reads_every_line
    assert Wants(graph=True).reads_every_line


def test_parameters_and_root_of_a_computation() -> None:
    computation = Computation("main", 1, is_entry=True)
    for text in ("q = f32[] parameter(1)", "p = f32[] parameter(0)", "odd = f32[] parameter(x)", "ROOT r = f32[] add(p, q)"):
        computation.instructions = [*computation.instructions, instruction(text, computation)]
    assert [(number, i.name) for number, i in computation.parameters.items()] == [(0, "p"), (1, "q")]
    assert computation.root is computation.instructions[-1]
    assert Computation("empty", 1, is_entry=False).root is None


def test_instructions_of_a_module() -> None:
    module = Module(Header("m"), "a.txt", 1, Wants())
    for name in ("first", "second"):
        computation = Computation(name, 1, is_entry=False)
        computation.instructions = [
            instruction(f"{name}.{opcode} = f32[] {opcode}(x)", computation) for opcode in ("negate", "sqrt")
        ]
        computation.opcodes = ["negate", "sqrt"]
        module.computations[name] = computation
    assert [i.name for i in module.instructions] == ["first.negate", "first.sqrt", "second.negate", "second.sqrt"]
    assert [i.name for i in module.with_opcodes(frozenset({"sqrt"}))] == ["first.sqrt", "second.sqrt"]
    assert module.opcode_counts == {"negate": 2, "sqrt": 2}
    assert str(module.location(3, 4)) == "a.txt:3:4"


def test_scalars_are_unpacked_on_access() -> None:
    module = Module(Header("m"), "a.txt", 1, Wants())
    computations = [Computation(f"f{number}", 1, is_entry=False, shared=module.shared) for number in range(MAX_UNPACKED + 2)]
    for computation in computations:
        assert (computation.packed_scalars, computation.scalars) == (None, {})
        computation.keep_scalars([(("", "a", "s32[] constant", "3)"), 7), (("ROOT ", "b", "s32[] copy", "%a), x=1"), 8)])
    for computation in (*computations, computations[0]):
        a, b = computation.scalars.values()
        assert (a.name, a.opcode, str(a.shape), a.literal, a.line, a.is_root) == ("a", "constant", "s32[]", "3", 7, False)
        assert (b.operands[0].name, b.line, b.is_root, b.computation.name) == ("a", 8, True, computation.name)
    assert computations[0].scalars["a"] is computations[0].scalars["a"]


def test_packed_rows_that_differ_only_in_names_share_a_form() -> None:
    forms: dict[bytes, bytes] = {}
    kept = [packed(scalars("a", "b", 1), 10, forms)]
    kept.append(packed([(row, line + 40) for row, line in scalars("x.1", "y.2", 1)], 50, forms))
    assert kept[0].form is kept[1].form
    assert list(kept[0].rows(10)) == scalars("a", "b", 1)
    assert list(kept[1].rows(50)) == [(row, line + 40) for row, line in scalars("x.1", "y.2", 1)]
    others = (scalars("a", "b", 2), scalars("a", "a", 1), [(row, line + 1) for row, line in scalars("a", "b", 1)])
    assert len({kept[0].form, *(packed(rows, 10, forms).form for rows in others)}) == 4


def scalars(left: str, right: str, number: int) -> list[tuple[Row, int]]:
    rows = [("", left, "s32[] constant", f"{number})"), ("ROOT ", "sum", "s32[] add", f"%{left}, %{right}), metadata={{x%y%}}")]
    return [(row, line) for line, row in enumerate(rows, 12)]


def test_rows_on_consecutive_lines_have_a_range_of_lines() -> None:
    p, q, r = ("", "p", "f32[] parameter", "0)"), ("", "q", "f32[] sqrt", "p)"), ("ROOT ", "r", "f32[] negate", "q)")
    first, second = rows_of([p, q], 3), rows_of([r], 5)
    assert join_rows([first]) is first
    whole = join_rows([first, second])
    assert (list(whole), whole.lines) == ([p, q, r], range(3, 6))
    rows = join_rows([first, second, rows_of([p, q], 8), rows_of([r], 10)])
    assert (list(rows), rows.lines) == ([p, q, r, p, q, r], [3, 4, 5, 8, 9, 10])
    assert [rows[index] for index in range(6)] == list(rows)
    assert list(NO_ROWS) == []


def test_a_column_has_the_heads_and_the_root_of_rows() -> None:
    p, q = ("", "p", "f32[] parameter", "0)"), ("ROOT ", "q", "f32[] sqrt", "%p)")
    table = HeadTable()
    column = table.column((p[2], q[2]), (p[0], q[0]))
    assert column.root is column.heads[1]
    assert table.column((p[2], q[2]), (q[0], p[0])).root is column.heads[0]
    assert table.column((p[2], q[2]), (q[0], q[0])).root is None
    more = join_rows([Rows(("a", "b"), column, ("0)", "%a)"), range(2)), rows_of([p], 2)])
    assert (column.opcodes, more.opcodes) == (("parameter", "sqrt"), ("parameter", "sqrt", "parameter"))
    with pytest.raises(ShapeError):
        table.column(("f32[2 add",), ("",))


def test_joined_rows_have_the_column_of_all_their_heads() -> None:
    p, f = ("", "p", "s32[] parameter", "0)"), ("ROOT ", "f", "f32[8] fusion", "%p), kind=kLoop, calls=%g")
    column = join_rows([rows_of([p, f], 3), rows_of([p], 9)]).column
    assert (column.texts, column.marked, column.calling) == ((p[2], f[2], p[2]), frozenset({1}), (1,))
    assert NO_ROWS.column.calling == ()
