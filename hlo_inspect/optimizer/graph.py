"""A graph of expressions in which equal expressions are one node.

A node is an integer. Instructions that change no value (a convert, reshape or call, see `graph/frames.py`) make no node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from hlo_inspect.graph.frames import Input, Place
from hlo_inspect.hlo.opcodes import COMMUTATIVE

MANY_ROOTS = 16
MAX_KEPT = 4
_NUMBER, _COUNT = 1, 2


def with_bits(bits: int, others: int) -> int:
    """Return `bits | others`; reuse one of the two objects if it is equal.

    Most values depend on the same inputs as their operands, and share one integer with them.
    """
    if bits is others or not others:
        return bits
    joined = bits | others
    return others if joined == others else bits if joined == bits else joined


def each_bit(bits: int) -> Iterator[int]:
    """Yield the bits that are set, each as an integer, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


class Graph:
    """Nodes by number.

    `ops`, `args` (nodes), `attributes`, `sizes` (elements, 1 for a scalar, 0 if unknown). `coarse`: the node holds a constant
    that was rounded to 16 bits. Leaves have `values` (constants), `places` (opaque values) or `sources` (inputs). `broken` are
    opaque leaves for values that were not followed. `counts` are inputs that may be counters of an ensemble: vectors of
    integers.
    """

    def __init__(self) -> None:
        self.ops: list[str] = []
        self.args: list[tuple[int, ...]] = []
        self.attributes: list[Hashable] = []
        self.sizes: list[int] = []
        self.coarse: list[bool] = []
        self.values: dict[int, float] = {}
        self.places: dict[int, Place] = {}
        self.sources: dict[int, Input] = {}
        self.assumed: set[int] = set()
        self.broken: set[int] = set()
        self.counts: set[int] = set()
        self._holds: list[int] = []  # what each expression is made of: counts and constants, constants alone, or 0
        self._numbers: dict[tuple[str, tuple[int, ...], Hashable], int] = {}
        self._last_below: dict[tuple[int, ...], list[int]] = {}

    def make(self, op: str, args: tuple[int, ...] = (), attribute: Hashable = None, size: int | None = None) -> int:
        """Return the node of that operation; its size is the size of its largest operand unless stated."""
        if op in COMMUTATIVE and len(args) == 2 and args[0] > args[1]:
            args = (args[1], args[0])
        elif op == "select":
            condition, then, other = args
            if then == other:
                return then
            if self.ops[condition] == "not":
                args = (self.args[condition][0], other, then)
        key = (op, args, attribute)
        existing = self._numbers.get(key)
        if existing is not None:
            return existing
        number = len(self.ops)
        self._numbers[key] = number
        self.ops.append(op)
        self.args.append(args)
        self.attributes.append(attribute)
        self.sizes.append(max(map(self.sizes.__getitem__, args), default=1) if size is None else size)
        self.coarse.append(any(map(self.coarse.__getitem__, args)))
        return number

    def constant(self, value: float, *, is_coarse: bool = False) -> int:
        """Return the node of a number; `is_coarse` if it was rounded to 16 bits. NaN is a leaf like any other."""
        node = self.make("constant", (), (repr(float(value)), is_coarse), 1)
        self.values[node] = float(value)
        self.coarse[node] = is_coarse
        return node

    def truth(self, value: float) -> int:
        """Return the node of an assumed condition, or of a condition that follows from it.

        It differs from the node of the constant, which can have a meaning of its own.
        """
        node = self.make("constant", (), (repr(float(value)), "assumed"), 1)
        self.values[node] = float(value)
        self.assumed.add(node)
        return node

    def opaque(self, place: Place, size: int, key: Hashable = None) -> int:
        """Return the leaf of an unexpanded value, by its place, or by a key that equal values share."""
        node = self.make("opaque", (), place if key is None else key, size)
        self.places.setdefault(node, place)
        return node

    def input(self, source: Input, size: int, *, is_count: bool = False) -> int:
        """Return the leaf of an array that is an input; `is_count` if it may be the counters of an ensemble."""
        node = self.make("input", (), source, size)
        self.sources[node] = source
        self.counts |= {node} if is_count else set()
        return node

    def is_of_counts(self, node: int) -> bool:
        """Return True if an expression is made of `counts` and constants alone, by operations on elements."""
        if not self.counts:
            return False
        for number in range(len(self._holds), node + 1):  # operands have lower numbers
            holds = _COUNT if number in self.counts else _NUMBER if number in self.values else 0
            args = self.args[number]
            if args:
                below = [self._holds[arg] for arg in args]
                holds = 0 if 0 in below else max(below)
            self._holds.append(holds)
        return self._holds[node] == _COUNT

    def value(self, node: int) -> float | None:
        """Return the value of a constant."""
        return self.values.get(node)

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """Return every node that `roots` hold, operands first: nodes are made before their users.

        The result is cached for many roots, since it is needed again.
        """
        key = tuple(roots)
        cached = self._last_below.get(key)
        if cached is not None:
            return cached
        args = self.args
        seen = set(key)
        new = seen
        while new:
            new = {arg for node in new for arg in args[node]} - seen
            seen |= new
        order = sorted(seen)
        if len(key) > MANY_ROOTS:
            if len(self._last_below) == MAX_KEPT:
                self._last_below.clear()
            self._last_below[key] = order
        return order

    def reaches(self, root: int, node: int) -> bool:
        """Return True if `root` is a node or holds it. The nearest nodes are looked at first."""
        args = self.args
        seen, new = {root}, {root}
        while new and node not in new:
            new = {arg for user in new for arg in args[user]} - seen
            seen |= new
        return node in new

    def bits_below(self, roots: Iterable[int], bits: Mapping[int, int]) -> dict[int, int]:
        """Return the bits of the nodes that each node below `roots` holds, its own included."""
        bits_below: dict[int, int] = {}
        for node in self.reachable(roots):
            node_bits = bits.get(node, 0)
            for arg in self.args[node]:
                node_bits = with_bits(node_bits, bits_below[arg])
            bits_below[node] = node_bits
        return bits_below


def scaled_rows(graph: Graph, rows: int) -> tuple[list[int], int]:
    """Return the scalar factors of an array, and the array without them."""
    factors: list[int] = []
    while graph.sizes[rows] != 1:
        args = graph.args[rows]
        scalars = [arg for arg in args if graph.sizes[arg] == 1]
        if graph.ops[rows] == "negate":
            factors.append(graph.constant(-1.0))
        elif graph.ops[rows] == "multiply" and len(scalars) == 1:
            factors += scalars
        else:
            break
        (rows,) = [arg for arg in args if arg not in scalars]
    return factors, rows
