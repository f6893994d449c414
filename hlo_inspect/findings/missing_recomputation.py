"""HI310: recomputation that the compiler merged with the forward pass."""

from __future__ import annotations

from collections.abc import Iterator

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.merged_recomputation import find_kept
from hlo_inspect.findings.rule import WORTH_KEEPING, Rule, size
from hlo_inspect.report.model import Finding


class MissingRecomputation(Rule):
    """Recomputation that was asked for does not happen.

    What it finds
        Arrays of the forward pass that the backward pass under `checkpoint` reads. They count if all products of the
        recomputation are merged with those of the forward pass. The stake is the bytes of these arrays. Loops are left out, and
        programs with a policy that keeps products.

    Why it matters
        The activations stay in memory, as without `jax.checkpoint`. XLA on CPU drops the barriers that keep the recomputed
        instructions apart, and merges equal instructions.

    How to fix it
        Scan over the layers: the compiler does not merge the body of one loop with that of another.

    Example
        HloModule step, is_scheduled=true

        ENTRY main {
          x = f32[1024,2048]{1,0} parameter(0)
          w = f32[2048,2048]{1,0} parameter(1)
          d = f32[1024,2048]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
            metadata={op_name="jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot_general"}
          s = f32[1024,2048]{1,0} sine(d), metadata={op_name="jit(f)/jvp()/sin"}
          c = f32[1024,2048]{1,0} cosine(d), metadata={op_name="jit(f)/transpose(jvp())/checkpoint/rematted_computation/cos"}
          ROOT g = f32[1024,2048]{1,0} multiply(c, s), metadata={op_name="jit(f)/transpose(jvp())/mul"}
        }
    """

    code = "HI310"
    threshold = WORTH_KEEPING

    def check(self, context: Context) -> Iterator[Finding]:
        entry = context.module.entry
        if entry is None or not context.module.header.is_scheduled or entry.name not in context.views.computations:
            return
        kept = find_kept(context.views, entry.name)
        if kept is not None and kept.bytes >= max(self.least(context), 1):
            what = f"{len(kept.arrays)} arrays ({size(kept.bytes)}) of the forward pass"
            message = f"{what} are kept although checkpoint asks to compute them again; scan over the layers"
            yield self.finding_at(context, kept.arrays[0], message, kept.bytes)
