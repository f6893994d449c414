"""Modules in other text: whole, truncated, broken, and several in one input. Cases of faults are in tests/cases/hlo/read."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from types import FrameType

import pytest

import hlo_inspect
from hlo_inspect.hlo.input import source
from hlo_inspect.hlo.read import fast_path, module_reader
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.hlo.reading import EVERYTHING, codes, module, modules, problems

ENTRY = "ENTRY %main (p: f32[2]) -> f32[2] {\n  %p = f32[2]{0} parameter(0)\n  ROOT %n = f32[2]{0} negate(%p)\n}\n"
BODY = "%body (q: f32[2]) -> f32[2] {\n  %q = f32[2]{0} parameter(0)\n  ROOT %m = f32[2]{0} sqrt(%q)\n}\n"
WHOLE = f"HloModule m\n\n{BODY}\n{ENTRY}"
SELECTIVE = Wants(frozenset({"all-reduce"}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("\n\n", "\n\n\n"),
        ("compiling ...\n", "done\n"),
        ("// HloModule other\n", "// the end\n"),
        ("HloModule is a word of this sentence.\nENTRY too.\n", "HloModule is a word.\nENTRY too.\n"),
        ("ENTRY price of the { lottery\n", "ENTRY price of the { lottery\n"),
        ("step = 1 loss (0.5) -> 0.25 {\n", "step = 1 loss (0.5) -> 0.25 {\n"),
        ("main {\n  return 0\n}\n", "main {\n  return 0\n}\n"),
        ('{"open\n', '"}\n'),
        ("}\n", "}\n"),
        ("/* a comment */\n", "/* open\n"),
        ("x = f32[2] add(y, z)\n", "x = f32[2] add(y, z)\n"),
        ("```\n", "```\n"),
    ],
)
@pytest.mark.parametrize("wants", [EVERYTHING, SELECTIVE], ids=["all", "some"])
def test_text_around_a_module_is_skipped(before: str, after: str, wants: Wants) -> None:
    parsed = module(before + WHOLE + after, wants)
    assert (parsed.name, parsed.computation_count) == ("m", 2)
    assert parsed.first_line == before.count("\n") + 1
    assert (parsed.lines, parsed.bytes) == (WHOLE.count("\n"), len(WHOLE))
    assert codes(parsed) == []
    assert parsed.unparsed_lines == 0


@pytest.mark.parametrize("between", ["", "\n", "I0405 dump.cc] next\n\n", "}\n", "loss (0.5) -> 0.25 {\n"])
def test_several_modules_of_a_text_are_read(between: str) -> None:
    text = WHOLE + between + WHOLE.replace("HloModule m", "HloModule o, num_partitions=2") + between + WHOLE
    parsed = modules(text)
    lines = WHOLE.count("\n")
    step = lines + between.count("\n")
    assert [(m.name, m.first_line, m.lines, m.header.num_partitions) for m in parsed] == [
        ("m", 1, lines, 1),
        ("o", 1 + step, lines, 2),
        ("m", 1 + 2 * step, lines, 1),
    ]
    assert [(m.computation_count, m.opcode_counts.total(), codes(m)) for m in parsed] == [(2, 4, [])] * 3


def test_a_module_without_header_is_read() -> None:
    parsed = module(f"noise {{\n{BODY}\n{ENTRY}noise\n")
    assert (parsed.header.printed, parsed.computation_count, parsed.first_line) == (False, 2, 2)
    assert parsed.entry is not None
    assert parsed.entry.name == "main"


def test_a_headerless_module_after_another_is_read() -> None:
    first, second = modules(WHOLE + "\nnoise\n" + ENTRY)
    assert (first.computation_count, second.computation_count, second.header.printed) == (2, 1, False)


@pytest.mark.parametrize("text", ["", "\n"])
def test_texts_that_hold_no_module(text: str) -> None:
    assert modules(text.encode()) == []


@pytest.mark.parametrize("piece_bytes", [10, 100, 1 << 19])
def test_bytes_that_are_not_utf_8_are_reported(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", piece_bytes)
    raw = WHOLE.replace("negate(%p)", 'negate(%p), metadata={op_name="\xff"}').encode("latin-1")
    parsed = module(raw)
    assert problems(parsed) == [("HI005", 10, None, "1 line holds bytes that are not UTF-8; they are shown as \\xNN", 1)]


def test_the_bytes_of_a_module_are_those_of_its_utf_8_text() -> None:
    text = WHOLE.replace("negate(%p)", 'negate(%p), metadata={op_name="\u00e9\u4e2d"}')
    parsed = module("caf\u00e9\n" + text + "caf\u00e9\n")
    assert parsed.bytes == len(text.encode())


def test_a_module_truncated_at_any_character_is_noticed() -> None:
    for end in range(len("HloModule m, a=1\n\n"), len(WHOLE)):
        check_truncated(WHOLE.replace("HloModule m", "HloModule m, a=1")[:end])


def check_truncated(text: str) -> None:
    parsed = module(text)
    whole_lines = text.count("\n")
    assert parsed.opcode_counts["parameter"] == (whole_lines > 3) + (whole_lines > 8) or text.endswith("0)")
    assert parsed.opcode_counts["sqrt"] == (whole_lines > 4) or text.endswith("%q)")
    last_line = text.rpartition("\n")[2]
    if last_line in {"E", "EN", "ENT", "ENTR"}:  # may be the start of anything
        assert codes(parsed) == ["HI001"]
    elif last_line not in {"", "}"}:
        assert "HI002" in codes(parsed)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("HloModule m\n" + ENTRY[: ENTRY.rindex("}")] + WHOLE, "main"),
        ("HloModule m\n" + ENTRY[: ENTRY.index("  ROOT")] + "I0405 step: loss 0.5 {\n" * 100, "main"),
    ],
)
def test_a_truncation_names_its_computation(text: str, inside: str | None) -> None:
    (parsed, *_) = modules(text)
    assert [problem.subject for problem in parsed.problems if problem.code == "HI002"] == [inside]


def test_other_text_inside_a_computation_truncates_the_module() -> None:
    noise = "".join(f"I0405 step {n}: loss 0.5 {{\n" for n in range(100))
    text = "HloModule m\n" + BODY + ENTRY[: ENTRY.index("  ROOT")] + noise + WHOLE
    first, second = modules(text)
    assert problems(first) == [("HI002", 8, None, "the module is truncated here: the next text is not HLO", 1)]
    assert first.unparsed_lines == 0
    assert first.opcode_counts == {"parameter": 2, "sqrt": 1}
    assert (second.first_line, codes(second)) == (108, [])


def test_a_header_inside_a_computation_truncates_the_module() -> None:
    first, second = modules("HloModule m\n" + ENTRY[: ENTRY.rindex("}")] + WHOLE)
    assert problems(first) == [("HI002", 5, None, "computation main is not closed", 1)]
    assert (second.name, second.first_line, codes(second)) == ("m", 5, [])


@pytest.mark.parametrize("wants", [EVERYTHING, SELECTIVE], ids=["all", "some"])
def test_a_literal_of_ten_megabytes_is_read(wants: Wants) -> None:
    values = ", ".join(["1.5"] * 2_000_000)
    text = WHOLE.replace("  ROOT %n", f"  %c = f32[2000000]{{0}} constant({{{values}}})\n  ROOT %n")
    assert len(text) > 10_000_000 - 100
    parsed = module(text, wants)
    assert (parsed.computation_count, codes(parsed), parsed.lines) == (2, [], WHOLE.count("\n") + 1)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_brace_inside_a_literal_does_not_end_the_computation(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", size)
    literal = "  %c = s32[2,2] constant({\n{ 1, 2 },\n{ 3, 4 }\n})\n"
    parsed = module(WHOLE.replace("  ROOT %n", f"{literal}  ROOT %n"))
    assert (parsed.computation_count, codes(parsed)) == (2, [])
    assert parsed.opcode_counts == {"parameter": 2, "sqrt": 1, "negate": 1, "constant": 1}


def test_text_after_a_truncation_belongs_to_another_module() -> None:
    noise = "".join(f"I0405 step {n}: loss 0.5\n" for n in range(100))
    other = BODY.replace("body", "other") + "\n" + ENTRY.replace("main", "second")
    first, second = modules(f"HloModule m\n{BODY}\n{ENTRY[: ENTRY.index('  ROOT')]}{noise}\n{other}")
    assert (list(first.computations), list(second.computations)) == (["body", "main"], ["other", "second"])
    assert (problems(first), problems(second)) == (
        [("HI002", 9, None, "the module is truncated here: the next text is not HLO", 1)],
        [],
    )


@pytest.mark.parametrize("wants", [EVERYTHING, Wants(frozenset({"negate"}))])
@pytest.mark.parametrize("following", ["", f"\n{BODY}", "  %p = f32[2]{0} parameter(0)\n}\n"])
def test_text_after_a_truncated_module_is_not_part_of_it(wants: Wants, following: str) -> None:
    first = modules(f"HloModule m\n\n{ENTRY[:-2]}HloModule other\n{following}", wants)[0]
    assert (first.computation_count, first.lines, codes(first)) == (1, 5, ["HI002"])


@pytest.mark.parametrize("wants", [EVERYTHING, Wants(frozenset({"negate"}))])
@pytest.mark.parametrize("text", [ENTRY, f"{BODY}\n{ENTRY}"])
def test_a_module_may_be_indented(wants: Wants, text: str) -> None:
    parsed = module(textwrap.indent(f"HloModule m\n\n{text}", "  "), wants)
    assert (parsed.computation_count, codes(parsed)) == (text.count("{\n"), [])


@pytest.mark.parametrize("between", ["", " ", "\n"])
def test_the_brace_of_an_inline_computation_does_not_end_another(between: str) -> None:
    called = f"calls={between}{{\n  %a = f32[] parameter(0)\n  ROOT %b = f32[] sqrt(%a)\n}}\n"
    text = ENTRY.replace("  ROOT", f"  %f = f32[2]{{0}} fusion(%p), kind=kLoop, {called}  ROOT")
    parsed = module(f"HloModule m\n\n{text}", Wants(frozenset({"negate"})))
    assert ([i.name for i in parsed.instructions], codes(parsed)) == (["n"], [])


@pytest.mark.parametrize("wants", [EVERYTHING, Wants(checked=True, graph=True)])
def test_a_name_defined_twice_in_a_large_module_is_a_fault(wants: Wants) -> None:
    many = "".join(BODY.replace("%body", f"%body.{number}") + "\n" for number in range(1000))
    twice = BODY.replace("  ROOT", "  %q = f32[2]{0} negate(%q)\n  ROOT")
    noted = problems(module(f"HloModule m\n\n{many}{twice}\n{many.replace('body', 'other')}{ENTRY}", wants))
    assert noted == [("HI007", 3 + 5 * 1000 + 2, None, "q is defined twice in computation body", 1)]
    noted = problems(module(f"HloModule m\n\n{BODY}\n{many}{BODY}\n{ENTRY}", wants))
    assert noted == [("HI007", 3 + 5 * 1001, None, "computation body is defined twice", 1)]


def test_the_literal_of_a_custom_call_is_read() -> None:
    call = 'custom-call(%p), custom_call_target="f", literal=s32[] 1'
    parsed = module(WHOLE.replace("negate(%p)", call), EVERYTHING | Wants(frozenset({"custom-call"})))
    assert [i.attr("literal") for i in parsed.instructions if i.opcode == "custom-call"] == ["s32[] 1"]
    assert codes(parsed) == []


ONE_COLLECTIVE = """HloModule m, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %ar = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=%add
}
"""
HLO = str(Path(source.__file__).parents[1])


def test_reading_a_line_calls_few_functions() -> None:
    """The path of a line stays short enough to follow.

    At most 120 different functions of `hlo` are called. Functions that only fill a new object or run on import do
    not count.
    """
    hlo_inspect.inspect(ONE_COLLECTIVE, "collectives", phases="names")
    called: set[str] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(HLO) and not code.co_name.startswith(("<", "__init__")):
            called.add(f"{code.co_filename}:{code.co_qualname}")

    sys.setprofile(note)
    try:
        report = hlo_inspect.inspect(ONE_COLLECTIVE, "collectives", phases="names")
    finally:
        sys.setprofile(None)
    assert report.facts["collectives.count"] == 1
    assert 40 < len(called) <= 120


def test_a_malformed_shape_does_not_make_reading_quadratic(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tries of the fast path together examine less than ten times the text."""
    lines = [f"  %n{i} = f32[8]{{0}} negate(%p)\n" for i in range(4000)]
    lines.insert(3000, "  %odd = f32[8x]{0} negate(%p)\n")
    text = f"HloModule m\n\nENTRY %e (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n{''.join(lines)}}}\n"
    tried = 0
    find_rows = fast_path.find_rows

    def counted(text: str, start: int, limit: int, *, is_final: bool) -> fast_path.RowTexts | None:
        nonlocal tried
        rows = find_rows(text, start, limit, is_final=is_final)
        tried += (rows.end if rows is not None else limit) - start
        return rows

    monkeypatch.setattr(module_reader, "find_rows", counted)
    parsed = module(text, EVERYTHING)
    assert parsed.unparsed_lines == 1
    assert parsed.opcode_counts == {"parameter": 1, "negate": 4000}
    assert tried < 10 * len(text)


def test_a_small_module_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row is read again with those of later modules."""
    read = 0
    find_rows = fast_path.find_rows

    def counting(text: str, start: int, limit: int, *, is_final: bool) -> fast_path.RowTexts | None:
        nonlocal read
        rows = find_rows(text, start, limit, is_final=is_final)
        read += rows.end - start if rows is not None else 0
        return rows

    monkeypatch.setattr(module_reader, "find_rows", counting)
    monkeypatch.setattr(library, "library", lambda: None)
    text = WHOLE * 200
    assert len(modules(text)) == 200
    assert 0 < read < len(text)
