"""Opcodes: unexpected spellings, old and new opcodes, asynchronous sugar, callees and traits."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.opcodes import (
    CALLING_OPCODES,
    COLLECTIVE_KINDS,
    CONTROL_FLOW,
    ELEMENTWISE,
    MARKERS,
    NAMING,
    OPCODES,
    POINT_TO_POINT,
    PRODUCTS,
    TABLE,
    CalleeAttribute,
    Result,
    Role,
    Sends,
    Trait,
    Whole,
    base_opcode,
    callee_roles,
    opcodes_that_are,
    opcodes_that_call,
    opcodes_that_give,
)

UNEXPECTED = [
    "opt-barrier",
    "exponential",
    "exponential-minus-one",
    "log-plus-one",
    "count-leading-zeros",
    "popcnt",
    "cosine",
    "sine",
    "round-nearest-afz",
    "round-nearest-even",
    "is-finite",
    "atan2",
    "rng-get-and-update-state",
    "bitcast-convert",
    "add-dependency",
    "after-all",
    "partition-id",
]
RECENT = [
    "collective-broadcast",
    "collective-reduce",
    "ragged-all-to-all",
    "ragged-dot",
    "scaled-dot",
    "scan",
    "mulhi",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "cosh",
    "sinh",
    "tan",
    "erf",
    "topk",
]
REMOVED = ["trace", "tuple-select", "cross-replica-sum", "all-reduce-scatter"]
NATIVE_ASYNC = [
    *(f"{name}-{end}" for name in ("all-gather", "all-reduce", "collective-permute", "copy") for end in ("start", "done")),
    *("send", "send-done", "recv", "recv-done", "async-start", "async-update", "async-done"),
]
SUGAR = [f"{name}-{end}" for name in ("reduce-scatter", "dot", "custom-call", "slice") for end in ("start", "update", "done")]
NO_SUGAR = [  # opcodes with a native pair have no other spelling
    *(f"{name}-update" for name in ("all-gather", "all-reduce", "collective-permute", "copy", "recv", "send")),
    *("send-start", "recv-start"),
]


def test_old_and_new_opcodes_are_listed() -> None:
    listed = {*UNEXPECTED, *RECENT, *REMOVED, *NATIVE_ASYNC}
    assert listed <= set(OPCODES)
    assert listed <= set(TABLE)


def test_async_sugar_is_in_the_table_but_not_listed() -> None:
    assert set(SUGAR).isdisjoint(OPCODES)
    assert set(SUGAR) <= set(TABLE)


@pytest.mark.parametrize("opcode", [*NO_SUGAR, "negate-start-done", "negate-begin", "-start", "exp", "barrier", "Add", ""])
def test_opcodes_that_xla_refuses_are_unknown(opcode: str) -> None:
    assert opcode not in TABLE


@pytest.mark.parametrize(
    ("opcode", "base"),
    [
        ("all-gather-start", "all-gather"),
        ("collective-permute-done", "collective-permute"),
        ("reduce-scatter-update", "reduce-scatter"),
        ("send-done", "send"),
        ("async-start", "async"),
        ("all-reduce", "all-reduce"),
        ("after-all", "after-all"),
        ("dynamic-update-slice", "dynamic-update-slice"),
        ("dynamic-update-slice-start", "dynamic-update-slice"),
    ],
)
def test_base_opcode(opcode: str, base: str) -> None:
    assert base_opcode(opcode) == base


CALLERS = """
    all-reduce all-reduce-start all-reduce-scatter async-start async-update async-done call collective-reduce conditional
    cross-replica-sum custom-call fusion map reduce reduce-scatter reduce-window scan scatter select-and-scatter sort while
"""


def test_opcodes_that_call_a_computation() -> None:
    assert set(OPCODES) & CALLING_OPCODES == set(CALLERS.split())


@pytest.mark.parametrize(
    ("opcode", "roles"),
    [
        ("while", {"body": "body", "condition": "condition"}),
        ("fusion", {"calls": "fused"}),
        ("fusion-start", {"calls": "fused"}),
        ("call", {"to_apply": "run"}),
        ("async-start", {"calls": "run"}),
        ("async-done", {}),  # names the computation that its start runs
        ("reduce-scatter-start", {"to_apply": "applied"}),
        ("reduce-scatter-done", {}),
        ("all-reduce-done", {}),
        ("cross-replica-sum", {"to_apply": "applied"}),
        ("select-and-scatter", {"select": "applied", "scatter": "applied"}),
        ("add", {}),
        ("new-one", {}),
    ],
)
def test_the_role_of_each_callee(opcode: str, roles: dict[str, str]) -> None:
    assert callee_roles(opcode) == roles


def test_opcodes_are_found_by_the_role_of_their_callee() -> None:
    assert opcodes_that_call("run") == {"async-start", "call", "call-start"}
    assert opcodes_that_call("body", "branch") == {"conditional", "conditional-start", "while", "while-start"}


@pytest.mark.parametrize(
    ("opcode", "half", "base", "is_wrapper", "collective"),
    [
        ("all-gather-start", "start", "all-gather", False, "all-gather"),
        ("reduce-scatter-start", "start", "reduce-scatter", True, "reduce-scatter"),
        ("all-reduce-scatter", "", "all-reduce-scatter", False, "reduce-scatter"),
        ("cross-replica-sum", "", "cross-replica-sum", False, "all-reduce"),
        ("send-done", "done", "send", False, "send"),
        ("copy-start", "start", "copy", False, ""),
        ("async-update", "update", "async", False, ""),
        ("dot-done", "done", "dot", True, ""),
    ],
)
def test_asynchronous_half_and_collective_of_an_opcode(
    opcode: str, half: str, base: str, is_wrapper: bool, collective: str
) -> None:
    record = TABLE[opcode]
    assert (record.half, record.base) == (half, base)
    assert (record.is_wrapper, record.collective) == (is_wrapper, collective)


def test_elementwise_opcodes_have_one_to_three_operands() -> None:
    """The list is that of XLA's `HloInstruction::IsOpElementwise`."""
    counts = {TABLE[opcode].operands for opcode in ELEMENTWISE}
    assert counts == {1, 2, 3}
    assert {opcode for opcode in ELEMENTWISE if TABLE[opcode].operands == 3} == {"select", "clamp"}
    assert {"copy", "convert", "bitcast-convert", "reduce-precision", "compare"} <= ELEMENTWISE
    assert ELEMENTWISE.isdisjoint({"bitcast", "iota", "broadcast", "map", "add-dependency", "add-start"})


def test_each_row_of_the_table_describes_one_opcode() -> None:
    rows = [line.split() for line in opcodes._ROWS.splitlines() if line and not line.startswith("#")]
    assert len({row[0] for row in rows}) == len(rows)
    for name, operands, result, *words in rows:
        assert operands == "*" or operands.isdecimal(), name
        assert result in get_args(Result), name
        values = dict(word.split("=", 1) for word in words if "=" in word)
        assert {word for word in words if "=" not in word} <= set(get_args(Trait)), name
        assert set(values) <= {*get_args(CalleeAttribute), "written", "now", "sends", "whole"}, name
        assert values.get("sends", "?") in get_args(Sends), name
        assert values.get("whole", "?") in get_args(Whole), name
        assert name in COLLECTIVE_KINDS or not values.keys() & {"sends", "whole"}, name
        assert {values[key] for key in values.keys() & set(get_args(CalleeAttribute))} <= set(get_args(Role)), name
        assert values.get("now", "abs") in OPCODES, name


def test_each_trait_belongs_to_an_opcode() -> None:
    assert {trait for opcode in TABLE.values() for trait in opcode.traits} == set(get_args(Trait))


@pytest.mark.parametrize(
    ("opcode", "result"),
    [
        ("convert", "same"),
        ("opt-barrier", "same"),
        ("copy-done", "same"),
        ("get-tuple-element", "element"),
        ("tuple", "packing"),
        ("transpose", "move"),
        ("all-gather", "move"),
        ("slice", "part"),
        ("slice-start", "part"),
        ("slice-done", "same"),
        ("all-to-all", "part"),
        ("add", "computed"),
        ("all-reduce", "computed"),
        ("select", "computed"),
        ("parameter", "computed"),
    ],
)
def test_relation_of_a_result_to_its_operands(opcode: str, result: Result) -> None:
    assert TABLE[opcode].result == result
    assert (opcode in opcodes_that_give(result)) == (opcode in OPCODES and not TABLE[opcode].half)


def test_products_markers_naming_and_control_flow_opcodes() -> None:
    assert {"convolution", "dot", "ragged-dot", "scaled-dot"} == PRODUCTS
    assert {"add-dependency", "after-all", "domain", "opt-barrier"} == MARKERS
    assert {"bitcast", "get-tuple-element", "tuple"} == NAMING
    assert {"call", "conditional", "while"} == CONTROL_FLOW


def test_async_sugar_has_the_traits_of_collectives_only() -> None:
    assert opcodes_that_are("resized") >= {"reduce-scatter", "reduce-scatter-start", "recv"}
    assert opcodes_that_are("resized").isdisjoint({"reduce-scatter-done", "all-reduce", "recv-done"})
    assert opcodes_that_are("product") == PRODUCTS
    assert TABLE["dot-start"].traits == frozenset()


def test_collectives_are_listed_in_the_order_of_reports() -> None:
    assert COLLECTIVE_KINDS == (
        "all-reduce",
        "all-gather",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "collective-reduce",
        "ragged-all-to-all",
    )
    assert POINT_TO_POINT == ("send", "recv")


# -- one table --------------------------------------------------------------------------------------------------------------

PACKAGE = Path(opcodes.__file__).parents[1]


def are_constants(node: ast.expr) -> bool:
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    return all(isinstance(part, ast.Constant) for part in parts)


def list_items(node: ast.AST) -> list[ast.expr | ast.pattern]:
    """Return the items of a list in any spelling. A mapping from opcodes to functions is code and no list."""
    match node:
        case ast.Set() | ast.Tuple() | ast.List():
            return [*node.elts]
        case ast.Dict() if all(map(are_constants, node.values)):
            return [key for key in node.keys if key is not None]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="split")):
            return [ast.Constant(word) for word in text.split()]
        case ast.Constant(value=str(text)) if set(text.split()) <= set(TABLE):
            return [ast.Constant(word) for word in text.split()]
        case ast.MatchOr():
            return [pattern.value for pattern in node.patterns if isinstance(pattern, ast.MatchValue)]
    return []


def opcode_lists(tree: ast.AST) -> Iterator[list[str]]:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            continue  # a type: its words are those of a table or graph
        names = [item.value for item in list_items(node) if isinstance(item, ast.Constant) and item.value in TABLE]
        if len(names) > 2:
            yield [str(name) for name in names]
        waiting += ast.iter_child_nodes(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("X = {'add', 'dot', 'copy'}", ["add", "dot", "copy"]),
        ("X = frozenset('add dot copy words'.split())", ["add", "dot", "copy"]),
        ("X = 'add dot copy'", ["add", "dot", "copy"]),
        ("X = {'add': 1, 'dot': (2, 3), 'copy': ''}", ["add", "dot", "copy"]),
        ("match x:\n  case 'add' | 'dot' | 'copy':\n    pass", ["add", "dot", "copy"]),
        ("X = {'add': run, 'dot': run, 'copy': lambda: 1}", None),
        ("X = COMMUTATIVE - {'add', 'or'}", None),
        ("X = Literal['add', 'dot', 'copy']", None),
        ("X = 'add, dot and copy'", None),
    ],
)
def test_a_list_of_opcodes_in_code_is_detected(text: str, expected: list[str] | None) -> None:
    assert list(opcode_lists(ast.parse(text))) == ([expected] if expected else [])


def test_no_other_module_lists_opcodes() -> None:
    """Three opcodes or more by name are a second table; derive them from `hlo_inspect/hlo/opcodes.py`."""
    files = [path for path in PACKAGE.rglob("*.py") if path != Path(opcodes.__file__)]
    listed = {path.name: lists for path in files if (lists := list(opcode_lists(ast.parse(path.read_text(encoding="utf-8")))))}
    assert listed == {}
