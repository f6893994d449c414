"""Contract that the tests of passes declare: facts and columns that scripts rely on, with numbers from other sources."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any


def declared(name: str) -> dict[str, Any]:
    """Return `FACTS` or `COLUMNS` of the files of tests/passes that have it, by the command that a file tests."""
    paths = sorted((Path(__file__).parent / "passes").glob("test_*.py"))
    files = [path.stem for path in paths if f"\n{name}: " in path.read_text(encoding="utf-8")]
    return {
        stem.removeprefix("test_").replace("_", "-"): getattr(import_module(f"tests.passes.{stem}"), name) for stem in files
    }
