"""HI505: optimizer state that could be donated."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.state_savings import undonated_state
from hlo_inspect.findings.rule import WORTH_DONATING, Rule, counted, entry_line, size
from hlo_inspect.report.model import Finding


class UndonatedOptimizerState(Rule):
    """The optimizer's state could be donated and is not.

    What it finds
        Parameters that data flow shows to be optimizer state, and that are not donated. An output of the same shape, type,
        sharding and layout uses no parameter's buffer. Scalars and arrays on the host are left out. Below 1 KiB of state
        nothing is reported.

    Why it matters
        The old and the new state are in device memory at once. Adam's two moments take 8 bytes per weight in float32, and
        16 without donation.

    How to fix it
        In JAX, donate the optimizer's state with the weights. For `step(params, opt_state, batch)` write `jax.jit(step,
        donate_argnums=(0, 1))`.

    Example
        @jax.jit                       # without donate_argnums
        def step(params, opt_state, batch):
            updates, opt_state = adam.update(jax.grad(loss)(params, batch), opt_state, params)
            return optax.apply_updates(params, updates), opt_state
    """

    code = "HI505"
    threshold = WORTH_DONATING

    def check(self, context: Context) -> Iterator[Finding]:
        members, saved = undonated_state(context.optimizer, context.interface)
        if saved and saved >= self.least(context):
            kinds = counted(kind for _, kind in members)
            message = f"the optimizer's state is not donated: {kinds}; donating it saves {size(saved)}"
            yield self.finding(context, message, entry_line(context), members[0][0].name, saved)
