"""An input that is one instruction: XLA's parser takes it for a module, with a parameter for each operand."""

from __future__ import annotations

from hlo_inspect.hlo import grammar, scan
from hlo_inspect.hlo.instruction import LITERAL_OPCODES, parse_operands

MAX_CHARS = 1 << 20


def as_module(text: str) -> str | None:
    """The text of a module that holds the one instruction that `text` is, its name left out or not; else `None`.

    Lines stay where they are: what is added stands before the first and behind the last.
    """
    if len(text) > MAX_CHARS:
        return None
    for prefix in ("", "root = "):
        candidate = prefix + text.strip()
        try:
            row, end = grammar.scan_instruction(candidate, 0)
            operands = () if row[2].rpartition(" ")[2] in LITERAL_OPCODES else parse_operands(row[3])[1]
        except scan.ScanError:
            continue
        if candidate[end:].strip() or any(operand.shape is None for operand in operands):
            return None
        named = {operand.name: operand.shape for operand in operands if operand.name is not None}
        parameters = (f"{name} = {shape} parameter({number}) " for number, (name, shape) in enumerate(named.items()))
        lead = text[: len(text) - len(text.lstrip())]
        return f"ENTRY instruction {{ {''.join(parameters)}{lead}{candidate}\n}}\n"
    return None
