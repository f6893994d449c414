"""Modules in the text round them, cut off, broken, several in one input."""

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
def test_text_round_a_module_is_skipped(before: str, after: str, wants: Wants) -> None:
    found = module(before + WHOLE + after, wants)
    assert (found.name, found.computation_count) == ("m", 2)
    assert found.first_line == before.count("\n") + 1
    assert (found.lines, found.bytes) == (WHOLE.count("\n"), len(WHOLE))
    assert codes(found) == []
    assert found.unparsed_lines == 0


@pytest.mark.parametrize("between", ["", "\n", "I0405 dump.cc] next\n\n", "}\n", "loss (0.5) -> 0.25 {\n"])
def test_several_modules(between: str) -> None:
    text = WHOLE + between + WHOLE.replace("HloModule m", "HloModule o, num_partitions=2") + between + WHOLE
    found = modules(text)
    lines = WHOLE.count("\n")
    step = lines + between.count("\n")
    assert [(m.name, m.first_line, m.lines, m.header.num_partitions) for m in found] == [
        ("m", 1, lines, 1),
        ("o", 1 + step, lines, 2),
        ("m", 1 + 2 * step, lines, 1),
    ]
    assert [(m.computation_count, m.opcode_counts.total(), codes(m)) for m in found] == [(2, 4, [])] * 3


def test_a_module_without_header() -> None:
    found = module(f"noise {{\n{BODY}\n{ENTRY}noise\n")
    assert (found.header.printed, found.computation_count, found.first_line) == (False, 2, 2)
    assert found.entry is not None
    assert found.entry.name == "main"


def test_a_headerless_module_behind_another() -> None:
    first, second = modules(WHOLE + "\nnoise\n" + ENTRY)
    assert (first.computation_count, second.computation_count, second.header.printed) == (2, 1, False)


@pytest.mark.parametrize(
    "text", ["", "\n", "HloModule m\n", "ENTRY\n", "ENTRY e {\n}\n", "e {\n  no instruction\n}\n", "a = f32[] b(c)\n"]
)
def test_what_holds_no_module(text: str) -> None:
    assert modules(text.encode()) == []


def test_a_header_alone_is_a_module_if_it_says_something() -> None:
    assert problems(module("HloModule m, num_partitions=2\n")) == [
        ("HI002", 1, None, "the module has a header and no computation", 1)
    ]


def test_the_order_of_computations_does_not_matter() -> None:
    found = module(f"HloModule m\n{ENTRY}{BODY}")
    assert (found.computation_count, codes(found)) == (2, [])
    assert found.entry is not None
    assert found.entry.name == "main"


def test_modules_on_one_line() -> None:
    one_line = "HloModule m ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) } // e\n"
    found = module(one_line)
    assert (found.name, dict(found.opcode_counts), codes(found)) == ("m", {"parameter": 1, "negate": 1}, [])
    assert found.lines == 1


@pytest.mark.parametrize("piece_bytes", [10, 100, 1 << 19])
def test_bytes_that_are_not_utf_8_are_told(piece_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PIECE_BYTES", piece_bytes)
    raw = WHOLE.replace("negate(%p)", 'negate(%p), metadata={op_name="\xff"}').encode("latin-1")
    found = module(raw)
    assert problems(found) == [("HI005", 10, None, "1 lines hold bytes that are not UTF-8; they are shown as \\xNN", 1)]


def test_the_bytes_of_a_module_are_those_of_its_text() -> None:
    text = WHOLE.replace("negate(%p)", 'negate(%p), metadata={op_name="\u00e9\u4e2d"}')
    found = module("caf\u00e9\n" + text + "caf\u00e9\n")
    assert found.bytes == len(text.encode())


def test_a_table_that_is_cut_off() -> None:
    assert codes(module('HloModule m, is_scheduled=true\n\nFileNames\n1 "a.py"\n2 "b')) == ["HI002"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "}\n"),
        ("", "  ROOT q = f32[2] negate(p)\n}\n"),
        ("\n  %q = (f32[2]) tuple(p)\n}\n", ""),
        ("rest)\n}\n\n", ""),
        ("", ", execution_thread=a\n"),
    ],
)
def test_parts_of_computations_round_a_module(before: str, after: str) -> None:
    assert codes(module(before + WHOLE + after)) == []


def test_an_instruction_alone_is_no_module() -> None:
    assert modules("%d = f32[2] add(f32[2] %x, f32[2] %y)\n") == []
