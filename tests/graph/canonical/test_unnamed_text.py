"""Hashes of texts that renaming does not change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hlo_inspect.graph.unnamed_texts import unnamed_digest

DATA = Path(__file__).parents[2] / "data"
TEXT = (DATA / "cpu" / "scan_fsdp.after.txt").read_text()


def renamed(text: str) -> str:
    """Return a text with other names, numbers, paths and lines."""
    text = re.sub(r"%([A-Za-z_][\w.\-]*)", r"%other_\1.7", text)
    text = re.sub(r"^((?:ENTRY )?%\S+ )\(.*\{$", r"\1(x: f32[]) -> f32[] {", text, flags=re.MULTILINE)
    return re.sub(r"stack_frame_id=\d+", "stack_frame_id=1", text).replace("/train/", "/host/").replace("jit_step", "jit_other")


def test_names_numbers_and_paths_do_not_matter() -> None:
    assert renamed(TEXT) != TEXT
    assert unnamed_digest(TEXT) == unnamed_digest(renamed(TEXT)) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f32[", "f16["),
        (" add(", " subtract("),
        ("constant(0)", "constant(1)"),
        ("{1,0}", "{0,1}"),
        ("channel_id=1", "channel_id=9"),
    ],
)
def test_anything_else_matters(old: str, new: str) -> None:
    assert old in TEXT
    assert unnamed_digest(TEXT.replace(old, new, 1)) != unnamed_digest(TEXT)


def test_operands_matter_by_what_they_name() -> None:
    body = (
        "HloModule m\n\nENTRY %e {{\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %c = f32[] subtract({})\n}}\n"
    )
    first, swapped = body.format("%a, %b"), body.format("%b, %a")
    assert unnamed_digest(first) != unnamed_digest(swapped)
    assert unnamed_digest(first) == unnamed_digest(first.replace("%a", "%x").replace("%b", "%a").replace("%x", "%b"))


def test_other_forms_have_no_hash() -> None:
    assert unnamed_digest(TEXT.replace("%", "")) is None
    assert unnamed_digest("") is None
    quoted = 'HloModule m\n\nENTRY %e {\n  ROOT %c = f32[] custom-call(), custom_call_target="%c"\n}\n'
    assert unnamed_digest(quoted) is None  # a name in a string is no name
