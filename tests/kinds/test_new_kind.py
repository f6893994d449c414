"""A kind of collective that was added to the table, and opcodes that nobody knows: no command fails, and none guesses.

The new kinds are in no version of XLA. A row of the table is added in a fresh process, as `tests/kinds/program.py` says.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hlo_inspect.passes import PASSES

TEXT = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[1024]{0})->f32[1024]{0}}, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

%body (b: (s32[], f32[1024])) -> (s32[], f32[1024]) {
  %b = (s32[], f32[1024]{0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %v = f32[1024]{0} get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %inner = f32[1024]{0} OPCODE(%v), channel_id=3, GROUPS
  ROOT %t = (s32[], f32[1024]{0}) tuple(%next, %inner)
}

%condition (c: (s32[], f32[1024])) -> pred[] {
  %c = (s32[], f32[1024]{0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %end = s32[] constant(3)
  ROOT %less = pred[] compare(%j, %end), direction=LT
}

ENTRY %main (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  %r = f32[1024]{0} all-reduce(%p), channel_id=1, GROUPS, to_apply=%add, metadata={op_name="jit(step)/jvp(layer)/psum"}
  %new.1 = f32[1024]{0} OPCODE(%r), channel_id=2, GROUPS, metadata={op_name="jit(step)/jvp(layer)/new"}
  %zero = s32[] constant(0)
  %start = (s32[], f32[1024]{0}) tuple(%zero, %new.1)
  %loop = (s32[], f32[1024]{0}) while(%start), condition=%condition, body=%body
  %w = f32[1024]{0} get-tuple-element(%loop), index=1
  ROOT %n = f32[1024]{0} negate(%w)
}
"""
GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
BYTES = 4096
"""Bytes of f32[1024]."""
RUNS = 4
"""Runs of the new kind in one step: one in the entry, three in the loop."""
REDUCED = 6144
"""Bytes that a device sends for the all-reduce: 2 x 3/4 of 4096."""

WITHOUT_FORMULA = "collective-gather  *  move  collective global-ids resized"
WITH_FORMULA = "collective-scatter  *  part  collective sends=(n-1)/n whole=both"


_SINGLE = r"%(\S+) = (\S+) OPCODE(.*)"
_PAIR = r"%\1.start = (\2, \2) OPCODE-start\3\n  %\1 = \2 OPCODE-done(%\1.start)"


class Case(NamedTuple):
    """A row that is added to the table, empty for none, and the opcode of the module, which may be a start and a done."""

    row: str
    opcode: str
    is_pair: bool = False

    @property
    def text(self) -> str:
        text = re.sub(_SINGLE, _PAIR, TEXT) if self.is_pair else TEXT
        return text.replace("OPCODE", self.opcode).replace("GROUPS", GROUPS)

    @property
    def folder(self) -> str:
        return f"{self.opcode}-{len(self.row)}-{self.is_pair}"


ROW, FORMULA = Case(WITHOUT_FORMULA, "collective-gather"), Case(WITH_FORMULA, "collective-scatter")
BY_NAME, BY_ATTRIBUTES = Case("", "collective-gather"), Case("", "global-sum")
PAIR_OF_ROW, PAIR_BY_NAME = (
    Case(WITHOUT_FORMULA, "collective-gather", is_pair=True),
    Case("", "collective-gather", is_pair=True),
)
UNKNOWN = [BY_NAME, BY_ATTRIBUTES, PAIR_BY_NAME]
CASES = [ROW, FORMULA, PAIR_OF_ROW, *UNKNOWN]
IDS = [
    "a row",
    "a row with a formula",
    "a row, in pairs",
    "an unknown name",
    "unknown, with groups",
    "an unknown name, in pairs",
]

PROFILES = [[], ["--profile", "h100-sxm"], ["--profile", "tpu-v5e"], ["--profile", "mi300x"]]
CLIENTS = {"chakra": [], "simai": ["--axis", "d0=tp"], "astra-sim": ["--axis", "d0=tp"]}
FORMATS = ["csv", "tsv", "jsonl", "markdown"]
LINES: dict[str, list[str]] = {
    **{f"{pass_.name} {' '.join(options)}": [pass_.name, "{new}", *options] for pass_ in PASSES for options in PROFILES},
    **{f"collectives as {name}": ["collectives", "{new}", "--format", name, "-o", "{out}"] for name in FORMATS},
    **{
        f"export to {to}": ["export", "{new}", "--to", to, "--profile", "h100-sxm", *axes, "-o", f"{{out}}.{to}"]
        for to, axes in CLIENTS.items()
    },
    "facts": ["summary", "{new}", "--format", "json", "--profile", "h100-sxm"],
    "collectives": ["collectives", "{new}", "--format", "json"],
    "sites": ["collectives", "{new}", "--sites", "--filter", "kind = {opcode}"],
    "alpa": ["collectives", "{new}", "--cost-model", "alpa-mesh", "-v"],
    "alpa search": ["collectives", "{new}", "--cost-model", "alpa-search"],
    "list": ["list", "{new}"],
    "check": ["check", "{new}", "--assert", "collectives.all-reduce.count == 1"],
    "diff": ["diff", "{old}", "{new}"],
    "history": ["history", "{dump}", "*"],
    "normalize": ["normalize", "{new}"],
    "fingerprint": ["fingerprint", "{new}"],
    "show": ["show", "{new}", "new.1"],
    "lint": ["lint", "{new}"],
    "ranks": ["ranks", "{ranks}"],
    "recompiles": ["recompiles", "{dump}"],
    "report": ["report", "{new}", "-o", "{out}.html", "--profile", "h100-sxm"],
    "report of passes": ["report", "{dump}", "-o", "{out}.passes.html"],
    "difference": ["report", "{old}", "{new}", "--diff", "-o", "{out}.diff.html"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@cache
def answers(case: Case, folder: Path) -> dict[str, tuple[int, str]]:
    """Run all lines on the module of a case."""
    root = folder / case.folder
    dump, ranks, stem = root / "dump", root / "ranks", "module_0001.jit_step"
    old = case.text.replace("f32[1024]{0} negate(%w)", "f32[1024]{0} add(%w, %w)")
    for path, text in {
        root / "old.txt": old,
        root / "new.txt": case.text,
        dump / f"{stem}.before_optimizations.txt": old,
        dump / f"{stem}.0001.simplification.after_algsimp.before_dce.txt": case.text,
        dump / f"{stem}.after_optimizations.txt": old,
        ranks / "rank0.txt": case.text,
        ranks / "rank1.txt": old,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    places = {"old": root / "old.txt", "new": root / "new.txt", "dump": dump, "out": root / "out", "opcode": case.opcode}
    places["ranks"] = ranks / "rank*.txt"
    lines = [[argument.format_map(places) for argument in line] for line in LINES.values()]
    command = [sys.executable, "-m", "tests.kinds.program", case.row]
    wide = {**os.environ, "COLUMNS": "200"}  # else the length of the paths decides which columns have room
    done = subprocess.run(command, input=json.dumps(lines), capture_output=True, text=True, timeout=600, check=True, env=wide)
    return dict(zip(LINES, json.loads(done.stdout), strict=True))


def facts_of(case: Case, folder: Path, line: str = "facts") -> dict[str, Any]:
    return dict(json.loads(answers(case, folder)[line][1])["facts"])


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_no_command_fails(case: Case, folder: Path) -> None:
    failed = {name: text for name, (status, text) in answers(case, folder).items() if status not in (0, 1)}
    assert failed == {}


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("line", ["facts", "collectives"])
def test_its_runs_are_counted_and_nothing_else_changes(case: Case, folder: Path, line: str) -> None:
    facts = facts_of(case, folder, line)
    of_reduce = {name: facts[f"collectives.all-reduce.{name}"] for name in ("count", "operand_bytes", "executed_wire_bytes")}
    assert of_reduce == {"count": 1, "operand_bytes": BYTES, "executed_wire_bytes": REDUCED}
    if case.row:
        assert (facts["collectives.count"], facts["collectives.executed_count"]) == (3, 1 + RUNS)
        assert facts[f"collectives.{case.opcode}.count"] == 2
        assert facts[f"collectives.{case.opcode}.executed_operand_bytes"] == RUNS * BYTES
    else:
        assert facts["collectives.count"] is facts["collectives.executed_count"] is None
        assert facts["collectives.count.lower_bound"] == 3
        assert facts["collectives.executed_count.lower_bound"] == 1 + RUNS
        assert facts["collectives.executed_operand_bytes"] is None
        assert facts["collectives.executed_operand_bytes.lower_bound"] == BYTES


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("line", ["facts", "collectives"])
def test_sent_bytes_are_those_of_the_formula_or_unknown(case: Case, folder: Path, line: str) -> None:
    facts = facts_of(case, folder, line)
    if case is FORMULA:
        assert facts["collectives.wire_bytes"] == REDUCED + 2 * BYTES * 3 // 4
        assert facts["collectives.executed_wire_bytes"] == REDUCED + RUNS * BYTES * 3 // 4
        return
    assert facts["collectives.wire_bytes"] is facts["collectives.executed_wire_bytes"] is None
    assert facts["collectives.executed_wire_bytes.lower_bound"] == REDUCED
    notes = "\n".join(json.loads(answers(case, folder)[line][1])["notes"])
    reason = f"no formula of the bytes that {case.opcode} sends is known" if case.row else f"the unknown opcode {case.opcode}"
    assert reason in notes


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_times_have_no_guess(case: Case, folder: Path) -> None:
    """The switch of H100s adds up: the all-reduce takes 4096 B / 450 GB/s = 9.10 ns, four runs of 3072 B 27.31 ns more."""
    facts = facts_of(case, folder)
    if case is FORMULA:
        assert facts["time.collective_s"] == pytest.approx((4096 + 4 * 3072) / 450e9)
    else:
        assert facts["time.collective_s"] is None
        assert facts["time.collective_s.lower_bound"] == pytest.approx(4096 / 450e9)


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("client", CLIENTS)
def test_an_export_says_what_it_leaves_out(case: Case, folder: Path, client: str) -> None:
    status, text = answers(case, folder)[f"export to {client}"]
    assert status in (0, 1)
    assert f"the clients know no {case.opcode}" in " ".join(text.split())


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_alpa_prices_no_other_kind(case: Case, folder: Path) -> None:
    status, text = answers(case, folder)["alpa"]
    assert status == 0
    assert "Alpa has no formula for the kind" in " ".join(text.split())


@pytest.mark.parametrize("case", UNKNOWN, ids=IDS[3:])
def test_a_finding_names_the_unknown_opcode(case: Case, folder: Path) -> None:
    for line in ("facts", "collectives"):
        findings = json.loads(answers(case, folder)[line][1])["findings"]
        named = [finding["message"] for finding in findings if finding["rule"] == "HI004"]
        suffix = "-start" if case.is_pair else ""
        assert f"unknown opcode {case.opcode + suffix!r} (2 times, first here)" in named


@pytest.mark.parametrize("case", CASES, ids=IDS)
@pytest.mark.parametrize("line", ["sites", "show", "history", "diff", "ranks", "report"])
def test_pages_name_it(case: Case, folder: Path, line: str) -> None:
    assert case.opcode in answers(case, folder)[line][1] or line == "report"
    if line == "report":
        assert case.opcode in (folder / case.folder / "out.html").read_text()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_the_picture_of_passes_has_kinds_without_a_colour(case: Case, folder: Path) -> None:
    """All passes have three collectives: a known one, and two of a kind that the palette lacks."""
    assert answers(case, folder)["report of passes"][0] == 0
    assert "other kinds: 2" in (folder / case.folder / "out.passes.html").read_text()
