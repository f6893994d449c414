"""What is kept of a module and its computations."""

from __future__ import annotations

from hlo_inspect.hlo import parser
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.heads import HeadTable
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.wants import Wants


def instruction(text: str, computation: Computation) -> Instruction:
    row = parser.parse_instruction(text, 0).row
    return Instruction(computation, row, HeadTable()[row[2]], 7)


def test_the_union_of_wants() -> None:
    one = Wants(frozenset({"dot"}), frozenset({"t"}), entry=True)
    other = Wants(frozenset({"add"}), every_line=True)
    assert one | other == Wants(frozenset({"dot", "add"}), frozenset({"t"}), entry=True, every_line=True)
    assert not one.reads_every_line
    assert (one | other).reads_every_line
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


def test_opcodes_are_collected_one_stretch_after_the_other() -> None:
    one, other = Computation("one", 1, is_entry=False), Computation("other", 1, is_entry=False)
    assert one.opcodes == []
    one.add_opcodes(["add"])
    one.add_opcodes(["negate", "add"])
    assert (one.opcodes, other.opcodes) == (["add", "negate", "add"], [])


def test_faults_of_a_computation() -> None:
    computation = Computation("main", 1, is_entry=True)
    assert dict(computation.faults) == {}
    computation.note_fault("a", 3, "odd")
    computation.note_fault("b", 4, "odder")
    assert computation.faults == {"a": (3, "odd"), "b": (4, "odder")}


def test_rows_on_consecutive_lines_have_a_range_of_them() -> None:
    p, q, r = ("", "p", "f32[] parameter", "0)"), ("", "q", "f32[] sqrt", "p)"), ("ROOT ", "r", "f32[] negate", "q)")
    computation = Computation("main", 1, is_entry=True)
    assert (list(computation.rows), list(computation.lines)) == ([], [])
    computation.keep_rows([p, q], 3)
    assert (computation.rows, computation.lines) == ([p, q], range(3, 5))
    computation.keep_rows([r], 5)
    assert (computation.rows, computation.lines) == ([p, q, r], range(3, 6))
    computation.keep_rows([p, q], 8)
    assert computation.lines == [3, 4, 5, 8, 9]
    computation.keep_rows([r], 10)
    assert (computation.rows, computation.lines) == ([p, q, r, p, q, r], [3, 4, 5, 8, 9, 10])


def test_a_cut_is_remembered() -> None:
    module = Module(Header("m"), "dump.txt", 1, Wants())
    module.note("HI007", "a is defined twice", 4, "a")
    assert not module.problems.hold_a_cut
    module.note("HI002", "the text ends", 9)
    assert module.problems.hold_a_cut
    assert [(p.code, p.location.line, p.subject) for p in module.problems] == [("HI007", 4, "a"), ("HI002", 9, None)]
