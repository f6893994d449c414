"""What a sum over elements or devices adds up, and what a product of matrices multiplies: the way behind opaque leaves."""

from __future__ import annotations

import re

from hlo_inspect.analysis.optimizer.flow import Flow
from hlo_inspect.analysis.optimizer.graph import Place
from hlo_inspect.analysis.optimizer.normal import ONE, Forms, Sum, split_zero
from hlo_inspect.analysis.optimizer.opcodes import GEMMS
from hlo_inspect.analysis.optimizer.places import target_of
from hlo_inspect.analysis.optimizer.sites import Region
from hlo_inspect.analysis.optimizer.text import Statement

MAX_STAGES = 12  # a sum is made in stages: within a row, over rows, over devices

_OVER_DEVICES = frozenset({"all-reduce", "all-reduce-start", "reduce-scatter", "reduce-scatter-start"})
_OVER_ELEMENTS = frozenset({"reduce", "reduce-window"})
_FIRST = re.compile(r"\{\[(\d{1,18}):")


class Reductions:
    """Looks behind sums and products of matrices in the expressions of a region."""

    def __init__(self, flow: Flow, region: Region, forms: Forms) -> None:
        self._flow = flow
        self._region = region
        self._forms = forms
        self._known: dict[int, Sum | None] = {}

    def summed(self, atom: int, kind: str = "add") -> Sum | None:
        """The form whose elements a leaf adds up (with `kind` "maximum": takes the largest of), `None` for another leaf."""
        known = self._known.get(atom, ())
        if isinstance(known, tuple):
            known = self._known[atom] = self._summed(atom, kind)
        return known

    def factors(self, atom: int, *, windowed: bool = False) -> tuple[Sum, Sum] | None:
        """The two matrices of which a leaf is the product, each perhaps transposed; `None` for another leaf. With `windowed`
        also array and kernel of a convolution.
        """
        node = self._forms.atoms[atom].node
        place = self._flow.graph.places.get(node) if node is not None else None
        statement = self._flow.statement(place) if place is not None else None
        if place is None or statement is None or not _is_product(statement, windowed=windowed):
            return None
        operands = self._flow.operands(place, statement)[:2]
        return (self._form(operands[0]), self._form(operands[1])) if len(operands) == 2 else None

    def _summed(self, atom: int, kind: str) -> Sum | None:
        form: Sum | None = None
        for _ in range(MAX_STAGES):
            operand = self._below(atom, kind)
            if operand is None:
                return form
            form = self._form(operand)
            inner = next(iter(form)) if len(form) == 1 else ONE
            if len(inner) != 1 or inner[0][1] != 1.0 or form[inner] != 1.0:
                return form
            atom = inner[0][0]
        return form

    def _form(self, place: Place) -> Sum:
        node = self._flow.node(place)
        return split_zero(self._forms.form(self._region.resolved(self._flow.graph, [node])[node]))

    def _below(self, atom: int, kind: str) -> Place | None:
        """Where the operand of a sum is; of a part of a combined sum over devices the operand of that part."""
        found = self._forms.atoms[atom]
        places = self._flow.graph.places
        if found.node is not None:
            return self._operand(places[found.node], kind) if found.node in places else None
        if found.op == "slice" and len(found.parts[0]) == 1:
            ((monomial, _),) = found.parts[0].items()
            first = _FIRST.match(str(found.attribute))
            node = self._forms.atoms[monomial[0][0]].node if len(monomial) == 1 else None
            if node in places and first is not None:
                return self._part(places[node], int(first[1]))
        return None

    def _part(self, place: Place, offset: int) -> Place | None:
        """Where the element at an offset of a combined sum comes from: the operand of the concatenation below it."""
        operand = self._operand(place, "add")
        statement = self._flow.statement(operand) if operand is not None else None
        for _ in range(MAX_STAGES):
            if operand is None or statement is None or statement.opcode == "concatenate":
                break
            operand = self._flow.behind(operand, statement)
            statement = self._flow.statement(operand) if operand is not None else None
        if operand is None or statement is None:
            return None
        for part in self._flow.operands(operand, statement):
            offset -= self._flow.size(part)
            if offset < 0:
                return part
        return None

    def _operand(self, place: Place, kind: str) -> Place | None:
        statement = self._flow.statement(place)
        if statement is None:
            return None
        place, statement = self._flow.start(place, statement)
        operands = self._flow.operands(place, statement)
        if "CrossMeshAllReduce" in statement.attribute("custom_call_target"):
            return operands[0] if len(operands) == 1 else None
        number = place[2][0] if len(place[2]) == 1 else 0
        if not self._applies(statement, kind) or number >= len(operands):
            return None
        if statement.opcode in _OVER_ELEMENTS:
            return operands[0] if len(operands) == 2 and not place[2] else None
        return operands[number] if statement.opcode in _OVER_DEVICES else None

    def _applies(self, statement: Statement, kind: str) -> bool:
        body = self._flow.body(statement.word("to_apply"))
        root = body.statement(body.root) if body is not None else None
        return root is not None and root.opcode == kind


def _is_product(statement: Statement, *, windowed: bool) -> bool:
    if statement.opcode == "convolution":
        return windowed or "window=" not in statement.tail
    return statement.opcode == "dot" or (statement.opcode == "custom-call" and target_of(statement) in GEMMS)
