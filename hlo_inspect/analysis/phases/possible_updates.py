"""Whether a module can hold the update of a weight, as far as its header tells."""

from __future__ import annotations

from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.shapes import array_leaves

NO_UPDATE = "no update of a weight was found"
"""Why the graph of values tells no phases of a module without any."""

FLOATS = ("f", "bf")


def may_update(header: Header) -> bool:
    """Whether some output can be the new value of a parameter: both are arrays of floats of one shape. True where the header
    does not tell.
    """
    layout = header.entry_layout
    if layout is None:
        return True
    inputs, outputs = (
        {leaf.dimensions for _, leaf in array_leaves(shape) if leaf.dtype.startswith(FLOATS)} for shape in layout
    )
    return not inputs.isdisjoint(outputs)
