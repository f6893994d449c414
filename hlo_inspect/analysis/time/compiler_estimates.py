"""What the compiler itself expects a kernel to take, as its backend notes it in `backend_config`.

TPU: `window_config.estimated_cycles`, cycles of the whole kernel. Every loop and output fusion has it; collectives, custom
calls and most custom fusions do not. GPU: `reification_cost`, of which XLA fills `exec_time_us`, and `end_to_end_cycles` where
it has them (xla/service/gpu/backend_configs.proto); it is empty in most texts. Either is what the compiler ranks kernels by,
no measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hlo_inspect.graph.view import View
from hlo_inspect.hlo.values.attributes import BackendConfig

_EMPTY = '"reification_cost":[]'
_NO_ESTIMATE = 2**62
"""XLA prints the largest integer of 64 bits where it has no estimate."""
_PLACEHOLDER_STEP = 100
"""The cycles of each step of a copy's grid where nothing was estimated."""


class CompilerEstimate(NamedTuple):
    """The estimate of one run: `cycles` of the device's clock, or `seconds` where the compiler states a time; `None` where it
    states none.
    """

    cycles: int | None
    seconds: float | None

    def in_seconds(self, clock: float | None) -> float | None:
        """The time, of cycles at that clock in Hz; `None` where no clock is known."""
        if self.seconds is not None or self.cycles is None:
            return self.seconds
        return self.cycles / clock if clock else None


NO_ESTIMATE = CompilerEstimate(None, None)


def compiler_estimate(view: View, row: int) -> CompilerEstimate:
    """The compiler's estimate of an instruction."""
    tail = view.tails[row]
    if "estimated_cycles" not in tail and ("reification_cost" not in tail or _EMPTY in tail):  # as most: nothing to parse
        return NO_ESTIMATE
    instruction = view.instruction(row)
    config = instruction.attr("backend_config")
    if config is None:
        return NO_ESTIMATE
    window = config.member("window_config")
    cycles = _integer(window.get("estimated_cycles"))
    if cycles is not None:
        is_placeholder = instruction.opcode == "copy" and cycles == _PLACEHOLDER_STEP * _grid_steps(window)
        return NO_ESTIMATE if is_placeholder or cycles >= _NO_ESTIMATE else CompilerEstimate(cycles, None)
    return _of_gpu(config)


def _grid_steps(window: Mapping[str, Any]) -> int:
    """How many windows the grid of a kernel has."""
    bounds = window.get("iteration_bounds")
    sizes = [_integer(size) for size in bounds] if isinstance(bounds, list) else []
    return math.prod([size or 0 for size in sizes[:_MAX_RANK]])


_MAX_RANK = 64


def _of_gpu(config: BackendConfig) -> CompilerEstimate:
    """The first entry that says something, as XLA's scheduler takes it."""
    entries = config.fields.get("reification_cost")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            cycles, micros = _number(entry.get("end_to_end_cycles")), _number(entry.get("exec_time_us"))
            if cycles or micros:
                return CompilerEstimate(round(cycles) if cycles else None, micros / 1e6 if micros else None)
    return NO_ESTIMATE


def _integer(value: object) -> int | None:
    """A count of JSON, which protos print as strings."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _number(value: object) -> float:
    """A positive number; 0 for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _NO_ESTIMATE:
        return 0.0
    return float(value)
