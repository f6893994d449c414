"""A program that does not fit: pages count it, and `check` fails. Its figures are in tests/cases/findings."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.page import headline_text
from tests.calling import call, call_text

EXCEEDS = """HloModule m, is_scheduled=true, num_partitions=1

ENTRY e {
  p = u8[40780,1048576]{1,0} parameter(0)
  ROOT q = u8[40780,1048576]{1,0} not(p)
}
"""
"""81,560 MiB of the 81,559 of an H100."""


def test_nothing_fits_in_an_unknown_capacity(tmp_path: Path) -> None:
    """No source states the memory of this hardware."""
    profile = tmp_path / "mine.yaml"
    profile.write_text(
        "title: T\nmaker: M\nmatmul: {}\nvector: {}\nmemory: {capacity: null, bandwidth: null}\nsources: []\n", encoding="utf-8"
    )
    report = hlo_inspect.inspect(EXCEEDS, ("memory", "findings"), profile=str(profile))
    assert report.facts["memory.left_bytes"] is None
    assert "HI312" not in {finding.rule for finding in report.findings}
    assert "fit" not in headline_text(report.headline[0], raw_bytes=False)


@pytest.mark.parametrize("command", ["lint", "memory", "report"])
def test_each_page_counts_what_does_not_fit(command: str, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "page.html")] if command == "report" else []
    page = call_text(command, "-", "--profile", "h100-sxm", *output, given=EXCEEDS).stdout
    assert "exceeded-capacity" in ((tmp_path / "page.html").read_text(encoding="utf-8") if output else page)


def test_check_fails() -> None:
    given = EXCEEDS.encode()
    assert call("check", "-", "--fail-on", "error", "--profile", "h100-sxm", given=given).returncode == 1
    assert call("check", "-", "--fail-on", "error", given=given).returncode == 0
    assert call("check", "-", "--assert", "memory.left_bytes >= 0", "--profile", "h100-sxm", given=given).returncode == 1
