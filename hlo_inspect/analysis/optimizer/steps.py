"""The nodes of instructions that are neither stepped through nor done element by element."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hlo_inspect.analysis.optimizer import opcodes
from hlo_inspect.analysis.optimizer.constants import constant_value, is_rounded
from hlo_inspect.analysis.optimizer.flow import Flow, Step
from hlo_inspect.analysis.optimizer.graph import Place
from hlo_inspect.analysis.optimizer.places import target_of
from hlo_inspect.analysis.optimizer.text import Body, Statement, small_number
from hlo_inspect.hlo import scan


def _constant(flow: Flow, place: Place, statement: Statement) -> int:
    value = constant_value(statement)
    if value is None:
        return flow.opaque(place)
    return flow.graph.constant(value, is_coarse=is_rounded(value, statement.dtype))


def _input(flow: Flow, place: Place, statement: Statement) -> int:
    """A parameter of the region's computation."""
    number = statement.parameter_number
    if flow.frames[place[0]].arguments is not None or number is None:
        return flow.opaque(place)
    return flow.graph.input((place[0], number, place[2]), flow.size(place))


def _convert(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """A conversion that cuts digits off."""
    found = flow.known(flow.operands(place, statement))
    return found if isinstance(found, list) else flow.graph.make("truncate", found)


def _broadcast(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """An array that is repeated along further dimensions."""
    found = flow.known(flow.operands(place, statement))
    if isinstance(found, list):
        return found
    if not found or flow.graph.value(found[0]) is not None:
        return found[0] if found else flow.opaque(place)
    return flow.graph.make("broadcast", found[:1], statement.attribute("dimensions"), statement.size)


def _move(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """Some of an array's values; all of them where they are all the same."""
    place, statement = flow.start(place, statement)
    places = flow.operands(place, statement)
    found = flow.known(places if statement.opcode.startswith(("all-to-all", "dynamic-slice")) else places[:1])
    if isinstance(found, list):
        return found
    moved = found if statement.opcode.startswith("all-to-all") else found[:1]
    if len(set(moved)) == 1 and flow.graph.value(moved[0]) is not None:
        return moved[0]
    if len(moved) != 1 or place[2]:
        return flow.opaque(place)
    op = statement.opcode.removesuffix("-start")
    attribute = statement.attribute("slice") if op == "slice" else (place[0], place[1]) if op != "dynamic-slice" else None
    return flow.graph.make(op, found, attribute, _result_size(flow, place, statement))


def _result_size(flow: Flow, place: Place, statement: Statement) -> int:
    if statement.size or not statement.opcode.endswith("-start"):
        return statement.size
    text = statement.attribute("slice")
    total = 1
    for extent in text.strip("{}").split(","):
        low, _, high = extent.strip(" []").partition(":")
        total *= (small_number(high) or 0) - (small_number(low) or 0)
    return total if text else 0


def _join(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """Arrays put one behind the other: one array where they are all the slices of it, in any order of the text."""
    graph = flow.graph
    found = flow.known(flow.operands(place, statement))
    if isinstance(found, list):
        return found
    if not found:
        return flow.opaque(place)
    if len(set(found)) == 1 and (len(found) == 1 or graph.value(found[0]) is not None):
        return found[0]
    if all(graph.ops[node] == "slice" for node in found) and len(set(found)) == len(found):
        sources = {graph.args[node][0] for node in found}
        total = sum(graph.sizes[node] for node in found)
        if len(sources) == 1 and total == graph.sizes[next(iter(sources))]:
            return sources.pop()
    return graph.make("concatenate", found, None, statement.size)


def _conditional(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """One of two branches; the first of numbered branches is that of number 0, so false."""
    names = statement.attribute("branch_computations").strip("{} ").replace("%", "")
    branches = [name.strip() for name in names.split(",")] if names else []
    if not branches:
        branches = [statement.word("false_computation"), statement.word("true_computation")]
        order = (1, 0)
    else:
        order = (0, 1)
    places = flow.operands(place, statement)
    if len(branches) != 2 or len(places) != 3:
        return flow.opaque(place)
    roots = []
    for branch, argument in zip(branches, order, strict=True):
        frame = flow.call(place, branch, (places[1 + argument],))
        if frame is None:
            return flow.opaque(place)
        roots.append(flow.root(frame, place[2]))
    found = flow.known((places[0], *roots))
    if isinstance(found, list):
        return found
    return flow.graph.make("select", (found[0], found[2], found[1]))


def _while(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """A result of a loop: what goes in, where no run of the body changes it."""
    body = flow.body(statement.word("body"))
    if body is None or not place[2] or not statement.operands:
        return flow.opaque(place)
    if carried(body, place[2][0]) != place[2][0]:
        return flow.opaque(place)
    before = (place[0], statement.operands[0][0], statement.operands[0][1] + place[2])
    found = flow.known((before,))
    return found if isinstance(found, list) else found[0]


def carried(body: Body, number: int) -> int | None:
    """Which element of a loop's state the body hands on as its element `number`; `None` for a new value."""
    root = body.statement(body.root)
    if root is None or root.opcode != "tuple" or number >= len(root.operands):
        return None
    name, index = root.operands[number]
    for _ in range(64):
        statement = body.statement(name)
        if statement is None or not statement.operands:
            break
        if statement.opcode == "get-tuple-element":
            source = body.statement(statement.operands[0][0])
            return small_number(statement.word("index")) if source is not None and source.opcode == "parameter" else None
        if statement.opcode not in {"copy", "copy-done", "copy-start"}:
            break
        name, index = statement.operands[0]
    statement = body.statement(name)
    return index[0] if index and statement is not None and statement.opcode == "parameter" else None


def _custom_call(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    target = target_of(statement)
    if target in opcodes.JOINS:
        return _join(flow, place, statement)
    return _gemm(flow, place, statement) if target in opcodes.GEMMS else flow.opaque(place)


def _gemm(flow: Flow, place: Place, statement: Statement) -> int | list[Place]:
    """A product of matrices with its factors: alpha * A * B + beta * C."""
    factors = _gemm_factors(statement)
    if factors is None or (place[2] and place[2] != (0,)):
        return flow.opaque(place)
    alpha, beta = factors
    graph = flow.graph
    product = graph.opaque((place[0], place[1], ()), statement.size)
    if alpha != 1.0:
        product = graph.make("multiply", (graph.constant(alpha), product))
    if beta == 0.0:
        return product
    places = flow.operands(place, statement)
    if len(places) < 3:
        return flow.opaque(place)
    found = flow.known(places[2:3])
    if isinstance(found, list):
        return found
    added = found[0] if beta == 1.0 else graph.make("multiply", (graph.constant(beta), found[0]))
    return graph.make("add", (product, added))


def _gemm_factors(statement: Statement) -> tuple[float, float] | None:
    """Alpha and beta, `None` where they cannot be read, or where more is done than that."""
    text = statement.attribute("backend_config")
    if text.startswith('"'):
        text = scan.unquote(text)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(config, dict):
        return None
    config = config.get("gemm_backend_config", config)
    values = [config.get(key, default) for key, default in (("alpha_real", 1), ("beta", 0), ("alpha_imag", 0))]
    if not all(isinstance(value, int | float) for value in values) or values[2] != 0:
        return None
    return None if config.get("epilogue", "DEFAULT") != "DEFAULT" else (float(values[0]), float(values[1]))


STEPS: Mapping[str, Step] = {
    "constant": _constant,
    "parameter": _input,
    "convert": _convert,
    "broadcast": _broadcast,
    "concatenate": _join,
    "conditional": _conditional,
    "while": _while,
    "custom-call": _custom_call,
    **dict.fromkeys(opcodes.MOVES, _move),
    **{f"{opcode}-done": _move for opcode in opcodes.MOVES},
}
