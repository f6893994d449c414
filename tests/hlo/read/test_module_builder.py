"""The parts of a module that are kept for each Wants."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.read import open_computation
from hlo_inspect.hlo.read.cursor import Span
from hlo_inspect.hlo.read.open_computation import OpenComputation
from hlo_inspect.hlo.rows import HeadTable
from hlo_inspect.hlo.values.header import Header
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import EVERYTHING, body, kept_instructions, module
from tests.linear_time import assert_linear

TEXT = """HloModule m

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}

%inner (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %ar = f32[8]{0} all-reduce(%a), replica_groups={{0,1}}, to_apply=%add
}

%fused (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  %n = f32[8]{0} negate(%b)
  ROOT %f = f32[8]{0} fusion(%n), kind=kLoop, calls=%inner
}

%plain (c: f32[8]) -> f32[8] {
  %c = f32[8]{0} parameter(0)
  ROOT %d = f32[8]{0} custom-call(%c), custom_call_target="all-reduce(x)"
}

ENTRY %main (p: f32[8], q: f32[4]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %start = f32[8]{0} all-reduce-start(%p), replica_groups={{0,1}}, to_apply=%add
  %done = f32[8]{0} all-reduce-done(%start)
  %g = f32[8]{0} fusion(%done), kind=kLoop, calls=%fused
  %h = f32[8]{0} fusion(%g), kind=kLoop, calls=%plain
  %t = f32[8]{0} custom-call(%h), custom_call_target="Wanted"
  ROOT %r = f32[8]{0} add(%t, %t), metadata={op_name="a all-reduce(b)"}
}
"""
COLLECTIVES = frozenset({"all-reduce", "all-reduce-start"})


def test_empty_wants_keep_no_instruction() -> None:
    parsed = module(TEXT, Wants())
    assert kept_instructions(parsed) == []
    assert parsed.computation_count == 5
    assert parsed.entry is not None
    assert parsed.entry.name == "main"


def test_wanted_opcodes_and_their_callers_are_kept() -> None:
    assert kept_instructions(module(TEXT, Wants(COLLECTIVES))) == [
        ("fused", "f", "fusion"),
        ("inner", "ar", "all-reduce"),
        ("main", "g", "fusion"),
        ("main", "start", "all-reduce-start"),
    ]


def test_a_wanted_opcode_matches_only_its_exact_spelling() -> None:
    assert kept_instructions(module(TEXT, Wants(frozenset({"all-reduce-done"})))) == [("main", "done", "all-reduce-done")]
    assert kept_instructions(module(TEXT, Wants(frozenset({"reduce"})))) == []


def test_custom_calls_with_a_wanted_target_are_kept() -> None:
    wants = Wants(COLLECTIVES, targets=frozenset({"Wanted"}))
    assert ("main", "t", "custom-call") in kept_instructions(module(TEXT, wants))
    assert ("plain", "d", "custom-call") not in kept_instructions(module(TEXT, wants))


def test_unread_parameters_are_not_searched_unless_wanted() -> None:
    computation = module(TEXT, Wants(entry=True)).entry
    assert computation is not None
    assert computation.reads is None


def test_parameters_and_root_of_the_entry_are_kept() -> None:
    parsed = module(TEXT, Wants(entry=True, unused=True))
    assert kept_instructions(parsed) == [("main", "p", "parameter"), ("main", "q", "parameter"), ("main", "r", "add")]
    assert parsed.entry is not None
    assert parsed.entry.root is not None
    assert parsed.entry.reads is not None
    assert (parsed.entry.root.name, parsed.entry.reads.unread) == ("r", {"q"})


def test_reading_every_line_counts_opcodes_and_keeps_no_instruction() -> None:
    parsed = module(TEXT, Wants(checked=True))
    assert kept_instructions(parsed) == []
    assert parsed.opcode_counts == {
        "parameter": 7,
        "add": 2,
        "all-reduce": 1,
        "negate": 1,
        "fusion": 3,
        "custom-call": 2,
        "all-reduce-start": 1,
        "all-reduce-done": 1,
    }
    assert {name: len(c.opcodes) for name, c in parsed.computations.items()} == {
        "add": 3,
        "inner": 2,
        "fused": 3,
        "plain": 2,
        "main": 8,
    }


def test_a_graph_has_every_instruction_with_line_and_root() -> None:
    parsed = module(TEXT, Wants(graph=True))
    names = {name: [i.name for i in body(c)] for name, c in parsed.computations.items()}
    assert names == {
        "add": ["x", "y", "s"],
        "inner": ["a", "ar"],
        "fused": ["b", "n", "f"],
        "plain": ["c", "d"],
        "main": ["p", "q", "start", "done", "g", "h", "t", "r"],
    }
    lines = {i.name: i.line for c in parsed.computations.values() for i in body(c)}
    assert (lines["x"], lines["ar"], lines["p"], lines["r"]) == (4, 11, 26, 33)
    assert [i.name for c in parsed.computations.values() for i in body(c) if i.is_root] == ["s", "ar", "f", "d", "r"]


def test_lines_and_operand_shapes_of_kept_instructions() -> None:
    parsed = module(TEXT, Wants(COLLECTIVES, entry=True, operands=frozenset({"all-reduce-start", "fusion"})))
    by_name = {i.name: i for i in parsed.instructions}
    assert {name: i.line for name, i in by_name.items()} == {"ar": 11, "f": 17, "p": 26, "q": 27, "start": 28, "g": 30, "r": 33}
    for name in ("start", "g"):
        assert list(map(str, by_name[name].operand_shapes or ())) == ["f32[8]"]
    assert by_name["r"].operand_shapes is None


def test_an_instruction_is_parsed_on_access() -> None:
    parsed = module(TEXT, Wants(frozenset({"all-reduce", "fusion"}), checked=True))
    (fusion,) = parsed.computations["fused"].instructions
    assert [computation.name for computation in parsed.holding] == ["inner", "fused", "main"]
    assert [i.tail for i in parsed.with_opcodes({"all-reduce"})] == ["%a), replica_groups={{0,1}}, to_apply=%add"]
    assert fusion.untouched is not None
    assert "".join(fusion.untouched) == fusion.tail
    assert (fusion.name, fusion.line, fusion.is_root, str(fusion.shape)) == ("f", 17, True, "f32[8]")
    assert (fusion.attr("kind"), fusion.called, fusion.operands) == ("kLoop", [("calls", "fused", "inner")], (("n", (), ""),))
    assert fusion.untouched is None


@pytest.mark.parametrize(
    "metadata", ["", ', metadata={op_name="jit(step)/add" stack_frame_id=7}', ", metadata={}, frontend_attributes={}"]
)
def test_a_kept_instruction_has_its_whole_text(metadata: str) -> None:
    tail = f"%n), kind=kLoop, calls=%inner{metadata}"
    parsed = module(TEXT.replace("%n), kind=kLoop, calls=%inner", tail), Wants(frozenset({"fusion"}), checked=True))
    assert [instruction.tail for instruction in parsed.computations["fused"].instructions] == [tail]


def test_callers_of_a_computation_are_found_by_their_text() -> None:
    """A caller that is printed in an unusual way counts as a caller of any computation.

    Callees in braces, in another attribute, after a string, or none are unusual.
    """
    note = 'frontend_attributes={note="it, calls=plain"}'
    calls = ["calls=%inner", "calls={%inner}", "calls=%plain", "kind=kLoop", f"{note}, calls=%inner"]
    calls += [f"kind=kLoop, calls=%plain, {note}"]
    rows = [f"  %f{number} = f32[8]{{0}} fusion(%a), {call}\n" for number, call in enumerate(calls)]
    rows += [f"  %c = f32[8]{{0}} call(%a), to_apply=%inner, {note}\n", "  %s = f32[8]{0} async-start(%a), calls=%plain\n"]
    rows += ["  ROOT %r = f32[8]{0} negate(%a)\n"]
    text = f"HloModule m\n\nENTRY %e (a: f32[8]) -> f32[8] {{\n  %a = f32[8]{{0}} parameter(0)\n{''.join(rows)}}}\n"
    calling = frozenset({"fusion", "call", "async-start"})
    parsed = module(text, Wants(calling, checked=True))
    assert [i.name for i in parsed.with_opcodes(calling, {"inner"})] == ["f0", "f1", "f3", "f4", "c"]
    assert [i.name for i in parsed.with_opcodes(calling, {"plain"})] == ["f1", "f2", "f3", "f4", "f5", "c", "s"]
    assert not list(parsed.with_opcodes({"add"}, {"inner"}))


def test_the_reducer_of_a_collective_is_recognized() -> None:
    """Its computation may be kept or skipped."""
    parsed = module(TEXT, Wants(COLLECTIVES))
    assert parsed.root_opcodes["add"] == "add"
    assert module(TEXT).computations["add"].root_opcode == "add"


def test_the_last_instruction_is_the_root_if_none_is_marked() -> None:
    text = TEXT.replace("ROOT ", "")
    everything = module(text)
    assert [c.root_opcode for c in everything.computations.values()] == ["add", "all-reduce", "fusion", "custom-call", "add"]
    assert everything.entry is not None
    assert everything.entry.root is not None
    assert everything.entry.root.name == "r"
    assert [i.name for i in everything.instructions] == ["p", "q", "r"]
    selected = module(text, Wants(COLLECTIVES | {"add"}))
    assert [i.name for i in selected.instructions if i.is_root] == ["s", "ar", "f", "r"]


def test_the_last_computation_is_the_entry_if_none_is_marked() -> None:
    parsed = module(TEXT.replace("ENTRY ", ""))
    assert parsed.entry is not None
    assert parsed.entry.name == "main"
    assert [(number, i.name) for number, i in parsed.entry.parameters.items()] == [(0, "p"), (1, "q")]
    assert parsed.entry.root is not None
    assert parsed.entry.root.name == "r"
    assert parsed.entry.reads is not None
    assert parsed.entry.reads.unread == {"q"}


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"])
def test_partitioning_targets_of_custom_calls_are_noted(target: str) -> None:
    line = f'  %d = f32[8]{{0}} custom-call(%c), custom_call_target="{target}"\n'
    text = TEXT.replace("  ROOT %d", line + "  ROOT %e")
    for wants in (Wants(), Wants(COLLECTIVES), EVERYTHING):
        assert module(text, wants).device_marks.partitioning_targets == {target}
        assert module(TEXT, wants).device_marks.partitioning_targets == set()


HEADER = "HloModule m\n\n"
ADD = """%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

"""
SUM = """%sum (p: f32[4]) -> f32[] {
  %p = f32[4]{0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%add
}

"""
MAIN = """ENTRY %main (q: f32[4]) -> f32[] {
  %q = f32[4]{0} parameter(0), sharding={replicated}
  ROOT %f = f32[] fusion(%q), kind=kInput, calls=%sum
}
"""


def test_computations_have_opcodes_root_and_line() -> None:
    parsed = module(HEADER + ADD + SUM + MAIN, Wants(every_line=True))
    assert [(c.name, c.line, c.root_opcode, list(c.opcodes), c.is_entry) for c in parsed.computations.values()] == [
        ("add", 3, "add", ["parameter", "parameter", "add"], False),
        ("sum", 9, "reduce", ["parameter", "constant", "reduce"], False),
        ("main", 15, "fusion", ["parameter", "fusion"], True),
    ]
    assert parsed.entry is parsed.computations["main"]
    assert list(parsed.device_marks.shardings) == ["{replicated}"]


def test_wanted_instructions_are_kept_in_any_computation() -> None:
    wants = Wants(opcodes=frozenset({"reduce", "fusion"}), operands=frozenset({"reduce"}), every_line=True)
    parsed = module(HEADER + ADD + SUM + MAIN, wants)
    assert [(i.computation.name, i.name, i.line, i.is_root) for i in parsed.instructions] == [
        ("sum", "r", 12, True),
        ("main", "f", 17, True),
    ]
    assert list(map(str, parsed.instructions[0].operand_shapes or ())) == ["f32[4]", "f32[]"]


def test_every_row_is_kept_for_the_graph() -> None:
    total = module(HEADER + ADD + SUM + MAIN, Wants(graph=True)).computations["sum"]
    assert [row[1] for row in total.rows] == ["p", "z", "r"]
    assert total.rows.lines == range(10, 13)


def heads_of(*texts: str, wanted: frozenset[str] = frozenset()) -> HeadTable:
    heads = HeadTable(wanted=wanted)
    assert [heads[text].opcode for text in texts] == [text.rpartition(" ")[2] for text in texts]
    return heads


def new_open_computation(heads: HeadTable) -> OpenComputation:
    return OpenComputation(Computation("f", 1, is_entry=False), heads)


@pytest.mark.parametrize(
    "shape",
    ["s32[]", "u64[]", "pred[]", "s4[]", "s32[]{:T(128)S(6)}", "(f32[8]{0}, s32[])", "((f32[], (pred[])), f32[])", "(u32[])"],
)
def test_shapes_that_hold_an_integer_scalar(shape: str) -> None:
    assert heads_of(f"{shape} tuple")[f"{shape} tuple"].holds_scalar


@pytest.mark.parametrize(
    "shape", ["f32[]", "bf16[]", "s32[1]", "s32[0]", "token[]", "c64[]", "()", "(s32[2], f32[])", "opaque[]", ""]
)
def test_shapes_that_hold_no_integer_scalar(shape: str) -> None:
    assert not heads_of(f"{shape} tuple")[f"{shape} tuple"].holds_scalar


def test_heads_are_classified_once() -> None:
    texts = ["s32[] add", "f32[2]{0} while", "f32[2]{0} fusion", "f32[2]{0} tanh", "x32[] add", "s32[] frob"]
    texts.append("(f32[2]{0}, f32[2]{1,0}) tuple")
    table = heads_of(*texts, wanted=frozenset({"while", "add"}))
    heads = [table[text] for text in texts]
    assert [record.is_wanted for record in heads] == [True, True, False, False, True, False, False]
    assert [record.may_be_kept for record in heads] == [False, False, True, False, False, False, False]
    assert [record.problem for record in heads[4:]] == [
        ("HI006", "unknown element type in x32[]"),
        ("HI004", "unknown opcode 'frob'"),
        ("HI013", "the layout and the dimensions differ in number in (f32[2]{0}, f32[2]{1,0})"),
    ]
    assert [record.is_special for record in heads] == [True, True, True, False, True, True, True]
    assert [record.may_call for record in heads] == [False, True, True, False, False, True, False]  # an unknown opcode may call
    assert table.find("f32[2 add") is None
    assert table.find("s32[] add") is table["s32[] add"] is heads[0]


def test_old_definitions_are_dropped_above_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_computation, "MAX_DEFINITIONS", 3)
    table = heads_of("f32[] negate", "s32[] constant")
    heads = new_open_computation(table)
    negate, constant = table["f32[] negate"], table["s32[] constant"]
    for number in range(3):
        heads.define([f"x{number}"], [negate])
    heads.define(["a", "b"], [negate, constant])
    assert [name for name in ("x0", "x1", "x2", "a", "b") if heads.get(name)] == ["b"]


def test_definitions_are_found_in_unread_lines() -> None:
    heads = new_open_computation(HeadTable())
    assert heads.get("a") is None
    text = "\n  %a = f32[2]{0} parameter(0)\n  %b = s32[] constant(1)\n  %a = f32[2]{0} negate(%a)\n"
    heads.unread_lines = Span(text, 1, len(text), 2)
    assert [head and head.opcode for head in map(heads.get, "abc")] == ["negate", "constant", None]


MARKED = """
  %a = f32[8] custom-call(%p), custom_call_target="Sharding", sharding={devices=[2]<=[2]}
  %b = f32[8] custom-call(%a), custom_call_target="SPMDFullToShardShape", sharding={replicated}
  %c = f32[8] custom-call(%b), custom_call_target="__cublas$gemm", sharding={replicated}
"""


def test_device_marks_have_partitioning_calls_and_the_first_tiling() -> None:
    module = Module(Header("m"), "path", 1, Wants())
    module.device_marks.note(MARKED, 0, len(MARKED))
    module.device_marks.note("sharding={devices=[4]<=[4]}", 0, 27)
    assert module.device_marks.partitioning_targets == {"Sharding", "SPMDFullToShardShape"}
    assert module.device_marks.tiling == "{devices=[2]<=[2]}"


def test_device_marks_are_ignored_if_the_header_states_partitions() -> None:
    module = Module(Header("m", attributes={"is_scheduled": "true", "num_partitions": "2"}), "path", 1, Wants())
    module.device_marks.note(MARKED, 0, len(MARKED))
    assert (module.device_marks.partitioning_targets, module.device_marks.tiling) == (set(), "")


def test_shardings_of_the_entry_are_noted_once_in_order() -> None:
    module = Module(Header("m"), "path", 1, Wants())
    module.device_marks.note(MARKED, 0, len(MARKED), of_entry=True)
    assert list(module.device_marks.shardings) == ["{devices=[2]<=[2]}", "{replicated}"]
    last_line = ", sharding={maximal device=1}"
    module.device_marks.note(last_line, 0, len(last_line), of_entry=True)
    assert list(module.device_marks.shardings)[2:] == ["{maximal device=1}"]


def test_unclosed_meshes_are_skipped_in_linear_time() -> None:
    def note(count: int) -> None:
        module, line = Module(Header("m"), "path", 1, Wants()), ", sharding={mesh['a'" * count
        module.device_marks.note(line, 0, len(line))
        assert module.device_marks.tiling == ""

    assert_linear(note, 4_000)


def test_rows_share_the_text_of_their_heads() -> None:
    """Rows take most of the memory of a large text, so equal heads are one string."""
    lines = "".join(f"  n{number} = f32[4,8]{{1,0}} negate(p)\n" for number in range(50))
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[4,8]{{1,0}} parameter(0)\n{lines}}}\n"
    rows = [row for computation in module(text, Wants(graph=True)).computations.values() for row in computation.rows]
    assert (len(rows), len({id(row[2]) for row in rows})) == (51, 2)
