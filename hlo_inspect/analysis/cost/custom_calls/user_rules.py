"""Rules of a user's file for custom calls, by target and name of the kernel.

`configs/custom_calls/example.yaml` shows what a file can hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Literal, NamedTuple, get_args

from hlo_inspect import configs
from hlo_inspect.analysis.cost.custom_calls.call_cost import MAX_FIGURE, CallCost, call_bytes, config_of, whole
from hlo_inspect.analysis.cost.custom_calls.formula import Formula, FormulaError, Reference, parse_formula
from hlo_inspect.analysis.cost.figures import UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import Operation, dimension, elements, shape_size
from hlo_inspect.configs import Node
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves

UserFigure = Literal["flops", "matmul_flops", "transcendentals", "bytes"]
_FIGURES: tuple[UserFigure, ...] = get_args(UserFigure)


class UserRule(NamedTuple):
    """What custom calls of a target do; `kernel` is the name of the kernel that it is about. Both may hold `*` and `?`."""

    target: str
    kernel: str
    formulas: Mapping[UserFigure, Formula]
    place: str

    def fits(self, target: str, kernel: str) -> bool:
        return fnmatchcase(target, self.target) and fnmatchcase(kernel, self.kernel)

    def cost(self, op: Operation) -> CallCost:
        """The cost by its formulas. Matrix multiplications are FLOPs too where only they are given."""
        matmul_flops = self._figure("matmul_flops", op)
        flops = self._figure("flops", op) if "flops" in self.formulas else matmul_flops
        work = Work(flops, self._figure("transcendentals", op), min(flops, matmul_flops))
        size = self._figure("bytes", op) if "bytes" in self.formulas else call_bytes(op)
        return CallCost(work, size, "user", flops)

    def _figure(self, name: UserFigure, op: Operation) -> int:
        formula = self.formulas.get(name)
        if formula is None:
            return 0
        try:
            value = formula.value(partial(_value, op))
        except (FormulaError, UnknownCostError) as error:
            raise UnknownCostError(f"{name} of {self.place}: {error.args[0]}") from None
        if not 0 <= value <= MAX_FIGURE:
            raise UnknownCostError(f"{name} of {self.place} is {float(value):.6g}, which makes no sense")
        return int(value)


def _value(op: Operation, reference: Reference) -> int:
    """The number that a reference stands for; `UnknownCostError` where a custom call has no such number."""
    if reference.array is None:
        return whole(config_of(op).fields, reference.field)
    is_operand, number = reference.array
    if is_operand:
        array = op.operand_array(number)
    else:
        results: list[ArrayShape] = [leaf for _, leaf in array_leaves(op.shape)]
        if number >= len(results):
            raise UnknownCostError(f"it has no {reference.text.partition('.')[0]}")
        array = results[number]
    if reference.dimension is not None:
        return dimension(array, reference.dimension)
    return elements(array) if reference.size == "elements" else shape_size(array)


class UserRules(NamedTuple):
    """The rules of a file, of which the first that fits counts."""

    rules: tuple[UserRule, ...] = ()

    def find(self, target: str, kernel: str) -> UserRule | None:
        return next((rule for rule in self.rules if rule.fits(target, kernel)), None)


NO_USER_RULES = UserRules()


def load_user_rules(path: str) -> UserRules:
    """The rules of a YAML file; `UsageError` with its line and column where it cannot be read."""
    fields = configs.read(path).fields(allowed=("custom_calls",), required=("custom_calls",))
    return UserRules(tuple(map(_rule, fields["custom_calls"].items())))


def _rule(node: Node) -> UserRule:
    fields = node.fields(allowed=("target", "kernel", *_FIGURES), required=("target",))
    kernel = fields["kernel"].text() if "kernel" in fields else "*"
    formulas = {name: _formula(fields[name]) for name in _FIGURES if name in fields}
    if not formulas:
        raise node.error(f"this entry has no formula: one of {', '.join(_FIGURES)} is needed")
    return UserRule(fields["target"].text(), kernel, formulas, str(node.location))


def _formula(node: Node) -> Formula:
    if node.kind not in {"text", "number"}:
        raise node.error(f"expected a formula, found a value of kind {node.kind}")
    try:
        return parse_formula(node.scalar)
    except FormulaError as error:
        raise node.file.error(error.message, node.line, node.column + error.position) from None
