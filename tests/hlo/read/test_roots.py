"""A root that disagrees with signature, caller or header is a finding. Texts that XLA accepts have none."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

import hlo_inspect
from benchmarks.shapes import roots_that_disagree
from hlo_inspect.hlo.read.consistency import compatible
from hlo_inspect.hlo.values.shape_text import parse_shape
from tests.linear_time import assert_linear

DATA = Path(__file__).parents[2] / "data"
HEADER = "HloModule m, entry_computation_layout={(f32[8])->(f32[8])}\n\n"
BODY = "  q = f32[8] parameter(0)\n  n = f32[8] negate(q)\n"
MAIN = "ENTRY e {\n  p = f32[8] parameter(0)\n  c = f32[8] CALLER\n  ROOT t = (f32[8]) tuple(c)\n}\n"


def findings_of(text: str, command: str = "summary", rule: str = "HI014") -> list[tuple[str, int | None]]:
    (report,) = hlo_inspect.inspect_all(text, command)
    return [(f.message, f.location.line) for f in report.findings if f.location and f.rule == rule]


@pytest.mark.parametrize("command", ["summary", "cost", "optimizer"])
def test_a_root_that_differs_from_the_signature_is_a_finding(command: str) -> None:
    text = f"HloModule m\n\nf (q: f32[8]) -> f32[] {{\n{BODY}}}\n\n{MAIN}".replace("CALLER", "fusion(p), kind=kLoop, calls=f")
    message = "f marks no ROOT, and its last instruction n has the shape f32[8]; its signature states f32[]"
    assert findings_of(text, command) == [(message, 5)]
    assert findings_of(text.replace("-> f32[] {", "-> f32[8] {"), command) == []
    assert findings_of(text.replace("-> f32[] {", "-> f32[8]{0} {"), command) == []


@pytest.mark.parametrize(
    ("caller", "wrong", "right"),
    [
        ("fusion(p), kind=kLoop, calls=f", "f32[4]", "f32[8]{0}"),
        ("call(p), to_apply=%f", "(f32[8])", "f32[8]"),
        ("while(p), condition=w, body=f", "f32[8,1]", "f32[<=8]"),
    ],
)
def test_a_root_that_differs_from_its_caller_is_a_finding(caller: str, wrong: str, right: str) -> None:
    for shape, problems in ((wrong, 1), (right, 0)):
        text = f"HloModule m\n\nf {{\n{BODY}}}\n\n{MAIN}".replace("f32[8] CALLER", f"{shape} {caller}")
        assert len(findings_of(text)) == problems


def test_a_root_that_differs_from_the_header_is_a_finding() -> None:
    text = HEADER + MAIN.replace("CALLER", "negate(p)")
    assert findings_of(text) == []
    assert findings_of(text.replace("  ROOT t = (f32[8]) tuple(c)\n", "")) == [
        ("e marks no ROOT, and its last instruction c has the shape f32[8]; entry_computation_layout states (f32[8])", 5)
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"HloModule m\n\nf {{\n{BODY}}}\n\n" + MAIN.replace("CALLER", "reduce(p, p), dimensions={0}, to_apply=f"),
        f"HloModule m\n\nf {{\n{BODY}}}\n\n" + MAIN.replace("CALLER", "map(p), dimensions={0}, to_apply=f"),
        f"HloModule m\n\nf (q: f32[8]) -> nonsense {{\n{BODY}}}\n\n" + MAIN.replace("CALLER", "negate(p)"),
        "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  n = f32[8] negate(p)\n}\n",
    ],
)
def test_reducers_and_unreadable_signatures_give_no_finding_on_roots(text: str) -> None:
    assert findings_of(text) == []


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
        assert (len(findings_of(left)), len(findings_of(left, rule="HI015"))) == ((0, 1) if is_same else (1, 0)), line
        noted[is_same] += 1
    assert all(noted.values())


@pytest.mark.parametrize(("marked", "layout", "is_noted"), [(2, True, True), (1, True, False), (2, False, False)])
def test_an_unmarked_root_is_a_finding_if_most_others_are_marked(marked: int, layout: bool, is_noted: bool) -> None:
    """The text may be handwritten if half have no root or no compiler wrote the header."""
    header = "HloModule m, entry_computation_layout={(f32[8])->f32[8]}\n\n" if layout else "HloModule m\n\n"
    others = "".join(f"f{i} {{\n{BODY}}}\n\n".replace("  n = ", "  ROOT n = ") for i in range(marked))
    text = f"{header}{others}ENTRY e {{\n{BODY}}}\n"
    message = "no instruction of e is marked ROOT, unlike in most computations here; n counts as ROOT"
    line = 3 + 5 * marked + 2
    assert findings_of(text, rule="HI015") == ([(message, line)] if is_noted else [])


def test_many_findings_on_roots_take_linear_time() -> None:
    def read(count: int) -> None:
        report = hlo_inspect.inspect(roots_that_disagree(count), "summary")
        assert report.facts["module.computations"] == count + 1

    assert_linear(read, 6_000)


def test_an_empty_computation_is_a_finding() -> None:
    text = f"HloModule m\n\nf {{\n}}\n\n{MAIN}".replace("CALLER", "fusion(p), kind=kLoop, calls=f")
    assert findings_of(text, rule="HI015") == [("computation f holds no instruction", 3)]


def test_dumps_of_the_tests_have_no_findings_on_roots() -> None:
    for path in sorted(DATA.rglob("*.txt*"))[::5]:
        raw = path.read_bytes()
        text = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode(errors="replace")
        try:
            reports = list(hlo_inspect.inspect_all(text + "\n", "summary"))
        except hlo_inspect.HloInspectError:
            continue
        assert [f for report in reports for f in report.findings if f.rule in {"HI014", "HI015"}] == []
