"""Every figure that is known of a dump, by XLA's parser or counted by hand, against the summary and the rows of `params`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report, Value

DATA = Path(__file__).parents[1] / "data"
BY_XLA: dict[str, Any] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
BY_HAND: dict[str, Any] = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))

NOT_YET = ("cost.", "loops.", "mesh.", "optimizer.")
"""Families of figures that no command answers yet."""

WRITTEN_OTHERWISE = ("tpu/", "jax_0_4_13/")
"""Where the compiler writes a program's collectives as other kinds than the program calls."""


NAMELESS = {
    "prints/canonical.txt": "operands have no names",
    "prints/fingerprint.txt": "nothing has a name",
    "prints/no_ids.txt": "names have lost their numbers",
}
"""Prints for hashing a module: what they say of names cannot be right, which has to be said."""


def figures(name: str, facts: dict[str, Value]) -> dict[str, Value]:
    """What XLA and the program's source say of a dump."""
    program = dict(BY_XLA["programs"].get(Path(name).name.split(".")[0], {}))
    if name.startswith(WRITTEN_OTHERWISE):
        program = {fact: value for fact, value in program.items() if not fact.startswith("collectives.")}
    return {fact: value for fact, value in (program | facts).items() if not fact.startswith(NOT_YET)}


def differences(report: Report, known: dict[str, Value]) -> dict[str, tuple[Value, Value]]:
    """Fact -> (what is known, what the report says), where they differ."""
    found = {fact: (value, report.facts.get(fact, 0)) for fact, value in known.items()}
    return {fact: pair for fact, pair in found.items() if pair[0] != pair[1]}


def index(numbers: list[int]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def donations(path: Path, module: int = 0) -> tuple[set[tuple[str, int, str]], set[tuple[int, str]]]:
    """Aliases as (output, parameter, index in it) and donors as (parameter, index), from the rows of `params`."""
    table = list(hlo_inspect.inspect_all(path, ("params",)))[module].table("params")
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    aliased = {(str(r["aliased_output"]), int(r["number"] or 0), str(r["index"])) for r in rows if r["aliased_output"]}
    donated = {(int(r["number"] or 0), str(r["index"])) for r in rows if r["donated"] and not r["aliased_output"]}
    return aliased, donated


@pytest.mark.parametrize("name", sorted(BY_XLA["dumps"]))
def test_compiled_dumps(name: str) -> None:
    facts = BY_XLA["dumps"][name]["facts"]
    report = hlo_inspect.inspect(DATA / name)
    assert differences(report, figures(name, facts)) == {}
    opcodes = {fact for fact in facts if fact.startswith("opcode.")}
    assert {fact for fact, count in report.facts.items() if fact.startswith("opcode.") and count} == opcodes


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_XLA["dumps"].items() if "aliases" in entry))
def test_donations_of_compiled_dumps(name: str) -> None:
    entry = BY_XLA["dumps"][name]
    assert donations(DATA / name) == (
        {(index(output), parameter, index(inside)) for output, parameter, inside in entry["aliases"]},
        {(parameter, index(inside)) for parameter, inside in entry["donors"]},
    )


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if entry["modules"]))
def test_handmade_dumps(name: str) -> None:
    entry = BY_HAND[name]
    reports = list(hlo_inspect.inspect_all(DATA / "handmade" / name))
    assert len(reports) == len(entry["modules"])
    for report, known in zip(reports, entry["modules"], strict=True):
        assert differences(report, {fact: value for fact, value in known.items() if not fact.startswith(NOT_YET)}) == {}
    if "first_lines" in entry:
        assert [report.input.first_line for report in reports] == entry["first_lines"]
    if "aliases" in entry:
        assert donations(DATA / "handmade" / name) == (
            {(index(output), parameter, index(inside)) for output, parameter, inside in entry["aliases"]},
            {(parameter, index(inside)) for parameter, inside in entry.get("donors", [])},
        )


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if not entry["modules"]))
def test_what_holds_no_module(name: str) -> None:
    with pytest.raises(hlo_inspect.InputError):
        hlo_inspect.inspect(DATA / "handmade" / name)


BROKEN = {"refuses: broken", "refuses: not one module", "refuses: unknown attributes"}


@pytest.mark.parametrize("name", sorted(name for name, entry in BY_HAND.items() if entry["jaxlib"] not in BROKEN))
def test_what_xla_reads_has_no_fault(name: str) -> None:
    """Nor has what is only older or newer than the parser at hand."""
    for report in hlo_inspect.inspect_all(DATA / "handmade" / name):
        assert [(f.rule, f.message) for f in report.findings if f.rule.startswith("HI0")] == []
        assert report.facts["module.unparsed_lines"] == 0


@pytest.mark.parametrize("name", sorted(BY_XLA["dumps"].keys() - NAMELESS.keys()))
def test_compiled_dumps_have_no_fault(name: str) -> None:
    report = hlo_inspect.inspect(DATA / name)
    assert [(f.rule, f.message) for f in report.findings if f.rule.startswith("HI0")] == []
    assert report.facts["module.unparsed_lines"] == 0
