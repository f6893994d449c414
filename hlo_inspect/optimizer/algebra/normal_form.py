"""The normal form of expressions: sums of monomials with real exponents.

A monomial is a product of powers of atoms. An atom is a leaf, a function that is not simplified (select, maximum, sign, ...),
or a sum under a power or in a product. Sums in a product are only multiplied out if they hold a `live` atom, one of the values
that rules look for. So `rate * (update + decay * w)` shows its `w`, while `1 - beta ** t` stays one atom.

Two sums that differ by a constant factor share one atom, so that `(a / b) / c` and `a / (b * c)`, or `g * g / 4` and `(g / 2)
** 2`, have the same form. Coefficients are compared to six digits: float32 constants keep that many when XLA folds them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import apply

Monomial = tuple[tuple[int, float], ...]
"""(atom, exponent) pairs by atom."""

Sum = dict[Monomial, float]
"""Coefficients by monomial. A coefficient of 0 was written in the text; terms that cancel are removed."""

ONE: Monomial = ()
MAX_TERMS = 20_000  # of one sum: a norm over all weights has a term for each
MAX_OPENED = 4096  # factors of a sum that is multiplied out
MAX_MULTIPLIED = 100  # factors of a product
LEAST_WORK = 100_000  # factors of all forms together
MAX_FACTORS = 50  # further factors for each node of the graph


class Atom(NamedTuple):
    """A leaf, a function, a sum or a cut node.

    `op` is the operation of a leaf ("input", "opaque", ...) or function, "sum", or "value" for a cut node. `node` is the leaf;
    `parts` are the operands' forms.
    """

    op: str
    node: int | None
    parts: tuple[Sum, ...]
    attribute: Hashable = None


class NormalForms:
    """Normal forms of the nodes of `graph`.

    Nodes in `cut` are atoms. Sums that hold these or nodes in `live` are multiplied out.
    """

    def __init__(self, graph: Graph, cut: frozenset[int] = frozenset(), live: frozenset[int] = frozenset()) -> None:
        self.graph = graph
        self.atoms: list[Atom] = []
        self._cut = cut
        self._live_nodes = live | cut
        self._live: set[int] = set()
        self._numbers: dict[Hashable, int] = {}
        self._leaves: dict[int, int] = {}
        self._forms: dict[int, Sum] = {}
        self._definitions: dict[int, Sum] = {}
        self._work = 0
        self._product = lru_cache(maxsize=1 << 16)(product)  # its keys are atoms of this graph
        self.zero = self._atom("zero", "zero", None, ())

    # -- atoms ----------------------------------------------------------------------------------------------------------

    def leaf(self, node: int) -> int:
        """Return the atom of a node that is not expanded."""
        number = self._leaves.get(node)
        if number is None:
            op = "value" if self.graph.args[node] else self.graph.ops[node]
            number = self._leaves[node] = self._atom(("leaf", node), op, node, (), self.graph.attributes[node])
            if node in self._live_nodes:
                self._live.add(number)
        return number

    def is_cut(self, node: int) -> bool:
        """Return True if a node is an atom although it has operands."""
        return node in self._cut

    def function(self, op: str, parts: tuple[Sum, ...], attribute: Hashable = None) -> Sum:
        """Return a function of sums as an atom."""
        key = (op, attribute, tuple(key_of(part) for part in parts))
        return {((self._atom(key, op, None, parts, attribute), 1.0),): 1.0}

    def _atom(self, key: Hashable, op: str, node: int | None, parts: tuple[Sum, ...], attribute: Hashable = None) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.atoms)
            self.atoms.append(Atom(op, node, parts, attribute))
        return number

    def factored(self, form: Sum) -> tuple[float, Monomial]:
        """Return a sum as content times one monomial: the sum itself, or a sum atom whose largest coefficient is 1."""
        if len(form) == 1:
            ((monomial, coefficient),) = form.items()
            return coefficient, monomial
        kept = {monomial: coefficient for monomial, coefficient in form.items() if coefficient != 0.0}
        if not kept:
            return 0.0, ONE
        if len(kept) == 1:
            return self.factored(kept)
        content = kept[min(kept, key=lambda m: (-abs(float(f"{kept[m]:.6g}")), kept[m] < 0, m))]
        part = {monomial: coefficient / content for monomial, coefficient in kept.items()}
        number = self._atom(("sum", key_of(part)), "sum", None, (part,))
        return content, ((number, 1.0),)

    def is_live(self, form: Sum) -> bool:
        """Return True if a term of a sum is linear in a live atom."""
        return any(atom in self._live and exponent == 1.0 for monomial in form for atom, exponent in monomial)

    # -- arithmetic -----------------------------------------------------------------------------------------------------

    def multiply(self, left: Sum, right: Sum) -> Sum:
        if len(left) > len(right) or is_constant(right):
            left, right = right, left
        if len(left) == 1:
            ((monomial, coefficient),) = left.items()
            if not monomial:
                return scaled(right, coefficient) if coefficient else self._zero_form(right)
            if len(right) == 1 or self._should_expand(right, monomial):
                return {self._product(monomial, other): coefficient * value for other, value in right.items()}
        (a, first), (b, second) = self.factored(left), self.factored(right)
        if first != second:
            if self._should_expand(right, first) and not self.is_live(left):
                return {self._product(first, other): a * value for other, value in right.items()}
            if self._should_expand(left, second) and not self.is_live(right):
                return {self._product(second, other): b * value for other, value in left.items()}
        return {self._product(first, second): a * b}

    def _should_expand(self, form: Sum, factor: Monomial) -> bool:
        """Return True to multiply a sum out: a weight or state is a term of it, and the result is not too large."""
        return self.is_live(form) and len(form) * (len(factor) + 1) <= MAX_OPENED

    def _zero_form(self, form: Sum) -> Sum:
        """Return 0 times a sum: its terms stay visible, each with the factor `zero`."""
        return {self._product(monomial, ((self.zero, 1.0),)): 0.0 for monomial in form if monomial} or {ONE: 0.0}

    def power(self, form: Sum, exponent: float) -> Sum:
        if exponent == 1.0:
            return form
        if exponent == 0.0:
            return {ONE: 1.0}
        content, monomial = self.factored(form)
        whole = exponent == int(exponent)
        if not whole and (content < 0 or any(e % 2 == 0 for _, e in monomial)):
            return self.function("power", (form, {ONE: exponent}))
        if content == 0.0 and exponent < 0:
            return self.function("power", (form, {ONE: exponent}))
        try:
            coefficient = float(content**exponent)
        except (OverflowError, ZeroDivisionError):
            return self.function("power", (form, {ONE: exponent}))
        return {tuple((atom, e * exponent) for atom, e in monomial): coefficient}

    # -- nodes ----------------------------------------------------------------------------------------------------------

    def form(self, node: int) -> Sum:
        """Return the normal form of a node."""
        forms = self._forms
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._cut and top not in forms:
                forms[top] = {((self.leaf(top), 1.0),): 1.0}
            elif top not in forms:
                operands = self._operands(top)
                for arg in operands:
                    if arg not in forms:
                        stack.append(arg)
                if stack[-1] != top:
                    continue
                forms[top] = self._form_of(top, operands)
            stack.pop()
        return forms[node]

    def definition(self, node: int) -> Sum:
        """Return the normal form of a node even if it is cut."""
        form = self._definitions.get(node)
        if form is None:
            operands = self._operands(node)
            for arg in operands:
                self.form(arg)
            form = self._definitions[node] = self._form_of(node, operands)
        return form

    def _form_of(self, node: int, operands: Sequence[int]) -> Sum:
        """Return the normal form of a node from the forms of its operands."""
        if not operands:
            value = self.graph.value(node)
            return {((self.leaf(node), 1.0),): 1.0} if value is None or not math.isfinite(value) else {ONE: value}
        if self.is_cut_short:
            return {((self._atom(("leaf", node), "opaque", node, ()), 1.0),): 1.0}
        parts = tuple(map(self._forms.__getitem__, operands))
        form = self._operation(node, parts) if operands is self.graph.args[node] else self._total(parts)
        self._work += len(form) * max(1, len(next(iter(form), ONE)))
        return form

    def _operands(self, node: int) -> Sequence[int]:
        """Return the operands of a node. For nested additions return all addends, so that a long sum is built once."""
        graph = self.graph
        args = graph.args[node]
        if graph.ops[node] != "add" or args[0] == args[1] or "add" not in (graph.ops[args[0]], graph.ops[args[1]]):
            return args
        if self.is_cut_short:  # sums nest without limit
            return args
        addends: list[int] = []
        seen: set[int] = set()
        stack = [*reversed(args)]
        while stack and len(addends) <= MAX_TERMS:
            top = stack.pop()
            if top in seen:
                self._work += len(seen)
                return args  # shared sums have any number of addends if written out
            if graph.ops[top] == "add" and top not in self._cut and top not in self._forms:
                seen.add(top)
                stack += reversed(graph.args[top])
            else:
                addends.append(top)
        self._work += len(seen)
        return addends if not stack else args

    @staticmethod
    def _total(parts: Iterable[Sum]) -> Sum:
        """Return the sum of many forms."""
        total: Sum = {}
        for part in parts:
            add_to(total, part)
        return total

    @property
    def is_cut_short(self) -> bool:
        """True if the limit of work is exceeded; nodes after that are opaque."""
        return self._work > LEAST_WORK + MAX_FACTORS * len(self.graph.ops)

    def _operation(self, node: int, parts: tuple[Sum, ...]) -> Sum:
        op = self.graph.ops[node]
        if op in {"add", "subtract"}:
            form = added(parts[0], parts[1], 1.0 if op == "add" else -1.0)
            return form if len(form) <= MAX_TERMS else self.function(op, parts)
        if op in {"multiply", "divide"}:
            if op == "multiply" and parts[0] == parts[1]:
                return self.power(parts[0], 2.0)
            form = self.multiply(parts[0], parts[1] if op == "multiply" else self.power(parts[1], -1.0))
            return form if len(next(iter(form), ONE)) <= MAX_MULTIPLIED else self.function(op, parts)
        simple = self._unary(op, parts)
        return simple if simple is not None else self.function(op, parts, self.graph.attributes[node])

    def _unary(self, op: str, parts: tuple[Sum, ...]) -> Sum | None:
        """Simplify a sign, a root, a power with a constant exponent, or a choice between equal values."""
        if op == "negate":
            return scaled(parts[0], -1.0)
        if op in _ROOTS:
            return self.power(parts[0], _ROOTS[op])
        if op == "power" and is_constant(parts[1]):
            return self.power(parts[0], parts[1].get(ONE, 0.0))
        if op != "select":
            return None
        return parts[1] if key_of(parts[1]) == key_of(parts[2]) else self._match_extremum(parts) or self._sign(parts)

    def _match_extremum(self, parts: tuple[Sum, ...]) -> Sum | None:
        """Return a choice between the compared values as their maximum or minimum.

        A value is taken as equal to itself, as there is no NaN.
        """
        atom = self.only_atom(parts[0])
        if atom is None or atom.op != "compare" or len(atom.parts) != 2:
            return None
        left, right, then, other = map(key_of, (*atom.parts, *parts[1:]))
        direction = str(atom.attribute)
        if is_constant(atom.parts[0]) and is_constant(atom.parts[1]):
            is_true = apply("compare", direction, [part.get(ONE, 0.0) for part in atom.parts])
            return None if is_true is None else parts[1 if is_true else 2]
        if left == right:
            return parts[2] if direction == "NE" else parts[1] if direction == "EQ" else None
        if {left, right} != {then, other} or direction not in _SMALLER | _LARGER:
            return None
        is_smaller = (direction in _SMALLER) == (left == then)
        return self.function("minimum" if is_smaller else "maximum", atom.parts)

    def _sign(self, parts: tuple[Sum, ...]) -> Sum | None:
        """Return the sign, written as `x > 0 ? 1 : x < 0 ? -1 : 0`, or without the 0 as `x > 0 ? 1 : -1`."""
        if is_constant(parts[1]) and is_constant(parts[2]):
            value, direction = parts[1].get(ONE, 0.0), self._direction(parts[0])
            is_sign = direction is not None and abs(value) == 1.0 and parts[2].get(ONE, 0.0) == -value
            return scaled(self.function("sign", (direction[1],)), value * direction[0]) if direction and is_sign else None
        inner = self.only_atom(parts[2])
        if inner is None or inner.op != "select" or not is_constant(parts[1]) or not all(map(is_constant, inner.parts[1:])):
            return None
        values = [form.get(ONE, 0.0) for form in (parts[1], *inner.parts[1:])]
        directions = [self._direction(condition) for condition in (parts[0], inner.parts[0])]
        if (
            directions[0] is None
            or directions[1] is None
            or values[2] != 0.0
            or key_of(directions[0][1]) != key_of(directions[1][1])
        ):
            return None
        is_sign = directions[0][0] == -directions[1][0] and values[0] == -values[1] and abs(values[0]) == 1.0
        return scaled(self.function("sign", (directions[0][1],)), values[0] * directions[0][0]) if is_sign else None

    def only_atom(self, form: Sum) -> Atom | None:
        """Return the only atom of a form; None if the form holds more."""
        monomial, value = only_term(form)
        return self.only_factor(monomial) if value == 1.0 else None

    def only_factor(self, monomial: Monomial) -> Atom | None:
        """Return the only atom of a product; None if the product holds more."""
        return self.atoms[monomial[0][0]] if len(monomial) == 1 and monomial[0][1] == 1.0 else None

    def _direction(self, condition: Sum) -> tuple[int, Sum] | None:
        """Return 1 and x of the condition `x > 0` or `x >= 0`, -1 and x of `x < 0` or `x <= 0`."""
        atom = self.only_atom(condition)
        written = str(atom.attribute) if atom is not None and atom.op == "compare" else ""
        direction = int(written in _LARGER) - int(written in _SMALLER)
        return (direction, atom.parts[0]) if atom is not None and direction and not any(atom.parts[1].values()) else None

    # -- contents of atoms ----------------------------------------------------------------------------------------------

    def atoms_below(self, form: Sum) -> set[int]:
        """Return the atoms that a sum holds at any depth."""
        atoms: set[int] = set()
        stack = [atom for monomial in form for atom, _ in monomial]
        while stack:
            number = stack.pop()
            if number not in atoms:
                atoms.add(number)
                stack += [inner for part in self.atoms[number].parts for monomial in part for inner, _ in monomial]
        return atoms

    def has_single_leaf(self, form: Sum, leaf: int) -> bool:
        """Return True if a sum holds one leaf atom alone at any depth."""
        seen: set[int] = set()
        stack = [atom for monomial in form for atom, _ in monomial]
        while stack:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                if self.atoms[number].node is not None and number != leaf:
                    return False
                stack += [inner for part in self.atoms[number].parts for monomial in part for inner, _ in monomial]
        return leaf in seen

    def leaves(self, form: Sum) -> frozenset[int]:
        """Return the leaf atoms that a sum holds at any depth."""
        return frozenset(atom for atom in self.atoms_below(form) if self.atoms[atom].node is not None)


class FormKinds:
    """Numbers of forms; forms that differ only in coefficients, leaves and broadcast values share one."""

    def __init__(self, forms: NormalForms) -> None:
        self._forms = forms
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, int] = {}

    def number(self, form: Sum) -> int:
        """Return the number of a form."""
        for atom in sorted(self._forms.atoms_below(form)):
            if atom not in self._known:
                record = self._forms.atoms[atom]
                inner = next(iter(record.parts[0]), ONE) if record.op == "broadcast" else ONE
                is_repeated = len(inner) == 1 and record.parts[0] == {((inner[0][0], 1.0),): 1.0}
                kind = self._known[inner[0][0]] if is_repeated else self._number((record.op, *map(self._sum, record.parts)))
                self._known[atom] = kind
        return self._number(self._sum(form))

    def _sum(self, form: Sum) -> Hashable:
        return tuple(sorted(tuple(sorted((self._known[atom], e) for atom, e in monomial)) for monomial in form))

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


_SMALLER, _LARGER = frozenset({"LT", "LE"}), frozenset({"GT", "GE"})
_ROOTS = {"sqrt": 0.5, "rsqrt": -0.5, "cbrt": 1 / 3}


def inverse(monomial: Monomial) -> Monomial:
    """Return 1 over a product."""
    return tuple([(atom, -exponent) for atom, exponent in monomial])


def product(left: Monomial, right: Monomial) -> Monomial:
    """Multiply two monomials: add their exponents, and drop powers of 0."""
    if not left or not right:
        return left or right
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0.0) + exponent
    return tuple(sorted((atom, exponent) for atom, exponent in exponents.items() if abs(exponent) > 1e-9))


def added(left: Sum, right: Sum, factor: float = 1.0) -> Sum:
    """Return `left + factor * right`."""
    total = dict(left)
    add_to(total, right, factor)
    return total


def add_to(total: Sum, right: Sum, factor: float = 1.0) -> None:
    """Add `factor * right` to a sum in place."""
    for monomial, value in right.items():
        before = total.get(monomial)
        after = factor * value + (before or 0.0)
        if before and value and abs(after) <= 1e-12 * abs(before):
            del total[monomial]
        else:
            total[monomial] = after


def scaled(form: Sum, factor: float) -> Sum:
    return {monomial: factor * value for monomial, value in form.items()}


def is_constant(form: Sum) -> bool:
    return not form or (len(form) == 1 and ONE in form)


def key_of(form: Sum) -> Hashable:
    """Return a key that equal sums share: coefficients have six digits, terms with the coefficient 0 are left out."""
    return tuple(sorted([(monomial, f"{value:.6g}") for monomial, value in form.items() if value != 0.0]))


def only_term(form: Sum) -> tuple[Monomial, float]:
    """Return the product and the number of a sum with one term; for any other sum 1 and 0."""
    return next(iter(form.items())) if len(form) == 1 else (ONE, 0.0)


def split_zero(form: Sum) -> Sum:
    """Return the terms that are not 0."""
    return {monomial: value for monomial, value in form.items() if value != 0.0}


def close(left: float, right: float, tolerance: float = 1e-5) -> bool:
    return abs(left - right) <= tolerance * max(abs(left), abs(right))
