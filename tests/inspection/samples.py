"""Small modules, and files that hold them."""

from __future__ import annotations

from pathlib import Path

MODULE = "HloModule {name}\n\nENTRY e {{\n  p = f32[8]{{0}} parameter(0)\n  ROOT n = f32[8]{{0}} {opcode}(p)\n}}\n\n"
NO_MODULE = "no module here\n"


def module(name: str, opcode: str = "negate") -> str:
    """Write a module of one parameter and one operation, of 32 bytes each."""
    return MODULE.format(name=name, opcode=opcode)


def folder(path: Path, texts: dict[str, str]) -> Path:
    """Make a directory with a file for each text."""
    path.mkdir()
    for name, text in texts.items():
        (path / name).write_text(text, encoding="utf-8")
    return path
