"""Conversions that stand in the program, and not only in the compiler's text.

Most have the name of their primitive. XLA renames some after a neighbor, and compilers name conversions of their own so too.
CPU gives its own no name. The text before optimizations in the same dump directory shows the conversions of the program.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from hlo_inspect.analysis.tpu_marks import has_tiles
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.readers import ViewRow
from hlo_inspect.hlo.input.dump_directory import text_before_optimizations
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.shapes import ArrayShape, Shape
from hlo_inspect.hlo.wants import Wants

_PRIMITIVE = "convert_element_type"
_CONVERSIONS = frozenset({"convert"})


def is_named_conversion(conversion: ViewRow) -> bool:
    """Return True if a conversion has the name of the program's primitive."""
    return conversion.op_name.endswith(_PRIMITIVE)


class ProgramConversions:
    """The conversions of the program that a module was compiled from."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def contains(self, conversion: ViewRow, *, before_collective: bool = False) -> bool:
        """Return True if the program contains a conversion.

        A TPU sends narrow types as they are: its compiler makes no conversion of its own `before_collective`.
        """
        if is_named_conversion(conversion) or not conversion.op_name:
            return is_named_conversion(conversion)
        if before_collective and has_tiles(self._module):
            return True
        return _types(conversion.view.operand_shape(conversion.row, 0), conversion.shape) in self._types_before

    @cached_property
    def _types_before(self) -> set[tuple[str, str]]:
        """The types of each conversion of the text before optimizations; none if the dump lacks it."""
        before = text_before_optimizations(Path(self._module.path))
        if before is None:
            return set()
        try:
            modules = list(read_input(open_source(before), Wants(opcodes=_CONVERSIONS, operands=_CONVERSIONS)))
        except HloInspectError:
            return set()
        conversions = (row for module in modules for row in module.with_opcodes(_CONVERSIONS))
        return {_types(next(iter(row.operand_shapes or ()), None), row.shape) for row in conversions} - {("", "")}


def _types(narrow: Shape | None, wide: Shape | None) -> tuple[str, str]:
    """Return the types of operand and result; empty if one is unknown."""
    if not isinstance(narrow, ArrayShape) or not isinstance(wide, ArrayShape):
        return "", ""
    return narrow.dtype, wide.dtype
