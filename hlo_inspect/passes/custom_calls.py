"""Custom calls: the work of kernels and libraries that HLO only names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.custom_calls.step import (
    CallFigure,
    StepCall,
    total_of_step,
    with_unknown,
)
from hlo_inspect.passes.base import Pass, with_lower_bound
from hlo_inspect.passes.custom_call_tables import custom_call_tables
from hlo_inspect.report.model import FactSpec, Passage, Section, Value

_FACTS: dict[str, CallFigure] = {
    "custom_calls.flops": "flops",
    "custom_calls.least_flops": "least_flops",
    "custom_calls.matmul_flops": "matmul_flops",
    "custom_calls.transcendentals": "transcendentals",
}


class CustomCalls(Pass):
    """Custom calls by target: what each does, how that is known, and what is unknown.

    The figures are those of all runs in a step. Attention, matrix multiplications, convolutions, linear algebra
    and sorting are counted by target, shapes and `backend_config`; kernels of Pallas by their own estimate, else by names of
    JAX's library. `known_by` says which: config, shapes, estimate, name, a leading term of what depends on the algorithm, a
    marker that does nothing, or a file of --custom-calls. Least FLOPs are those of the pairs of queries and keys that a static
    mask lets through. Lengths that are known at run time alone count in full, so that figures are upper bounds there. Bytes are
    operands and results without workspaces, or what an estimate says. Of all others only the bytes are known: the page
    ends with a file of --custom-calls to fill in for them.
    """

    name = "custom-calls"
    wants = KERNEL_WANTS
    specs = (
        FactSpec("custom_calls.flops", "flops", "FLOPs of all runs of custom calls"),
        FactSpec("custom_calls.least_flops", "flops", "those of them that static masks let through"),
        FactSpec("custom_calls.matmul_flops", "flops", "those that are matrix multiplications"),
        FactSpec("custom_calls.transcendentals", "count", "transcendental functions of all runs of custom calls"),
        FactSpec("custom_calls.bytes", "bytes", "operands and results of all runs of custom calls, without workspaces"),
        FactSpec("custom_calls.unknown_count", "count", "custom calls whose work is not known"),
    )

    def run(self, context: Context) -> Section:
        found = context.cost.calls
        figures = {name: total_of_step(found, figure) for name, figure in _FACTS.items()}
        figures = {name: with_unknown(amount, found) for name, amount in figures.items()}
        figures["custom_calls.bytes"] = total_of_step(found, "bytes")
        facts: dict[str, Value] = {}
        for name, amount in figures.items():
            with_lower_bound(facts, name, amount.exact, amount.least)
        facts["custom_calls.unknown_count"] = sum(call.is_unknown for call in found)
        notes = [f"{name}: {amount.reason}" for name, amount in figures.items() if not amount.is_exact]
        full = sum(call.cost.at_full_lengths for call in found)
        if full:
            notes.append(f"custom_calls.flops: {full:,} calls are counted at full lengths, which are known when they run")
        return Section(facts, custom_call_tables(found), notes, passages=_stanza(found))


# -- what a user can fill in --------------------------------------------------------------------------------------------------

MAX_STANZAS = 12


def _stanza(found: Iterable[StepCall]) -> Iterator[Passage]:
    """A file of --custom-calls with the targets that are not known."""
    kernels = dict.fromkeys((one.target, one.kernel, one.is_kernel) for one in found if one.is_unknown)
    if not kernels:
        return
    lines = ["custom_calls:"]
    for target, kernel, is_kernel in list(kernels)[:MAX_STANZAS]:
        lines += [f"  - target: {_quoted(target)}", *([f"    kernel: {_quoted(kernel)}"] if is_kernel else [])]
        lines += ["    flops: 0  # such as 2 * operands[0].dims[0] * operands[0].dims[1] * result.dims[1]"]
    if len(kernels) > MAX_STANZAS:
        lines.append(f"  # and {len(kernels) - MAX_STANZAS} more")
    yield Passage("To fill in, for --custom-calls FILE.yaml", "\n".join(lines), verbatim=True)


def _quoted(text: str) -> str:
    """A text in double quotes, as YAML and JSON write it."""
    return json.dumps(text, ensure_ascii=False)
