"""Comparisons of two inputs: pairs of modules, number of readings, saved reports, and errors."""

from __future__ import annotations

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.compared_module import ComparedModule
from hlo_inspect.compare.comparison import SAME, SAME_FACTS
from hlo_inspect.errors import UsageError
from hlo_inspect.inspection import comparisons
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.calling import call_text

MODULE = "HloModule {name}\n\nENTRY e {{\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] {opcode}(p)\n}}\n\n"


def folder(path: Path, modules: dict[str, str], *, junk: bool = False) -> str:
    """Make a directory with a file per module (name: opcode). `junk` adds a file without a module."""
    path.mkdir()
    for name, opcode in modules.items():
        (path / f"module_0001.{name}.after_optimizations.txt").write_text(MODULE.format(name=name, opcode=opcode))
    if junk:
        (path / "module_0009.junk.after_optimizations.txt").write_text("no module\n")
    return str(path)


def pairs(runner: Comparisons, old: str, new: str) -> list[tuple[str | None, str | None]]:
    compared = runner.compare(ComparedInput(old), ComparedInput(new))
    return [(pair.old.name if pair.old else None, pair.new.name if pair.new else None) for pair in compared]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": "sine"}, {"z": "cosine"}, [("a", "z")]),  # a single module on each side is a pair under any names
        ({"a": "sine", "b": "tanh"}, {"b": "tanh"}, [("b", "b"), ("a", None)]),
        ({"b": "tanh"}, {"a": "sine", "b": "tanh", "c": "negate"}, [("b", "b"), (None, "a"), (None, "c")]),
        (
            {"a": "sine", "b": "tanh", "c": "negate"},
            {"c": "negate", "b": "tanh", "a": "sine"},
            [("a", "a"), ("b", "b"), ("c", "c")],
        ),
    ],
)
def test_modules_of_two_inputs_are_paired(tmp_path: Path, old: dict[str, str], new: dict[str, str], expected: object) -> None:
    runner = Comparisons(Request())
    assert pairs(runner, folder(tmp_path / "old", old, junk=True), folder(tmp_path / "new", new)) == expected
    assert [error.location.path for error in runner.errors if error.location] == [
        str(tmp_path / "old/module_0009.junk.after_optimizations.txt")
    ]


def test_nothing_is_compared_if_a_side_has_no_module(tmp_path: Path) -> None:
    runner = Comparisons(Request())
    new = folder(tmp_path / "new", dict.fromkeys("abc", "sine"), junk=True)
    assert pairs(runner, folder(tmp_path / "old", {}, junk=True), new) == []
    assert len(runner.errors) == 2


@pytest.mark.parametrize(("names", "readings"), [("a", 1), ("ab", 2)])
def test_only_inputs_of_several_modules_are_read_twice(monkeypatch: pytest.MonkeyPatch, names: str, readings: int) -> None:
    read: list[str] = []
    opened = comparisons._ComparedSide._reports

    def count_reading(side: comparisons._ComparedSide, inspection: Inspection) -> object:
        read.append(str(side._open()))
        return opened(side, inspection)

    monkeypatch.setattr(comparisons._ComparedSide, "_reports", count_reading)
    texts = ["".join(MODULE.format(name=name, opcode=opcode) for name in names) for opcode in ("sine", "tanh")]
    assert len(pairs(Comparisons(Request()), texts[0], texts[1])) == len(names)
    assert [read.count(text) for text in texts] == [readings, readings]


@pytest.mark.parametrize(("old", "new"), [("abc", "abc"), ("a", "abc"), ("abc", "a")])
def test_the_first_pair_is_compared_before_all_modules_are_analysed(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    made: list[str] = []

    class NotingModule(ComparedModule):
        def __init__(self, report: Report, context: Context | None = None) -> None:
            super().__init__(report, context)
            made.append(self.name)

    monkeypatch.setattr(comparisons, "ComparedModule", NotingModule)
    texts = ["".join(MODULE.format(name=name, opcode="sine") for name in names) for names in (old, new)]
    results = Comparisons(Request()).compare(ComparedInput(texts[0]), ComparedInput(texts[1]))
    assert next(results).verdict == SAME
    assert len(made) == 3


def test_a_comparison_without_notes_has_the_same_report() -> None:
    old, new = MODULE.format(name="m", opcode="sine"), MODULE.format(name="m", opcode="custom-call")
    results = {}
    for with_notes in (True, False):
        (results[with_notes],) = Comparisons(Request(), with_notes=with_notes).compare(ComparedInput(old), ComparedInput(new))
    assert results[False].report == results[True].report
    sides = [result.new.report for result in results.values() if result.new is not None]
    assert "cost.unknown_custom_calls" in " ".join(sides[0].notes)
    assert sides[1].notes == ()
    assert sides[1].facts == sides[0].facts


def test_truncated_sides_have_no_notes_if_notes_are_off() -> None:
    cut = MODULE.format(name="m", opcode="sine").rpartition("}")[0]
    (comparison,) = Comparisons(Request(), with_notes=False).compare(ComparedInput(cut), ComparedInput(cut))
    assert comparison.new is not None
    assert comparison.new.report.facts["cost.executed_flops"] is None
    assert comparison.new.report.notes == ()


# -- facts and sources ------------------------------------------------------------------------------------------------------


def saved_report(text: str) -> str:
    """Return the report of the only module of a text, as `--format json` writes it."""
    return call_text("summary", "-", "--format", "json", given=text).stdout


def test_all_facts_except_the_fingerprint_are_compared() -> None:
    text = MODULE.format(name="m", opcode="sine")
    (comparison,) = Comparisons(Request()).compare(ComparedInput(text), ComparedInput(text))
    assert comparison.new is not None
    prefixes = {name.partition(".")[0] for name in comparison.new.report.facts}
    assert prefixes > {"module", "params", "collectives", "optimizer", "cost", "memory", "fusions"}
    assert "fingerprint" not in prefixes
    assert {"params", "outputs"} <= {table.name for table in comparison.new.report.tables}


def test_only_one_of_two_inputs_can_be_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is kept, because an input of two modules is read twice."""
    runner = Comparisons(Request())
    with pytest.raises(UsageError, match="only one of the two inputs can be standard input"):
        list(runner.compare(ComparedInput("-"), ComparedInput("/dev/stdin")))
    text = "".join(MODULE.format(name=name, opcode="sine") for name in "ab")
    for side in range(2):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text.encode())))
        sides = [text, text]
        sides[side] = "-"
        assert pairs(Comparisons(Request()), sides[0], sides[1]) == [("a", "a"), ("b", "b")]


def test_a_saved_report_is_compared_with_a_module_or_a_report(tmp_path: Path) -> None:
    """Saved reports hold facts and tables only, so options for reading dumps do not apply."""
    text = MODULE.format(name="m", opcode="sine")
    (tmp_path / "a.json").write_text(saved_report(text))
    (tmp_path / "b.json").write_text(saved_report(text))
    old, new = ComparedInput(tmp_path / "a.json"), ComparedInput(tmp_path / "b.json")
    for first, second in ((old, new), (old, ComparedInput(text)), (ComparedInput(text), new)):
        (pair,) = Comparisons(Request()).compare(first, second)
        assert pair.verdict == SAME_FACTS
        assert [side.context is None for side in (pair.old, pair.new) if side] == [
            first in (old, new),
            second in (old, new),
        ]
    with pytest.raises(UsageError, match="--strict, --mesh do not apply to saved reports"):
        list(Comparisons(Request(strict=True, mesh="d=1")).compare(old, new))
    with pytest.raises(UsageError, match="--mesh does not apply"):
        list(Comparisons(Request(mesh="d=1")).compare(old, new))
    assert len(list(Comparisons(Request(phases="names")).compare(old, ComparedInput(text)))) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": ', "is unreadable JSON"),
        ('{"a": ' * 70 + "1" + "}" * 70, "is JSON, but nested too deep for a report"),
        ('{"a": 1}', "is JSON"),
        ('{"schema_version": 99}', "99"),
    ],
)
def test_json_that_is_no_report_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "old.json").write_text(text)
    runner = Comparisons(Request())
    new = MODULE.format(name="m", opcode="sine")
    assert list(runner.compare(ComparedInput(tmp_path / "old.json"), ComparedInput(new))) == []
    (error,) = runner.errors
    assert message in error.message
    assert error.path == str(tmp_path / "old.json")


def test_each_side_may_name_its_own_module() -> None:
    text = "".join(MODULE.format(name=name, opcode="sine") for name in ("left", "right"))
    (comparison,) = Comparisons(Request(module="left")).compare(ComparedInput(text), ComparedInput(text, "right"))
    assert (comparison.old.name if comparison.old else "", comparison.new.name if comparison.new else "") == ("left", "right")


def test_modules_without_a_common_name_are_paired_by_content() -> None:
    """Equal programs are paired first, then equal signatures of many arrays. A signature of two arrays is too short."""
    old = MODULE.format(name="a", opcode="sine") + MODULE.format(name="b", opcode="tanh")
    new = MODULE.format(name="y", opcode="tanh") + MODULE.format(name="x", opcode="cosine")
    assert pairs(Comparisons(Request()), old, new) == [("b", "y"), ("a", None), (None, "x")]
    many = (
        "HloModule {}\n\nENTRY e {{\n  p = (f32[1], f32[2], f32[3], f32[4]) parameter(0)\n  ROOT r = f32[] constant({})\n}}\n\n"
    )
    old += many.format("c", 1)
    new += many.format("z", 2)
    assert pairs(Comparisons(Request()), old, new) == [("b", "y"), ("c", "z"), ("a", None), (None, "x")]
