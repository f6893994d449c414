"""Roots that disagree with signature, caller or header in real dumps. Cases of texts are in tests/cases/hlo/read/roots.hlo."""

from __future__ import annotations

import lzma
from pathlib import Path

import hlo_inspect
from benchmarks.shapes import roots_that_disagree
from hlo_inspect.hlo.read.consistency import compatible
from hlo_inspect.hlo.values.shape_text import parse_shape
from tests.linear_time import assert_linear

DATA = Path(__file__).parents[2] / "data"


def findings_of(text: str, rule: str = "HI014") -> int:
    return [finding.rule for finding in hlo_inspect.inspect(text, "summary").findings].count(rule)


def test_each_removed_root_of_a_real_dump_is_a_finding() -> None:
    """The loop removes each root of a real dump in turn.

    If the last instruction has the root's shape, HI015 reports it, else HI014.
    """
    text = (DATA / "cpu/adamw_step.after.txt").read_text()
    lines = text.splitlines(keepends=True)
    noted = {True: 0, False: 0}
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("ROOT "):
            continue
        before = lines[number - 1].partition(" = ")[2].partition(" ")[0]
        shape = line.partition(" = ")[2].partition(" ")[0]
        is_same = not shape.startswith("(") and bool(before) and compatible(parse_shape(before), parse_shape(shape))
        left = "".join(lines[:number] + lines[number + 1 :])
        assert (findings_of(left), findings_of(left, "HI015")) == ((0, 1) if is_same else (1, 0)), line
        noted[is_same] += 1
    assert all(noted.values())


def test_many_findings_on_roots_take_linear_time() -> None:
    def read(count: int) -> None:
        report = hlo_inspect.inspect(roots_that_disagree(count), "summary")
        assert report.facts["module.computations"] == count + 1

    assert_linear(read, 6_000)


def test_dumps_of_the_tests_have_no_findings_on_roots() -> None:
    for path in sorted(DATA.rglob("*.txt*"))[::5]:
        raw = path.read_bytes()
        text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode(errors="replace")
        try:
            reports = list(hlo_inspect.inspect_all(text + "\n", "summary"))
        except hlo_inspect.HloInspectError:
            continue
        assert [f for report in reports for f in report.findings if f.rule in {"HI014", "HI015"}] == []
