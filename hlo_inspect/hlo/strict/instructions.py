"""One instruction as XLA's parser takes it: shape, opcode, operands and attributes."""

from __future__ import annotations

import re

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.shapes import Shape, TupleShape
from hlo_inspect.hlo.strict.kinds import KINDS
from hlo_inspect.hlo.strict.literals import take_literal
from hlo_inspect.hlo.strict.rules import Use, check, known_of
from hlo_inspect.hlo.strict.scope import Known, Scope
from hlo_inspect.hlo.strict.shapes import compatible, is_type, leaf_count, starts_shape, take_shape
from hlo_inspect.hlo.strict.signatures import NEEDS_SHAPE, Signature, end_signature, signatures, sugar_signature
from hlo_inspect.hlo.strict.tokens import ATTRIBUTE, INTERFACE, NAME, OPERANDS, SHAPE, SYNTAX, Tokens

MAX_NESTING = 100
MAX_PARAMETERS = 1 << 31

_ROOT = re.compile(r"ROOT(?![\w.\-])")
_OPCODE = re.compile(r"[a-z][a-z0-9\-]*+(?![\w.])", re.ASCII)
_INDEX = re.compile(r"#\s*(-?\d{1,9})(?![\w.])", re.ASCII)
_VALUES = re.compile(r"true|false")


def take_instruction(tokens: Tokens, scope: Scope) -> None:
    """Passes `[ROOT] name = …` and adds it to its computation."""
    start = tokens.position
    is_root = tokens.match(_ROOT) is not None
    place = tokens.position
    name = "" if scope.single and starts_shape(tokens) else _take_name(tokens)
    if is_root and scope.root is not None:
        tokens.refuse("HI010", f"a second ROOT in the computation; the first is {scope.root}", start)
    known = _take_operation(tokens, scope)
    if name in scope.instructions:
        tokens.refuse("HI007", f"{name} is defined twice in its computation", place)
    scope.instructions[name] = known
    scope.last = known
    if is_root:
        scope.root = name


def _take_name(tokens: Tokens) -> str:
    """Passes `name =`. Without a percent sign something has to stand between the two."""
    start = tokens.position
    name = tokens.match(NAME)
    if name is None or (name[0] == name[1] and tokens.text.startswith("=", name.end())):
        tokens.refuse(SYNTAX, "expected a name", start)
    if tokens.text.startswith(":", name.end()):
        tokens.expect(":")
    tokens.expect("=")
    if is_type(name[1]) or (name[1].startswith("__") and not name[1].startswith("__xla_")):
        tokens.refuse(SYNTAX, f"no instruction can be called {name[1]}", start)
    return name[1]


def _take_operation(tokens: Tokens, scope: Scope, depth: int = 0) -> Known:
    """Passes `[shape] opcode(operands), attributes`. A nested operation has no attributes."""
    start = tokens.position
    shape = take_shape(tokens) if starts_shape(tokens) else None
    place = tokens.position
    printed = tokens.match(_OPCODE)
    if printed is None or not tokens.at("("):
        tokens.refuse(SYNTAX, "expected an opcode and '('", place)
    signature, wrapped = _signature(tokens, printed[0], place)
    opcode = "async-" + printed[0].rpartition("-")[2] if wrapped else printed[0]
    if shape is None and opcode in NEEDS_SHAPE:
        tokens.refuse(SHAPE, f"expected the shape of what {opcode} gives", start)
    use = Use(tokens, scope, opcode, wrapped, shape, place)
    if opcode == "parameter":
        _take_parameter(tokens, scope)
    elif opcode == "constant":
        _take_constant(tokens, shape)
    else:
        use.operands = _take_operands(tokens, scope, depth)
        _check_count(use, signature.operands)
    if depth == 0:
        use.attributes, use.places = _take_attributes(tokens, scope, signature, use.printed)
    for name in sorted(signature.required - set(use.attributes)):
        use.refuse(ATTRIBUTE, f"{use.printed} needs {name}=")
    _check_replication(use)
    check(use)
    return known_of(use)


def _signature(tokens: Tokens, opcode: str, place: int) -> tuple[Signature, str]:
    """What an opcode takes, and of the short spelling of an asynchronous one the opcode that it wraps."""
    table = signatures()
    if opcode in table:
        return table[opcode], ""
    base = opcodes.base_opcode(opcode)
    if base not in table or not opcodes.is_known(opcode) or base in {"parameter", "constant"}:
        tokens.refuse("HI004", f"unknown opcode {opcode!r}", place)
    if opcode.endswith("-start"):
        return sugar_signature(base), base
    return end_signature("1" if opcode.endswith("-done") else ">1"), base


def _take_parameter(tokens: Tokens, scope: Scope) -> None:
    tokens.expect("(", INTERFACE)
    place = tokens.position
    number = tokens.integer(INTERFACE)
    if not 0 <= number < MAX_PARAMETERS:
        tokens.refuse(INTERFACE, f"there is no parameter {number}", place)
    tokens.expect(")", INTERFACE)
    if number in scope.parameters:
        tokens.refuse(INTERFACE, f"a second parameter {number}", place)
    scope.parameters[number] = place


def _take_constant(tokens: Tokens, shape: Shape | None) -> None:
    tokens.expect("(")
    take_literal(tokens, shape)
    tokens.expect(")")


def _take_operands(tokens: Tokens, scope: Scope, depth: int) -> list[Known]:
    """Passes `(operand, operand)`; XLA lets a comma stand without an operand."""
    if depth > MAX_NESTING:
        tokens.refuse(OPERANDS, f"operations nested deeper than {MAX_NESTING}")
    tokens.expect("(")
    found: list[Known] = []
    while not tokens.take(")"):
        if not tokens.take(","):
            found.append(_take_operand(tokens, scope, depth))
            if not tokens.at(",", ")"):
                tokens.refuse(OPERANDS, "expected ',' or ')' behind an operand")
    return found


def _take_operand(tokens: Tokens, scope: Scope, depth: int) -> Known:
    """Passes `[shape] name`, `[shape] name#index…`, or an operation in place."""
    start = tokens.position
    shape = take_shape(tokens) if starts_shape(tokens) else None
    place = tokens.position
    name = tokens.match(NAME)
    if name is None and scope.single and shape is not None and tokens.at(",", ")"):
        return _take_parameter_of(scope, f"_{scope.created}", shape)
    if name is None:
        tokens.refuse(OPERANDS, "expected an operand")
    if tokens.at("("):
        tokens.move(start)
        return _take_operation(tokens, scope, depth + 1)
    known = scope.instructions.get(name[1])
    if known is None and scope.single and shape is not None:
        return _take_parameter_of(scope, name[1], shape)
    if known is None:
        tokens.refuse("HI008", f"operand {name[1]} is not defined before its use", place)
    while tokens.at("#"):
        known = _element(tokens, known)
    if shape is not None and known.shape is not None and not compatible(shape, known.shape):
        tokens.refuse(OPERANDS, f"{name[1]} is printed as {shape}, but it is {known.shape}", start)
    return known


def _take_parameter_of(scope: Scope, name: str, shape: Shape) -> Known:
    """An operand of a single instruction that is not known yet."""
    scope.created += 1
    known = scope.instructions[name] = Known("parameter", shape)
    return known


def _element(tokens: Tokens, known: Known) -> Known:
    """Passes the index in `name#1`: an element of a tuple."""
    start = tokens.position
    index = tokens.match(_INDEX)
    if index is None:
        tokens.refuse(OPERANDS, "expected an integer behind #", start)
    if known.shape is None:
        return Known("get-tuple-element", None)
    if not isinstance(known.shape, TupleShape):
        tokens.refuse(OPERANDS, f"only a tuple has elements, not {known.shape}", start)
    if not 0 <= int(index[1]) < len(known.shape.elements):
        tokens.refuse(OPERANDS, f"{known.shape} has no element {int(index[1])}", start)
    return Known("get-tuple-element", known.shape.elements[int(index[1])])


def _check_count(use: Use, expected: str) -> None:
    """Whether there are as many operands as the opcode takes."""
    count = len(use.operands)
    if expected in {"even", "odd"}:
        right, wanted = count % 2 == (expected == "odd"), f"an {expected} number of operands"
    elif expected.startswith(">"):
        right, wanted = count >= int(expected[1:]), f"at least {expected[1:]} operands"
    else:
        right, wanted = expected == "*" or count == int(expected), f"{expected} operands"
    if not right:
        use.refuse(OPERANDS, f"{use.printed} takes {wanted}, not {count}")


def _take_attributes(tokens: Tokens, scope: Scope, signature: Signature, opcode: str) -> tuple[dict[str, str], dict[str, int]]:
    """Passes `, name=value, name=value`: the text of each value, and where each attribute stands."""
    found: dict[str, str] = {}
    places: dict[str, int] = {}
    while tokens.take(","):
        start = tokens.position
        name = tokens.attribute_name(SYNTAX)
        if name in found:
            tokens.refuse(ATTRIBUTE, f"{name} stands twice", start)
        kind = signature.attributes.get(name)
        if kind is None:
            tokens.refuse(ATTRIBUTE, f"{opcode} has no attribute {name!r}", start)
        if tokens.at_end():
            tokens.refuse(SYNTAX, "expected a value")
        value = tokens.position
        KINDS[kind](tokens, scope)
        found[name] = tokens.text[value : tokens.position]
        places[name] = start
    return found, places


def _check_replication(use: Use) -> None:
    """`parameter_replication` has a value for each leaf of a parameter."""
    if "parameter_replication" not in use.attributes or use.shape is None:
        return
    leaves, values = leaf_count(use.shape), len(_VALUES.findall(use.attributes["parameter_replication"]))
    if use.opcode != "parameter" or leaves != values:
        message = f"parameter_replication has {values} values for the {leaves} leaves of a {use.opcode}"
        use.refuse(INTERFACE, message, "parameter_replication")
