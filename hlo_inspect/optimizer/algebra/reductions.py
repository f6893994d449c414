"""The operands of opaque leaves: of reductions over elements or devices, of matrix products, and of loops."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from hlo_inspect.graph.frames import Place
from hlo_inspect.hlo.opcodes import STARTING_COLLECTIVES, opcodes_that_are
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.algebra.normal_form import ONE, Monomial, NormalForms, Sum, close, split_zero
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.graph import scaled_rows
from hlo_inspect.optimizer.operations import GEMM_TARGETS
from hlo_inspect.optimizer.step.state_arrays import TrainingStep

MAX_STAGES = 12  # a sum is made in stages: within a row, over rows, over devices

_OVER_DEVICES = opcodes_that_are("reduction") & STARTING_COLLECTIVES
_OVER_ELEMENTS = opcodes_that_are("reduction") - STARTING_COLLECTIVES

_T = TypeVar("_T")


class CarriedAtom(NamedTuple):
    """A value of a loop: an iteration computes `new` from the atom `old`; it begins as `initial`."""

    initial: Sum
    old: int
    new: Sum


class Reductions:
    """The operands of reductions and products of matrices in the expressions of a step."""

    def __init__(self, flow: Dataflow, step: TrainingStep, forms: NormalForms) -> None:
        self._flow = flow
        self._frames = flow.frames
        self._step = step
        self._forms = forms
        self._sums: dict[tuple[int, str], Sum | None] = {}
        self._over_devices: dict[int, Sum | None] = {}
        self._totals: dict[int, dict[int, list[Sum]]] = {}
        self._opened: set[int | None] = set()

    def summed(self, atom: int, kind: str = "add") -> Sum | None:
        """Return the form whose elements a leaf adds up; None for any other leaf.

        With `kind` "maximum", the leaf takes the largest element.
        """
        key = (atom, kind)
        if key not in self._sums:
            self._sums[key] = self._summed(atom, kind)
        return self._note(atom, self._sums[key])

    def has_opened(self, nodes: Iterable[int]) -> bool:
        """Return True if somebody asked for the operands of one of these leaves."""
        return not self._opened.isdisjoint(nodes)

    def _note(self, atom: int, operands: _T) -> _T:
        if operands is not None:
            self._opened.update(self._forms.atoms[leaf].node for leaf in self._forms.leaves({((atom, 1.0),): 1.0}))
        return operands

    def over_devices(self, atom: int) -> Sum | None:
        """Return the form whose values a leaf, or a part of a leaf, adds up over devices only."""
        if atom not in self._over_devices:
            self._over_devices[atom] = self._summed_over_devices(atom)
        return self._over_devices[atom]

    def _summed_over_devices(self, atom: int) -> Sum | None:
        operand = self._reduced_operand(atom, "add")
        if operand is None:
            return None
        node = self._forms.atoms[atom].node
        opcode = self._frames.opcode(self._frames.start(self._flow.graph.places[node])) if node is not None else ""
        return None if opcode in _OVER_ELEMENTS else self._form(operand)

    def scattered(self, atom: int) -> tuple[int, Sum] | None:
        """Return the indices (a node) and the rows (a form) that a scatter adds up."""
        node = self._forms.atoms[atom].node
        place = self._flow.graph.places.get(node) if node is not None else None
        if place is None or self._frames.opcode(place) != "scatter":
            return None
        operands = self._frames.operands(place)
        if len(operands) != 3:
            return None
        _, rows = scaled_rows(self._flow.graph, self._flow.node(operands[2]))
        return self._note(atom, (self._flow.node(operands[1]), self._form_of(rows)))

    def factors(self, atom: int) -> tuple[Sum, Sum] | None:
        """Return the two matrices whose product a leaf is, each perhaps transposed; None for any other leaf."""
        node = self._forms.atoms[atom].node
        place = self._flow.graph.places.get(node) if node is not None else None
        if place is None or not self._is_product(place):
            return None
        operands = self._frames.operands(place)[:2]
        return self._note(atom, (self._form(operands[0]), self._form(operands[1])) if len(operands) == 2 else None)

    def carried_atom(self, atom: int) -> CarriedAtom | None:
        """Return the carried value of a loop if a leaf is its last value; None for any other leaf."""
        node = self._forms.atoms[atom].node
        place = self._flow.graph.places.get(node) if node is not None else None
        if place is None or self._frames.opcode(place) != "while":
            return None
        body, initial = self._frames.body(place), self._frames.operand(place, 0, place[2])
        if body is None or initial is None:
            return None
        old = self._flow.graph.input((body, 0, place[2]), self._frames.size(place))
        root = self._frames.root(body, place[2])
        return self._note(atom, CarriedAtom(self._form(initial), self._forms.leaf(old), self._form(root)))

    def addends_by_atom(self, atom: int) -> dict[int, list[Sum]]:
        """Return the operands of a sum of reductions or inner products, by the atoms in the operands.

        The absolute value of a value counts by the atoms in its definition. The result is empty if any term is of another kind.
        """
        if atom not in self._totals:
            self._totals[atom] = self._find_addends(atom)
        return self._totals[atom]

    def _find_addends(self, atom: int) -> dict[int, list[Sum]]:
        whole = self._forms.atoms[atom]
        forms_by_atom: dict[int, list[Sum]] = {}
        for monomial, value in (whole.parts[0] if whole.op == "sum" else {((atom, 1.0),): 1.0}).items():
            inner = self._term(monomial) if close(value, 1.0) else None
            if inner is None:
                return {}
            for number in {number for m in self._expand_size(inner) for number, _ in m}:
                forms_by_atom.setdefault(number, []).append(inner)
        return forms_by_atom

    def _term(self, monomial: Monomial) -> Sum | None:
        """Return the summand of a term that is a sum over all elements, or an inner product."""
        if len(monomial) != 1 or monomial[0][1] != 1.0:
            return None
        atom = monomial[0][0]
        node = self._forms.atoms[atom].node
        if node is None or self._flow.graph.sizes[node] != 1:
            return None
        factors = self.factors(atom)
        return self._forms.multiply(*factors) if factors is not None else self.summed(atom)

    def _expand_size(self, form: Sum) -> Sum:
        """Return a form. If it is the absolute value of a value, return the definition of that value."""
        atom = self._forms.only_atom(form)
        inner = self._forms.only_atom(atom.parts[0]) if atom is not None and atom.op == "abs" else None
        return self._forms.definition(inner.node) if inner is not None and inner.node is not None else form

    def _summed(self, atom: int, kind: str) -> Sum | None:
        form: Sum | None = None
        for _ in range(MAX_STAGES):
            operand = self._reduced_operand(atom, kind)
            if operand is None:
                return form
            form = self._form(operand)
            inner = next(iter(form)) if len(form) == 1 else ONE
            if len(inner) != 1 or inner[0][1] != 1.0 or form[inner] != 1.0:
                return form
            atom = inner[0][0]
        return form

    def _form(self, place: Place) -> Sum:
        return self._form_of(self._flow.node(place))

    def _form_of(self, node: int) -> Sum:
        return split_zero(self._forms.form(self._step.resolved(self._flow.graph, [node])[node]))

    def _reduced_operand(self, atom: int, kind: str) -> Place | None:
        """Return the place of a reduction's operand; for a part of a combined all-reduce, the place of the part's operand."""
        record = self._forms.atoms[atom]
        places = self._flow.graph.places
        if record.node is not None:
            return self._operand(places[record.node], kind) if record.node in places else None
        if record.op == "slice" and len(record.parts[0]) == 1:
            ((monomial, _),) = record.parts[0].items()
            node = self._forms.atoms[monomial[0][0]].node if len(monomial) == 1 else None
            first = record.attribute[0] if isinstance(record.attribute, tuple) and record.attribute else None
            if node in places and isinstance(first, SliceDimension):
                return self._part(places[node], first.start, kind)
        return None

    def _part(self, place: Place, offset: int, kind: str) -> Place | None:
        """Return the source of the element at an offset of a combined reduction: an operand of the concatenation below."""
        frames, operand = self._frames, self._operand(place, kind)
        if operand is None:
            return None
        joined = next((before for before in frames.trace_back(operand) if frames.opcode(before) == "concatenate"), None)
        for part in frames.operands(joined) if joined is not None else ():
            offset -= frames.size(part)
            if offset < 0:
                return part
        return None

    def _operand(self, place: Place, kind: str) -> Place | None:
        frames = self._frames
        place = frames.start(place)
        opcode = frames.opcode(place)
        operands = frames.operands(place) if opcode else ()
        if opcode == "custom-call":
            is_sum = "CrossMeshAllReduce" in frames.target(place)
            return operands[0] if is_sum and len(operands) == 1 else None
        is_over_elements = opcode in _OVER_ELEMENTS and len(operands) == 2 and not place[2]
        if not is_over_elements and opcode not in _OVER_DEVICES:
            return None
        number = place[2][0] if len(place[2]) == 1 else 0
        return operands[number] if number < len(operands) and self._frames.applies(place, kind) else None

    def _is_product(self, place: Place) -> bool:
        opcode = self._frames.opcode(place)
        if opcode == "convolution":
            instruction = self._frames.instruction(place)
            return not instruction.has("window")
        return opcode == "dot" or (opcode == "custom-call" and self._frames.target(place) in GEMM_TARGETS)
