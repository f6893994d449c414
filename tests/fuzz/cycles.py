"""Cycles in texts: instructions that are made of themselves, and computations that call themselves."""

from __future__ import annotations

import random
import re
from typing import NamedTuple

_COMPUTATION = re.compile(rb"^(ENTRY )?(%?[\w.\-]+)[^\n]*\{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_ROW = re.compile(rb"^ +(?:ROOT )?(%?[\w.\-]+) = ([^\n]*?[\])}]) ([a-z][a-z\-]*)\(([^)\n]*)\)", re.MULTILINE)
_CALLEES = re.compile(
    rb"\b(calls|to_apply|body|condition|branch_computations|true_computation|false_computation)="
    rb"\{?((?:(?:, )?%?[\w.\-]++(?!=))+)"
)
_NAME = re.compile(rb"%?[A-Za-z_][\w.\-]*")

_KINDS = {b"body": "body", b"condition": "condition", b"calls": "called", b"to_apply": "applied"}
KINDS = ("entry", "fused", *_KINDS.values(), "branch")
"""Roles of computations."""

_PASSING = b"copy convert bitcast reshape transpose broadcast negate slice opt-barrier all-reduce copy-start copy-done".split()
_OTHERS = b"async-update async-done tuple get-tuple-element dynamic-update-slice add custom-call bitcast-convert".split()
_ATTRIBUTES = {b"get-tuple-element": b", index=0", b"custom-call": b', custom_call_target="Sharding"'}


class _Computation(NamedTuple):
    kind: str
    name: bytes
    start: int
    end: int


def _kind(attribute: bytes, opcode: bytes) -> str:
    if opcode in {b"fusion", b"call"}:
        return "fused" if opcode == b"fusion" else "called"
    return _KINDS.get(attribute, "branch")


def _computations(text: bytes) -> list[_Computation]:
    """Return the computations that something calls, and entries."""
    kinds: dict[bytes, str] = {}
    for row in _ROW.finditer(text):
        line = text[row.end() : text.find(b"\n", row.end())]
        for attribute, names in _CALLEES.findall(line):
            kinds |= dict.fromkeys((name.lstrip(b"%") for name in names.split(b", ")), _kind(attribute, row[3]))
    computations = []
    for match in _COMPUTATION.finditer(text):
        name = match[2].lstrip(b"%")
        kind = "entry" if match[1] else kinds.get(name)
        if kind is not None:
            computations.append(_Computation(kind, match[2], match.start(3), match.end(3)))
    return computations


def add_cycle(text: bytes, chance: random.Random) -> bytes:
    """Add a cycle to a computation of `text`, each kind of computation with the same chance."""
    computations = _computations(text)
    if not computations:
        return text
    kind = chance.choice(sorted({computation.kind for computation in computations}))
    chosen = chance.choice([computation for computation in computations if computation.kind == kind])
    body = text[chosen.start : chosen.end]
    calls = list(_CALLEES.finditer(body))
    if calls and chance.random() < 0.3:
        call = chance.choice(calls)
        body = body[: call.start(2)] + chosen.name + body[call.end(2) :]
    else:
        body = _ring(body, chance)
    return text[: chosen.start] + body + text[chosen.end :]


def _ring(body: bytes, chance: random.Random) -> bytes:
    """Let an operand of an instruction be the instruction itself, or a ring of new ones that may read the old operand."""
    rows = {row[1]: row for row in _ROW.finditer(body)}
    uses = [(row, use) for row in rows.values() for use in _NAME.finditer(body, row.start(4), row.end(4)) if use[0] in rows]
    if not uses:
        return body
    row, use = chance.choice([*uses, *uses[-1:] * 2])
    if chance.random() < 0.2:
        return body[: use.start()] + row[1] + body[use.end() :]
    opcodes = chance.choice([_PASSING, _PASSING, _OTHERS])
    names = [b"%%ring.%d" % number for number in range(chance.choice([1, 1, 1, 2, 3]))]
    if not row[1].startswith(b"%"):
        names = [name[1:] for name in names]
    added = b""
    for name, before in zip(names, (*names[1:], names[0]), strict=True):
        opcode = chance.choice(opcodes)
        operands = chance.choice([[before], [before], [before, use[0]], [use[0], before]])
        attributes = _ATTRIBUTES.get(opcode, b"")
        added += b"  %b = %b %b(%b)%b\n" % (name, rows[use[0]][2], opcode, b", ".join(operands), attributes)
    body = body[: use.start()] + names[0] + body[use.end() :]
    line = body.rfind(b"\n", 0, row.start() + 1) + 1
    return body[:line] + added + body[line:]
