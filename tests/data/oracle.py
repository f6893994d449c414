"""Writes `expected.json`: what XLA's own parser says about each dump that a compiler made.

The texts of jax 0.12 are those of jaxlib 0.12, all others those of jaxlib 0.10.2, which also writes what the programs state and
holds the figures counted by hand in `handmade/expected.json` against its parser, where it reads the file. Each run keeps the
other version's figures.

The parser hands out the module as a protocol buffer, whose wire format is decoded here; the numbers of fields are those of
XLA's hlo.proto and xla_data.proto. Bytes are products of dimensions and the widths of the element types, counted here.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
FOLDERS = {
    "0.12.0.1": ("jax_0_12", "tpu_jax_0_12", "dump_jax_0_12"),
    "0.10.2": ("cpu", "tpu", "gpu", "jax_0_5_0", "jax_0_4_13", "prints", "xla_dump_to"),
}
# jaxlib refuses these print forms, but they are the module of `prints/long.txt`.
REFUSED_PRINTS = ("no_ids", "no_operand_names", "compact_operands")
UNTOLD = ("module.name", "params.unused_count")
# These repeat a called computation at each of its callers, so only the lines can be counted.
NESTED_PRINTS = ("canonical", "fingerprint")

# Bytes of one element by number in the enumeration xla.PrimitiveType, for those that do not take one byte.
WIDTHS = {3: 2, 4: 4, 5: 8, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16}
TUPLE, TOKEN = 13, 17

Message = dict[int, list[Any]]


def decode(data: bytes) -> Message:
    """Return the fields of one protocol buffer message by number: integers and byte strings, in order."""
    fields: Message = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(data):
        number, wire_type = divmod(varint(), 8)
        if wire_type == 0:
            fields.setdefault(number, []).append(varint())
            continue
        length = {1: 8, 5: 4}.get(wire_type) or varint()
        fields.setdefault(number, []).append(data[position : position + length])
        position += length
    return fields


def integers(fields: Message, number: int) -> list[int]:
    """Return a repeated integer field, packed or not."""
    values: list[int] = []
    for item in fields.get(number, []):
        values += [item] if isinstance(item, int) else _packed(item)
    return values


def _packed(data: bytes) -> list[int]:
    # A packed list is a run of varints: each ends with the first byte whose top bit is clear.
    ends = [index + 1 for index, byte in enumerate(data) if byte < 0x80]
    starts = [0, *ends]
    return [
        sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(data[start:end]))
        for start, end in zip(starts, ends, strict=False)
    ]


def first(fields: Message, number: int, default: Any = 0) -> Any:
    return fields.get(number, [default])[0]


def leaf_bytes(shape: bytes) -> list[int]:
    """Return the bytes of each array of a ShapeProto, tuples opened."""
    fields = decode(shape)
    kind = first(fields, 2)
    if kind == TUPLE:
        return [size for part in fields.get(4, []) for size in leaf_bytes(part)]
    if kind == TOKEN:
        return []
    packed_bits = first(decode(first(fields, 5, b"")), 7)
    bits = packed_bits or 8 * WIDTHS.get(kind, 1)
    return [-(-math.prod(integers(fields, 3)) * bits // 8)]


class Module:
    """The counts of one module as XLA holds it, and the same as its text prints them."""

    def __init__(self, proto: bytes, text: str) -> None:
        self.fields = decode(proto)
        self.computations = {first(c, 5): c for c in map(decode, self.fields[3])}
        self.entry = self.computations[first(self.fields, 6)]
        # An async instruction is sugar in a whole module or nowhere; XLA always holds the wrapped computation.
        self.sugar = " async-start(" not in text
        self.hidden: set[int] = set()
        self.opcodes: Counter[str] = Counter()
        self._count()

    @staticmethod
    def instructions(computation: Message) -> dict[int, Message]:
        return {first(i, 35): i for i in map(decode, computation[2])}

    def _count(self) -> None:
        started: dict[int, str] = {}
        renamed: dict[int, str] = {}
        for computation in self.computations.values():
            for number, instruction in self.instructions(computation).items():
                opcode = first(instruction, 2).decode()
                if self.sugar and opcode.startswith("async-"):
                    started[number] = self._started(opcode, instruction, started)
                    renamed[number] = started[number] + opcode.removeprefix("async")
        for number, computation in self.computations.items():
            if number not in self.hidden:
                for unique, instruction in self.instructions(computation).items():
                    self.opcodes[renamed.get(unique, first(instruction, 2).decode())] += 1

    def _started(self, opcode: str, instruction: Message, started: dict[int, str]) -> str:
        """Return the opcode that an async instruction wraps; as sugar, the computation round it is not printed."""
        if opcode != "async-start":
            return started[integers(instruction, 36)[0]]
        (wrapped,) = integers(instruction, 38)
        self.hidden.add(wrapped)
        root = self.instructions(self.computations[wrapped])[first(self.computations[wrapped], 6)]
        return str(first(root, 2).decode())

    def unused_leaves(self) -> int:
        instructions = self.instructions(self.entry)
        used = {operand for i in instructions.values() for operand in integers(i, 36)} | {first(self.entry, 6)}
        unused = [i for number, i in instructions.items() if first(i, 2) == b"parameter" and number not in used]
        return sum(len(leaf_bytes(first(i, 3))) for i in unused)

    def facts(self) -> dict[str, Any]:
        program_shape = decode(self.fields[4][0])
        leaves = [leaf_bytes(shape) for shape in program_shape.get(1, [])]
        outputs = leaf_bytes(program_shape[2][0])
        facts: dict[str, Any] = {
            "module.name": first(self.fields, 1).decode(),
            "module.computations": len(self.computations) - len(self.hidden),
            "module.instructions": self.opcodes.total(),
            "module.entry_instructions": len(self.entry[2]),
            "params.count": len(leaves),
            "params.leaf_count": sum(map(len, leaves)),
            "params.bytes": sum(map(sum, leaves)),
            "params.unused_count": self.unused_leaves(),
            "outputs.count": len(outputs),
            "outputs.bytes": sum(outputs),
        }
        return facts | {f"opcode.{opcode}": count for opcode, count in sorted(self.opcodes.items())}

    def aliases(self) -> list[Any]:
        """Rows of output index, parameter number, index inside the parameter."""
        entries = map(decode, decode(first(self.fields, 8, b"")).get(1, []))
        return sorted([integers(e, 1), first(e, 2), integers(e, 3)] for e in entries)

    def donors(self) -> list[Any]:
        """Rows of parameter number and index inside the parameter."""
        entries = map(decode, decode(first(self.fields, 18, b"")).get(1, []))
        return sorted([first(e, 1), integers(e, 2)] for e in entries)


def by_lines(text: str) -> dict[str, Any]:
    """Instructions and opcodes counted over lines, which holds where the printer gives each instruction one line."""
    opcodes = Counter(re.findall(r"^\s+(?:ROOT )?[%\w.-]+ = (?:\(.*?\)|\S+) ([a-z][a-z0-9-]*)\(", text, re.MULTILINE))
    return {"module.instructions": opcodes.total()} | {f"opcode.{opcode}": count for opcode, count in sorted(opcodes.items())}


def parse(text: str) -> Any:
    hlo: Any = import_module("jaxlib._hlo")
    return hlo.hlo_module_from_text(text)


@cache
def client() -> Any:
    return import_module("jaxlib._jax").get_tfrt_cpu_client(asynchronous=False)


def figures(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    parsed = parse(text)
    module = Module(parsed.as_serialized_hlo_module_proto(), text)
    facts = module.facts()
    lines = by_lines(text)
    if any(facts[name] != count for name, count in lines.items()):
        raise ValueError(f"{path}: XLA's parser and the lines differ: {lines}")
    costs = import_module("jaxlib._jax").hlo_module_cost_analysis(client(), parse(without_tiles(text)))
    for key in ("flops", "transcendentals", "bytes accessed"):
        facts["cost." + key.replace(" ", "_")] = costs.get(key, 0.0)
    return {"facts": facts, "aliases": module.aliases(), "donors": module.donors()}


def without_tiles(text: str) -> str:
    """Return the text without the tiles of layouts, whose padding jaxlib counts since 0.11."""
    return re.sub(r"(\{[\d,]*):T(?:\([\d,*]*\))+", r"\1:", text).replace(":}", "}").replace("]{}", "]")


def is_module(path: Path) -> bool:
    return "-buffer-assignment" not in path.name and not path.name.endswith(("-live-range.txt", "-memory-usage-report.txt"))


def compiled(folders: Iterable[str]) -> dict[str, Any]:
    """Return the figures of every dump in the folders, by its path."""
    dumps: dict[str, Any] = {}
    for path in sorted(path for folder in folders for path in (HERE / folder).glob("*.txt") if is_module(path)):
        name = path.relative_to(HERE).as_posix()
        if path.stem in NESTED_PRINTS:
            dumps[name] = {"facts": by_lines(path.read_text(encoding="utf-8"))}
        elif path.stem not in REFUSED_PRINTS:
            dumps[name] = figures(path)
    return dumps


def refused(dumps: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the forms of print that the parser refuses."""
    # Text without names or with operands left out need not tell the module's name nor what reads a parameter.
    told = {name: fact for name, fact in dumps["prints/long.txt"]["facts"].items() if name not in UNTOLD}
    return {f"prints/{stem}.txt": dumps["prints/long.txt"] | {"facts": told} for stem in REFUSED_PRINTS}


def check_handmade() -> None:
    """Raise if the parser and a figure counted by hand differ, or if the parser reads a text that it should refuse."""
    expected = json.loads((HERE / "handmade/expected.json").read_text(encoding="utf-8"))
    for name, entry in expected.items():
        text = (HERE / "handmade" / name).read_bytes().decode()
        try:
            module = Module(parse(text).as_serialized_hlo_module_proto(), text)
        except RuntimeError as error:
            if entry["jaxlib"] == "reads":
                raise ValueError(f"{name} is refused") from error
            continue
        facts = module.facts() | {"aliases": module.aliases(), "donors": module.donors()}
        by_hand = entry["modules"][0] | {key: entry[key] for key in ("aliases", "donors") if key in entry}
        known = {key: facts.get(key, 0 if key.startswith("opcode.") else value) for key, value in by_hand.items()}
        wrong = [(key, value, by_hand[key]) for key, value in known.items() if value != by_hand[key]]
        if wrong or entry["jaxlib"] != "reads":
            raise ValueError(f"{name}: parser and hand differ: {wrong}")


def truths() -> dict[str, Any]:
    """Return the figures that the source of each program states."""
    make_dumps = import_module("make_dumps")
    make_dumps.environment(make_dumps.EIGHT_HOST_DEVICES)
    mesh = make_dumps.mesh_of(import_module("jax").devices())
    return {name: make_dumps.program(name, mesh).truth for name in make_dumps.SHARDED + make_dumps.SINGLE}


def _row(item: tuple[str, Any]) -> str:
    return f"{json.dumps(item[0])}: {json.dumps(item[1])}"


def main() -> None:
    folders = FOLDERS[version("jax")]  # not imported: `truths` comes first and sets the environment
    tables = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    others = {name: entry for name, entry in tables["dumps"].items() if name.partition("/")[0] not in folders}
    if "prints" in folders:
        tables["programs"] = truths()
        check_handmade()
    dumps = compiled(folders)
    if "prints" in folders:
        dumps |= refused(dumps)
    tables["dumps"] = dict(sorted((others | dumps).items()))
    # One line an entry keeps the file readable and its differences small.
    blocks = [f'"{name}": {{\n' + ",\n".join(map(_row, table.items())) + "\n}" for name, table in tables.items()]
    (HERE / "expected.json").write_text("{" + ",\n".join(blocks) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
