"""One graph of expressions in which equal expressions are one node.

A node is an integer. What changes no value (a convert, reshape or call, see `graph/frames.py`) makes no node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from hlo_inspect.graph.frames import Input, Place
from hlo_inspect.hlo.opcodes import COMMUTATIVE

MANY_ROOTS = 16
MAX_KEPT = 4


def with_bits(bits: int, others: int) -> int:
    """`bits | others`, as one of the two where that is equal: most values depend on what their operands depend on, and share
    one integer with them.
    """
    if bits is others or not others:
        return bits
    joined = bits | others
    return others if joined == others else bits if joined == bits else joined


def each_bit(bits: int) -> Iterator[int]:
    """The bits that are set, each as an integer, the lowest first."""
    while bits:
        lowest = bits & -bits
        yield lowest
        bits ^= lowest


class Graph:
    """Nodes by number: `ops`, `args` (nodes), `attributes`, `sizes` (elements, 1 for a scalar, 0 where unknown), and whether a
    node holds a constant that was rounded to 16 bits, `coarse`. Of leaves: `values` of constants, `places` of what is opaque,
    `sources` of inputs. `broken` are opaque leaves in place of what could not be followed.
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
        self._numbers: dict[tuple[str, tuple[int, ...], Hashable], int] = {}
        self._last_below: dict[tuple[int, ...], list[int]] = {}

    def make(self, op: str, args: tuple[int, ...] = (), attribute: Hashable = None, size: int | None = None) -> int:
        """The node of that operation; its size is that of its largest operand unless given."""
        if op in COMMUTATIVE and len(args) == 2 and args[0] > args[1]:
            args = (args[1], args[0])
        elif op == "select":
            condition, then, other = args
            if then == other:
                return then
            if self.ops[condition] == "not":
                args = (self.args[condition][0], other, then)
        key = (op, args, attribute)
        found = self._numbers.get(key)
        if found is not None:
            return found
        number = len(self.ops)
        self._numbers[key] = number
        self.ops.append(op)
        self.args.append(args)
        self.attributes.append(attribute)
        self.sizes.append(max(map(self.sizes.__getitem__, args), default=1) if size is None else size)
        self.coarse.append(any(map(self.coarse.__getitem__, args)))
        return number

    def constant(self, value: float, *, is_coarse: bool = False) -> int:
        """A number; `is_coarse` for one that was rounded to 16 bits. NaN is a leaf like any other."""
        node = self.make("constant", (), (repr(float(value)), is_coarse), 1)
        self.values[node] = float(value)
        self.coarse[node] = is_coarse
        return node

    def truth(self, value: float) -> int:
        """A condition that is assumed, or what follows from one; another node than the constant, which may mean something."""
        node = self.make("constant", (), (repr(float(value)), "assumed"), 1)
        self.values[node] = float(value)
        self.assumed.add(node)
        return node

    def opaque(self, place: Place, size: int, key: Hashable = None) -> int:
        """What is not looked into, by its place, or by a key that equal values share."""
        node = self.make("opaque", (), place if key is None else key, size)
        self.places.setdefault(node, place)
        return node

    def input(self, source: Input, size: int) -> int:
        """An array that is an input."""
        node = self.make("input", (), source, size)
        self.sources[node] = source
        return node

    def value(self, node: int) -> float | None:
        """The value of a constant."""
        return self.values.get(node)

    def below(self, roots: Iterable[int]) -> list[int]:
        """Every node that `roots` hold, operands first: each was made before what holds it. What many roots hold is kept, since
        it is asked for again.
        """
        key = tuple(roots)
        known = self._last_below.get(key)
        if known is not None:
            return known
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

    def held(self, roots: Iterable[int], bits: Mapping[int, int]) -> dict[int, int]:
        """The bits of the nodes that each node below `roots` holds, its own included."""
        found: dict[int, int] = {}
        for node in self.below(roots):
            here = bits.get(node, 0)
            for arg in self.args[node]:
                here = with_bits(here, found[arg])
            found[node] = here
        return found


def scaled_rows(graph: Graph, rows: int) -> tuple[list[int], int]:
    """The scalars that an array is multiplied with, and the array without them."""
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
