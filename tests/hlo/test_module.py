"""What is kept of a module and its computations."""

from __future__ import annotations

from hlo_inspect.hlo import grammar
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.instruction import Instruction, head_of
from hlo_inspect.hlo.module import Computation, Module, Wants


def instruction(text: str, computation: Computation) -> Instruction:
    row, _ = grammar.scan_instruction(text, 0)
    return Instruction(computation, row, head_of(row[2]), 7)


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
        computation.keep(instruction(text, computation))
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


def test_a_body_is_made_of_the_text_that_was_kept() -> None:
    computation = Computation("main", 1, is_entry=True)
    assert computation.body() == []
    computation.keep_text(3, "\n  p = f32[] parameter(0)\n  q = f32[] sqrt(p)\n")
    computation.keep_text(6, ("", "r", "f32[] negate", "q)"))
    assert [(i.name, i.opcode, i.line, i.is_root) for i in computation.body()] == [
        ("p", "parameter", 3, False),
        ("q", "sqrt", 4, False),
        ("r", "negate", 6, True),  # the last, since none is marked
    ]
    computation.keep_text(7, "\n  ROOT s = f32[] negate(r)\n  t = f32[] negate(s)\n")
    assert [i.name for i in computation.body() if i.is_root] == ["s"]


def test_a_row_whose_operands_are_not_closed_is_a_fault() -> None:
    """The other rows stand; none of them is taken for the root that it was."""
    computation = Computation("main", 1, is_entry=True)
    computation.keep_text(3, "\n  p = f32[] parameter(0)\n  ROOT q = f32[] sqrt(p\n")
    assert [(i.name, i.is_root) for i in computation.body()] == [("p", False)]
    assert computation.faults == {"q": (4, "'(' is not closed")}
