"""What values depend on: places on the inputs of a region of the text, atoms of the normal form on the training state.

Both are kept as bits of integers. A clipped gradient holds the norms of all gradients: with a set for each of them a model of
many weights would take the square of their number, while integers are joined at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum
from hlo_inspect.optimizer.array_slices import has_one_element
from hlo_inspect.optimizer.graph import each_bit, with_bits

EVERYTHING = -1
"""All inputs there can be: what is assumed of a place where there are too many to follow."""

_OF_ONE_RESULT = frozenset({"async-update", "call", "get-tuple-element"})
"""What hands on, whole, one of several results; anything else depends on its operands, if it only moves one of them too."""


class InputDependence:
    """On which inputs a place depends: through products of matrices, reductions, loops and collectives.

    Instructions are followed one by one; a fusion with one result, a loop or a conditional counts as depending on all its
    operands. With `marked`, bits of instructions by frame and row, it gives those of them from which a place follows.
    """

    def __init__(self, frames: Frames, marked: Mapping[tuple[int, int], int] | None = None) -> None:
        self._frames = frames
        self._marked = marked
        self._bits: dict[Input, int] = {}
        self._known: dict[Place, int] = {}
        self._joined: dict[tuple[int, int], int] = {}

    def bit(self, one: Input) -> int:
        """The bit of one input."""
        return 1 << self._bits.setdefault(one, len(self._bits))

    def inputs(self, place: Place) -> int:
        """The inputs on which the values at a place depend."""
        known = self._known
        stack = [place]
        followed: dict[Place, Sequence[Place]] = {}
        begun = len(known)
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            before = followed.get(top)
            if before is None:
                is_over = begun + len(followed) >= self._frames.max_places  # the way down counts
                if is_over and not self._frames.is_cut_short:
                    self._frames.give_up(top, "depends on too many others to follow")
                sources = EVERYTHING if is_over else self._sources(top)
                if isinstance(sources, int):
                    known[top] = sources
                    continue
                before = followed[top] = sources
                for source in sources:
                    if source not in known and source not in followed:
                        stack.append(source)
                if stack[-1] is not top:
                    continue
            total = 0 if self._marked is None else self._marked.get(top[:2], 0)
            for source in before:
                total = with_bits(total, known.get(source, 0))
            known[top] = total
            stack.pop()
            if top[2] and len(before) > 1:  # so these are all operands
                self._joined[top[:2]] = total
        return known[place]

    def _sources(self, place: Place) -> int | tuple[Place, ...]:
        """The places from which a place follows, or the bit of an input."""
        frames = self._frames
        opcode = frames.opcode(place)
        if not opcode:
            return 0
        if opcode == "parameter":
            argument, source = frames.step_back(place), frames.input(place)
            if argument is not None:
                return (argument,)
            return self.bit(source) if source is not None and self._marked is None else 0
        if place[2] or opcode in _OF_ONE_RESULT or opcode.endswith("-done"):
            before = frames.step_back(place)
            if before is not None:
                return (before,)
        if opcode == "recv":
            sent = frames.sent(place)
            return (sent,) if sent is not None else 0
        joined = self._joined.get(place[:2]) if place[2] else None  # of a sum over devices each result depends on all operands
        return frames.operands(place) if joined is None else joined


class AtomDependence:
    """What atoms hold at any depth: `values` of the training state, old and new, and the `inputs` behind opaque leaves.

    `inputs_of` gives the inputs behind an opaque leaf, as bits, with `reads_inputs` also that of a leaf that is an input and no
    value of the training state. The parts of an atom have smaller numbers than itself.
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
        """The bit of an old or new value of the training state."""
        return self._bits.get(atom, 0)

    def bits(self, atoms: Iterable[int]) -> int:
        """The bits of several of these values."""
        found = 0
        for atom in atoms:
            found |= self.bit(atom)
        return found

    def atoms(self, bits: int) -> Iterator[int]:
        """The atoms of bits."""
        return (self._atoms[bit.bit_length() - 1] for bit in each_bit(bits))

    def values(self, form: Sum) -> int:
        """The values of the training state that a sum holds."""
        self._extend()
        return self._joined(form, self._values)

    def values_in(self, atom: int) -> int:
        if atom >= len(self._values):
            self._extend()
        return self._values[atom]

    def inputs(self, form: Sum) -> int:
        """The inputs behind what is opaque in a sum."""
        self._extend()
        return self._joined(form, self._inputs)

    def inputs_in(self, atom: int) -> int:
        if atom >= len(self._inputs):
            self._extend()
        return self._inputs[atom]

    def are_scalars(self, atom: int) -> bool:
        """Whether every leaf of an atom has one element, or one is taken of it and nothing in it is computed or a state."""
        if atom >= len(self._scalar):
            self._extend()
        return self._scalar[atom]

    @staticmethod
    def _joined(form: Sum, bits: list[int]) -> int:
        found = 0
        for monomial in form:
            for atom, _ in monomial:
                found |= bits[atom]
        return found

    def _extend(self) -> None:
        """Takes in the atoms that were made since the last time."""
        atoms, sizes = self._forms.atoms, self._forms.graph.sizes
        for number in range(len(self._values), len(atoms)):
            atom = atoms[number]
            values, inputs, scalar = self._bits.get(number, 0), 0, True
            if atom.node is not None:
                is_read = atom.op == "opaque" or (self._reads_inputs and atom.op == "input" and not values)
                inputs = self._inputs_of(number) if is_read else 0
                scalar = sizes[atom.node] == 1
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
