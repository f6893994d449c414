"""The blocks of Python on the page about Python run, in its order, in the root of the repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import DOCS, ROOT, python_blocks


def test_the_blocks_of_the_page_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = python_blocks(DOCS / "python.md")
    assert len(blocks) == 3
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)  # noqa: S102 - text of the repository
    assert names["page"].facts["optimizer.name"] == "adamw"
    assert names["largest"] == "collective-permute-start"
    assert len(names["frame"]) == len(names["sent"]) == 7
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_the_program_of_the_page_about_dumps_writes_a_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hlo_inspect import inspect

    monkeypatch.chdir(tmp_path)
    (block,) = python_blocks(DOCS / "dumps.md")
    exec(compile(block, "docs/dumps.md", "exec"), {})  # noqa: S102 - as above
    assert inspect("step.txt").facts["params.count"] == 2
