"""An input that is one instruction: XLA's parser takes it for a module, with a parameter for each operand."""

from __future__ import annotations

from hlo_inspect.hlo import grammar, scan
from hlo_inspect.hlo.instruction import parse_operands
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES
from hlo_inspect.hlo.rows import Row


def as_module(text: str) -> str | None:
    """The text of a module that holds the one instruction that `text` is, its name left out or not; else `None`.

    One line is put in front, and nothing else before an operand without a name, which gets one: where something stands in the
    text is where it stands in the module's second line and those behind it.
    """
    for name in ("", "root = "):
        candidate = f"{name}\n{text.rstrip()}"
        try:
            row, end = grammar.scan_instruction(candidate, scan.skip_space(candidate, 0))
            if scan.skip_space(candidate, end) != len(candidate):
                continue
            lead, candidate = _parameters(candidate, end - len(row[3]), row)
        except scan.ScanError:
            continue
        return f"ENTRY instruction {{ {lead}{candidate}\n}}\n"
    return None


def _parameters(text: str, start: int, row: Row) -> tuple[str, str]:
    """The parameters for the operands behind `start` in `text`, and the text with a name for each operand. `ScanError` where an
    operand has no shape.
    """
    if row[2].rpartition(" ")[2] in LITERAL_OPCODES:
        return "", text
    close, operands = parse_operands(row[3])
    parts = []
    shapes: dict[str, str] = {}
    done = 0
    for number, (operand, (_, end)) in enumerate(zip(operands, scan.split_items(row[3], 0, close), strict=True)):
        if operand.shape is None and operand.name not in shapes:
            raise scan.ScanError("an operand has no shape", start)
        name = operand.name or f"_{number}"
        shapes.setdefault(name, str(operand.shape))
        parts += [row[3][done:end], "" if operand.name else f" {name}"]
        done = end
    lead = "".join(f"{name} = {shape} parameter({number}) " for number, (name, shape) in enumerate(shapes.items()))
    return lead, text[:start] + "".join(parts) + row[3][done:] + text[start + len(row[3]) :]
