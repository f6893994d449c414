"""Steps with two losses, and products of a loss: FLOPs of products by phase, each a product of 8x4 and 4x4 or the like."""

from __future__ import annotations

import hlo_inspect

PRODUCT = 2 * 8 * 4 * 4  # FLOPs of a product of [8,4] and [4,4], and of each of its gradients

ACTOR_CRITIC = """HloModule jit_step, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {2}: (2, {}) }

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

ENTRY main {
  w1 = f32[4,4] parameter(0)
  w2 = f32[4,4] parameter(1)
  actor = f32[4,4] parameter(2)
  x = f32[8,4] parameter(3)
  zero = f32[] constant(0)
  rate = f32[] constant(0.1)
  rates = f32[4,4] broadcast(rate), dimensions={}
  two = f32[] constant(2)
  twos = f32[8,4] broadcast(two), dimensions={}
  h1 = f32[8,4] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h2 = f32[8,4] dot(h1, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h_squared = f32[8,4] multiply(h2, h2)
  critic_loss = f32[] reduce(h_squared, zero), dimensions={0,1}, to_apply=add
  dh2 = f32[8,4] multiply(h2, twos)
  d_w2 = f32[4,4] dot(h1, dh2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dh1 = f32[8,4] dot(dh2, w2), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  d_w1 = f32[4,4] dot(x, dh1), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  step1 = f32[4,4] multiply(rates, d_w1)
  new_w1 = f32[4,4] subtract(w1, step1)
  step2 = f32[4,4] multiply(rates, d_w2)
  new_w2 = f32[4,4] subtract(w2, step2)
  action = f32[8,4] dot(x, actor), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q1 = f32[8,4] dot(action, new_w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q2 = f32[8,4] dot(q1, new_w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q_squared = f32[8,4] multiply(q2, q2)
  actor_loss = f32[] reduce(q_squared, zero), dimensions={0,1}, to_apply=add
  dq2 = f32[8,4] multiply(q2, twos)
  dq1 = f32[8,4] dot(dq2, new_w2), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  d_action = f32[8,4] dot(dq1, new_w1), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  d_actor = f32[4,4] dot(x, d_action), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  actor_step = f32[4,4] multiply(rates, d_actor)
  new_actor = f32[4,4] subtract(actor, actor_step)
  squares = f32[4,4] multiply(new_w1, new_w1)
  norm = f32[] reduce(squares, zero), dimensions={0,1}, to_apply=add
  ROOT out = (f32[4,4], f32[4,4], f32[4,4], f32[], f32[], f32[]) tuple(new_w1, new_w2, new_actor, critic_loss, actor_loss, norm)
}
"""

SQUARED_ERROR = """HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

ENTRY main {
  a = f32[4,4] parameter(0)
  b = f32[4,4] parameter(1)
  x = f32[8,4] parameter(2)
  rate = f32[] constant(0.1)
  rates = f32[4,4] broadcast(rate), dimensions={}
  two = f32[] constant(2)
  h = f32[8,4] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = f32[8,4] dot(h, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  flat = f32[32] reshape(y)
  loss = f32[] dot(flat, flat), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  d_flat = f32[32] dot(two, flat), lhs_contracting_dims={}, rhs_contracting_dims={}
  dy = f32[8,4] reshape(d_flat)
  db = f32[4,4] dot(h, dy), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dh = f32[8,4] dot(dy, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  da = f32[4,4] dot(x, dh), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a_step = f32[4,4] multiply(rates, da)
  b_step = f32[4,4] multiply(rates, db)
  new_a = f32[4,4] subtract(a, a_step)
  new_b = f32[4,4] subtract(b, b_step)
  ROOT out = (f32[4,4], f32[4,4], f32[]) tuple(new_a, new_b, loss)
}
"""


def flops_by_phase(text: str) -> dict[str, int]:
    rows = hlo_inspect.inspect(text, ("cost",)).table("cost_by_phase").records()
    return {str(row["phase"]): int(row["matmul_flops"] or 0) for row in rows if row["matmul_flops"]}


def phase(text: str, name: str) -> str:
    rows = hlo_inspect.inspect(text, ("top",)).table("kernels").records()
    return next(str(row["phase"]) for row in rows if row["name"] == name)


def test_the_second_loss_has_a_forward_pass_although_it_reads_an_updated_weight() -> None:
    """Forward: 2 products of the critic's loss and 3 of the actor's. Backward: 3 of each."""
    assert flops_by_phase(ACTOR_CRITIC) == {"forward": 5 * PRODUCT, "backward": 6 * PRODUCT}


def test_a_norm_of_the_updated_weight_is_of_the_optimizer() -> None:
    assert phase(ACTOR_CRITIC, "squares") == "optimizer"


def test_a_loss_that_is_a_product_has_its_cotangent_in_the_backward_pass() -> None:
    """The loss is y·y, and its cotangent 2 y is printed as a product too: 2 x 32 FLOPs each."""
    assert flops_by_phase(SQUARED_ERROR) == {"forward": 2 * PRODUCT + 64, "backward": 3 * PRODUCT + 64}


def test_a_product_in_a_scope_of_a_loss_is_of_the_forward_pass() -> None:
    name = 'metadata={op_name="jit(step)/jvp(cross_entropy)/dot_general"}'
    text = SQUARED_ERROR.replace("f32[8,4] dot(h, b), lhs", f"f32[8,4] dot(h, b), {name}, lhs")
    assert name in text
    assert flops_by_phase(text) == flops_by_phase(SQUARED_ERROR)
