"""Program that prints how XLA's own parser (jaxlib) reads HLO texts, one line of JSON each.

It runs in its own process because some texts abort it: `python xla_reads.py FILE…`, or `--opcodes WORD…` and
`--types WORD…` to ask which words the parser has. The module comes as a protocol buffer; the numbers of its fields are those of
XLA's hlo.proto and xla_data.proto.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "data"))
oracle: Any = import_module("oracle")
hlo: Any = import_module("jaxlib._hlo")

UNBOUNDED = 1 << 63  # the smallest 64-bit integer, as it is written
NAMES = {"OPAQUE_TYPE": "opaque"}
UNNAMED = {26: "s2", 27: "u2", 30: "s1", 31: "u1", 35: "f6e3m2fn", 36: "f6e2m3fn"}  # not in jaxlib's enumeration
TYPES = UNNAMED | {int(t.value): NAMES.get(t.name, t.name.lower()) for t in hlo.PrimitiveType}


def shape_text(data: bytes) -> str:
    """Return a shape without its layout."""
    fields = oracle.decode(data)
    kind = TYPES.get(oracle.first(fields, 2), "buffer")
    if kind in {"tuple", "buffer"}:
        parts = ", ".join(map(shape_text, fields.get(4, [])))
        return f"({parts})" if kind == "tuple" else parts
    dynamic = oracle.integers(fields, 6)
    sizes = []
    for number, size in enumerate(oracle.integers(fields, 3)):
        bounded = "<=" if dynamic and dynamic[number] else ""
        sizes.append("?" if size == UNBOUNDED else f"{bounded}{size}")
    return f"{kind}[{','.join(sizes)}]"


def layout(data: bytes) -> dict[str, Any] | None:
    """Return the fields of a shape's layout, or None if it has none."""
    fields = oracle.decode(data)
    if oracle.first(fields, 2) not in TYPES:  # a buffer
        return layout(fields[4][0])
    if 5 not in fields:
        return None
    inside = oracle.decode(fields[5][0])
    tiles = [oracle.integers(oracle.decode(tile), 1) for tile in inside.get(6, [])]
    return {
        "minor_to_major": oracle.integers(inside, 1),
        "tiles": [[size if size < UNBOUNDED else None for size in tile] for tile in tiles],
        "element_bits": oracle.first(inside, 7),
        "memory_space": oracle.first(inside, 8),
    }


def computation(fields: Any, names: dict[int, str]) -> dict[str, Any]:
    rows = {}
    for instruction in map(oracle.decode, fields.get(2, [])):
        name = oracle.first(instruction, 1).decode()
        shape = oracle.first(instruction, 3, b"")
        operands = [names[number] for number in oracle.integers(instruction, 36)]
        rows[name] = [oracle.first(instruction, 2).decode(), shape_text(shape), operands, layout(shape)]
    return {"root": names[oracle.first(fields, 6)], "instructions": rows}


def read(text: str) -> dict[str, Any]:
    fields = oracle.decode(hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    computations = [oracle.decode(data) for data in fields[3]]
    names = {
        oracle.first(instruction, 35): oracle.first(instruction, 1).decode()
        for message in computations
        for instruction in map(oracle.decode, message.get(2, []))
    }
    parsed = {oracle.first(message, 1).decode(): computation(message, names) for message in computations}
    number = oracle.first(fields, 6)
    entry = next(oracle.first(message, 1).decode() for message in computations if oracle.first(message, 5) == number)
    return {"name": oracle.first(fields, 1).decode(), "entry": entry, "computations": parsed}


def is_known(text: str, complaint: str) -> bool:
    try:
        hlo.hlo_module_from_text(text)
    except (RuntimeError, ValueError) as error:
        return complaint not in str(error)
    return True


def answer(kind: str, word: str) -> Any:
    if kind == "--opcodes":
        return is_known(f"HloModule m\nENTRY e {{\n  ROOT r = () {word}(\n}}\n", "Unknown opcode")
    if kind == "--types":
        return is_known(f"HloModule m\nENTRY e {{\n  ROOT r = {word}[] parameter(0)\n}}\n", "expects")
    try:
        return read(Path(word).read_bytes().decode())
    except (RuntimeError, ValueError, KeyError) as error:
        return {"error": str(error)}


def main() -> None:
    kind, words = (sys.argv[1], sys.argv[2:]) if sys.argv[1].startswith("--") else ("", sys.argv[1:])
    sys.stdout.write(json.dumps({"opcodes": len(list(hlo.HloOpcode))}) + "\n")
    for word in words:
        sys.stdout.write(json.dumps(answer(kind, word)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
