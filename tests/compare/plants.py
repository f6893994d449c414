"""Changes planted in the text of a dump.

Each function returns the changed text and the expected words of a diff, or None if the dump has no suitable place. The text is
split by lines as printers write them, without code of the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ROW = re.compile(r"^\s+(?:ROOT )?%?(?P<name>[\w.\-]+) = (?P<shape>\(.*?\)|\S+) (?P<opcode>[\w\-]+)\((?P<rest>.*)$")
ELEMENTWISE = (
    "add",
    "multiply",
    "subtract",
    "divide",
    "maximum",
    "minimum",
    "tanh",
    "exponential",
    "negate",
    "convert",
    "select",
)


@dataclass(frozen=True)
class PlantedChange:
    """A changed text, and the one change that a diff has to report: its area, words that stand in it, and its name."""

    text: str
    area: str
    words: tuple[str, ...]
    name: str = ""


@dataclass
class Line:
    """A line of an instruction."""

    number: int
    name: str
    shape: str
    opcode: str
    rest: str
    computation: str

    @property
    def operands(self) -> list[str]:
        """The names of the operands, if no operand has brackets."""
        inside = self.rest.partition(")")[0]
        return [part.split()[-1].lstrip("%") for part in inside.split(", ") if part.strip()]


def rows(lines: list[str]) -> list[Line]:
    instructions = []
    computation = ""
    for number, line in enumerate(lines):
        if line.endswith("{") and not line.startswith(" "):
            computation = line.replace("ENTRY ", "").split()[0].lstrip("%")
        match = ROW.match(line)
        if match is not None:
            instructions.append(Line(number, match["name"], match["shape"], match["opcode"], match["rest"], computation))
    return instructions


def used_elsewhere(line: str, name: str, other: str) -> str:
    """Return a line with operand `name` replaced by `other`; its own name and its metadata stay."""
    head, equals, tail = line.partition(" = ")
    body, metadata, rest = tail.partition(", metadata=")
    return head + equals + re.sub(rf"(?<![\w.\-]){re.escape(name)}(?![\w.\-])", other, body) + metadata + rest


def replace_uses(lines: list[str], row: Line, other: str, without: tuple[int, ...]) -> list[str]:
    """Replace `row` by `other` in the later lines of its computation, except those in `without`."""
    changed = list(lines)
    for number in range(row.number + 1, len(lines)):
        if lines[number].startswith("}"):
            break
        if number not in without:
            changed[number] = used_elsewhere(lines[number], row.name, other)
    return changed


def _plain_collectives(lines: list[str]) -> list[Line]:
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
    collectives = [
        row for row in rows(lines) if row.opcode in kinds and not row.shape.startswith("(") and "ROOT" not in lines[row.number]
    ]
    fused = _fused("\n".join(lines))
    return [row for row in collectives if row.computation not in fused and row.name != row.opcode]


def _fused(text: str) -> set[str]:
    """Return the computations that fusions and wrappers of collectives call."""
    return set(re.findall(r"calls=%?([\w.\-]+)", text))


def collective_removed(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in _plain_collectives(lines):
        if row.opcode in ("all-reduce", "collective-permute") and len(row.operands) == 1:
            changed = replace_uses(lines, row, row.operands[0], ())
            del changed[row.number]
            return PlantedChange("\n".join(changed), "collectives", ("gone", row.opcode), row.name)
    return None


def collective_added(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in _plain_collectives(lines):
        if row.opcode in ("all-reduce", "collective-permute") and len(row.operands) == 1:
            new = f"{row.name}.planted"
            changed = replace_uses(lines, row, new, ())
            percent = "%" if "%" in lines[row.number].partition(" = ")[0] else ""
            line = used_elsewhere(lines[row.number], row.operands[0], row.name).replace(
                f"{percent}{row.name} =", f"{percent}{new} =", 1
            )
            changed.insert(row.number + 1, line)
            return PlantedChange("\n".join(changed), "collectives", ("new", row.opcode))
    return None


def groups_changed(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in _plain_collectives(lines):
        match = re.search(r"replica_groups=(?:\{\{([\d,]+)\}\}|\[1,(\d+)\]<=\[\2\])", row.rest)
        if match is None or row.opcode != "all-reduce":
            continue
        devices = match[1].split(",") if match[1] else list(map(str, range(int(match[2]))))
        if len(devices) < 4 or len(devices) % 2:
            continue
        half = len(devices) // 2
        groups = f"replica_groups={{{{{','.join(devices[:half])}}},{{{','.join(devices[half:])}}}}}"
        lines[row.number] = lines[row.number].replace(match[0], groups)
        return PlantedChange("\n".join(lines), "collectives", ("groups", row.opcode), row.name)
    return None


def collective_type_changed(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in _plain_collectives(lines):
        if row.shape.startswith("f32["):
            lines[row.number] = lines[row.number].replace(" = f32[", " = bf16[", 1)
            return PlantedChange("\n".join(lines), "collectives", ("type f32 → bf16", row.opcode), row.name)
    return None


def donation_dropped(text: str) -> PlantedChange | None:
    match = re.search(r"input_output_alias=\{ (\{[\d,]*\}: \(\d+, \{[\d,]*\}(?:, [a-z\-]+)?\)(?:, )?)", text)
    if match is None:
        return None
    return PlantedChange(text[: match.start(1)] + text[match.end(1) :], "parameters", ("not donated any more",))


def dot_type_changed(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in rows(lines):
        for old, new in (("bf16[", "f32["), ("f32[", "bf16[")):
            if row.opcode == "dot" and row.shape.startswith(old) and "ROOT" not in lines[row.number]:
                lines[row.number] = lines[row.number].replace(f" = {old}", f" = {new}", 1)
                return PlantedChange("\n".join(lines), "kernels", (f"type {old[:-1]} → {new[:-1]}", "dot"))
    return None


def constant_grown(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in rows(lines):
        if row.opcode == "constant" and row.shape == "s32[]" and "ROOT" not in lines[row.number]:
            lines[row.number] = lines[row.number].replace(" = s32[] constant(", " = s32[4096]{0} constant(", 1)
            return PlantedChange("\n".join(lines), "constants", ("shape s32[] → s32[4096]{0}",))
    return None


def parameter_resharded(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in rows(lines):
        match = re.search(r"sharding=\{devices=[^{}]*\}", row.rest)
        if row.opcode == "parameter" and match is not None:
            lines[row.number] = lines[row.number].replace(match[0], "sharding={replicated}")
            return PlantedChange("\n".join(lines), "parameters", ("sharding",))
    return None


def fusion_split(text: str) -> PlantedChange | None:
    """Split a fusion in two: one for an operand of its root, and one for the rest."""
    lines = text.split("\n")
    instructions = rows(lines)
    fused = _fused(text)
    for fusion in instructions:
        if fusion.computation in fused:
            continue
        called = re.search(r"calls=%?([\w.\-]+)", fusion.rest)
        if fusion.opcode != "fusion" or called is None or "%" not in lines[fusion.number] or fusion.shape.startswith("("):
            continue
        body = [row for row in instructions if row.computation == called[1]]
        if (
            sum(row.opcode == "fusion" and f"calls=%{called[1]}," in row.rest + "," for row in instructions) != 1
            or len(body) < 6
        ):
            continue
        planted = _split(lines, instructions, fusion, body)
        if planted is not None:
            return planted
    return None


def _split(lines: list[str], instructions: list[Line], fusion: Line, body: list[Line]) -> PlantedChange | None:
    by_name = {row.name: row for row in body}
    root = next((row for row in body if "ROOT" in lines[row.number]), None)
    if root is None or root.opcode not in ELEMENTWISE:
        return None
    for operand in root.operands:
        middle = by_name.get(operand)
        if middle is None or middle.opcode not in ELEMENTWISE or middle.shape.startswith("("):
            continue
        needed, waiting = {middle.name}, [middle]
        while waiting:
            for name in waiting.pop().operands:
                if name in by_name and name not in needed:
                    needed.add(name)
                    waiting.append(by_name[name])
        inner = [row for row in body if row.name in needed and row.opcode != "parameter"]
        outer = [row for row in body if row.name not in needed and row.opcode != "parameter"]
        cheap = ("constant", "broadcast", "iota", "reshape", "bitcast")
        shared = {name for row in outer for name in row.operands if name in needed and name != middle.name}
        if any(by_name[name].opcode not in ("parameter", *cheap) for name in shared):
            continue
        if sum(row.opcode not in cheap for row in inner) < 2 or sum(row.opcode not in cheap for row in outer) < 1:
            continue
        return _as_two(lines, fusion, body, inner, outer, middle)
    return None


@dataclass(frozen=True)
class Part:
    """A half of the split fusion: its computation, and the operands of the fusion."""

    name: str
    lines: list[str]
    operands: list[str]


def _as_two(
    lines: list[str], fusion: Line, body: list[Line], inner: list[Line], outer: list[Line], middle: Line
) -> PlantedChange:
    header = next(number for number in range(body[0].number, -1, -1) if lines[number].endswith("{"))
    end = next(number for number in range(body[-1].number, len(lines)) if lines[number].startswith("}"))
    root = next(row for row in body if "ROOT" in lines[row.number])
    first = _part("planted_first", lines, fusion, _closed(inner, body, ""), middle.name, None)
    second = _part("planted_second", lines, fusion, _closed(outer, body, middle.name), root.name, middle)
    changed = [
        *lines[:header],
        *first.lines,
        *second.lines,
        *lines[end + 1 : fusion.number],
        _call(lines[fusion.number].replace("ROOT ", ""), fusion, f"{fusion.name}.first", middle.shape, first),
        _call(lines[fusion.number], fusion, fusion.name, fusion.shape, second),
        *lines[fusion.number + 1 :],
    ]
    return PlantedChange("\n".join(changed), "kernels", ("split in 2", "fusion"), fusion.name)


def _closed(chosen: list[Line], body: list[Line], without: str) -> list[Line]:
    """Return the rows with all that they read, except one."""
    by_name = {row.name: row for row in body}
    names = {row.name for row in chosen}
    waiting = list(chosen)
    while waiting:
        for name in waiting.pop().operands:
            if name in by_name and name not in names and name != without:
                names.add(name)
                waiting.append(by_name[name])
    return [row for row in body if row.name in names]


def _part(name: str, lines: list[str], fusion: Line, chosen: list[Line], root: str, extra: Line | None) -> Part:
    made: list[str] = []
    operands: list[str] = []
    for row in chosen:
        if row.opcode == "parameter":
            made.append(re.sub(r"parameter\(\d+\)", f"parameter({len(operands)})", lines[row.number]))
            operands.append(fusion.operands[int(row.rest.partition(")")[0])])
    if extra is not None:
        made.append(f"  %{extra.name} = {extra.shape} parameter({len(operands)})")
        operands.append(f"{fusion.name}.first")
    for row in chosen:
        if row.opcode != "parameter":
            text = lines[row.number].replace("ROOT ", "")
            made.append(text.replace("  %", "  ROOT %", 1) if row.name == root else text)
    return Part(name, [f"%{name} () -> {fusion.shape} {{", *made, "}", ""], operands)


def _call(line: str, fusion: Line, name: str, shape: str, part: Part) -> str:
    """Return the line of a fusion that calls a part."""
    start = line.index(" fusion(")
    operands = ", ".join(f"%{operand}" for operand in part.operands)
    line = f"{line[:start]} fusion({operands}{line[line.index(')', start) :]}"
    line = re.sub(r"calls=%?[\w.\-]+", f"calls=%{part.name}", line, count=1)
    head, _, tail = line.partition(" = ")
    return f"{head.replace(fusion.name, name, 1)} = {shape}{tail[len(fusion.shape) :]}"


def loop_changed(text: str) -> PlantedChange | None:
    lines = text.split("\n")
    for row in rows(lines):
        if row.opcode != "while":
            continue
        condition = re.search(r"condition=%?([\w.\-]+)", row.rest)
        inside = [line for line in rows(lines) if condition is not None and line.computation == condition[1]]
        limits = [line for line in inside if line.opcode == "constant" and line.shape.startswith("s32[]")]
        if len(limits) != 1 or not any(line.opcode == "compare" and "direction=LT" in line.rest for line in inside):
            continue
        old = re.search(r"constant\((\d+)\)", lines[limits[0].number])
        if old is None:
            continue
        new = int(old[1]) + 3
        lines[limits[0].number] = lines[limits[0].number].replace(old[0], f"constant({new})")
        lines[row.number] = lines[row.number].replace(
            f'"known_trip_count":{{"n":"{old[1]}"}}', f'"known_trip_count":{{"n":"{new}"}}'
        )
        return PlantedChange("\n".join(lines), "loops", (f"trip count {old[1]} → {new}",), row.name)
    return None


PLANTS: dict[str, Callable[[str], PlantedChange | None]] = {
    "collective removed": collective_removed,
    "collective added": collective_added,
    "groups changed": groups_changed,
    "collective's type changed": collective_type_changed,
    "donation dropped": donation_dropped,
    "dot's type changed": dot_type_changed,
    "constant grown": constant_grown,
    "parameter resharded": parameter_resharded,
    "fusion split": fusion_split,
    "loop changed": loop_changed,
}


def planted_in(text: str) -> Iterator[tuple[str, PlantedChange]]:
    """Yield the label and the result of each change that can be planted in a text."""
    for label, plant in PLANTS.items():
        planted = plant(text)
        if planted is not None:
            yield label, planted
