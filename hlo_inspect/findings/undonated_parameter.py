"""HI101: parameters that could be donated."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.state_savings import undonated_state
from hlo_inspect.findings.rule import WORTH_DONATING, Rule, entry_line, numbered, size
from hlo_inspect.graph.parameters import ParameterLeaf, fitting
from hlo_inspect.hlo.values.shapes import on_host
from hlo_inspect.report.model import Finding, Severity

WORTH_A_WARNING = 1 << 20
"""Bytes that a program without an optimizer has to save: a small function need not give its arguments away."""


class UndonatedParameter(Rule):
    """Parameters could be donated and are not.

    What it finds
        Entry parameters that are not donated although their new value is an output. The output uses no parameter's buffer.
        Examples are the weights of a training step and the cache of a decode step. A parameter is donated if
        `input_output_alias` or `buffer_donor` names it. Data flow finds the new values, so --quick skips the rule. The
        finding is a warning if the program has an optimizer, or if donation saves 1 MiB or more. Otherwise it is an info.
        Arrays below 1 KiB or on the host, and the state that HI505 names, are left out. Without a header nothing is reported.

    Why it matters
        XLA allocates a second buffer for the output. Old and new value are in device memory at once. For weights and
        optimizer state this doubles their memory.

    How to fix it
        In JAX, donate the arguments that the caller does not use again: `jax.jit(step, donate_argnums=(0,))`. Do not donate
        the weights of a forward pass: the call would destroy them. The column `not_donated_because` of `hlo-inspect params`
        gives the reason for each parameter that is not donated.

    Example
        HloModule step

        ENTRY main {
          w = f32[1024]{0} parameter(0)
          ROOT new = f32[1024]{0} negate(w)
        }
    """

    code = "HI101"
    threshold = WORTH_DONATING

    def check(self, context: Context) -> Iterator[Finding]:
        interface, least = context.interface, self.least(context)
        worth = min(least, WORTH_DONATING)
        on_device = (p for p in interface.parameters if p.could_be_donated and not on_host(p.shape))
        leaves = [p for p in on_device if (p.shape.bytes or 0) >= worth]
        leaves = self._by_data_flow(context, leaves)
        saved = sum(leaf.shape.bytes or 0 for leaf in leaves)
        if not leaves or saved < least:
            return
        is_step = context.optimizer.is_training_step or saved >= WORTH_A_WARNING
        it, reason = "it", "is not donated, but its new value is an output"
        if len(leaves) > 1:
            it, reason = "them", "are not donated, but their new values are outputs"
        condition = "" if is_step else f" if the caller does not use {it} again"
        message = f"{numbered(leaves)} {reason}; donating {it} saves {size(saved)}{condition}"
        severity: Severity = "warning" if is_step else "info"
        yield self.finding(context, message, entry_line(context), leaves[0].name, saved, severity)

    @staticmethod
    def _by_data_flow(context: Context, leaves: list[ParameterLeaf]) -> list[ParameterLeaf]:
        """Return the parameters whose new value is an output, without those that are reported as an optimizer's state."""
        state = undonated_state(context.optimizer, context.interface)
        reported = {(leaf.number, leaf.index) for leaf, _ in state.members} if state.saved >= WORTH_DONATING else set()
        succeeded = context.optimizer.succeeded_parameters(context.interface) - reported
        return fitting((leaf for leaf in leaves if (leaf.number, leaf.index) in succeeded), context.interface.outputs)
