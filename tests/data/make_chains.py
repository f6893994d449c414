"""Makes further dumps of `optimizers/` with optax.

They have decay that no rate scales or that is a part of the gradient, noise, and schedules that are computed as arrays.

Run as make_optimizers.py is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from make_optimizers import HERE, X, Y, chained, jax, optax, scheduled, step_of, write

PROGRAMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "adafactor_decayed": lambda: step_of(optax.adafactor(2e-3, min_dim_size_to_factor=4, weight_decay_rate=0.003)),
    "adafactor_decayed_momentum": lambda: step_of(
        optax.adafactor(2e-3, multiply_by_parameter_scale=False, momentum=0.8, weight_decay_rate=0.003)
    ),
    "adam_noisy": lambda: chained(optax.add_noise(0.01, 0.55, jax.random.key(0)), optax.adam(1e-3)),
    "novograd_l2": lambda: chained(optax.add_decayed_weights(0.02), optax.novograd(2e-3, weight_decay=0.01)),
    "sm3_l2": lambda: chained(optax.add_decayed_weights(1e-3), optax.sm3(0.02)),
    "schedule_onecycle": lambda: scheduled(optax.cosine_onecycle_schedule(1000, 0.2, 0.25, 20.0, 1e3)),
    "schedule_onecycle_linear": lambda: scheduled(optax.linear_onecycle_schedule(2000, 0.1)),
    "schedule_interpolated": lambda: scheduled(optax.piecewise_interpolate_schedule("linear", 0.1, {100: 0.1, 250: 0.5})),
    "schedule_waiting_staircase": lambda: scheduled(optax.exponential_decay(0.1, 30, 0.97, transition_begin=7, staircase=True)),
}


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        step, state = PROGRAMS[name]()
        lowered = jax.jit(step, donate_argnums=(0,), keep_unused=True).lower(state, X, Y)
        write(f"{name}.before.hlo", lowered.compiler_ir("hlo").as_hlo_text())
        write(f"{name}.after.hlo", lowered.compile().as_text())


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    main()
