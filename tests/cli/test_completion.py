"""Completions at the TAB key, requested as bash does."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.calling import call_text

ROOT = Path(__file__).parents[2]


FSDP = str(ROOT / "tests/data/cpu/scan_fsdp.after.txt")


def offered(*words: str) -> list[tuple[str, str]]:
    """Return the kind and value of each completion of the last word."""
    line = " ".join(("hlo-inspect", *(f"'{word}'" if " " in word else word for word in words)))
    asked = {"_HLO_INSPECT_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    with patch.dict(os.environ, asked):
        result = call_text()
    assert result.stderr == ""
    return [(kind, value) for kind, _, value in (line.partition(",") for line in result.stdout.splitlines())]


def plain(*names: str) -> list[tuple[str, str]]:
    return [("plain", name) for name in names]


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (("fus",), plain("fusions")),
        (("collectives", "--table", "lo"), plain("loops")),
        (("collectives", "--columns", "kind,wire"), plain("kind,wire_bytes")),
        (("collectives", "--table", "loops", "--sort", "trip"), plain("trip_count")),
        (("collectives", "--filter", "kind = all-reduce group_s"), plain("kind = all-reduce group_size")),
        (("cost", "--profile", "h100-s"), plain("h100-sxm")),
        (("cost", "--profile", "./mine.y"), [("file", "./mine.y")]),
        (("rule", "HI506"), plain("HI506")),
        (("rule", "unused"), plain("unused-parameter")),
        (("check", "--assert", "collectives.all-gather.c"), plain("collectives.all-gather.count")),
        (("check", "--policy", "poli"), [("file", "poli")]),
        (("summary", "dumps/mod"), [("file", "dumps/mod")]),
        (("show", FSDP, "all_g"), plain("all_gather.11", "all_gather.6")),
        (("show", FSDP, "reduce-s"), plain("reduce-scatter")),
        (("show", FSDP, "*gather.1"), plain("all_gather.11")),
        (("show", "no_such_file", "all_g"), [("", "")]),
        (("show", FSDP, "--path", "all_gather.1"), plain("all_gather.11")),
    ],
)
def test_completion(words: tuple[str, ...], completions: list[tuple[str, str]]) -> None:
    assert offered(*words) == completions
