"""Rules that decide if a program fits and what its step waits for, each on a wrong program and on its silent twin."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Finding
from hlo_inspect.report.page import headline_text
from hlo_inspect.request import PlatformName
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
    assert found("HI312", FITS) == []
    (finding,) = found("HI312", EXCEEDS)
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
    assert found("HI312", EXCEEDS, str(profile)) == found("HI312", EXCEEDS, None) == []
    assert "fit" not in headline_text(report.headline[0], raw_bytes=False)


def test_an_unknown_need_leaves_nothing() -> None:
    """Without a schedule the capacity is known, and not what is left of it."""
    report = hlo_inspect.inspect(EXCEEDS.replace(", is_scheduled=true", ""), "memory", profile="h100-sxm")
    assert (report.facts["memory.capacity_bytes"], report.facts["memory.left_bytes"]) == (LIMIT, None)
    assert any(note.startswith("memory.left_bytes: the module is not scheduled") for note in report.notes)


def test_arguments_that_alone_do_not_fit_need_no_schedule() -> None:
    """Two thirds of the 81,559 MiB twice are too much; once, as argument and output, the need is unknown."""
    text = program(54_000).replace(", is_scheduled=true", "")
    two = text.replace("  ROOT q", "  r = u8[54000,1048576]{1,0} parameter(1)\n  ROOT q")
    (finding,) = found("HI312", two)
    assert finding.stake == (2 * 54_000 - 81_559) * MIB
    assert finding.message.startswith("needs 105.5 GiB for its arguments alone, but h100-sxm has 79.6 GiB")
    page = call_text("summary", "-", "--profile", "h100-sxm", given=two).stdout.replace("\u00a0", " ")
    assert "arguments 105.5 GiB: do not fit in the 79.6 GiB of usable memory of h100-sxm" in " ".join(page.split())
    assert found("HI312", text) == []
    assert found("HI312", two, None) == []
    assert found("HI312", two.replace("num_partitions=1", "num_partitions=2")) == []  # shapes before partitioning


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


# -- waiting --------------------------------------------------------------------------------------------------------------

MIB = 1 << 20
HBM, LAUNCH = 3352e9, 1e-6
"""Bytes a second of an H100, and the seconds of a launch in its profile."""

OVERLAP = """HloModule m, is_scheduled=true, num_partitions=8

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY e {{
  p = f32[67108864]{{0}} parameter(0)
{lines}
  ROOT t = (f32[67108864]{{0}}, f32[67108864]{{0}}) tuple(d, k)
}}
"""
GROUPS = "channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=add"
START = f"  s = f32[67108864]{{0}} all-reduce-start(p), {GROUPS}"
DONE = "  d = f32[67108864]{0} all-reduce-done(s)"
BESIDE, BEHIND = (f"  k = f32[67108864]{{0}} negate({operand})" for operand in "pd")
SYNCHRONOUS = f"  d = f32[67108864]{{0}} all-reduce(p), {GROUPS}"


def overlap(*lines: str) -> str:
    return OVERLAP.format(lines="\n".join(lines))


def test_a_kernel_beside_an_exposed_collective_can_hide_its_time() -> None:
    """The kernel reads and writes 256 MiB; the all-reduce sends 448 MiB over links of 450 GB/s and takes longer."""
    (finding,) = found("HI216", overlap(START, DONE, BESIDE))
    assert (finding.subject, finding.stake_unit, finding.share_of) == ("s", "s", "step time")
    assert finding.stake == pytest.approx(2 * 256 * MIB / HBM + LAUNCH, rel=0.01)
    assert finding.message.startswith("d waits 1.")


@pytest.mark.parametrize("lines", [(START, BESIDE, DONE), (START, DONE, BEHIND), (SYNCHRONOUS, BESIDE)])
def test_what_hides_it_already_or_needs_it_hides_nothing(lines: tuple[str, ...]) -> None:
    assert found("HI216", overlap(*lines)) == []


def test_without_hardware_no_wait_is_known() -> None:
    assert found("HI216", overlap(START, DONE, BESIDE), None) == []


def synchronous(text: str, platform: PlatformName) -> list[Finding]:
    report = hlo_inspect.inspect(text, "findings", platform=platform, profile="h100-sxm")
    return [finding for finding in report.findings if finding.rule == "HI217"]


def test_a_synchronous_collective_beside_an_independent_kernel() -> None:
    """The kernel moves 512 MiB meanwhile. A CPU has no asynchronous collectives, a TPU no such all-reduce."""
    text = overlap(SYNCHRONOUS, BESIDE)
    (finding,) = synchronous(text, "gpu")
    assert finding.stake == pytest.approx(2 * 256 * MIB / HBM + LAUNCH, rel=0.01)
    assert finding.message.endswith("kernels such as k could hide 161.2 µs")
    assert (synchronous(text, "cpu"), synchronous(text, "tpu")) == ([], [])
    assert synchronous(overlap(START, DONE, BESIDE), "gpu") == []
    assert synchronous(overlap(SYNCHRONOUS, BEHIND), "gpu") == []


LOOP = """HloModule m, is_scheduled=true

body {{
  s = (s32[], f32[{size}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[{size}]{{0}} get-tuple-element(s), index=1
  o = s32[] constant(1)
  n = s32[] add(i, o)
  y = f32[{size}]{{0}} negate(x)
  ROOT t = (s32[], f32[{size}]) tuple(n, y)
}}

more {{
  s = (s32[], f32[{size}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  l = s32[] constant(10000)
  ROOT c = pred[] compare(i, l), direction=LT
}}

ENTRY e {{
  x = f32[{size}]{{0}} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[{size}]) tuple(z, x)
  w = (s32[], f32[{size}]) while(t), condition=more, body=body
  ROOT r = f32[{size}]{{0}} get-tuple-element(w), index=1
}}
"""


def test_a_step_of_small_kernels_is_bound_by_their_launches() -> None:
    """10,000 iterations launch a sum and a negation, and the condition runs once more than the body: 30,001 microseconds."""
    (finding,) = found("HI511", LOOP.format(size=8))
    assert finding.stake_unit == "s"
    assert finding.stake == pytest.approx(30_001 * LAUNCH, rel=1e-6)
    assert (finding.subject, finding.message) == ("w", "30,001 launches of kernels, 30,001 of them in w take 30.0 ms a step")


def test_large_kernels_hide_their_launches() -> None:
    assert found("HI511", LOOP.format(size=4 * MIB)) == []
