"""Damages one instruction of a dump."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from hlo_inspect.hlo import scan
from hlo_inspect.hlo.instruction import operands_end
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, OPCODES

_INSTRUCTION = re.compile(r"(\s+(?:ROOT )?%?[\w.\-]+ = .*? )([a-z][a-z0-9\-]*)\((.*)$")
_VALUES = ("1", "true", "{}", "{0}", "{{0,1}}", "word", '"s"', "{a=1}", "{replicated}", "1.5", "%nobody", "0_0")
_REMOVED = frozenset({"cross-replica-sum", "trace", "tuple-select", "bitcast-move"})
_NAMES = sorted(OPCODES - _REMOVED)


class _Instruction:
    """The parts of a line that can be damaged on their own."""

    def __init__(self, head: str, opcode: str, tail: str) -> None:
        end = operands_end(tail)
        self.head, self.opcode = head, opcode
        literal = opcode in LITERAL_OPCODES
        self.operands = [tail[:end]] if literal else [tail[a:b].strip() for a, b in scan.split_items(tail, 0, end)]
        self.attributes = list(scan.attributes(tail, end + 1))

    def __str__(self) -> str:
        attributes = "".join(f", {name}={value}" for name, value in self.attributes)
        return f"{self.head}{self.opcode}({', '.join(self.operands)}){attributes}"


def _drop_attribute(one: _Instruction, chance: random.Random) -> None:
    one.attributes = [attribute for attribute in one.attributes if attribute != chance.choice(one.attributes)]


def _repeat_attribute(one: _Instruction, chance: random.Random) -> None:
    one.attributes += one.attributes[:1]


def _change_value(one: _Instruction, chance: random.Random) -> None:
    if one.attributes:
        number = chance.randrange(len(one.attributes))
        one.attributes[number] = (one.attributes[number][0], chance.choice(_VALUES))


def _drop_operand(one: _Instruction, chance: random.Random) -> None:
    one.operands = one.operands[1:]


def _repeat_operand(one: _Instruction, chance: random.Random) -> None:
    one.operands += one.operands[:1]


def _lose_operand(one: _Instruction, chance: random.Random) -> None:
    one.operands += ["%nobody"]


def _change_opcode(one: _Instruction, chance: random.Random) -> None:
    one.opcode = chance.choice(_NAMES)


_DAMAGES: tuple[Callable[[_Instruction, random.Random], None], ...] = (
    _drop_attribute,
    _repeat_attribute,
    _change_value,
    _drop_operand,
    _repeat_operand,
    _lose_operand,
    _change_opcode,
)


def damaged(texts: Sequence[str], number: int) -> str | None:
    """Damage of this number; `None` where nothing changes."""
    chance = random.Random(number)  # noqa: S311 - damage, not secrets
    text = chance.choice(texts)
    lines = text.split("\n")
    found = [(at, match) for at, line in enumerate(lines) if (match := _INSTRUCTION.match(line))]
    at, match = chance.choice(found)
    kind = chance.randrange(len(_DAMAGES) + 2)
    if kind == len(_DAMAGES):
        del lines[at]
    elif kind > len(_DAMAGES):
        other = chance.choice(found)[0]
        lines[at], lines[other] = lines[other], lines[at]
    else:
        one = _Instruction(match[1], match[2], match[3])
        _DAMAGES[kind](one, chance)
        lines[at] = str(one)
    result = "\n".join(lines)
    return None if result == text else result
