"""The heads of a module's rows, `shape opcode`: each is parsed once and classified by what it means to the reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.instruction import Head, HeadTable
from hlo_inspect.hlo.shapes import ArrayShape, Shape

_MAY_HOLD_WANTED = frozenset({"async", "call", "custom-call", "fusion"})  # without asynchronous suffixes
_MAX_HEADS = 1 << 17
_SCALAR = re.compile(r"[su]\d{1,2}|pred", re.ASCII)


class HeadRecord(NamedTuple):
    """A head and what it is to the reader.

    `problem`: code and message where XLA has no such opcode, element type or layout. `is_wanted`: the opcode is one to keep.
    `may_be_kept`: another one that can run a computation of its own or, as a custom call, be wanted for its target.
    `holds_scalar`: the shape is an integer or truth value without dimensions, or a tuple that holds one.
    """

    head: Head
    problem: tuple[str, str] | None
    is_wanted: bool
    may_be_kept: bool
    holds_scalar: bool


class HeadRecords:
    """The records of the heads that were met. `opcodes` has the opcode of each, which is all that most rows are read for. The
    first line of a computation has an empty head, whose opcode is empty too.
    """

    def __init__(self, wanted: frozenset[str], heads: HeadTable) -> None:
        nothing = HeadRecord(Head("", None), problem=None, is_wanted=False, may_be_kept=False, holds_scalar=False)
        self.records = {"": nothing}
        self.opcodes = {"": ""}
        self._wanted = wanted
        self._heads = heads

    def learn(self, texts: Iterable[str]) -> set[str] | None:
        """Makes sure that all `texts` have a record. The distinct ones; `None` where one is no head."""
        distinct = set(texts)
        if len(self.records) > _MAX_HEADS:
            self.records, self.opcodes = {"": self.records[""]}, {"": ""}
        for text in distinct - self.records.keys():
            head = self._heads[text]
            if text in self._heads.unreadable:
                return None
            self.records[text] = self._record(head, text)
            self.opcodes[text] = head.opcode
        return distinct

    def opcodes_of(self, texts: Sequence[str]) -> list[str]:
        """The opcodes of heads that are known."""
        return list(map(self.opcodes.__getitem__, texts))

    def _record(self, head: Head, text: str) -> HeadRecord:
        shape_text = text.rpartition(" ")[0]
        arrays = _distinct_arrays(head.shape)
        problem = None
        if head.opcode not in opcodes.TABLE:
            problem = ("HI004", f"unknown opcode {head.opcode!r}")
        elif head.shape is None and shape_text:
            problem = ("HI006", f"unknown element type in {shape_text[:60]}")
        elif any(array.layout is not None and len(array.layout.minor_to_major) != len(array.dimensions) for array in arrays):
            problem = ("HI013", f"a layout that does not number each dimension in {shape_text[:60]}")
        is_wanted = head.opcode in self._wanted
        may_be_kept = not is_wanted and bool(self._wanted) and opcodes.base_opcode(head.opcode) in _MAY_HOLD_WANTED
        holds_scalar = any(not array.dimensions and _SCALAR.fullmatch(array.dtype) for array in arrays)
        return HeadRecord(head, problem, is_wanted, may_be_kept, holds_scalar)


def _distinct_arrays(shape: Shape | None) -> list[ArrayShape]:
    """The arrays, tokens and opaque values of a shape, those that are one object once: a module's equal arrays are."""
    if shape is None or isinstance(shape, ArrayShape):
        return [] if shape is None else [shape]
    arrays: list[ArrayShape] = []
    waiting = [shape]
    while waiting:
        elements = waiting.pop().elements
        for element in dict(zip(map(id, elements), elements, strict=True)).values():
            if isinstance(element, ArrayShape):
                arrays.append(element)
            else:
                waiting.append(element)
    return arrays
