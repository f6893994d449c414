"""What atoms hold at any depth, kept as bits: the sites' values, and the inputs behind what is opaque.

A clipped gradient holds the norms of all gradients. With a set of leaves for each of them a model of many weights would
take the square of their number; integers are joined at no cost. The parts of an atom have smaller numbers than itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hlo_inspect.analysis.optimizer.normal import Forms, Sum


class Contents:
    """`inputs` gives the inputs behind an opaque leaf, as bits."""

    def __init__(self, forms: Forms, sites: Iterable[int], inputs: Callable[[int], int]) -> None:
        self._forms = forms
        self._bits = {atom: 1 << n for n, atom in enumerate(sites)}
        self._atoms = list(self._bits)
        self._inputs_of = inputs
        self._values: list[int] = []
        self._inputs: list[int] = []
        self._scalar: list[bool] = []

    def bit(self, atom: int) -> int:
        """The bit of a site's old or new value."""
        return self._bits.get(atom, 0)

    def atoms(self, bits: int) -> Iterator[int]:
        """The atoms of bits."""
        while bits:
            lowest = bits & -bits
            yield self._atoms[lowest.bit_length() - 1]
            bits ^= lowest

    def values(self, form: Sum) -> int:
        """The sites' values that a sum holds."""
        self._extend()
        found = 0
        for monomial in form:
            for atom, _ in monomial:
                found |= self._values[atom]
        return found

    def values_in(self, atom: int) -> int:
        self._extend()
        return self._values[atom]

    def inputs(self, form: Sum) -> int:
        """The inputs behind what is opaque in a sum."""
        self._extend()
        found = 0
        for monomial in form:
            for atom, _ in monomial:
                found |= self._inputs[atom]
        return found

    def inputs_in(self, atom: int) -> int:
        self._extend()
        return self._inputs[atom]

    def are_scalars(self, atom: int) -> bool:
        """Whether every leaf of an atom has one element."""
        self._extend()
        return self._scalar[atom]

    def _extend(self) -> None:
        """Takes in the atoms that were made since the last time."""
        atoms, sizes = self._forms.atoms, self._forms.graph.sizes
        for number in range(len(self._values), len(atoms)):
            atom = atoms[number]
            values, inputs, scalar = self._bits.get(number, 0), 0, True
            if atom.node is not None:
                inputs = self._inputs_of(number) if atom.op == "opaque" else 0
                scalar = sizes[atom.node] == 1
            for part in atom.parts:
                for monomial in part:
                    for inner, _ in monomial:
                        values |= self._values[inner]
                        inputs |= self._inputs[inner]
                        scalar = scalar and self._scalar[inner]
            self._values.append(values)
            self._inputs.append(inputs)
            self._scalar.append(scalar)
