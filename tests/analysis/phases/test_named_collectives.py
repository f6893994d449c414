"""Phases of collectives. Which phase one is in follows from what the program in question does, as each test tells it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import OPCODES, TARGETS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases.names import find_phases
from hlo_inspect.hlo.wants import Wants

Phases = Callable[..., list[str]]

OLD = "parallelize(train_step)/jit(main)"
DOT = "dot_general[dimension_numbers=(((2,), ({},)), ((), ())) precision=None]"
FORWARD_DOT, GRADIENT_DOT = DOT.format(0), DOT.format(1)

MAX = """%max (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %m = f32[] maximum(%a, %b)
}
"""


@pytest.fixture
def phases(entry: Callable[..., Context]) -> Phases:
    """`phases(op_name | (shape, op_name) | (shape, op_name, source), …)`: the phase of an all-reduce of each."""

    def found(*collectives: str | tuple[str, ...]) -> list[str]:
        lines = []
        for n, fields in enumerate(collectives):
            shape, op_name, source = ("f32[8]", fields, "") if isinstance(fields, str) else (*fields, "")[:3]
            reducer = "%max" if "reduce_max" in op_name else "%add"
            metadata = f'metadata={{op_name="{op_name}" source_file="{source}" source_line=7}}'
            lines += [f"%p{n} = {shape} parameter({n})"]
            lines += [f"%c{n} = {shape} all-reduce(%p{n}), replica_groups={{{{0,1}}}}, to_apply={reducer}, {metadata}"]
        return find_phases(entry(*lines, before=MAX).collectives)

    return found


def test_phases_that_jax_writes(phases: Phases) -> None:
    below = "jit(step)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint"
    assert phases(
        "jit(step)/jvp(layer_0)/mlp/dot_general",
        f"{below}/rematted_computation/mlp/dot_general",
        f"{below}/mlp/dot_general",
        "jit(step)/reduce_sum",
        "",
    ) == ["forward", "recompute", "backward", "unknown", "unknown"]


def test_old_recomputation_has_a_twin_in_the_forward_pass(phases: Phases) -> None:
    """A layer with two products behind which a sum is needed: forward, again for the backward pass, and two gradients."""
    layer = "layer/5/remat(core_fn)/5"
    assert phases(
        f"{OLD}/jvp(Model)/layer/5/5/attention/{FORWARD_DOT}",
        f"{OLD}/jvp(Model)/layer/5/5/output/{FORWARD_DOT}",
        f"{OLD}/transpose(jvp(Model))/{layer}/attention/{FORWARD_DOT}",
        f"{OLD}/transpose(jvp(Model))/{layer}/output/{FORWARD_DOT}",
        f"{OLD}/transpose(jvp(Model))/{layer}/output/{GRADIENT_DOT}",
        f"{OLD}/transpose(jvp(Model))/{layer}/attention/{GRADIENT_DOT}",
    ) == ["forward", "forward", "recompute", "recompute", "backward", "backward"]


def test_another_shape_or_scope_is_not_computed_again(phases: Phases) -> None:
    assert phases(
        f"{OLD}/jvp(Model)/layer/{FORWARD_DOT}",
        ("f32[4]", f"{OLD}/transpose(jvp(Model))/remat/layer/{FORWARD_DOT}"),
        f"{OLD}/transpose(jvp(Model))/remat/other/{FORWARD_DOT}",
        f"{OLD}/transpose(jvp(Model))/layer/{FORWARD_DOT}",  # not below remat
    ) == ["forward", "backward", "backward", "backward"]


def test_more_sums_than_the_forward_pass_has_are_unknown(phases: Phases) -> None:
    """The sum of a layer norm and that of its gradient have one name."""
    norm = "LayerNorm/reduce_sum[axes=(2,)]"
    again = f"{OLD}/transpose(jvp(Model))/remat(f)/{norm}"
    assert phases(f"{OLD}/jvp(Model)/{norm}", again, again) == ["forward", "unknown", "unknown"]


@pytest.mark.parametrize(("remat", "phase"), [("checkpoint", "backward"), ("remat", "unknown"), ("remat(f)", "unknown")])
def test_without_parameters_a_product_and_its_gradient_look_the_same(phases: Phases, remat: str, phase: str) -> None:
    """Jax 0.5.0 compiles the sum behind a layer's second product, needed once, and that of its input's gradient to these."""
    names = ["jit(step)/jit(main)/jvp(layer_1)/mlp/dot_general"]
    names += [f"jit(step)/jit(main)/transpose(jvp(layer_1))/{remat}/mlp/dot_general"]
    assert phases(*names) == ["forward", phase]


def test_marked_recomputation_leaves_other_products_backward(phases: Phases) -> None:
    assert phases(
        f"jit(step)/jvp(layer)/{FORWARD_DOT}",
        f"jit(step)/transpose(jvp(layer))/checkpoint/rematted_computation/{FORWARD_DOT}",
        f"jit(step)/transpose(jvp(layer))/checkpoint/{FORWARD_DOT}",
    ) == ["forward", "recompute", "backward"]


@pytest.mark.parametrize(
    ("shape", "op_name", "phase"),
    [
        ("(f32[1000], f32[])", "jit(step)/(transpose(jvp())/dot_general:jvp()/reduce_sum)", "backward"),
        ("(f32[], f32[256])", "jit(step)/(reduce_sum:transpose(jvp(layer_0))/attention/dot_general)", "backward"),
        ("(f32[16], f32[16])", "jit(step)/(jvp()/reduce_sum:jvp(jit(_var))/reduce_sum)", "forward"),
        ("(f32[16], f32[16])", "jit(step)/(jvp()/squeeze:transpose(jvp(jit(log_softmax)))/reduce_sum)", "unknown"),
        ("(f32[9], f32[1])", "jit(step)/(jvp()/a:transpose(jvp())/b)", "forward"),  # nine tenths
        ("(f32[8], f32[1])", "jit(step)/(jvp()/a:transpose(jvp())/b)", "unknown"),
        ("(f32[999], f32[1], f32[1])", "jit(step)/(jvp()/a:transpose(jvp())/b)", "unknown"),  # which is which?
        ("(f32[9], f32[9], f32[9])", "jit(step)/(jvp()/a:jvp(x)/b)", "forward"),
    ],
)
def test_combined_collectives(phases: Phases, shape: str, op_name: str, phase: str) -> None:
    """The parts of the name are in the order of the arrays."""
    assert phases((shape, op_name)) == [phase]


def test_softmax_outside_of_the_layers_is_the_loss(phases: Phases) -> None:
    """The logits are split over devices: their maximum and the sum of their exponentials need all."""
    layer, top = "jit(step)/jvp(layer_0)/mlp/dot_general", "jit(step)/jvp()"
    assert phases(layer, f"{top}/reduce_max", f"{top}/reduce_sum") == ["forward", "loss", "loss"]
    assert phases(f"{top}/reduce_max", f"{top}/reduce_sum") == ["forward", "forward"]  # may be a layer's, as layers lack names
    assert phases(layer, f"{top}/reduce_sum") == ["forward", "forward"]  # may be that of a norm
    other = ("f32[4]", f"{top}/reduce_sum")
    assert phases(layer, f"{top}/reduce_max", other) == ["forward", "forward", "forward"]
    assert phases(layer, f"{top}/reduce_max", f"{top}/reduce_sum", f"{top}/reduce_sum") == ["forward"] * 4


def test_a_scalar_sum_in_the_step_function_is_the_loss(phases: Phases) -> None:
    assert phases(("f32[]", "jit(step)/jvp()/reduce_sum")) == ["loss"]
    assert phases(("f32[]", "jit(step)/jvp()/reduce_max")) == ["forward"]
    assert phases(("s32[]", "jit(step)/jvp()/reduce_sum")) == ["forward"]
    assert phases(("f32[]", "jit(step)/jvp(layer_0)/reduce_sum")) == ["forward"]
    assert phases(("f32[]", "jit(step)/transpose(jvp())/reduce_sum")) == ["backward"]
    assert phases(("f32[]", "jit(step)/jvp()/shard_map/psum")) == ["forward"]


@pytest.mark.parametrize("scope", ["jit(log_softmax)", "softmax_cross_entropy_with_integer_labels", "cross_entropy_loss"])
def test_scopes_of_losses(phases: Phases, scope: str) -> None:
    assert phases(f"jit(step)/jvp({scope})/reduce_max") == ["loss"]
    assert phases(f"jit(step)/transpose(jvp({scope}))/reduce_sum") == ["backward"]
    assert phases(f"jit(step)/jvp(layer_0)/{scope}/reduce_max") == ["forward"]


def test_an_old_step_with_its_loss_outside_of_scopes(phases: Phases) -> None:
    """The count of labels, the model, the softmax over the logits, the gradient."""
    count = ("f32[]", f"{OLD}/reduce_sum[axes=(0, 1)]")
    model = f"{OLD}/jvp(Model)/layer/{FORWARD_DOT}"
    softmax = (("f16[4,8]", f"{OLD}/reduce_max[axes=(2,)]"), ("f32[4,8]", f"{OLD}/reduce_sum[axes=(2,)]"))
    gradient = f"{OLD}/transpose(jvp(Model))/layer/{GRADIENT_DOT}"
    assert phases(count, model, *softmax, gradient) == ["loss", "forward", "loss", "loss", "backward"]
    # a norm of the gradient is needed behind it; then the first may be a norm too, of the weights
    assert phases(count, model, gradient, count) == ["unknown", "forward", "backward", "unknown"]
    assert phases(count) == ["unknown"]
    # names mark the differentiated part, and the first collective is outside of it
    assert phases(count, "jit(step)/transpose(jvp())/dot_general") == ["unknown", "backward"]


SITE = "/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("op_name", "source", "phase"),
    [
        ("jit(step)/reduce_sum", f"{SITE}/optax/tree_utils/_tree_math.py", "optimizer"),
        ("jit(step)/jit(main)/mul", f"{SITE}/optax/_src/transform.py", "optimizer"),
        ("jit(step)/jvp()/mul", f"{SITE}/optax/_src/transform.py", "forward"),
        ("jit(step)/jvp()/reduce_max", f"{SITE}/optax/losses/_classification.py", "loss"),
        ("jit(step)/jvp()/reduce_max", f"{SITE}/optax/_src/loss.py", "loss"),
        ("jit(step)/transpose(jvp())/reduce_sum", f"{SITE}/optax/losses/_classification.py", "backward"),
        ("jit(step)/jit(main)/reduce_sum", f"{SITE}/optax/losses/_classification.py", "unknown"),  # or its gradient
        ("", f"{SITE}/optax/_src/update.py:1,{SITE}/optax/_src/update.py", "optimizer"),
        ("", f"{SITE}/optax/_src/update.py:1,/home/me/train.py", "unknown"),
        ("jit(step)/mul", "/home/me/train.py", "unknown"),
        ("jit(step)/optimizer/mul", "", "optimizer"),
        ("jit(step)/jit(apply_updates)/add", "", "optimizer"),
        ("jit(step)/my_optimizer_test/add", "", "unknown"),
        ("jit(step)/jvp(optimizer)/add", "", "forward"),
    ],
)
def test_files_and_scopes_of_optimizers_and_losses(phases: Phases, op_name: str, source: str, phase: str) -> None:
    assert phases(("f32[8]", op_name, source)) == [phase]


@pytest.mark.parametrize("every_line", [True, False])
def test_the_file_is_known_by_its_frame_too(read: Callable[..., Context], every_line: bool) -> None:
    """A reader that skips the reducer has to read the tables before it all the same."""
    context = read(
        """HloModule step

FileNames
1 "/site-packages/optax/_src/update.py"

FunctionNames
1 "apply_updates"

FileLocations
1 {file_name_id=1 function_name_id=1 line=73 end_line=73 column=44 end_column=44}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8] parameter(0)
  ROOT %r = f32[8] all-reduce(%p), replica_groups={{0,1}}, to_apply=%add, metadata={op_name="jit(step)/add" stack_frame_id=1}
}
""",
        Wants(opcodes=OPCODES, targets=TARGETS, every_line=every_line),
    )
    assert find_phases(context.collectives) == ["optimizer"]


def test_send_and_recv_have_a_phase_too(entry: Callable[..., Context]) -> None:
    context = entry(
        "%p = f32[8] parameter(0)",
        "%t = token[] after-all()",
        '%s = (f32[8], u32[], token[]) send(%p, %t), channel_id=1, metadata={op_name="jit(f)/jvp(stage)/ppermute"}',
    )
    assert find_phases(context.collectives) == ["forward"]
