"""Canonical modules: changes of the text that must not matter, and changes that must."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.canonical.canonical_computation import Traversal
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule, CanonicalText
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from tests.graph.canonical.rewriting import renamed, reordered, with_predecessors_reordered, without_metadata
from tests.hlo.generate import CALLERS, ORDINARY, Writer

DATA = Path(__file__).parents[2] / "data"
DUMPS = [
    "cpu/adamw_step.before.txt",
    "cpu/control_flow.after.txt",
    "cpu/scan_fsdp.after.txt",
    "gpu/collectives.after.txt",
    "gpu/gathered_matmul.after.txt",
]


def canonical(text: str) -> CanonicalModule:
    (module,) = read_modules(open_source(text), Wants(graph=True, entry=True))
    assert not list(module.problems)
    return Context(module).canonical


def normal(text: str, *, is_scheduled: bool = False) -> str:
    return "".join(CanonicalText(canonical(text), is_scheduled=is_scheduled).lines())


def fingerprints(text: str) -> list[int]:
    module = canonical(text)
    return sorted(module.computation(name).fingerprint for name in module.names)


def entry(*lines: str) -> str:
    return "\n".join(["HloModule m", "", "ENTRY %e {", *(f"  {line}" for line in lines), "}", ""])


@pytest.mark.parametrize("dump", DUMPS)
def test_names_metadata_and_order_do_not_change_the_program(dump: str) -> None:
    text = (DATA / dump).read_text(encoding="utf-8")
    first = canonical(text)
    other = canonical(renamed(reordered(without_metadata(text), 1), 2))
    assert other.program == first.program
    assert normal(renamed(reordered(text, 3), 4)) == normal(text)
    assert fingerprints(renamed(reordered(text, 5), 6)) == fingerprints(text)
    assert canonical(renamed(text, 7)).schedule == first.schedule
    assert normal(renamed(text, 8), is_scheduled=True) == normal(text, is_scheduled=True)
    if first.schedule is not None:
        assert other.schedule != first.schedule


@pytest.mark.parametrize("dump", DUMPS)
def test_normalizing_a_normal_form_changes_nothing(dump: str) -> None:
    text = (DATA / dump).read_text(encoding="utf-8")
    assert normal(normal(text)) == normal(text)
    scheduled = normal(text, is_scheduled=True)
    assert normal(scheduled, is_scheduled=True) == scheduled
    assert canonical(scheduled).program == canonical(text).program


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Draw a module of few kinds of lines, so that many are equal, with lines that nothing reads."""
    size = draw(st.integers(1, 12))
    lines: list[str] = []
    for row in range(size):
        before = [f"%i{number}" for number in range(row)]
        pick = st.sampled_from(before) if before else st.nothing()
        kinds = ["constant", "token"] + (["negate", "add", "tuple", "call", "after"] if before else [])
        kind = draw(st.sampled_from(kinds))
        if kind == "constant":
            text = f"f32[] constant({draw(st.integers(0, 1))})"
        elif kind == "token":
            text = 'f32[] custom-call(), custom_call_target="t"'
        elif kind == "negate":
            text = f"f32[] negate({draw(pick)})"
        elif kind == "add":
            text = f"f32[] add({draw(pick)}, {draw(pick)})"
        elif kind == "tuple":
            text = f'f32[] custom-call({", ".join(draw(st.lists(pick, max_size=3)))}), custom_call_target="u"'
        elif kind == "call":
            text = f"f32[] all-reduce({draw(pick)}), channel_id={row + 1}"
        else:
            predecessors = ", ".join(draw(st.lists(pick, min_size=1, max_size=3, unique=True)))
            text = f"f32[] constant(0), control-predecessors={{{predecessors}}}"
        lines.append(f"%i{row} = {text}")
    root = draw(st.integers(0, size - 1))
    lines[root] = f"ROOT {lines[root]}"
    return entry(*lines)


def test_swapping_two_equal_rows_does_not_change_the_normal_form() -> None:
    lines = ["ROOT %i0 = f32[] constant(0)", "%i1 = f32[] negate(%i0)", "%i2 = f32[] negate(%i0)", "%i3 = f32[] add(%i1, %i2)"]
    swapped = [lines[0], lines[2], lines[1], lines[3]]
    assert normal(entry(*swapped)) == normal(entry(*lines))


@settings(max_examples=150)
@given(graphs(), st.integers(0, 2**32))
def test_any_order_and_any_names_give_the_same_normal_form(text: str, seed: int) -> None:
    other = renamed(with_predecessors_reordered(reordered(text, seed), seed), seed)
    assert normal(other) == normal(text)
    assert canonical(other).program == canonical(text).program


def test_the_order_of_equal_control_predecessors_does_not_matter() -> None:
    """The predecessors are two equal custom calls, one of which is negated."""
    calls = [f'%{name} = f32[] custom-call(), custom_call_target="t"' for name in ("a", "b")]
    ends = ["%n = f32[] negate(%a)", "ROOT %r = f32[] constant(0), control-predecessors="]
    texts = [entry(*calls, ends[0], ends[1] + order) for order in ("{%a, %b}", "{%b, %a}")]
    assert normal(texts[0]) == normal(texts[1])
    assert canonical(texts[0]).program == canonical(texts[1]).program


def test_rows_with_equal_neighbours_have_one_normal_form() -> None:
    """Unread sums form a ring of six and two rings of three. All rows have equal neighbours."""
    rings = [[0, 1, 2, 3, 4, 5], [6, 7, 8], [9, 10, 11]]
    calls = [f'%c{number} = f32[] custom-call(), custom_call_target="t"' for number in range(12)]
    pairs = [pair for ring in rings for pair in zip(ring, ring[1:] + ring[:1], strict=True)]
    sums = [f"%s{number} = f32[] add(%c{left}, %c{right})" for number, (left, right) in enumerate(pairs)]
    text = entry(*calls, *sums, "ROOT %r = f32[] constant(0)")
    assert {normal(renamed(reordered(text, seed), seed)) for seed in range(10)} == {normal(text)}


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_normalizing_the_normal_form_of_a_random_text_changes_nothing(seed: int) -> None:
    text, _ = Writer(seed).module([*ORDINARY, *ORDINARY, "constant", "parameter", *CALLERS])
    for module in read_modules(open_source(text), Wants(graph=True, entry=True)):
        first = "".join(CanonicalText(Context(module).canonical, is_scheduled=False, metadata=True).lines())
        (again,) = read_modules(open_source(first), Wants(graph=True, entry=True))
        assert "".join(CanonicalText(Context(again).canonical, is_scheduled=False, metadata=True).lines()) == first


def test_lines_of_a_canonical_text_are_not_kept_in_memory() -> None:
    """The peak of memory is below the size of the text."""
    origin = f'metadata={{op_name="{"a long way within the program/" * 8}"}}'
    rows = [f"%n{number} = f32[8]{{0}} negate(%n{number - 1}), {origin}" for number in range(1, 3000)]
    module = canonical(entry(f"%n0 = f32[8]{{0}} parameter(0), {origin}", *rows))
    text = CanonicalText(module, is_scheduled=True, metadata=True)
    module.program  # noqa: B018 - so that what follows measures the lines alone
    tracemalloc.start()
    size = sum(map(len, text.lines()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size


def test_deep_and_circular_calls_and_uses_have_a_normal_form() -> None:
    """Computations call one another in a circle, with and without an entry; rows use one another in a circle."""
    count = 1_500
    bodies = [
        f"%c{i} {{\n  %x = f32[] parameter(0)\n  ROOT %y = f32[] call(%x), to_apply=%c{(i + 1) % count}\n}}\n"
        for i in range(count)
    ]
    text = "HloModule m\n\n" + "\n".join(bodies)
    rows = [f"%r{i} = f32[] negate(%r{(i + 1) % count})" for i in range(count)]
    for broken in (text, text + entry("ROOT %z = f32[] constant(1)").partition("\n\n")[2], entry(*rows)):
        (module,) = read_modules(open_source(broken), Wants(graph=True, entry=True))
        module_without_names = Context(module).canonical
        assert len(module_without_names.program) == 32
        assert "".join(CanonicalText(module_without_names, is_scheduled=False).lines()).count(" = ") >= count


P, Q = "%p = f32[4]{0} parameter(0)", "%q = f32[4]{0} parameter(1)"


@pytest.mark.parametrize(
    ("root", "other"),
    [
        ("ROOT %r = f32[4]{0} add(%p, %q)", "ROOT %r = f32[4]{0} add(%q, %p)"),
        ("ROOT %r = f32[4]{0} xor(%p, %q)", "ROOT %r = f32[4]{0} xor(%q, %p)"),
    ],
)
def test_swapped_operands_of_commutative_opcodes_change_only_the_program(root: str, other: str) -> None:
    assert fingerprints(entry(P, Q, root)) == fingerprints(entry(P, Q, other))
    assert canonical(entry(P, Q, root)).program != canonical(entry(P, Q, other)).program


@pytest.mark.parametrize(
    ("root", "other"),
    [
        ("ROOT %r = f32[4]{0} subtract(%p, %q)", "ROOT %r = f32[4]{0} subtract(%q, %p)"),
        ("ROOT %r = f32[4]{0} add(%p, %q)", "ROOT %r = f32[4]{0} add(%p, %p)"),
        ("ROOT %r = f32[4]{0} add(%p, %q)", "ROOT %r = f64[4]{0} add(%p, %q)"),
        ("ROOT %r = f32[4]{0} add(%p, %q)", "ROOT %r = f32[4]{0:T(256)} add(%p, %q)"),
        ("ROOT %r = f32[4]{0} slice(%p), slice={[0:4]}", "ROOT %r = f32[4]{0} slice(%p), slice={[0:4:2]}"),
        ("ROOT %r = f32[4]{0} constant({1, 2, 3, 4})", "ROOT %r = f32[4]{0} constant({1, 2, 3, 5})"),
        ("ROOT %r = f32[4]{0} add(%p, %q)", "%r = f32[4]{0} add(%p, %q)\n  ROOT %s = f32[4]{0} negate(%p)"),
    ],
)
def test_another_operation_changes_the_fingerprint(root: str, other: str) -> None:
    assert fingerprints(entry(P, Q, root)) != fingerprints(entry(P, Q, other))
    assert canonical(entry(P, Q, root)).program != canonical(entry(P, Q, other)).program


@pytest.mark.parametrize(
    ("root", "other"),
    [
        ("ROOT %r = f32[4]{0} add(%p, %q)", "ROOT %r = f32[4]{0} add(f32[4]{0} %p, /*index=1*/f32[4]{0} %q)"),
        ("ROOT %r = f32[4]{0} slice(%p), slice={[0:4]}", "ROOT r = f32[4]{0} slice( p ), slice={ [0:4] }"),
        (
            'ROOT %r = f32[4]{0} add(%p, %q), sharding={replicated}, metadata={op_name="a}, b"}',
            'ROOT %r = f32[4]{0} add(%p, %q), origin={{"x"}}, sharding={replicated}',
        ),
    ],
)
def test_spelling_does_not_change_the_program(root: str, other: str) -> None:
    assert canonical(entry(P, Q, root)).program == canonical(entry(P, Q, other)).program


def test_a_row_has_a_local_and_a_dataflow_fingerprint() -> None:
    rows = canonical(
        entry(P, "%a = f32[4]{0} negate(%p)", "%b = f32[4]{0} negate(%a)", "ROOT %c = f32[4]{0} negate(%p)")
    ).computation("e")
    _, a, b, c = rows.local
    assert a == b == c
    _, a, b, c = rows.dataflow
    assert a == c
    assert a != b


def test_a_change_of_a_callee_changes_the_fingerprint_of_its_caller() -> None:
    body = "%f {{\n  %x = f32[4]{{0}} parameter(0)\n  ROOT %y = f32[4]{{0}} {}(%x)\n}}\n\n"
    call = "ROOT %r = f32[4]{0} fusion(%p), kind=kLoop, calls=%f"
    text = entry(P, call)
    negate, sine = (text.replace("ENTRY", body.format(opcode) + "ENTRY") for opcode in ("negate", "sine"))
    assert fingerprints(negate)[0] not in fingerprints(sine)
    assert canonical(negate).computation("e").local[1] != canonical(sine).computation("e").local[1]


def test_hashes_are_the_same_in_every_process() -> None:
    """The other process has another seed of Python's hashes."""
    path = DATA / "cpu" / "adamw_step.after.txt"
    program = f"""
from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.wants import Wants
(module,) = read_modules(open_source({str(path)!r}), Wants(graph=True))
print(Context(module).canonical.program, Context(module).canonical.schedule)
"""
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": str(DATA.parents[1])}
    shell = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    here = canonical(path.read_text(encoding="utf-8"))
    assert shell.stdout.split() == [here.program, here.schedule]


def test_rows_that_use_one_another_are_kept() -> None:
    """No legal text has such rows."""
    lines = "  a = f32[8]{0} negate(a)\n  b = f32[8]{0} add(c, p)\n  c = f32[8]{0} copy(b)\n"
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n{lines}  ROOT r = f32[8]{{0}} copy(p)\n}}\n"
    hlo_inspect.inspect(text, "fingerprint")
    assert sorted(Traversal([[], [1], [3, 0], [2], [0]], [0, 1, 2, 3, 4]).order([0, 4])) == [0, 1, 2, 3, 4]
