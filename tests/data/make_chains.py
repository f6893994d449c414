"""Makes further dumps of `optimizers/` with optax: decay that no rate scales, schedules that interpolate.

Run as make_optimizers.py is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from make_optimizers import HERE, X, Y, jax, optax, step_of, write

PROGRAMS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "adafactor_decayed": lambda: step_of(optax.adafactor(2e-3, min_dim_size_to_factor=4, weight_decay_rate=0.003)),
    "adafactor_decayed_momentum": lambda: step_of(
        optax.adafactor(2e-3, multiply_by_parameter_scale=False, momentum=0.8, weight_decay_rate=0.003)
    ),
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
