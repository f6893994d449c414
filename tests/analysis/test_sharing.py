"""Work that repeats is done once, and reports are the same if nothing is shared.

The modules include some whose parts differ in one attribute, shape, constant, callee, name or order of operands.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import hlo_inspect
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.phases import component_facts as fact
from hlo_inspect.analysis.phases import graph_phases
from hlo_inspect.analysis.phases.component_facts import ComponentFacts
from hlo_inspect.analysis.phases.names import NamedPhases
from hlo_inspect.analysis.phases.phases import Phases
from hlo_inspect.analysis.provenance import Labeller, Provenances
from hlo_inspect.analysis.time import costings
from hlo_inspect.analysis.time.costings import StepCost, TimesOf
from hlo_inspect.analysis.time.kernel_times import KernelTime, KernelTimes
from hlo_inspect.graph import view
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule, CanonicalText
from hlo_inspect.graph.canonical.spelling import Speller
from hlo_inspect.graph.row_classes import RowClasses
from hlo_inspect.graph.value_graph import COLLECTIVE, PRODUCT, SUMS, BodyTemplate, BodyTemplates, ValueGraph
from hlo_inspect.graph.value_graph import MOVES as MOVING
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values import op_names
from hlo_inspect.hlo.values.attribute_forms import FormTable
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value
from hlo_inspect.request import Request

PASSES = ("time", "summary", "params", "fusions", "collectives", "cost", "optimizer", "memory", "top")

UPDATE = (
    "%w.{n} = f32[8,8] parameter(0)",
    "%g.{n} = f32[8,8] parameter(1)",
    "%c.{n} = f32[] constant(0.01)",
    "%b.{n} = f32[8,8] broadcast(%c.{n}), dimensions={}",
    "%m.{n} = f32[8,8] multiply(%g.{n}, %b.{n})",
    "ROOT %u.{n} = f32[8,8] subtract(%w.{n}, %m.{n})",
)
LAST = "the end of the last line"
NORM = (
    "%w.{n} = f32[8,8] parameter(0)",
    "%g.{n} = f32[8,8] parameter(1)",
    "%z.{n} = f32[] constant(0)",
    "%l.{n} = f32[4,8] slice(%w.{n}), slice={[0:4], [0:8]}",
    "%r.{n} = f32[8] reduce(%l.{n}, %z.{n}), dimensions={0}, to_apply=%add.1",
    "%d.{n} = f32[8,8] dot(%g.{n}, %k.{n}), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%k.{n} = f32[8,8] broadcast(%r.{n}), dimensions={0}",
    "ROOT %u.{n} = f32[8,8] add(%d.{n}, %w.{n})",
)
"""Computations of a fusion, numbered; tests change one thing at a time in their lines."""

CHANGES: tuple[tuple[str, str], ...] = (
    ("constant(0.01)", "constant(0.02)"),  # constants
    ("constant(0)", "constant(-1)"),
    ("f32[8,8]", "bf16[8,8]"),  # shapes
    ("f32[] ", "f32[]{:T(128)} "),
    ("f32[8,8] multiply", "f32[8,8]{0,1} multiply"),
    ("slice={[0:4]", "slice={[2:6]"),  # attributes
    ("slice={[0:4]", "slice={[0:8:2]"),
    ("lhs_contracting_dims={1}", "lhs_contracting_dims={0}"),
    ("dimensions={0}, to_apply", "dimensions={1}, to_apply"),
    ("to_apply=%add.1", "to_apply=%power.1"),  # callees
    ("to_apply=%add.1", "to_apply=%add.2"),
    ("subtract(%w.{n}, %m.{n})", "subtract(%m.{n}, %w.{n})"),  # operands
    ("multiply(%g.{n}, %b.{n})", "multiply(%g.{n}, %g.{n})"),
    ("parameter(1)", "parameter(0)"),
    ("subtract(", "add("),  # opcodes
    ("multiply(", "divide("),
    ("%m.{n}", "%other.name-{n}"),  # names
    (LAST, ', metadata={op_name="jit(step)/jvp(layers_{n})/mul" source_line={n}}'),  # parts without a meaning
    (LAST, ', frontend_attributes={a=", metadata={b", c="} %d"}'),
    (LAST, ', frontend_attributes={a=", metadata={b", c="{n}} %d"}'),
    (LAST, ', frontend_attributes={a="x\\\\",b="%n"}'),
    (LAST, ', frontend_attributes={a="x\\\\",b="%n.{n}"}'),
    (LAST, ' /*"*/, frontend_attributes={b="%n.{n}"}'),
)

MIXED = """%{name} {{
  %{first} = f32[8,8] parameter(0)
  %{second} = f32[8,8] parameter(1)
  %x = f32[8,8] negate(%{first})
  ROOT %s = f32[8,8] subtract(p, %x)
}}
"""
"""The operand without a mark names one of the two parameters."""

CONTRACTED = "lhs_contracting_dims={{{}}}, rhs_contracting_dims={{{}}}"
APPLIED = "".join(
    f"%{name} {{\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n  ROOT %s = f32[] {opcode}(%x, %y)\n}}\n"
    for name, opcode in (("add.1", "add"), ("add.2", "add"), ("power.1", "power"))
)


def module(seed: int, layers: int = 8) -> str:
    """Write a scheduled step of a network of products.

    A fusion updates each weight, some gradients go through another one, and half of the fusions are changed.
    """
    chance = random.Random(seed)  # noqa: S311 - no secrets
    changes = chance.sample(CHANGES, 3)
    bodies: list[str] = [APPLIED]
    bodies += [MIXED.format(name=f"mixed.{a}", first=a, second=b) for a, b in ("pq", "qp")]
    entry = [f"%p.{i} = f32[8,8] parameter({i})" for i in range(layers)]
    entry += [f"%h.0 = f32[8,8] parameter({layers})"]
    entry += [f"%h.{i + 1} = f32[8,8] dot(%h.{i}, %p.{i}), {CONTRACTED.format(1, 0)}" for i in range(layers)]
    entry += [f"%mixed.{a} = f32[8,8] fusion(%h.0, %h.1), kind=kLoop, calls=%mixed.{a}" for a in "pq"]
    entry += [f"%t.{layers} = f32[8,8] tanh(%h.{layers})"]
    for i in reversed(range(layers)):
        entry.append(f"%t.{i} = f32[8,8] dot(%t.{i + 1}, %p.{i}), {CONTRACTED.format(1, 1)}")
        entry.append(f"%g.{i} = f32[8,8] dot(%h.{i}, %t.{i + 1}), {CONTRACTED.format(0, 0)}")
        gradient = f"%g.{i}"
        for kind in (NORM, UPDATE) if chance.random() < 0.5 else (UPDATE,):
            number = len(bodies)
            bodies.append(fused(kind, number, chance.choice(changes) if chance.random() < 0.5 else None))
            called = f"kind=kLoop, calls=%fused.{number}"
            scope = f'metadata={{op_name="jit(step)/jvp(layers_{i}{chance.choice(["", "块"])})/mul"}}'
            entry.append(f"%fusion.{number} = f32[8,8] fusion(%p.{i}, {gradient}), {called}, {scope}")
            gradient = f"%fusion.{number}"
        entry.append(f"%new.{i} = f32[8,8] copy({gradient})")
    results = ", ".join(f"%new.{i}" for i in range(layers))
    entry.append(f"ROOT %out = ({', '.join(['f32[8,8]'] * layers)}) tuple({results})")
    aliases = ", ".join(f"{{{i}}}: ({i}, {{}}, may-alias)" for i in range(layers))
    header = f"HloModule step, is_scheduled=true, input_output_alias={{ {aliases} }}"
    return "\n".join((header, "", *bodies, "ENTRY %main {", *(f"  {line}" for line in entry), "}", ""))


def fused(lines: Sequence[str], number: int, change: tuple[str, str] | None) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    if change is not None:
        old, new = change
        body = body + new if old == LAST else body.replace(old, new, 1) if "name" not in new else body.replace(old, new)
    body = body.replace("{n}", str(number))
    return f"%fused.{number} {{\n{body}\n}}\n"


def without_marks(text: str) -> str:
    """Return the text as printers write it that have no `%`."""
    return text.replace("%", "")


def answers(text: str) -> tuple[object, ...]:
    report: Report = hlo_inspect.inspect(text, PASSES, profile="h100-sxm")
    tables = [(table.name, table.columns, table.rows) for table in report.tables]
    return dict(report.facts), tables, report.findings, report.notes, report.headline, normal_text(text)


def normal_text(text: str) -> list[str]:
    module = next(iter(read_modules(open_source(io.StringIO(text)), Wants(graph=True))))
    canonical = CanonicalModule(module, Views(module.computations))
    return list(CanonicalText(canonical, is_scheduled=True, metadata=True).lines())


@pytest.fixture
def share_nothing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Compute everything anew, without any cache."""

    def unshared() -> None:
        looked_up, step_costs, numbers = Provenances.get, costings.step_costs, count()

        def costs_of_each(kernels: Sequence[Kernel], times: TimesOf | None, by_flops: bool) -> list[StepCost]:
            return [cost for kernel in kernels for cost in step_costs([kernel], times, by_flops)]

        monkeypatch.setattr(RowClasses, "of_rows", lambda _, view: [next(numbers) for _ in view.rows])
        monkeypatch.setattr(RowClasses, "of_computation", lambda *_: next(numbers))
        monkeypatch.setattr(Provenances, "get", lambda self, metadata: looked_up(Provenances(self.frames), metadata))
        monkeypatch.setattr(op_names, "LAYER_NUMBER", re.compile("(?!)"))
        monkeypatch.setattr(view, "printed_element", lambda _: None)
        monkeypatch.setattr(view, "_METADATA", re.compile("(?!)"))
        monkeypatch.setattr(costings, "step_costs", costs_of_each)
        for owner, name in TABLES:
            forget(monkeypatch, owner, name)

    return unshared


class Forgetful(dict[Any, Any]):
    """A table that keeps its last entry only, and denies that it has it."""

    def __setitem__(self, key: object, value: object) -> None:
        self.clear()
        super().__setitem__(key, value)

    def __contains__(self, key: object) -> bool:
        return False

    def __missing__(self, key: object) -> dict[Any, Any]:
        return {}

    def get(self, key: object, default: object = None) -> object:
        return default


TABLES = (
    (FormTable, "_forms"),
    (NamedPhases, "_functions"),
    (Labeller, "_by_row"),
    (Labeller, "_by_metadata"),
    (Provenances, "_parts_by_name"),
    (Speller, "_forms"),
    (Phases, "_named"),
    (Phases, "_of_collectives"),
    (BodyTemplates, "_known"),
)


def forget(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Make each object of a class that is created from now on keep nothing in a table."""
    start = owner.__init__

    def forgetful(self: object, *arguments: object, **options: object) -> None:
        start(self, *arguments, **options)
        assert getattr(self, name) == {}
        setattr(self, name, Forgetful())

    monkeypatch.setattr(owner, "__init__", forgetful)


@pytest.mark.parametrize("spelled", [str, without_marks])
def test_the_same_is_reported_where_nothing_is_shared(spelled: Callable[[str], str], share_nothing: Callable[[], None]) -> None:
    texts = [spelled(module(seed)) for seed in range(10)]
    shared = [answers(text) for text in texts]
    share_nothing()
    for text, answer in zip(texts, shared, strict=True):
        assert answers(text) == answer, text


def test_two_modules_are_compared_the_same_where_nothing_is_shared(share_nothing: Callable[[], None]) -> None:
    pairs = [(module(seed), without_marks(module(seed + 1)) if seed % 3 == 0 else module(seed + 1)) for seed in range(12)]

    def compare(old: str, new: str) -> list[tuple[object, ...]]:
        comparisons = Comparisons(Request()).compare(ComparedInput(old), ComparedInput(new))
        return [(c.verdict, c.report.headline, [table.rows for table in c.report.tables]) for c in comparisons]

    shared = [compare(*pair) for pair in pairs]
    share_nothing()
    for pair, differences in zip(pairs, shared, strict=True):
        assert compare(*pair) == differences, pair


def test_phases_of_collectives_are_in_no_shared_table(share_nothing: Callable[[], None]) -> None:
    scopes = ("jit(step)/jvp(layers_0)/dot_general", "jit(step)/transpose(jvp(layers_0))/dot_general", "", "jit(step)/mul")
    rows = "".join(
        f'  %r.{number} = f32[8] all-reduce(%r.{number - 1}), to_apply=%add.1, metadata={{op_name="{scope}"}}\n'
        for number, scope in enumerate(scopes, 1)
    )
    text = f"HloModule m\n\n{APPLIED}ENTRY %main {{\n  %r.0 = f32[8] parameter(0)\n{rows}  ROOT %n = f32[8] negate(%r.4)\n}}\n"

    def phases() -> list[tuple[str, str]]:
        table = next(t for t in hlo_inspect.inspect(text, "collectives").tables if t.name == "collectives")
        return sorted((str(row["name"]), str(row["phase"])) for row in table.records())

    shared = phases()
    assert [phase for _, phase in shared[:2]] == ["forward", "backward"]
    share_nothing()
    assert phases() == shared


GEMM = (
    'f32[8,8] custom-call(%a, %b), custom_call_target="__cublas$gemm", '
    'backend_config={"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]},"algorithm":"ALG_UNSET"}'
)
FLASH = 'f32[1,2,16,8] custom-call(%q, %q, %q), custom_call_target="tpu_custom_call"'
CALLS = (
    ("gemm.1", GEMM),
    ("gemm.2", GEMM),
    ("gemm.3", GEMM.replace('["1"]', '["0"]')),
    ("gemm.4", GEMM.replace("(%a, %b)", "(%c, %b)")),
    ("gemm.5", GEMM.replace("(%a, %b)", "(%a, %missing)")),
    ("gemm.6", GEMM.replace("f32[8,8] ", "f32[8,4] ")),
    ("gemm.7", GEMM.replace("f32[8,8] ", "f32[8,8]{1,0:S(5)} ")),
    ("gemm.8", GEMM.replace("$gemm", "$lt$matmul")),
    ("gemm.9", GEMM.replace("ALG_UNSET", "ALG_DOT_BF16_BF16_F32")),
    ("gemm.10", GEMM.replace(", backend", ", operand_precision={highest,highest}, backend")),
    ("gemm.11", GEMM.replace('{"dot', "{dot")),
    ("gemm.12", GEMM.replace("$gemm", "$unknown")),
    ("gemm.13", GEMM.replace("$gemm", "$unknown")),
    ("other.14", GEMM.replace("$gemm", "$unknown")),
    ("flash_attention.15", FLASH),
    ("flash_attention.16", FLASH),
    ("add_vectors.17", FLASH),
    ("pallas_call.18", FLASH),
    ("pallas_call.19", FLASH + ', metadata={op_name="jit(f)/flash_attention/pallas_call"}'),
    ("pallas_call.20", FLASH + ', metadata={op_name="jit(f)/other/pallas_call"}'),
)
"""Custom calls of which some differ in one thing that changes their cost."""
BY_ATTRIBUTES = (
    ("transpose.1", "f32[8,8] transpose(%a), dimensions={1,0}"),
    ("transpose.2", "f32[8,8] transpose(%a), dimensions={0,1}"),
    ("slice.1", "f32[4,8] slice(%a), slice={[0:4], [0:8]}"),
    ("slice.2", "f32[4,8] slice(%a), slice={[0:8:2], [0:8]}"),
    ("reduce.1", "f32[8] reduce(%a, %z), dimensions={0}, to_apply=%add.1"),
    ("reduce.2", "f32[8] reduce(%a, %z), dimensions={0}, to_apply=%power.1"),
)
"""Instructions that differ in attributes alone."""

USER_RULES = """custom_calls:
  - {target: tpu_custom_call, kernel: add_vectors, flops: 7}
  - {target: __cublas$unknown, kernel: "gemm", flops: 11}
"""


def test_calls_that_cost_the_same_are_worked_out_once(share_nothing: Callable[[], None], tmp_path: Path) -> None:
    chance = random.Random(3)  # noqa: S311 - no secrets
    of_user = tmp_path / "rules.yaml"
    of_user.write_text(USER_RULES)
    texts = []
    for _ in range(6):
        arrays = ("a = f32[8,8]", "b = f32[8,8]", "c = f16[8,8]", "q = f32[1,2,16,8]", "z = f32[]")
        rows = [f"%{array} parameter({number})" for number, array in enumerate(arrays)]
        rows += [f"%{name} = {call}" for name, call in chance.sample((*CALLS, *BY_ATTRIBUTES), k=len(CALLS + BY_ATTRIBUTES))]
        texts.append("\n".join(("HloModule calls", "", APPLIED, "ENTRY %main {", *rows, "ROOT %r = () tuple()", "}", "")))

    def report(text: str) -> list[object]:
        passes = ("cost", "summary", "top")
        reports = [hlo_inspect.inspect(text, passes, profile="h100-sxm", custom_calls=rules) for rules in (None, str(of_user))]
        return [(dict(r.facts), [(table.name, table.rows) for table in r.tables], r.notes) for r in reports]

    shared = [report(text) for text in texts]
    share_nothing()
    assert [report(text) for text in texts] == shared


CYCLES = ', backend_config={"window_config":{"estimated_cycles":"%d"}}'
NEGATE = "f32[512,512]{1,0} negate(%p)"
OPAQUE = 'f32[512,512]{1,0} custom-call(%p), custom_call_target="'
KERNELS = (
    *(NEGATE, NEGATE, NEGATE + CYCLES % 500, NEGATE + CYCLES % 900, NEGATE.replace("1,0", "0,1")),
    *(NEGATE.replace("f32", "f16"), NEGATE.replace("negate", "tanh"), NEGATE.replace("%p", "%q")),
    *(OPAQUE + 'one"', OPAQUE + 'one"', OPAQUE + 'other"', OPAQUE.replace("f32", "f16") + 'other"'),
)


@pytest.mark.parametrize("profile", [None, "h100-sxm", "tpu-v5e"])
def test_kernels_cost_the_same_where_nothing_is_shared(profile: str | None, share_nothing: Callable[[], None]) -> None:
    shapes = ("f32[512,512]{1,0:T(8,128)}", "f32[512,512]{0,1:T(8,128)}")
    rows = [f"%{name} = {shape} parameter({number})" for number, (name, shape) in enumerate(zip("pq", shapes, strict=True))]
    rows += [f"%k.{number} = {kernel}" for number, kernel in enumerate(KERNELS)]
    text = "\n".join(("HloModule m, is_scheduled=true", "", "ENTRY %main {", *rows, "ROOT %r = () tuple()", "}", ""))

    def contents() -> list[object]:
        report = hlo_inspect.inspect(text, ("top", *(["time"] if profile else [])), profile=profile)
        return [dict(report.facts), [(table.name, table.rows) for table in report.tables], report.notes]

    shared = contents()
    share_nothing()
    assert contents() == shared


MOVED = """%moved.{n} {{
  %a.{n} = f32[8,16]{{1,0}} parameter(0)
  %b.{n} = bf16[8,16]{{1,0}} convert(%a.{n})
  %c.{n} = bf16[16,8]{{1,0}} transpose(%b.{n}), dimensions={{1,0}}
  ROOT %d.{n} = bf16[16,8]{{1,0}} copy(%c.{n})
}}
"""
MOVES = (
    ("", "", "conversion, transpose, copy"),
    ("%b.{n} = bf16", "%b.{n} = s16", None),  # values are lost
    ("copy(%c.{n})", "negate(%c.{n})", None),
    ("copy(%c.{n})", "copy(%b.{n})", "conversion, copy"),
    ("transpose(%b.{n})", "transpose(%a.{n})", "transpose, copy"),
    ("transpose(%b.{n})", "transpose(bf16[8,16]{{1,0}} %b.{n})", "conversion, transpose, copy"),
    ("convert(%a.{n})", "slice(%a.{n}), slice={{[0:8], [0:16]}}", "slice, transpose, copy"),
    ("parameter(0)", "parameter(1)", None),
)


def test_fusions_that_only_move_data_are_told_by_their_rows(share_nothing: Callable[[], None]) -> None:
    bodies = [MOVED.replace(old, new, 1).format(n=n) for n, (old, new, _) in enumerate(MOVES)]
    calls = [f"  %f.{n} = bf16[16,8]{{1,0}} fusion(%p), kind=kLoop, calls=%moved.{n}" for n in range(len(MOVES))]
    entry = ("ENTRY %main {", "  %p = f32[8,16]{1,0} parameter(0)", *calls, "  ROOT %r = bf16[16,8]{1,0} negate(%f.0)", "}")
    text = "\n".join(("HloModule m", "", *bodies, *entry, ""))

    def relations() -> dict[str, Value]:
        table = next(t for t in hlo_inspect.inspect(text, "memory").tables if t.name == "largest_arrays")
        return {str(row["name"]): row["relation"] for row in table.records()}

    shared = relations()
    merged = [n for n, (_, _, relation) in enumerate(MOVES) if relation == MOVES[0][2]]
    assert shared.pop(f"f.* × {len(merged)}") == MOVES[0][2]
    assert {n: shared.get(f"f.{n}") for n in range(len(MOVES)) if n not in merged and MOVES[n][2]} == {
        n: relation for n, (_, _, relation) in enumerate(MOVES) if n not in merged and relation
    }
    share_nothing()
    assert relations() == {**shared, f"f.* × {len(merged)}": MOVES[0][2]}


def test_the_modules_share_something_and_not_everything() -> None:
    """Else the test above would prove little: of one module's fusions some are the same, and each change makes others."""
    plain = fused(UPDATE, 1, None) + fused(NORM, 1, None)
    changed = {fused(UPDATE, 1, change) + fused(NORM, 1, change) for change in CHANGES}
    assert len(changed) == len(CHANGES)
    assert plain not in changed
    named = [hlo_inspect.inspect(module(seed), "optimizer").facts["optimizer.name"] for seed in range(25)]
    assert named.count("sgd") > len(named) // 2
    shared = []
    for seed in range(10):
        read = next(iter(read_modules(open_source(io.StringIO(module(seed))), Wants(graph=True))))
        classes = Views(read.computations).classes
        bodies = [classes.of_computation(name) for name in read.computations if name.startswith("fused")]
        shared.append(2 < len(set(bodies)) < len(bodies))
    assert sum(shared) > len(shared) // 2


def test_calls_are_copied_and_times_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the first test would prove nothing of them."""
    copied: list[BodyTemplate] = []
    timed: list[Kernel] = []
    find, time = BodyTemplates.find, KernelTimes._find

    def counted_find(templates: BodyTemplates, name: str, arguments: int) -> BodyTemplate | None:
        template = find(templates, name, arguments)
        copied.extend([template] if template is not None else [])
        return template

    def counted_time(times: KernelTimes, kernel: Kernel) -> KernelTime:
        timed.append(kernel)
        return time(times, kernel)

    monkeypatch.setattr(BodyTemplates, "find", counted_find)
    monkeypatch.setattr(KernelTimes, "_find", counted_time)
    answers(module(3))
    assert copied
    shared = len(timed)
    numbers = count()
    monkeypatch.setattr(RowClasses, "of_rows", lambda _, view: [next(numbers) for _ in view.rows])
    answers(module(3))
    assert 0 < shared < len(timed) - shared


@pytest.mark.parametrize("seed", range(4))
def test_rules_say_the_same_of_each_value_by_itself(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values with any facts, in any place. One of three kinds of collectives has a twin in the forward pass."""
    chance, size = random.Random(seed), 3000  # noqa: S311 - no secrets
    graph = ValueGraph()
    graph.kinds = bytearray(chance.choices([0, PRODUCT, MOVING, COLLECTIVE, COLLECTIVE | MOVING, COLLECTIVE | SUMS], k=size))
    some = [chance.choice([fact.LOSS, fact.GRADIENT, fact.UPDATED, 0]) | chance.getrandbits(16) for _ in range(8)]
    some += [
        fact.LOSS,
        fact.UPDATED,
        fact.GRADIENT,
        fact.GRADIENT | fact.RECOMPUTED,
    ]
    bits, nodes = chance.choices(some, k=size), range(size)
    value_facts = SimpleNamespace(parts=SimpleNamespace(component_of=nodes), bits=bits, operands=[[] for _ in nodes])
    flags = [bytearray(chance.choices([0, 1], weights=[4, 1], k=size)) for _ in range(2)]
    monkeypatch.setattr(graph_phases, "collective_key", lambda _, node: (str(node % 3),))
    for is_scheduled in (False, True):
        step = graph_phases.StepValues(
            graph, cast(ComponentFacts, value_facts), flags[0], size // 2, frozenset({("1",)}), flags[1], is_scheduled
        )
        alone = [graph_phases.phase_of(step, node, node) for node in nodes]
        assert len(set(alone)) > 3
        assert graph_phases.phases_of_values(step) == alone
