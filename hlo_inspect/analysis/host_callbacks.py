"""Calls of Python on the host while a step runs, as `jax.debug.print`, `pure_callback` and `io_callback` make them.

On CPU and GPU a callback is a custom call. On TPU it is a `send` to the host for each operand, and a `recv` for each result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.analysis.provenance import Provenances
from hlo_inspect.figure import Quantity, add, multiply, or_unknown
from hlo_inspect.graph.calls import CallGraph
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.opcodes import is_host_callback
from hlo_inspect.hlo.values.shapes import total

OPCODES = frozenset({"custom-call", "send"})

_BETWEEN_SLICES = "xla_megascale_runtime"
"""The handler of collectives between the slices of a TPU, which pass through their hosts."""


class PythonCallback(NamedTuple):
    """Equal callbacks of one line of Python: the first one's row, calls, and bytes that one device sends, all of a step.

    `word` is the last part of the `op_name`, such as `debug_print`; it and `source` are empty without metadata.
    """

    view: View
    row: int
    word: str
    source: str
    calls: Quantity
    sent: Quantity


def find_callbacks(views: Views, calls: CallGraph, provenances: Provenances) -> list[PythonCallback]:
    """Return the callbacks in the order of the text. The module must be read with its graph."""
    callbacks: dict[tuple[str, ...], PythonCallback] = {}
    for view, row in _rows(views):
        metadata = view.metadata(row)
        origin = provenances.get(metadata).origin if metadata is not None else None
        word, source = (origin.op_name.rpartition("/")[2], origin.source) if origin is not None else ("", "")
        key = (word, source) if origin is not None else (view.computation.name, view.names[row])
        runs = calls.runs(view.computation.name)
        size = total(None if shape is None else shape.array_bytes for shape in view.operand_shapes(row))  # tokens have none
        sent = multiply(runs, or_unknown(size, "a shape is unknown"))
        callback = callbacks.get(key)
        if callback is None:
            callbacks[key] = PythonCallback(view, row, word, source, runs, sent)
            continue
        is_same = view.opcodes[row] == "send" and view is callback.view  # another operand of the same call
        all_calls = callback.calls if is_same else add(callback.calls, runs)
        callbacks[key] = callback._replace(calls=all_calls, sent=add(callback.sent, sent))
    return list(callbacks.values())


def _rows(views: Views) -> Iterator[tuple[View, int]]:
    for view, row in views.rows_with(OPCODES):
        instruction = view.instruction_at(row)
        if view.opcodes[row] == "send":
            handler = (instruction.attr("frontend_attributes") or {}).get("_xla_host_transfer_handler_name")
            is_call = bool(instruction.attr("is_host_transfer")) and handler != _BETWEEN_SLICES
        else:
            is_call = is_host_callback(instruction.attr("custom_call_target") or "")
        if is_call:
            yield view, row
