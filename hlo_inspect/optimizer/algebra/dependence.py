"""Dependences of the atoms of normal forms on values of the training state and on inputs, as bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum
from hlo_inspect.optimizer.array_slices import has_one_element
from hlo_inspect.optimizer.graph import each_bit, with_bits


class AtomDependence:
    """Dependences of atoms at any depth: `values` of the training state, old and new, and `inputs` behind opaque leaves.

    `inputs_of` returns the inputs behind a node, as bits. With `reads_inputs` it also counts leaves that are inputs and no
    values of the training state. The parts of an atom have smaller numbers than itself.
    """

    def __init__(
        self, forms: NormalForms, values: Iterable[int], inputs_of: Callable[[int], int], *, reads_inputs: bool = False
    ) -> None:
        self._forms = forms
        self._bits = {atom: 1 << n for n, atom in enumerate(values)}
        self._atoms = list(self._bits)
        self._inputs_of = inputs_of
        self._reads_inputs = reads_inputs
        self._values: list[int] = []
        self._inputs: list[int] = []
        self._scalar: list[bool] = []

    def bit(self, atom: int) -> int:
        """Return the bit of an old or new value of the training state."""
        return self._bits.get(atom, 0)

    def bits(self, atoms: Iterable[int]) -> int:
        """Return the bits of several values, combined."""
        bits = 0
        for atom in atoms:
            bits |= self.bit(atom)
        return bits

    def atoms(self, bits: int) -> Iterator[int]:
        """Return the atoms of bits."""
        return (self._atoms[bit.bit_length() - 1] for bit in each_bit(bits))

    def values(self, form: Sum) -> int:
        """Return the values of the training state that a sum holds, as bits."""
        self._extend()
        return self._joined(form, self._values)

    def values_in(self, atom: int) -> int:
        if atom >= len(self._values):
            self._extend()
        return self._values[atom]

    def inputs(self, form: Sum) -> int:
        """Return the inputs, as bits, behind the opaque values in a sum."""
        self._extend()
        return self._joined(form, self._inputs)

    def inputs_in(self, atom: int) -> int:
        if atom >= len(self._inputs):
            self._extend()
        return self._inputs[atom]

    def are_scalars(self, atom: int) -> bool:
        """Return True if every leaf of an atom has one element, or is a counter of each member of an ensemble.

        An atom that takes one element also counts, if nothing in it is computed or a state.
        """
        if atom >= len(self._scalar):
            self._extend()
        return self._scalar[atom]

    @staticmethod
    def _joined(form: Sum, bits: list[int]) -> int:
        total = 0
        for monomial in form:
            for atom, _ in monomial:
                total |= bits[atom]
        return total

    def _extend(self) -> None:
        """Read the atoms that were added since the last call."""
        atoms, sizes = self._forms.atoms, self._forms.graph.sizes
        for number in range(len(self._values), len(atoms)):
            atom = atoms[number]
            values, inputs, scalar = self._bits.get(number, 0), 0, True
            if atom.node is not None:
                is_read = atom.op == "opaque" or (self._reads_inputs and atom.op == "input" and not values)
                inputs = self._inputs_of(atom.node) if is_read else 0
                scalar = sizes[atom.node] == 1 or atom.node in self._forms.graph.counts
            for part in atom.parts:
                for monomial in part:
                    for inner, _ in monomial:
                        values = with_bits(values, self._values[inner])
                        inputs = with_bits(inputs, self._inputs[inner])
                        scalar = scalar and self._scalar[inner]
            if atom.op == "slice" and not values and not inputs:
                scalar = scalar or has_one_element(atom.attribute)
            self._values.append(values)
            self._inputs.append(inputs)
            self._scalar.append(scalar)
