"""The text of a computation, taken apart only where somebody follows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from hlo_inspect.analysis.optimizer.opcodes import ELEMENTWISE
from hlo_inspect.analysis.view import View
from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import Head
from hlo_inspect.hlo.operands import Operand, operands_end
from hlo_inspect.hlo.shapes import ArrayShape

Use = tuple[str, tuple[int, ...]]
"""An operand: the name of an instruction and an index into its tuple."""

_WORD = r"([\w.\-]++)"


class Statement:
    """One instruction: opcode, shape and operands; `tail` is its text from behind the opening parenthesis. An operand without a
    name is called the empty string.
    """

    __slots__ = ("is_elementwise", "opcode", "operands", "shape", "tail")

    def __init__(self, head: Head, tail: str, operands: Sequence[Operand]) -> None:
        self.opcode, self.shape = head
        self.tail = tail
        self.is_elementwise = self.opcode in ELEMENTWISE
        while operands and operands[-1].name is None:  # stands for operands that the printer left out: `...(+2)`
            operands = operands[:-1]
        self.operands: tuple[Use, ...] = tuple([(name or "", path) for name, path, _ in operands])

    @property
    def literal(self) -> str:
        """What stands between the parentheses, empty where they are not closed."""
        try:
            return self.tail[: operands_end(self.tail)]
        except scan.ScanError:
            return ""

    @property
    def parameter_number(self) -> int | None:
        """The number that a parameter has between its parentheses."""
        return small_number(self.tail.partition(")")[0].strip())

    @property
    def dtype(self) -> str:
        return self.shape.dtype if isinstance(self.shape, ArrayShape) else ""

    @property
    def size(self) -> int:
        """Elements, 0 where that is unknown."""
        return (self.shape.elements or 0) if isinstance(self.shape, ArrayShape) else 0

    def attribute(self, name: str) -> str:
        """The text of an attribute, empty where there is none."""
        if f"{name}=" not in self.tail:
            return ""
        try:
            for key, value in scan.attributes(self.tail, operands_end(self.tail) + 1):
                if key == name:
                    return value
        except scan.ScanError:
            return ""
        return ""

    def word(self, name: str) -> str:
        """An attribute that is one word (a computation, a number), by the quick way."""
        match = _word(name).search(self.tail)
        return match[1] if match else ""


@cache
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf", {name}=%?{_WORD}", re.ASCII)


class Body:
    """The instructions of a computation by name, and the name of its root."""

    def __init__(self, view: View) -> None:
        self.name = view.computation.name
        self.statements: dict[str, Statement] = {}
        self._view = view
        self.root = view.rows[view.root][1] if view.root is not None else ""

    def statement(self, name: str) -> Statement | None:
        """The instruction of that name, `None` where the computation has none."""
        found = self.statements.get(name)
        if found is None:
            index = self._view.index(name)
            if index is not None:
                view = self._view
                found = self.statements[name] = Statement(view.heads[index], view.rows[index][3], view.operands(index))
        return found

    def line(self, name: str) -> int | None:
        """The line on which an instruction stands."""
        index = self._view.index(name)
        return self._view.lines[index] if index is not None else None


def small_number(text: str) -> int | None:
    """A number of at most nine digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
