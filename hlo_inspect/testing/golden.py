"""Golden files: the normal text of a program beside the test, which new names and lines leave as it is."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from hlo_inspect.atomic_files import atomic_writer
from hlo_inspect.errors import printable
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.inspection.normal_texts import NormalTexts
from hlo_inspect.report.page import headline_text
from hlo_inspect.request import Request

UPDATE = "pytest --hlo-update"
MAX_LINES = 12
MAX_WIDTH = 160


def compare_with_golden(source: Openable, options: Mapping[str, Any], path: Path, updates: bool) -> str:
    """Return how a program differs from a golden file; nothing if it is the same, or if the file `updates`.

    Raise HloInspectError if the program or the file cannot be read or written.
    """
    text = _normal_text(source, options)
    if updates:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(str(path)) as stream:
            stream.write(text)
        return ""
    if not path.is_file():
        return f"there is no golden file {path.name}: {UPDATE} writes it"
    if path.read_bytes() == text.encode() or _normal_text(path, {}) == text:
        return ""
    return _difference(path, text, options)


def _normal_text(source: Openable, options: Mapping[str, Any]) -> str:
    texts = NormalTexts(**{name: options[name] for name in ("module", "stage", "strict") if name in options})
    is_path = isinstance(source, PathLike) or (isinstance(source, str) and "\n" not in source)
    lines = list(texts.lines(str(source)) if is_path else texts.lines_of(_decoded(source)))
    if texts.errors:
        raise texts.errors[0]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _decoded(source: Openable) -> str:
    return bytes(source).decode("utf-8", "replace") if isinstance(source, bytes | bytearray | memoryview) else str(source)


def _difference(path: Path, text: str, options: Mapping[str, Any]) -> str:
    """Return the first lines of the comparison of the golden file with a text, which are facts and changes, never HLO."""
    comparisons = Comparisons(Request(**{**options, "configured": tuple(options)}), with_notes=False)
    lines = [f"{path.name} is another program; {UPDATE} writes the new one"]
    for comparison in comparisons.compare(ComparedInput(path), ComparedInput(text)):
        for row in comparison.report.headline:
            said = " ".join(part for part in (row.label, headline_text(row)) if part).replace("\u00a0", " ")
            lines.append(f"  {printable(said)[:MAX_WIDTH]}")
    if comparisons.errors:
        raise comparisons.errors[0]
    return "\n".join(lines[:MAX_LINES])
