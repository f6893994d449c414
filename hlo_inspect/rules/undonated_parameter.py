"""HI101: parameters that could be donated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.optimizer.state_savings import undonated_state
from hlo_inspect.analysis.parameters import Interface, ParameterLeaf, fitting
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.model import Finding, Severity
from hlo_inspect.rules.base import WORTH_DONATING, Rule, entry_line, numbered, size

_STATE = lazy_pattern(r"opt_?state|optimizer|momentum|velocity|(?<![a-z])(?:mu|nu|exp_avg|exp_avg_sq|trace)(?![a-z])", re.ASCII)


WORTH_A_WARNING = 1 << 20
"""Bytes that a program without an optimizer has to save: a small function need not give its arguments away."""


class UndonatedParameter(Rule):
    """Parameters that could be donated and are not.

    What it finds
        Arrays of the entry's parameters that are in neither `input_output_alias` nor `buffer_donor`, although an
        output that takes no parameter's buffer is their new value: the weights of a training step, or the cache of a
        decode step. Data flow says which these are. It is a warning where the program has an optimizer or at least
        1 MiB would be saved, otherwise an info. With --quick data flow is not followed: the finding names parameters whose
        shape, type, sharding and layout an output has. It is a warning then where names of parameters are those of an
        optimizer's state, or where at least 1 MiB would be saved and these parameters and the donated ones are half
        of the parameters' bytes, which no forward pass returns. Arrays below 1 KiB are left out, and so is the state
        that HI505 names. Where the text lacks the header nothing is reported.

    Why it matters
        XLA allocates a second buffer for the output, so that the old and the new value are in device memory at
        once. For the weights and the optimizer's state of a training step that doubles their memory.

    How to fix it
        In JAX name the arguments that the caller does not use again: `jax.jit(step, donate_argnums=(0,))`. Do not
        donate the weights of a forward pass: the call would destroy them. The column `not_donated_because` of
        `hlo-inspect params` gives the reason for each parameter that is not donated.

    Example
        HloModule step

        ENTRY main {
          w = f32[1024]{0} parameter(0)
          ROOT new = f32[1024]{0} negate(w)
        }
    """

    code = "HI101"
    name = "undonated-parameter"
    severity = "warning"

    def check(self, context: Context) -> Iterator[Finding]:
        interface = context.interface
        leaves = [p for p in interface.parameters if p.could_be_donated and (p.shape.bytes or 0) >= WORTH_DONATING]
        by_data_flow = "optimizer" in context.also
        leaves = self._by_data_flow(context, leaves) if by_data_flow else fitting(leaves, interface.outputs)
        if not leaves:
            return
        saved = sum(leaf.shape.bytes or 0 for leaf in leaves)
        if by_data_flow:
            is_step = bool(context.optimizer.rows) or saved >= WORTH_A_WARNING
        else:
            is_step = _is_step(interface, leaves, saved)
        it, output = ("it", "an output that takes no parameter's buffer")
        if len(leaves) > 1:
            it, output = ("them", "outputs that take no parameter's buffer")
        if by_data_flow:
            reason = f"{output} {'are their new values' if len(leaves) > 1 else 'is its new value'}"
        else:
            reason = f"{output} {'have' if len(leaves) > 1 else 'has'} the same shape, type and sharding"
        condition = "" if is_step else f", if the caller does not use {it} again"
        message = f"{numbered(leaves)} could be donated{condition}: {reason}; that would save {size(saved)}"
        severity: Severity = "warning" if is_step else "info"
        yield self.finding(context, message, entry_line(context), leaves[0].name, saved, severity)

    @staticmethod
    def _by_data_flow(context: Context, leaves: list[ParameterLeaf]) -> list[ParameterLeaf]:
        """Parameters whose new value is an output, without what is reported as an optimizer's state."""
        state = undonated_state(context.optimizer, context.interface)
        reported = {(leaf.number, leaf.index) for leaf, _ in state.members} if state.saved >= WORTH_DONATING else set()
        found = context.succeeded_parameters - reported
        return fitting((leaf for leaf in leaves if (leaf.number, leaf.index) in found), context.interface.outputs)


def _is_step(interface: Interface, leaves: Iterable[ParameterLeaf], saved: int) -> bool:
    """Whether the parameters look like the state of a step, most of which is given back, rather than weights and a batch."""
    if any(_STATE.search(leaf.path) for leaf in interface.parameters):
        return True
    given_back = sum(leaf.shape.bytes or 0 for leaf in (*leaves, *(p for p in interface.parameters if p.donated)))
    held = sum(leaf.shape.bytes or 0 for leaf in interface.parameters)
    return saved >= WORTH_A_WARNING and 2 * given_back >= held
