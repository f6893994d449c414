"""A dump in the forms of logs, mails, terminals and programs: the same report except for positions.

Cases of small texts are in tests/cases/hlo/pasted.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.formats.json import report_to_dict
from hlo_inspect.report.model import Report

DUMP = (Path(__file__).parents[2] / "data" / "gpu" / "gathered_matmul.after.txt").read_text(encoding="utf-8")
"""31 instructions, three collectives, tables of stack frames."""

OTHER = (
    "HloModule other\n\nENTRY %e (p: f32[4]) -> f32[4] {\n  %p = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%p)\n}\n"
)


def prefixed(start: Callable[[int], str], trailing: bool = True) -> Callable[[str], str]:
    """Return a function that prefixes each line by its number; without `trailing` it removes blanks at line ends."""

    def make(text: str) -> str:
        lines = (start(number) + line for number, line in enumerate(text.splitlines()))
        return "".join(f"{line if trailing else line.rstrip()}\n" for line in lines)

    return make


def glog(number: int) -> str:
    return f"I0000 00:00:1718031415.{number * 7919 % 1000000:06}   12345 gpu_compiler.cc:1234] "


def tensorflow(number: int) -> str:
    return f"2024-06-10 12:00:{number % 60:02}.{number:06}: E    6014 tensorflow/compiler/xla/xla_util.cc:{70 + number % 9}] "


PREFIXES: dict[str, Callable[[int], str]] = {
    "glog": glog,
    "old glog": lambda n: f"I0610 12:00:01.{n:06} 12345 gpu_compiler.cc:1234] ",
    "TensorFlow": tensorflow,
    "TensorFlow without thread": lambda n: f"2024-06-10 12:00:01.{n:06}: I external/xla/xla/service/dump.cc:{n}] ",
    "a date": lambda n: f"2024-06-10 12:{n % 60:02}:01,{n:03} ",
    "a date in brackets": lambda n: f"[2024-06-10T12:{n % 60:02}:01.{n}Z] ",
    "a time": lambda n: f"12:{n % 60:02}:01 ",
    "Python's logging": lambda n: f"2024-06-10 12:00:01,{n:03} - train.py - INFO - ",
    "Python's default logging": lambda _: "INFO:root:",
    "journal": lambda n: f"Jun 10 12:00:{n % 60:02} host-3 python[4711]: ",
    "rank": lambda _: "[rank0]: ",
    "rank of torchrun": lambda _: "[default3]:",
    "rank of srun": lambda _: "12: ",
    "mpirun": lambda _: "[1,0]<stdout>:",
    "ray": lambda _: "(RayTrainWorker pid=1234, ip=10.0.0.7) ",
    "kubectl": lambda n: f"2024-06-10T12:00:01.{n}Z stdout F ",
    "kubectl of a pod": lambda _: "[pod/train-0/main] ",
    "compose": lambda _: "worker-0  | ",
    "compose with times": lambda n: f"worker-0  | 2024-06-10T12:00:01.{n:09}Z ",
    "all of them": lambda n: f"worker-0  | 2024-06-10T12:00:01.{n:09}Z [rank0]: {glog(n)}",
    "cat -n": lambda n: f"{n + 95:6d}\t",
    "cat -n with blanks": lambda n: f"{n + 95:6d}  ",
    "grep -n": lambda n: f"{n + 95}:",
    "grep -n of files": lambda n: f"dumps/module_0001.jit_f.txt:{n + 95}:",
    "a quotation": lambda _: "> ",
    "a quotation in a quotation": lambda _: "> > ",
    "a quotation without blanks": lambda _: ">",
    "a diff": lambda _: "+",
    "a comment": lambda _: "# ",
    "a comment of C": lambda _: "// ",
    "an editor": lambda n: f"{n + 1:4d} | ",
    "fixed text": lambda _: "train@node %% ",
    "fixed text with digits": lambda n: f"step={n // 7} dump=<{n}> :: ",
}

COLOURS = "\x1b[32m{}\x1b[0m"


def coloured(text: str) -> str:
    """Colour a text as `grep --color` and a coloured log do."""
    lines = [
        COLOURS.format("[rank0]: ") + line.replace("fusion", "\x1b[01;31m\x1b[Kfusion\x1b[m\x1b[K")
        for line in text.splitlines()
    ]
    return "\n".join(lines)


def wrapped(width: int) -> Callable[[str], str]:
    def make(text: str) -> str:
        return "".join(f"{line[i : i + width]}\n" for line in text.splitlines() for i in range(0, max(len(line), 1), width))

    return make


def change_prefix(text: str) -> str:
    """Put one prefix before the first half of the lines, and another before the rest."""
    lines = text.splitlines()
    half = len(lines) // 2
    return "\n".join([f"[rank0]: {line}" for line in lines[:half]] + [f"> {line}" for line in lines[half:]])


def end_prefix(text: str) -> str:
    lines = text.splitlines()
    half = len(lines) // 2
    return "\n".join([f"{glog(0)}{line}" for line in lines[:half]] + lines[half:])


def begin_prefix_late(text: str) -> str:
    lines = text.splitlines()
    half = len(lines) // 2
    return "\n".join(lines[:half] + [f"{tensorflow(0)}{line}" for line in lines[half:]])


def notebook(*texts: str, indent: int | None = None) -> str:
    """Return a notebook that printed these texts, each in the output of a cell, after a source that names a header."""
    source = ["assert 'HloModule f' in text\n", "print(text)"]
    cells = [
        {"cell_type": "code", "outputs": [{"output_type": "stream", "text": text.splitlines(keepends=True)}], "source": source}
        for text in texts
    ]
    return json.dumps({"cells": [{"source": source}, *cells], "nbformat": 4}, indent=indent)


MENDED: dict[str, Callable[[str], str]] = {
    "colours": coloured,
    "repr": repr,
    "repr in a call": lambda text: f"print({text!r})",
    "repr of bytes": lambda text: repr(text.encode()),
    "JSON": lambda text: json.dumps({"name": "jit_f", "hlo": text, "size": 3}),
    "a thread in one string": lambda text: json.dumps("We saw this\n" * 60 + text + "and nothing else\n"),
    "JSON twice": lambda text: json.dumps(json.dumps({"hlo": text})),
    "strings of C": lambda text: "".join(f"    {json.dumps(line + chr(10))}\n" for line in text.splitlines()),
    "strings of Python": lambda text: "text = (\n" + "".join(f"    {line + chr(10)!r}\n" for line in text.splitlines()) + ")\n",
    "strings in a sum": lambda text: "".join(f"{json.dumps(line + chr(10))} +\n" for line in text.splitlines()) + '"";\n',
    "a list of strings": lambda text: (
        "_HLO = [\n" + "".join(f"    {line!r},\n" for line in text.splitlines()) + "]\nprint(_HLO)\n"
    ),
    "a list of strings from its first line on": lambda text: (
        "    hlo = ['"
        + text.splitlines()[0]
        + "',\n"
        + "".join(f"        {line!r},\n" for line in text.splitlines()[1:])
        + "    ]\n"
    ),
    "a list of strings in one line": lambda text: f"hlo = {text.splitlines()}\n",
    "a list in JSON": lambda text: json.dumps({"name": "HloModule f", "lines": text.splitlines(), "size": 3}),
    "a list in JSON over lines": lambda text: json.dumps({"name": "HloModule f", "lines": text.splitlines()}, indent=1),
    "a notebook": notebook,
    "a notebook over lines": lambda text: notebook(text, indent=1),
    "lines of JSON": lambda text: "".join(
        json.dumps({"log": line + "\n", "stream": "stdout"}, separators=(",", ":")) + "\n" for line in text.splitlines()
    ),
    "one line of a log": lambda text: glog(1) + text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"'),
    "no-break spaces": lambda text: text.replace("  ", "\u00a0\u00a0").replace(" = ", "\u00a0= "),
    "no-break spaces at line starts": lambda text: text.replace("\n  ", "\n\u00a0\u00a0"),
    "entities": html.escape,
    "entities of brackets only": lambda text: text.replace("<", "&lt;").replace(">", "&gt;"),
    "wrapped": wrapped(80),
    "wrapped at 120": wrapped(120),
    "wrapped in a quotation": lambda text: prefixed(lambda _: "> ")(wrapped(72)(text)),
    "a quotation that is wrapped": lambda text: wrapped(100)(prefixed(lambda _: "[rank0]: ")(text)),
    "a prefix that changes": change_prefix,
    "a prefix that ends": end_prefix,
    "a prefix that begins late": begin_prefix_late,
    "a prefix of the first line only": lambda text: f"{glog(0)}{text}",
    "a log around it": lambda text: (
        f"[rank0]: hello\n[rank0]: # of steps: 3\n{prefixed(lambda _: '[rank0]: ')(text)}[rank0]: done\n"
    ),
    "CRLF": lambda text: prefixed(lambda _: "> ")(text).replace("\n", "\r\n"),
}

FORMS = {name: prefixed(start) for name, start in PREFIXES.items()}
FORMS |= {f"{name}, blanks cut": prefixed(start, trailing=False) for name, start in PREFIXES.items()}
FORMS |= MENDED


def without_places(report: Report) -> dict[str, Any]:
    """Return a report's contents without lines and notes on mending."""
    tables = []
    for table in report.tables:
        kept = [index for index, column in enumerate(table.columns) if column.name != "line"]
        tables.append(replace(table, columns=(), rows=tuple(tuple(row[index] for index in kept) for row in table.rows)))
    said = report_to_dict(replace(report, tables=()))
    for finding in said["findings"]:
        finding["location"] = None
    del said["input"]
    return said | {"notes": [], "tables": [(table.name, table.rows) for table in tables]}


def reports(text: str, command: str) -> list[Report]:
    return list(hlo_inspect.inspect_all(text.encode(), command))


@cache
def plain_report(command: str) -> Report:
    """Return the report of the dump as it is."""
    (plain,) = reports(DUMP, command)
    return plain


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("command", ["summary", "collectives"])
def test_a_pasted_module_has_the_report_of_its_file(form: str, command: str) -> None:
    plain = plain_report(command)
    (pasted,) = reports(FORMS[form](DUMP), command)
    assert without_places(pasted) == without_places(plain)
    assert len(pasted.notes) > len(plain.notes)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_pasted_module_is_read_across_small_pieces(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plain_report("collectives")
    monkeypatch.setattr("hlo_inspect.hlo.input.source.PIECE_BYTES", 700)
    (pasted,) = reports(FORMS[form](DUMP), "collectives")
    assert without_places(pasted) == without_places(plain)


ARRAYS = [f"f32[{number},8]{{1,0}}" for number in range(8)]
ALIASES = ", ".join(f"{{{number}}}: ({number}, {{}}, may-alias)" for number in range(len(ARRAYS)))
LAYOUT = f"{{({', '.join(ARRAYS)})->({', '.join(ARRAYS)})}}"
LONG_HEADER = f"HloModule m, input_output_alias={{ {ALIASES} }}, entry_computation_layout={LAYOUT}\n\n"


def long_header_of(count: int, behind: str = "") -> str:
    """Return a module with a header of several wrapped lines and `count` instructions besides parameters and root."""
    lines = [f"  p{number} = {array} parameter({number})" for number, array in enumerate(ARRAYS)]
    lines += [f"  negate.{number} = f32[7,8]{{1,0}} negate(p7){behind}" for number in range(count)]
    names = ", ".join(f"p{number}" for number in range(len(ARRAYS)))
    root = f"  ROOT r = ({', '.join(ARRAYS)}) tuple({names})"
    return LONG_HEADER + "\n".join(["ENTRY e {", *lines, root, "}"]) + "\n"


@pytest.mark.parametrize("width", range(48, 90))
def test_a_header_may_be_wrapped_anywhere(width: int) -> None:
    """A line may end after a brace that opens a list."""
    report = hlo_inspect.inspect(wrapped(width)(long_header_of(20, ', metadata={op_name="jit(m)/neg"}')), "summary")
    assert (report.facts["params.aliased_count"], report.facts["module.instructions"]) == (8, 29)
    assert report.findings == ()


def test_wrapped_lines_of_a_long_text_are_joined() -> None:
    """Only some lines of a long text are examined, and most of them begin an instruction."""
    text = wrapped(64)(long_header_of(4000))
    assert len(text) > 1 << 17
    report = hlo_inspect.inspect(text, "summary")
    assert (report.facts["params.aliased_count"], report.facts["module.instructions"]) == (8, 4009)
    assert report.findings == ()


def test_lines_of_equal_width_do_not_count_as_wrapped() -> None:
    """Several blanks stand before each equals sign."""
    lines = "".join(f'  n{number}  =  f32[4]  negate( p ), metadata={{op_name="x"}}\n' for number in range(10, 99))
    (report,) = reports(f"HloModule m\n\nENTRY e {{\n  p = f32[4] parameter(0)\n{lines}}}\n", "cost")
    assert report.facts["cost.flops"] == 89 * 4
    assert not any("wrapped" in note for note in report.notes)


def test_the_end_of_a_comment_is_no_prefix() -> None:
    parameters = "".join(f"/* two\nlines = */%p{number} = f32[8] parameter({number})\n" for number in range(30))
    report = hlo_inspect.inspect(f"HloModule m\n\n/* two\nlines = */ENTRY %e {{{parameters}}}\n", "params")
    assert report.facts["params.count"] == 30
    assert not any("the prefix of each line" in note for note in report.notes)


# -- several writers --------------------------------------------------------------------------------------------------------


def interleaved(texts: dict[str, str], *, at_once: int = 1) -> str:
    """Interleave the lines of several texts, `at_once` at a time, each after its mark."""
    lines = {mark: [f"{mark}{line}" for line in text.splitlines()] for mark, text in texts.items()}
    merged: list[str] = []
    while any(lines.values()):
        for mark in lines:
            merged += lines[mark][:at_once]
            lines[mark] = lines[mark][at_once:]
    return "\n".join(merged)


@pytest.mark.parametrize(
    "marks", [("[rank0]: ", "[rank1]: "), ("0: ", "1: "), ("worker-0  | ", "ps-1  | "), ("(W pid=11) ", "(W pid=7) ")]
)
@pytest.mark.parametrize("at_once", [1, 3, 20])
@pytest.mark.parametrize("size", [900, 1 << 18])
def test_interleaved_lines_of_two_ranks_give_a_module_each(
    marks: tuple[str, str], at_once: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hlo_inspect.hlo.input.source.PIECE_BYTES", size)
    text = interleaved({marks[0]: DUMP, marks[1]: DUMP.replace("jit_step", "jit_other")}, at_once=at_once)
    ranks = reports(text, "summary")
    assert [report.facts["module.name"] for report in ranks] == ["jit_step", "jit_other"]
    (plain,) = reports(DUMP, "summary")
    assert without_places(ranks[0]) == without_places(plain)
    assert [report.facts["module.unparsed_lines"] for report in ranks] == [0, 0]
    assert any(marks[1] in note for note in ranks[1].notes)


def test_interleaved_lines_of_64_ranks_give_64_modules() -> None:
    text = interleaved({f"[rank{rank}]: ": OTHER.replace("other", f"m{rank}") for rank in range(64)})
    assert [report.facts["module.name"] for report in reports(text, "params")] == [f"m{rank}" for rank in range(64)]


def test_log_lines_of_another_rank_are_in_no_module() -> None:
    lines = [f"[rank0]: {line}" for line in DUMP.splitlines()]
    lines[10:10] = ["[rank1]: step 5 took 12 ms", "[rank1]: step 6 took 12 ms"]
    (plain,) = reports(DUMP, "summary")
    (report,) = reports("\n".join(lines), "summary")
    assert without_places(report) == without_places(plain)


def test_interleaved_lines_of_threads_give_a_module_each() -> None:
    """The prefix of each line has the number of its thread."""
    text = interleaved(
        {"I0610 12:00:01.000001 41 dump.cc:9] ": OTHER, "I0610 12:00:01.000001 42 dump.cc:9] ": OTHER}, at_once=2
    )
    assert len(reports(text, "params")) == 2


# -- places -----------------------------------------------------------------------------------------------------------------


def test_tables_have_the_lines_of_the_input() -> None:
    plain = hlo_inspect.inspect(DUMP, "collectives").table("collectives").records()
    pasted = reports("prose\n" + prefixed(lambda _: "> ")(DUMP), "collectives")[0]
    assert [row["line"] for row in pasted.table("collectives").records()] == [int(str(row["line"])) + 1 for row in plain]
    assert pasted.input.first_line == 2
    text = interleaved({"[rank0]: ": DUMP, "[rank1]: ": DUMP})
    lines = [
        [int(str(row["line"])) for row in report.table("collectives").records()] for report in reports(text, "collectives")
    ]
    assert lines == [[2 * int(str(row["line"])) - 1 for row in plain], [2 * int(str(row["line"])) for row in plain]]


def test_a_removed_prefix_is_noted_once() -> None:
    (report,) = reports(prefixed(lambda _: "[rank0]: ")(DUMP), "collectives")
    assert [note for note in report.notes if "rank0" in note] == ['the prefix of each line, such as "[rank0]: ", was removed']


@pytest.mark.parametrize("indent", [None, 1])
def test_each_output_of_a_notebook_is_a_module(indent: int | None) -> None:
    modules = reports(notebook(DUMP, OTHER, indent=indent), "summary")
    assert [(report.facts["module.name"], report.facts["module.instructions"]) for report in modules] == [
        ("jit_step", 31),
        ("other", 2),
    ]
    findings = [
        [(finding.rule, finding.message) for finding in report.findings] for report in (plain_report("summary"), *modules)
    ]
    assert findings[1:] == [findings[0], []]
