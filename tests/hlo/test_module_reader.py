"""Computations of a module: broken lines, cut texts, what may stand between."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import source
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import EVERYTHING, codes, module, modules, problems

ENTRY = "ENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n  ROOT %n = f32[2]{0} negate(%p)\n}\n"
BODY = "%body (q: f32[2]) -> f32[2] {\n  %q = f32[2]{0} parameter(0)\n  ROOT %m = f32[2]{0} sqrt(%q)\n}\n"
WHOLE = f"HloModule m\n\n{BODY}\n{ENTRY}"
SELECTIVE = Wants(frozenset({"all-reduce"}))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["this is nothing"], [(5, 3, "expected an instruction", 1)]),
        (["%q == f32[] sqrt(%p)"], [(5, 3, "expected an instruction", 1)]),
        (["%q = f32[2] Sqrt(%p)"], [(5, 15, "expected an opcode and '('", 1)]),
        (["%q = f32[2] sqrt %p"], [(5, 15, "expected an opcode and '('", 1)]),
        (["%q = f32[2] sqrt(%p"], [(5, 19, "'(' is not closed", 1)]),
        (["%q = f32[2] sqrt(%p]"], [(5, 22, "']' does not close '('", 1)]),
        (["%q = f32[2] sqrt(%p), x={1"], [(5, 27, "'{' is not closed", 1)]),
        (['%q = f32[2] sqrt(%p), x="1'], [(5, 27, "expected a value", 1)]),
        (["%q = f32[2 sqrt(%p)"], [(5, 11, "'[' is not closed", 1)]),
        (["%q = f32[2,a] sqrt(%p)"], [(5, 12, "'a' is no dimension", 1)]),
        (
            ["oops", "%q = f32[2] sqrt(%p)", "oops"],
            [(5, 3, "expected an instruction", 1), (7, 3, "expected an instruction", 1)],
        ),
        (["oops", "oops"], [(5, 3, "expected an instruction", 1)]),  # what follows may continue the line before
        (["%q = f32[2] sqrt(%p) /* open"], [(5, 24, "a comment is not closed", 1)]),
    ],
)
def test_lines_that_cannot_be_read(lines: list[str], expected: list[tuple[int, int, str, int]]) -> None:
    indented = "".join(f"  {line}\n" for line in lines)
    text = "HloModule m\n\n" + ENTRY.replace("  ROOT", f"{indented}  ROOT")
    found = module(text)
    assert [(line, column, message, times) for _, line, column, message, times in problems(found)] == expected
    assert found.unparsed_lines == len(lines) - ("%q = f32[2] sqrt(%p)" in lines)
    assert found.opcode_counts["negate"] == 1


def test_unreadable_lines_between_computations() -> None:
    found = module(f"HloModule m\n\noops\n{BODY}oops 2\n\n{ENTRY}oops 3\n")
    assert problems(found) == [("HI001", line, 1, "expected a computation", 1) for line in (3, 8)]
    assert found.unparsed_lines == 2
    assert (found.computation_count, found.lines) == (2, 13)


@pytest.mark.parametrize("cut", range(len("HloModule m, a=1\n\n"), len(WHOLE)))
def test_a_module_that_is_cut_off_anywhere(cut: int) -> None:
    text = WHOLE.replace("HloModule m", "HloModule m, a=1")[:cut]
    found = module(text)
    whole_lines = text.count("\n")
    assert found.opcode_counts["parameter"] == (whole_lines > 3) + (whole_lines > 8) or text.endswith("0)")
    assert found.opcode_counts["sqrt"] == (whole_lines > 4) or text.endswith("%q)")
    last_line = text.rpartition("\n")[2]
    if last_line in {"E", "EN", "ENT", "ENTR"}:  # may be the start of anything
        assert codes(found) == ["HI001"]
    elif last_line not in {"", "}"}:
        assert "HI002" in codes(found)


def test_a_cut_is_told_with_its_line() -> None:
    text = WHOLE[: WHOLE.index("negate(%p)")]
    assert problems(module(text)) == [
        ("HI002", 10, None, "the text ends inside computation main", 1),
        ("HI001", 10, 22, "expected an opcode and '('", 1),
    ]


def test_a_module_that_is_cut_off_by_other_text() -> None:
    noise = "".join(f"I0405 step {n}: loss 0.5 {{\n" for n in range(100))
    text = "HloModule m\n" + BODY + ENTRY[: ENTRY.index("  ROOT")] + noise + WHOLE
    first, second = modules(text)
    assert problems(first) == [("HI002", 8, None, "the module is cut off here: what follows is no HLO", 1)]
    assert first.unparsed_lines == 0
    assert first.opcode_counts == {"parameter": 2, "sqrt": 1}
    assert (second.first_line, codes(second)) == (108, [])


def test_a_module_that_is_cut_off_by_another() -> None:
    first, second = modules("HloModule m\n" + ENTRY[: ENTRY.rindex("}")] + WHOLE)
    assert problems(first) == [("HI002", 5, None, "computation main is not closed", 1)]
    assert (second.name, second.first_line, codes(second)) == ("m", 5, [])


def test_a_computation_that_is_not_closed() -> None:
    found = module("HloModule m\n" + BODY.replace("}\n", "") + ENTRY)
    assert problems(found) == [("HI002", 5, None, "computation body is not closed", 1)]
    assert found.opcode_counts == {"parameter": 2, "sqrt": 1, "negate": 1}


def test_threads_and_comments_behind_a_closing_brace() -> None:
    for closer in (
        '}, execution_thread="host"',
        '}, execution_thread="host" // body',
        "} // body",
        '}\n, execution_thread="x"',
    ):
        found = module(f"HloModule m\n{BODY[:-2]}{closer}\n{ENTRY}")
        assert (found.computation_count, codes(found)) == (2, [])


def test_stack_frame_tables() -> None:
    tables = """FileNames
1 "a {.py"
FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3}
StackFrames
1 {file_location_id=1}

"""
    found = module(f"HloModule m\n\n{tables}{ENTRY}")
    assert codes(found) == []
    frame = found.frames.source_line(1)
    assert frame is not None
    assert (frame.file, frame.line, frame.function) == ("a {.py", 3, "f")


@pytest.mark.parametrize("wants", [EVERYTHING, SELECTIVE], ids=["all", "some"])
def test_a_line_of_ten_megabytes(wants: Wants) -> None:
    values = ", ".join(["1.5"] * 2_000_000)
    text = WHOLE.replace("  ROOT %n", f"  %c = f32[2000000]{{0}} constant({{{values}}})\n  ROOT %n")
    assert len(text) > 10_000_000 - 100
    found = module(text, wants)
    assert (found.computation_count, codes(found), found.lines) == (2, [], WHOLE.count("\n") + 1)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_closing_brace_inside_a_literal(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", size)
    literal = "  %c = s32[2,2] constant({\n{ 1, 2 },\n{ 3, 4 }\n})\n"
    found = module(WHOLE.replace("  ROOT %n", f"{literal}  ROOT %n"))
    assert (found.computation_count, codes(found)) == (2, [])
    assert found.opcode_counts == {"parameter": 2, "sqrt": 1, "negate": 1, "constant": 1}
