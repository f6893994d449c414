"""Rules that decide if a program fits and what its step waits for, each on a wrong program and on its silent twin."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Finding
from hlo_inspect.report.page import headline_text
from tests.calling import call, call_text

LIMIT = 81_559 << 20
"""Bytes of an H100 as its driver reports them."""


def found(rule: str, text: str, profile: str | None = "h100-sxm", command: str = "findings") -> list[Finding]:
    return [finding for finding in hlo_inspect.inspect(text, command, profile=profile).findings if finding.rule == rule]


def program(rows: int) -> str:
    """Return a program that needs two arrays of rows of 1 MiB, its parameter and its output."""
    parameter, output = f"p = u8[{rows},1048576]{{1,0}} parameter(0)", f"ROOT q = u8[{rows},1048576]{{1,0}} not(p)"
    return f"HloModule m, is_scheduled=true, num_partitions=1\n\nENTRY e {{\n  {parameter}\n  {output}\n}}\n"


FITS, EXCEEDS = program(40_779), program(40_780)
"""81,558 MiB, and 81,560 MiB of the 81,559."""


def test_the_last_mebibyte_decides() -> None:
    assert found("HI313", FITS) == []
    (finding,) = found("HI313", EXCEEDS)
    assert (finding.severity, finding.stake, finding.stake_unit) == ("error", 1 << 20, "bytes")


@pytest.mark.parametrize(("text", "left"), [(FITS, 1 << 20), (EXCEEDS, -1 << 20)])
def test_facts_of_the_capacity(text: str, left: int) -> None:
    facts = hlo_inspect.inspect(text, "memory", profile="h100-sxm").facts
    assert (facts["memory.capacity_bytes"], facts["memory.left_bytes"]) == (LIMIT, left)


def test_nothing_fits_in_an_unknown_capacity(tmp_path: Path) -> None:
    """Without hardware nothing is said, and neither for hardware of which no source states the memory."""
    facts = hlo_inspect.inspect(EXCEEDS, "memory").facts
    assert (facts["memory.capacity_bytes"], facts["memory.left_bytes"]) == (None, None)
    profile = tmp_path / "mine.yaml"
    profile.write_text(
        "title: T\nmaker: M\nmatmul: {}\nvector: {}\nmemory: {capacity: null, bandwidth: null}\nsources: []\n", encoding="utf-8"
    )
    report = hlo_inspect.inspect(EXCEEDS, "memory", profile=str(profile))
    assert report.facts["memory.left_bytes"] is None
    assert found("HI313", EXCEEDS, str(profile)) == found("HI313", EXCEEDS, None) == []
    assert "fit" not in headline_text(report.headline[0], raw_bytes=False)


def test_an_unknown_need_leaves_nothing() -> None:
    """Without a schedule the capacity is known, and not what is left of it."""
    report = hlo_inspect.inspect(EXCEEDS.replace(", is_scheduled=true", ""), "memory", profile="h100-sxm")
    assert (report.facts["memory.capacity_bytes"], report.facts["memory.left_bytes"]) == (LIMIT, None)
    assert any(note.startswith("memory.left_bytes: the module is not scheduled") for note in report.notes)


@pytest.mark.parametrize("command", ["summary", "lint", "memory", "report"])
def test_each_page_counts_what_does_not_fit(command: str, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    page = call_text(command, "-", "--profile", "h100-sxm", *output, given=EXCEEDS).stdout
    assert "exceeded-capacity" in ((tmp_path / "page.html").read_text(encoding="utf-8") if output else page)


def test_check_fails_and_the_first_screen_says_it() -> None:
    assert call("check", "-", "--fail-on", "error", "--profile", "h100-sxm", given=EXCEEDS.encode()).returncode == 1
    assert call("check", "-", "--fail-on", "error", given=EXCEEDS.encode()).returncode == 0
    assertion = "memory.left_bytes >= 0"
    assert call("check", "-", "--assert", assertion, "--profile", "h100-sxm", given=EXCEEDS.encode()).returncode == 1
    page = " ".join(call_text("summary", "-", "--profile", "h100-sxm", given=EXCEEDS).stdout.replace("\u00a0", " ").split())
    assert "needs 79.6 GiB: does not fit in the 79.6 GiB of usable memory of h100-sxm, 1.00 MiB too much" in page
