"""Phases by the graph of values, in training steps whose metadata is hidden.

The dumps are of tests/data/make_phases.py. The program shows how many products each phase has. JAX's names, which the graph
does not see, give the phase of each product and collective. Each program has a twin that updates nothing and has no phases.
"""

from __future__ import annotations

import lzma
import re
from collections import Counter
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.parameters import adds_something
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import MAX_NOTED, Module
from hlo_inspect.hlo.opcodes import ADDING
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.collectives import Collectives
from hlo_inspect.passes.cost import Cost
from hlo_inspect.request import Request

DATA = Path(__file__).parents[2] / "data" / "phases"
METADATA = re.compile(r", metadata=\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")
WANTS = Cost.wants | Collectives.wants


def text(name: str) -> str:
    return lzma.decompress((DATA / f"{name}.txt.xz").read_bytes()).decode()


def read(text: str) -> Module:
    (module,) = read_modules(open_source(text), WANTS)
    return module


def hidden(name: str) -> Context:
    return Context(read(METADATA.sub("", text(name))))


def named(name: str) -> Context:
    return Context(read(text(name)), Request(phases="names"))


def products(context: Context) -> dict[tuple[str, str], str]:
    """Return the phase of each product by computation and name."""
    return {
        (name, row[1]): context.phases.for_instruction(view.instruction(index)).phase
        for name in context.module.computations
        for view in [context.views.for_computation(name)]
        for index, row in enumerate(view.rows)
        if view.opcodes[index] == "dot"
    }


STEPS = {
    "two_layers": {"forward": 2, "backward": 3},  # the first layer's input needs no cotangent
    "remat": {"forward": 4, "recompute": 4, "backward": 7},  # the derivative of the sine needs the last product too
    "microbatches": {"forward": 2, "backward": 3},  # in the body of a loop
    "loss_not_returned": {"forward": 2, "backward": 3},
    "metrics": {"forward": 2, "backward": 3},
    "frozen_layer": {"forward": 3, "backward": 3},
    "actor_critic": {"forward": 10, "backward": 8},  # two losses; nothing is computed again
    "scan": {"forward": 2, "recompute": 1, "backward": 4},  # one layer in each loop, and the last layer
    "ring_attention": {"forward": 5, "recompute": 1, "backward": 7},  # the scores are needed again
}
"""Products by phase. A product of two weights' layers has two in the backward pass."""

TWINS = [
    "gradients_returned",
    "inference",
    "remat_gradients_returned",
    "microbatches_gradients_returned",
    "one_weight_loss_not_returned",
    "metrics_alone",
    "all_frozen",
    "scan_forward",
    "ring_attention_forward",
    "stage",
]


@pytest.mark.parametrize("name", STEPS)
def test_products_by_phase(name: str) -> None:
    assert Counter(products(hidden(name)).values()) == STEPS[name]


@pytest.mark.parametrize("name", STEPS)
def test_the_graph_agrees_with_the_names(name: str) -> None:
    """Names of the forward pass do not tell the loss from it."""
    without, with_names = hidden(name), named(name)
    by_graph, by_names = products(without), products(with_names)
    assert {product: by_graph[product] for product, phase in by_names.items() if phase != "unknown"} == {
        product: phase for product, phase in by_names.items() if phase != "unknown"
    }
    both = zip(without.phases.of_collectives, with_names.phases.of_collectives, without.collectives, strict=True)
    for graph, by_name, collective in both:
        if by_name.phase in {"backward", "recompute"} and (collective.operand_bytes or 0) > 4:
            assert graph.phase == by_name.phase, collective.start.name
        assert graph.phase_from == "graph"


@pytest.mark.parametrize("name", TWINS)
def test_twins_stay_unknown(name: str) -> None:
    context = hidden(name)
    assert set(products(context).values()) == {"unknown"}
    assert {phase.phase for phase in context.phases.of_collectives} <= {"unknown"}
    assert context.no_graph_reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gradients_returned", "no update of a weight was found"),
        ("one_weight_loss_not_returned", "the step returns no loss, and one weight is too few to find the forward pass"),
        ("stage", "the step returns activations and no loss, like a pipeline stage"),
    ],
)
def test_a_graph_without_phases_has_a_reason(name: str, reason: str) -> None:
    assert hidden(name).no_graph_reason == reason


def test_reductions_of_gradients_and_of_the_loss() -> None:
    """Two gradients of 4 KiB are summed over the devices, and the scalar loss, in one or several all-reduces."""
    context = hidden("two_layers")
    sizes: Counter[str] = Counter()
    for collective, phase in zip(context.collectives, context.phases.of_collectives, strict=True):
        sizes[phase.phase] += collective.operand_bytes or 0
    assert sizes["backward"] >= 2 * 4096
    assert sum(sizes.values()) - sizes["backward"] <= 4


def test_ring_attention_moves_keys_and_values_in_each_phase() -> None:
    """Forward sends K and V around; so does recompute, which the backward pass repeats them with dK and dV for."""
    context = hidden("ring_attention")
    phases = Counter(
        phase.phase
        for collective, phase in zip(context.collectives, context.phases.of_collectives, strict=True)
        if collective.kind == "collective-permute"
    )
    assert phases["forward"] == 2
    assert phases["backward"] >= 2
    assert phases.keys() <= {"forward", "recompute", "backward"}


def test_the_graph_is_not_read_where_names_tell_everything() -> None:
    context = Context(read(text("two_layers")))
    assert {phase.phase_from for phase in context.phases.of_collectives} == {"name"}
    assert "graph_phases" not in vars(context)


@pytest.mark.parametrize(
    ("root", "adds"),
    [
        ("ROOT r = f32[8] all-reduce(m), replica_groups={{0,1}}, to_apply=sum", False),
        ("ROOT r = f32[8] subtract(p, m)", True),
        ("ROOT r = f32[8] call(p, m), to_apply=sum", True),
        ("ROOT r = f32[8] fusion(p, m), kind=kLoop, calls=fused", True),
    ],
)
def test_a_module_that_adds_nothing_updates_no_weight(root: str, *, adds: bool) -> None:
    """Except for what collectives apply: the sum over devices. The fused computation stands in the text if it is called."""
    text = "HloModule m\n\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
    if "fused" in root:
        text += "fused {\n  a = f32[8] parameter(0)\n  b = f32[8] parameter(1)\n  ROOT c = f32[8] add(a, b)\n}\n\n"
    module = read(f"{text}ENTRY e {{\n  p = f32[8] parameter(0)\n  m = f32[8] multiply(p, p)\n  {root}\n}}\n")
    assert adds_something(module, {"sum"}) is adds


SELECTED = sorted(path for folder in ("cpu", "gpu", "handmade", "tpu") for path in DATA.parent.glob(f"{folder}/*.txt"))


@pytest.mark.parametrize("path", SELECTED, ids=lambda path: path.stem)
def test_a_module_that_adds_something_is_seen_without_its_graph(path: Path) -> None:
    """Without the graph the reader notes the computations that may add; it may note one too many, and never one too few."""
    for selected, whole in zip(
        read_modules(open_source(path), Collectives.wants), read_modules(open_source(path), WANTS), strict=True
    ):
        named = {name for name, computation in whole.computations.items() if not ADDING.isdisjoint(computation.opcodes)}
        noted = selected.noted
        assert noted is None or len(noted) == MAX_NOTED or named <= noted
        assert adds_something(selected, set()) >= adds_something(whole, set())


def test_only_computations_that_add_are_noted() -> None:
    lines = "  a = f32[8] parameter(0)\n  ROOT c = f32[8] {}(a, a)\n}}\n\n"
    text = "HloModule m\n\n" + "".join(f"{name} {{\n{lines.format(name)}" for name in ("add", "multiply", "map"))
    text += f"ENTRY e {{\n{lines.format('all-reduce')}"
    (module,) = read_modules(open_source(text), Collectives.wants)
    assert module.noted == {"add", "map"}
    assert adds_something(module, {"add"}) and not adds_something(module, {"add", "map"})


def test_names_alone() -> None:
    context = Context(read(METADATA.sub("", text("two_layers"))), Request(phases="names"))
    assert set(products(context).values()) == {"unknown"}
    assert not context.no_graph_reason
