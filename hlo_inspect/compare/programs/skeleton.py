"""A program without the parts that have a reason of their own: constants, precisions, shardings.

Two programs with one skeleton have the same instructions. The parts that a skeleton leaves out are kept by their places in it:
the users of a constant, the products with a precision, the arrays with a sharding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from hlo_inspect.graph.canonical.canonical_computation import CanonicalComputation, numbers_hash
from hlo_inspect.graph.canonical.spelling import Speller, Spelling
from hlo_inspect.graph.canonical.tuple_elements import with_elements
from hlo_inspect.graph.orders import operands_first
from hlo_inspect.graph.view import View, Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.opcodes import COMMUTATIVE, PRODUCTS, opcodes_that_are
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.lazy_pattern import lazy_pattern

_SHARDING_CALLS = frozenset({"Sharding", "xla.sdy.FuncResultSharding"})
"""Targets of custom calls that return their operand and state its sharding."""
_RESULT_SHARDING = "xla.sdy.FuncResultSharding"
_OF_CONSTANTS = opcodes_that_are("relayout") | {"broadcast", "convert"}
"""Opcodes that make one constant of another: constants of equal values may share such rows."""
_SHARDY = "xla.sdy."
_SHARDY_SHARDING = lazy_pattern(r"<@[^<>]*+>")

Place = tuple[int, ...]
"""Hashes of a row, and of the operand if it is about one."""


class PlacedText(NamedTuple):
    """A text that a skeleton leaves out: its shape or opcode, and the line of Python of its first user."""

    text: str
    what: str
    source: str


@dataclass(frozen=True, slots=True)
class Skeleton:
    """The instructions of a program. `digest` is a hash of them; `opcodes` counts them by opcode and shape.

    `constants`, `precisions` and `constraints` (shardings inside the program) are by place. `sources` has the first line of
    Python of each opcode and shape.
    """

    digest: int
    opcodes: Counter[str]
    sources: dict[str, str] = field(default_factory=dict)
    constants: dict[Place, list[PlacedText]] = field(default_factory=dict)
    precisions: dict[Place, list[PlacedText]] = field(default_factory=dict)
    constraints: dict[Place, list[PlacedText]] = field(default_factory=dict)


def find_skeleton(module: Module, views: Views) -> Skeleton:
    """Return the skeleton of a module that was read with its graph. It hashes callees before their callers."""
    speller, parts = Speller(), Skeleton(0, Counter())
    hashes: dict[str, int] = {}
    cache: dict[Hashable, int] = {}
    rows: dict[str, _SkeletonRows] = {}
    for name in module.computations:
        view = with_elements(views.for_computation(name))
        spellings = [speller.spell(view, row) for row in range(len(view.rows))]
        masked = [_masked(spelling) for spelling in spellings]
        computation = CanonicalComputation(view, masked, lambda callee: hashes.get(callee, 0), cache)
        rows[name] = _SkeletonRows(computation, spellings, module, parts)
    for name in operands_first(rows, lambda name: [callee for callee in rows[name].computation.callees if callee in rows]):
        hashes[name] = rows[name].digest()
    return replace(parts, digest=hashes[module.entry.name] if module.entry is not None else 0)


def _masked(spelling: Spelling) -> Spelling:
    """Return a spelling without constant, precision and sharding."""
    literal = "" if spelling.opcode == "constant" else spelling.literal
    kept = [
        (name, text)
        for name, text in spelling.attributes
        if not _is_sharding(name, text) and not _is_precision(name, spelling.opcode)
    ]
    return spelling._replace(literal=literal, attributes=tuple(kept))


def _is_sharding(name: str, text: str) -> bool:
    return name == "sharding" or (name == "frontend_attributes" and _SHARDY in text)


def _is_precision(name: str, opcode: str) -> bool:
    return name == "operand_precision" or (name == "algorithm" and opcode in PRODUCTS)


class _SkeletonRows:
    """The rows of one computation: their hashes, and the parts that these leave out."""

    def __init__(
        self, computation: CanonicalComputation, spellings: Sequence[Spelling], module: Module, parts: Skeleton
    ) -> None:
        self.computation = computation
        self._spellings = spellings
        self._view: View = computation.view
        self._module = module
        self._parts = parts
        self._hashes = [0] * len(spellings)
        self._constants: dict[int, int] = {}
        """The constant that a row is made of, by row."""

    def digest(self) -> int:
        """Return the hash of the computation, and note the parts that it leaves out."""
        counted = []
        root = self._view.root
        for row in self.computation.topological_order:
            self._hashes[row] = self._row_hash(row)
            if row in self._constants:
                continue
            self._note_attributes(row)
            if not self._is_transparent(row):
                counted.append(self._hashes[row])
                self._note_constants(row)
                self._count(row)
        if root is not None and root in self._constants:
            self._note_constant((self._hashes[root],), self._constants[root], root)
        return numbers_hash([0 if root is None else self._hashes[root], *sorted(counted)])

    def _row_hash(self, row: int) -> int:
        spelling, operands = self._spellings[row], self.computation.operands[row]
        values = [0 if operand is None else self._hashes[operand] for operand in operands]
        if spelling.opcode == "constant":
            self._constants[row] = row
        elif spelling.opcode in _OF_CONSTANTS and operands and operands[0] in self._constants:
            self._constants[row] = self._constants[operands[0]]
        elif self._is_transparent(row):
            return values[0]
        if any(use.path for use in spelling.operands):
            values = [numbers_hash([value, *use.path]) for value, use in zip(values, spelling.operands, strict=False)]
        if spelling.opcode in COMMUTATIVE:
            values.sort()
        predecessors = sorted(self._hashes[before] for before in self.computation.predecessors[row])
        return numbers_hash([self.computation.local[row], len(values), *values, *predecessors])

    def _is_transparent(self, row: int) -> bool:
        """Return True if a row returns its operand and only states the sharding."""
        spelling, operands = self._spellings[row], self.computation.operands[row]
        if len(operands) != 1 or operands[0] is None:
            return False
        if spelling.opcode == "custom-call":
            return self._target(row) in _SHARDING_CALLS
        return spelling.opcode == "reshape" and spelling.shape == self._spellings[operands[0]].shape != ""

    def _target(self, row: int) -> str:
        return dict(self._spellings[row].attributes).get("custom_call_target", "").strip('"')

    def _note_constants(self, row: int) -> None:
        for operand in self.computation.operands[row]:
            if operand is not None and operand in self._constants:
                self._note_constant((self._hashes[row], self._hashes[operand]), self._constants[operand], row)

    def _note_constant(self, place: Place, constant: int, user: int) -> None:
        spelling = self._spellings[constant]
        text = PlacedText(spelling.literal, spelling.shape, self._source(constant) or self._source(user))
        self._parts.constants.setdefault(place, []).append(text)

    def _note_attributes(self, row: int) -> None:
        spelling = self._spellings[row]
        is_result = row == self._view.root and self._view.computation is self._module.entry
        is_stated_elsewhere = spelling.opcode == "parameter" or is_result or self._states_result(row)
        for name, text in spelling.attributes:
            if _is_precision(name, spelling.opcode):
                texts = self._parts.precisions.setdefault((self._hashes[row],), [])
                texts.append(PlacedText(text, spelling.opcode, self._source(row)))
            elif _is_sharding(name, text) and not is_stated_elsewhere:
                texts = self._parts.constraints.setdefault((self._hashes[row],), [])
                match = _SHARDY_SHARDING.search(text)  # without the attribute around it
                sharding = match[0].replace('\\"', '"') if match is not None else text
                texts.append(PlacedText(sharding, spelling.shape, self._source(row)))

    def _states_result(self, row: int) -> bool:
        """Return True if a row states the sharding of a result, which the root has too, or repeats that of its operand."""
        operands = self.computation.operands[row]
        if self._spellings[row].opcode == "reshape" and operands and operands[0] is not None:
            return self._target(operands[0]) in _SHARDING_CALLS
        return self._target(row) == _RESULT_SHARDING

    def _count(self, row: int) -> None:
        spelling = self._spellings[row]
        key = f"{spelling.opcode} {spelling.shape}"
        self._parts.opcodes[key] += 1
        if key not in self._parts.sources:
            self._parts.sources[key] = self._source(row)

    def _source(self, row: int) -> str:
        return origin_of(self._view.metadata(row), self._module.frames).source
