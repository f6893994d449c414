"""Fusions: kind, root, fused instructions, bytes of operands and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.shapes import Shape, TupleShape, total

OPCODES = frozenset({"fusion", "custom-call"})
"""Opcodes that a module has to keep."""

CUSTOM_CALL = frozenset({"custom-call"})
FUSION = frozenset({"fusion"})


class Fusion(NamedTuple):
    """A fusion, a row of a view. `callee` is the fused computation, None if the text does not hold it."""

    view: View
    row: int
    kind: str
    callee: Computation | None

    @property
    def name(self) -> str:
        return self.view.names[self.row]

    @property
    def shape(self) -> Shape | None:
        return self.view.shapes[self.row]

    @property
    def is_multi_output(self) -> bool:
        """True if the root is a tuple (`HloInstruction::IsMultiOutputFusion`). The result is a tuple only then."""
        return isinstance(self.shape, TupleShape) and _gives_tuple(self.callee)

    @property
    def operand_bytes(self) -> int | None:
        """Bytes of the arrays of all operands; an operand that is used twice counts twice."""
        return total([None if shape is None else shape.array_bytes for shape in self.view.operand_shapes(self.row)])

    @property
    def result_bytes(self) -> int | None:
        """Bytes of the arrays of the result."""
        return None if self.shape is None else self.shape.array_bytes

    @property
    def outputs(self) -> int:
        return 0 if self.shape is None else self.shape.arrays


def find_fusions(views: Views) -> list[Fusion]:
    """Return the fusions of a module that was read with its graph, in the order of the text."""
    return [fusion_at(views, view, row) for view, row in views.rows_with(FUSION)]


def fusion_at(views: Views, view: View, row: int) -> Fusion:
    """Return the fusion in a row."""
    return Fusion(view, row, view.fusion_kind(row) or "", views.fused(view, row))


def metadata_of_fusions(module: Module) -> Iterator[Metadata]:
    """Yield the metadata of fusions, with repetitions. Metadata with the same text is parsed once."""
    parsed: set[str] = set()
    for fusion in module.with_opcodes(FUSION):
        untouched = fusion.untouched
        if untouched is not None and '"' not in untouched[0]:  # otherwise the text may end within a string
            text, spelled = untouched
            if spelled in parsed or not (spelled or "metadata" in text):
                continue
            if spelled:
                parsed.add(spelled)
        metadata = fusion.attr("metadata")
        if metadata is not None:
            yield metadata


class FusionKind(NamedTuple):
    """A kind of fusion, with the number of its fusions and of the multi-output ones among them."""

    kind: str
    members: int
    multi_output: int


def fusion_kinds(module: Module) -> list[FusionKind]:
    """Return the kinds of fusions in the order of the text. Fusions in the usual spelling need no parsing."""
    kinds: Counter[str] = Counter()
    multi_output: Counter[str] = Counter()
    for fusion in module.with_opcodes(FUSION):
        kind, callee = fusion.printed_fusion or (None, "")
        if not kind:
            kind, callee = fusion.attr("kind") or "", fusion.callee("calls") or ""
        kinds[kind] += 1
        multi_output[kind] += isinstance(fusion.shape, TupleShape) and _gives_tuple(module.computations.get(callee))
    return [FusionKind(kind, members, multi_output[kind]) for kind, members in kinds.items()]


def _gives_tuple(callee: Computation | None) -> bool:
    """Return True if the root of a fused computation is a tuple, or unknown."""
    return callee is None or callee.root_opcode in (None, "tuple")


def custom_call_targets(module: Module) -> Counter[str]:
    """Count the custom calls of each target, in the order of the text."""
    return Counter([call.attr("custom_call_target") or "" for call in module.with_opcodes(CUSTOM_CALL)])
