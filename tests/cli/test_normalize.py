"""The command `normalize`: another text of the same module."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[1] / "data"
XLA_READS = DATA.parent / "hlo" / "xla_reads.py"
EVERYTHING = [pass_.name for pass_ in PASSES]

DUMPS = [
    "cpu/control_flow.before.txt",
    "cpu/scan_fsdp.after.txt",
    "gpu/collectives.after.txt",
    "gpu/collectives.generic_async.txt",
    "tpu/gathered_matmul.after.txt",
    "tpu/scan_forward.after.txt",
    "handmade/threads.txt",
    "handmade/named_shardings.txt",
    "jax_0_4_13/sgd_unused.after.txt",
]

SHARED = DATA.parents[2] / "shared/dumps"
SHARED_DUMPS = [
    "seeds/002_496ac125c3946675.txt",
    "seeds/004_b1cf5d3eba6d7049.txt",
    "tpu_v5e_2x4/decode_tp.opt.hlo.txt.xz",
    "gpu_h100x8/tf_dptp_scan.opt.hlo.txt.xz",
]


def written(tmp_path: Path, source: Path, *options: str) -> Path:
    target = tmp_path / f"{source.parent.name}.{source.name}"
    assert run(["normalize", str(source), "-o", str(target), *options]) == 0
    return target


COUNTS_OF_ELEMENTS = {"opcode.get-tuple-element", "module.instructions", "module.entry_instructions"}


@pytest.mark.parametrize("dump", DUMPS)
def test_a_normalized_text_has_the_same_facts(tmp_path: Path, dump: str) -> None:
    """Except for what metadata tells; with it all facts and findings are the same. Times are sums in another order.

    Rows that repeat an element of a tuple, or that nothing reads, are left out: the short form `x#1` has none.
    """
    before = hlo_inspect.inspect(DATA / dump, EVERYTHING)
    bare = hlo_inspect.inspect(written(tmp_path, DATA / dump), EVERYTHING)
    assert _facts(bare, phases=False) == _nearly(_facts(before, phases=False))
    whole = hlo_inspect.inspect(written(tmp_path, DATA / dump, "--metadata"), EVERYTHING)
    assert _facts(whole) == _nearly(_facts(before))
    assert Counter(finding.rule for finding in whole.findings) == Counter(finding.rule for finding in before.findings)


@pytest.mark.parametrize("dump", SHARED_DUMPS)
def test_a_normalized_real_dump_has_the_same_facts(tmp_path: Path, dump: str) -> None:
    if not (SHARED / dump).exists():
        pytest.skip("the dumps are not there")
    passes = ("params", "fusions", "collectives", "custom-calls", "memory")
    (before,) = hlo_inspect.inspect_all(SHARED / dump, passes)
    (whole,) = hlo_inspect.inspect_all(written(tmp_path, SHARED / dump, "--metadata"), passes)
    assert _facts(whole) == _nearly(_facts(before))


def _nearly(facts: dict[str, Value]) -> dict[str, Any]:
    return {name: pytest.approx(value) if isinstance(value, float) else value for name, value in facts.items()}


def _facts(report: Report, *, phases: bool = True) -> dict[str, Value]:
    return {
        name: value
        for name, value in report.facts.items()
        if (phases or "phase" not in name) and name not in COUNTS_OF_ELEMENTS
    }


@pytest.mark.parametrize("options", [(), ("--metadata",), ("--unscheduled", "--no-layouts")])
def test_xla_takes_it_and_reads_the_same(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Opcodes, shapes with layouts, and how many operands each instruction has; names alone differ, and repeated elements."""
    pytest.importorskip("jaxlib")
    files = [DATA / dump for dump in DUMPS]
    files += [written(tmp_path, DATA / dump, *options) for dump in DUMPS]
    done = subprocess.run([sys.executable, XLA_READS, *files], capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert len(answers) == 2 * len(DUMPS)
    for before, after in zip(answers[: len(DUMPS)], answers[len(DUMPS) :], strict=True):
        assert "error" not in before
        assert _told(before, with_layouts=len(options) < 2) == _told(after, with_layouts=len(options) < 2)


def _told(module: dict[str, Any], *, with_layouts: bool) -> Counter[str]:
    return Counter(
        json.dumps([opcode, shape, len(operands), layout if with_layouts else None])
        for computation in module["computations"].values()
        for opcode, shape, operands, layout in computation["instructions"].values()
        if opcode != "get-tuple-element"
    )


TEXT = """HloModule m, is_scheduled=true

FileNames
1 "a.py"

%f {
  %x = f32[4]{0} parameter(0)
  ROOT %y = f32[4]{0} negate(%x)
}

ENTRY %e {
  %q = f32[4]{0} parameter(1)
  %p = f32[4]{0} parameter(0)
  %g.7 = f32[8]{0:T(256)} all-gather(%p), channel_id=9, replica_groups={{0,1}}, dimensions={0}, metadata={op_name="a/b"}
  %l = f32[4]{0} fusion(%q), kind=kLoop, calls=%f
  ROOT %t = (f32[8]{0:T(256)}, f32[4]{0}) tuple(%g.7, %l)
}
"""


def test_a_scheduled_text_keeps_its_order_and_its_layouts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    assert run(["normalize", str(tmp_path / "a.txt")]) == 0
    lines = re.sub(r"\.[0-9a-f]{5,6}\b", ".H", capsys.readouterr().out).splitlines()
    assert lines == [
        "HloModule m, is_scheduled=true",
        "",
        "%fused.H {",
        "  %parameter.0 = f32[4]{0} parameter(0)",
        "  ROOT %negate.H = f32[4]{0} negate(%parameter.0)",
        "}",
        "",
        "ENTRY %main {",
        "  %parameter.1 = f32[4]{0} parameter(1)",
        "  %parameter.0 = f32[4]{0} parameter(0)",
        "  %all-gather.H = f32[8]{0:T(256)} all-gather(%parameter.0), channel_id=1, dimensions={0}, replica_groups={{0,1}}",
        "  %fusion.H = f32[4]{0} fusion(%parameter.1), calls=%fused.H, kind=kLoop",
        "  ROOT %tuple.H = (f32[8]{0:T(256)}, f32[4]{0}) tuple(%all-gather.H, %fusion.H)",
        "}",
    ]


def test_options_drop_the_schedule_and_layouts_and_keep_metadata(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    assert run(["normalize", str(tmp_path / "a.txt"), "--unscheduled", "--no-layouts", "--metadata"]) == 0
    text = capsys.readouterr().out
    assert "is_scheduled" not in text
    assert "{0" not in text.replace("{{0,1}}", "").replace("dimensions={0}", "")
    assert text.index("parameter(0)\n  %parameter.1") > 0
    assert 'metadata={op_name="a/b"}' in text
    assert 'FileNames\n1 "a.py"\n' in text


def test_one_line_more_changes_few_lines(tmp_path: Path) -> None:
    """A copy of a parameter that nothing reads is one line, in a fusion also the fusion, its name, and what reads it."""
    path = DATA / "cpu/adamw_step.after.txt"
    text = path.read_text(encoding="utf-8")
    before = written(tmp_path, path).read_text(encoding="utf-8").splitlines()
    for start, count in ((text.index("ENTRY"), 1), (0, 7)):
        use = re.compile(r"\n  (%[\w.]+) = f32\[8,8\]\{1,0\} parameter\(\d\)[^\n]*").search(text, start)
        assert use is not None
        changed = text.replace(use[0], f"{use[0]}\n  %more = f32[8,8]{{1,0}} copy({use[1]})", 1)
        (tmp_path / "changed.txt").write_text(changed, encoding="utf-8")
        after = written(tmp_path, tmp_path / "changed.txt").read_text(encoding="utf-8").splitlines()
        assert sum(line[0] in "+-" for line in difflib.ndiff(before, after)) == count


def test_several_modules_follow_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "handmade/two_modules.txt")
    assert run(["normalize", path]) == 0
    assert len(re.findall(r"^HloModule ", capsys.readouterr().out, re.MULTILINE)) == 2
    assert run(["normalize", path, "--module", "second"]) == 0
    assert capsys.readouterr().out.startswith("HloModule second")


@pytest.mark.parametrize(
    ("arguments", "message", "status"),
    [
        (["handmade/empty.txt"], "holds no HLO module", 3),
        (["gone.txt"], "gone.txt", 3),
        (["handmade/two_modules.txt", "--module", "third"], "there are: first, second", 3),
        (["handmade/two_modules.txt", "--module", "("], "is not a regular expression", 2),
        (["workloads/astra_sim.txt"], "holds no HLO module", 3),
    ],
)
def test_what_cannot_be_read(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, status: int) -> None:
    assert run(["normalize", str(DATA / arguments[0]), *arguments[1:]]) == status
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


def test_lines_that_cannot_be_read_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["normalize", str(DATA / "handmade/unreadable_lines.txt")]) == 0
    assert "unreadable_lines.txt:5" in capsys.readouterr().err
    assert run(["normalize", "-q", str(DATA / "handmade/unreadable_lines.txt")]) == 0
    assert capsys.readouterr().err == ""


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As XLA's strings have them; what steers a terminal stays out of it."""
    path = tmp_path / "dump.txt"
    name = 'metadata={op_name="a\x1b[31m\u202eb"}'
    path.write_text(f"HloModule m\n\nENTRY e {{\n  ROOT p = f32[4] parameter(0), {name}, x=\x1bc\n}}\n", encoding="utf-8")
    assert run(["normalize", "--metadata", str(path)]) == 0
    said = capsys.readouterr().out
    assert r'op_name="a\x1b[31m\u202eb"' in said
    assert said.replace("\n", "").isprintable()
