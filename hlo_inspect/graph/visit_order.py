"""The order in which XLA visits the rows of a computation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View
from hlo_inspect.native import library as native


def xla_order(view: View) -> Iterable[int]:
    """Return every row in the order of `HloComputation::Accept`: depth first, operands before their users.

    Rows that nothing uses come first, the root last. Control dependencies are ignored.
    """
    extent = view.rows.extent
    library = native.library() if extent is not None else None
    if extent is None or library is None:
        return _order_in_python(view)
    from hlo_inspect.native.order import visit_order  # texts that the library does not read need none of it

    columns, first, last = extent
    return visit_order(library, columns.operand_end, columns.operands, range(first, last), view.root)


def _order_in_python(view: View) -> Iterator[int]:
    rows = range(len(view.rows))
    operands = view.operands_of_rows
    if view.has_undefined_operands:
        operands = [tuple([row for row in defined if row is not None]) for defined in operands]
    used = {view.root}.union(*operands)
    roots = [view.root] if view.root is not None else []
    ends = (*(row for row in rows if row not in used), *roots, *rows)  # all rows at the end, for rows that use themselves
    return operands_first(ends, operands.__getitem__)
