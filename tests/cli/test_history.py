"""The command `history` over what XLA wrote behind each pass; how many instructions there are says XLA's parser."""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.inspection.pass_histories import PassHistory
from tests.calling import answer
from tests.tables import rows

DATA = Path(__file__).parents[1] / "data"
PASSES = DATA / "pass_dumps"
EXPECTED: dict[str, dict[str, int]] = json.loads((PASSES / "expected.json").read_text(encoding="utf-8"))
COUNTED = {"fusions": ["kFusion"], "copies": ["kCopy"], "all_reduce": ["kAllReduce"], "all_gather": ["kAllGather"]}
NUMBER = re.compile(r"jit_step\.(\d{4})\.")


@cache
def history_rows(table: str, pattern: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a table of the real dump."""
    return PassHistory(str(PASSES), None, pattern).report().table(table).records()


@cache
def by_number() -> dict[str, dict[str, int]]:
    """Return the counts of XLA's parser for the file of each number."""
    return {match[1]: opcodes for name, opcodes in EXPECTED.items() if (match := NUMBER.search(name)) is not None}


def test_counts_are_those_of_xla_s_parser() -> None:
    passes = [row for row in history_rows("history") if row["file"]]
    assert len(passes) > 30
    for row in passes:
        opcodes = by_number()[row["file"]]
        assert row["instructions"] == sum(opcodes.values())
        for column, names in COUNTED.items():
            assert (row["file"], column, row[column] or 0) == (row["file"], column, sum(opcodes.get(n, 0) for n in names))


def test_a_file_without_a_row_counts_as_the_row_before_it() -> None:
    shown = {row["file"]: row for row in history_rows("history")}
    row = shown[""]
    for number, opcodes in sorted(by_number().items()):
        row = shown.get(number, row)
        assert row["instructions"] == sum(opcodes.values())


def test_the_first_pass_of_each_collective() -> None:
    """The files in which XLA's parser finds more of a kind than in the one before."""
    for kind, opcode in (("all-gather", "kAllGather"), ("all-reduce", "kAllReduce")):
        counts = [(number, opcodes.get(opcode, 0)) for number, opcodes in sorted(by_number().items())]
        more = {number: new - old for (_, old), (number, new) in pairwise(counts) if new > old}
        brought: dict[str, int] = {}
        for row in history_rows("traces", kind):
            assert row["kind"] == kind
            number = row["brought_in_by"][-5:-1]
            brought[number] = brought.get(number, 0) + row["count"]
        assert brought == more


def test_the_pass_that_merged_two_collectives_is_named() -> None:
    """The gradients of head and bias, which are reduced over the same groups."""
    traces = history_rows("traces", "all-reduce")
    merged = {row["shape"]: (row["merged_by"], row["op_name"]) for row in traces if row["merged_by"]}
    assert merged == {
        "f32[32]": ("cpu-all-reduce-combiner (0052)", "jit(step)/transpose(jvp())/reduce_sum"),
        "f32[32,32]": ("cpu-all-reduce-combiner (0052)", "jit(step)/transpose(jvp())/dot_general"),
    }


def test_instructions_of_any_opcode_are_followed() -> None:
    fusions = history_rows("traces", "fusion")
    assert {row["kind"] for row in fusions} == {"fusion"}
    last = by_number()[max(by_number())]
    assert sum(row["count"] for row in fusions if not row["gone_by"]) == last["kFusion"]


def test_a_name_without_an_instruction_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", str(PASSES), "all-gatter"]) == 2
    assert "all-gather" in capsys.readouterr().err


MODULE = """HloModule {name}{header}

ENTRY %e {{
  %p = f32[8]{{0}} parameter(0)
  {body}
}}
"""


def dump(folder: Path, file: str, name: str, body: str) -> None:
    text = MODULE.format(name=name, header="", body=body)
    (folder / f"module_{file}.txt").write_text(text, encoding="utf-8")


WHERE = """replica_groups={{0,1}}, dimensions={0}, metadata={op_name="scope/w['a']/x"}"""
GATHER = f"ROOT %g = f32[16]{{0}} all-gather(%p), {WHERE}"
ASYNC = f"%s = (f32[8]{{0}}, f32[16]{{0}}) all-gather-start(%p), {WHERE}\n  ROOT %d = f32[16]{{0}} all-gather-done(%s)"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    dump(tmp_path, "0001.jit_f.before_optimizations", "jit_f", "ROOT %negate.7 = f32[8]{0} negate(%p)")
    dump(tmp_path, "0001.jit_f.0000.a.after_pipeline-start.before_gatherer", "jit_f", "ROOT %negate.7 = f32[8]{0} negate(%p)")
    dump(tmp_path, "0001.jit_f.0001.a.after_gatherer.before_b", "jit_f", GATHER)
    dump(tmp_path, "0001.jit_f.0002.a.after_async-creator.before_b", "jit_f", ASYNC)
    return tmp_path


def test_the_pass_that_made_a_collective_asynchronous_is_named(small: Path) -> None:
    (row,) = rows(answer("history", small, "all-gather"), "traces")
    assert (row["brought_in_by"], row["async_by"]) == ("gatherer (0001)", "async-creator (0002)")
    changes = rows(answer("history", small), "history")
    assert [row["change"] for row in changes] == ["", "+1 all-gather", "+1 async, +1 instruction"]
    assert [row["rewritten"] for row in changes] == [None, 1, 2]


@pytest.mark.parametrize(
    ("pattern", "kinds"),
    [
        ("all-*", {"all-gather"}),
        ("all-gather-start", {"all-gather"}),
        ("%g", {"all-gather"}),
        ("scope/w['a']/x", {"all-gather"}),
        ("negate", {"negate"}),
        ("negate.7", {"negate"}),
        ("scope/w['a']", {"all-gather"}),
        ("w['*']", {"all-gather"}),
    ],
)
def test_patterns(small: Path, pattern: str, kinds: set[str]) -> None:
    assert {row["kind"] for row in rows(answer("history", small, pattern), "traces")} == kinds


def test_several_processes_say_the_same(small: Path) -> None:
    (small / "module_0001.jit_f.0003.a.after_x.before_b.txt").write_text("HloModule jit_f\n\nENTRY", encoding="utf-8")
    assert answer("history", small, "all-gather", "-j", "2") == answer("history", small, "all-gather")


def test_a_change_of_the_header_alone_counts_as_a_change(small: Path) -> None:
    path = small / "module_0001.jit_f.0002.a.after_async-creator.before_b.txt"
    text = path.read_text(encoding="utf-8").replace("HloModule jit_f", "HloModule jit_f, is_scheduled=true")
    (small / "module_0001.jit_f.0003.a.after_scheduler.before_b.txt").write_text(text, encoding="utf-8")
    assert rows(answer("history", small), "history")[-1]["change"] == "scheduled"


def test_a_pass_that_is_cut_off_is_left_out(small: Path) -> None:
    path = small / "module_0001.jit_f.0001.a.after_gatherer.before_b.txt"
    path.write_text(path.read_text(encoding="utf-8")[:-40], encoding="utf-8")
    report = answer("history", small, "all-gather")
    assert [row["brought_in_by"] for row in rows(report, "traces")] == ["async-creator (0002)"]
    assert report["notes"] == [f"{path.name} is left out and counts with the next pass: it is truncated"]


def test_a_file_of_another_module_is_left_out(small: Path) -> None:
    dump(small, "0001.jit_f.0003.a.after_c.before_d", "jit_g", "ROOT %n = f32[8]{0} negate(%p)")
    report = answer("history", small)
    assert len(rows(report, "history")) == 3
    assert "it holds the module jit_g" in report["notes"][0]


def test_the_largest_of_several_modules_is_taken_and_named(capsys: pytest.CaptureFixture[str], small: Path) -> None:
    dump(
        small,
        "0002.jit_large.0001.a.after_x.before_b",
        "jit_large",
        "\n  ".join([f"%n{i} = f32[8]{{0}} negate(%p)" for i in range(99)]),
    )
    report = answer("history", small)
    assert report["notes"][0] == "of 2 modules this is the largest; --module chooses another: jit_f"
    assert report["notes"][1].startswith(
        "passes without a file count with the next one; dump all with `--xla_dump_hlo_pass_re=.*`"
    )
    assert [row["pass"] for row in rows(report, "history")] == ["x"]
    assert len(rows(answer("history", small, "--module", "jit_f"), "history")) == 3
    assert run(["history", str(small), "--module", "jit_h"]) == 3
    assert "there are: jit_f, jit_large" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("directory", "message"),
    [
        (DATA / "handmade", "without XLA dumps"),
        (DATA / "gone", "no such directory"),
        (DATA / "cpu/adamw_step.after.txt", "is not a directory"),
    ],
)
def test_other_directories(capsys: pytest.CaptureFixture[str], directory: Path, message: str) -> None:
    assert run(["history", str(directory)]) == 3
    error = capsys.readouterr().err
    assert message in error
    assert "--xla_dump_hlo_pass_re=.*" in error


def test_history_of_unreadable_passes_is_status_3(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.0001.a.after_x.before_b.txt").write_text("nothing\n", encoding="utf-8")
    assert run(["history", str(tmp_path)]) == 3
    assert "can be read" in capsys.readouterr().err


def test_the_page_names_the_module_and_its_passes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["history", str(PASSES)]) == 0
    page = capsys.readouterr().out
    assert page.startswith("jit_step in ")
    assert "9 from spmd-partitioning (0006)" in page


def test_the_number_of_rows_is_the_one_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """A page has all passes, with -n the first ones."""
    passes = len(history_rows("history"))
    capsys.readouterr()
    assert run(["history", str(PASSES), "-n", "2"]) == 0
    assert f"[{passes - 2} more]" in capsys.readouterr().out
    assert run(["history", str(PASSES)]) == 0
    assert "more rows]" not in capsys.readouterr().out
