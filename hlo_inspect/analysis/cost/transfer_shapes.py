"""Shapes of sends, receives and their ends, which XLA makes of the operands whatever the text prints.

Hand-written texts print the array alone, or leave out the u32 context (`HloSendInstruction`, `HloRecvInstruction`). Old texts
without tokens keep their shapes.
"""

from __future__ import annotations

from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, opcodes_that_are
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape, TupleShape

TRANSFERS = opcodes_that_are("point-to-point")
TRANSFER_ENDS = TRANSFERS & ASYNC_ENDS

_CONTEXT, _TOKEN = ArrayShape("u32"), ArrayShape("token")
_OPERANDS = {"send": 2, "recv": 1}
"""Operands of each start, the token included."""


def transfer_shape(view: View, row: int) -> Shape | None:
    """Return the shape that XLA gives a row of `TRANSFERS`; the shape of the text if that leaves it open."""
    opcode, printed = view.opcodes[row], view.shapes[row]
    start = view.operand_row(row, 0) if opcode in TRANSFER_ENDS else row
    if start is None or len(view.operand_rows(start)) < _OPERANDS.get(view.opcodes[start], 0):
        return printed
    if opcode == "send-done":
        return _TOKEN
    carried = view.operand_shape(row, 0) if opcode in {"recv-done", "send"} else printed
    if isinstance(carried, TupleShape) and opcode != "send":
        carried = carried.elements[0] if carried.elements else None
    if carried is None:
        return printed
    return TupleShape((carried, _TOKEN)) if opcode == "recv-done" else TupleShape((carried, _CONTEXT, _TOKEN))
