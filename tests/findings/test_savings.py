"""The order of findings by their savings, and those that the first screen shows."""

from __future__ import annotations

from hlo_inspect.findings import RULES
from hlo_inspect.report.model import Finding, most_severe_first
from tests.calling import call_text


def made(rule: str, severity: str, stake: int | None = None, share: float | None = None) -> Finding:
    return Finding(rule, severity, "m", None, None, stake, share=share)  # type: ignore[arg-type]  # a severity


def test_errors_and_faults_come_before_savings_and_the_largest_saving_first() -> None:
    """A share decides, not the number of bytes, and not if a finding is a warning or an info."""
    findings = [
        made("HI102", "info", 32, 0.001),
        made("HI205", "info"),
        made("HI101", "warning", 1 << 30, 0.1),
        made("HI305", "info", 1 << 20, 0.4),
        made("HI201", "warning"),
        made("HI312", "error", 1, 0.01),
    ]
    order = [finding.rule for finding in most_severe_first(findings)]
    assert order == [
        "HI312",
        "HI201",
        "HI305",
        "HI101",
        "HI102",
        "HI205",
    ]


def test_the_first_screen_has_three_and_equal_findings_once() -> None:
    """Four equal sums of 4 MiB, each half of it never read, are one line: 8 of 16 MiB."""
    text = RULES.load("sliced-all-reduce").page().example
    start = text.index("  r = ")
    summed, sliced = text[start:].splitlines()[:2]
    sums = [summed.replace("  r = ", f"  r{number} = ") for number in range(4)]
    slices = [sliced.replace("ROOT s = ", f"d{number} = ").replace("(r,", f"(r{number},") for number in range(4)]
    root = f"  ROOT t = ({', '.join(['f32[512,1024]'] * 4)}) tuple(d0, d1, d2, d3)"
    program = text[:start] + "\n".join([*sums, *slices, root, "}"]) + "\n"
    page = call_text("summary", "-", given=program).stdout
    first = page[page.index("Do first") :].split("\n\n")[0]
    assert first.count("HI207") == 1
    assert "4 × 2.00 MiB of the sum are never read" in first
    assert "saves up to 8.00 MiB, 50 % of sent bytes" in " ".join(first.replace("\u00a0", " ").split())


def test_the_first_screen_counts_what_saves_less_than_a_thousandth() -> None:
    """An unread parameter of 32 bytes, beside arguments and new values of 8 MiB: 4 millionths."""
    program = (
        "HloModule step\n\nENTRY main {\n  w = f32[1048576]{0} parameter(0)\n  unused = f32[8]{0} parameter(1)\n"
        "  ROOT new = f32[1048576]{0} negate(w)\n}\n"
    )
    page = call_text("summary", "-", given=program).stdout
    first = page[page.index("Do first") :].split("\n\n")[0]
    assert "HI101" in first
    assert "HI102" not in first
    assert first.endswith("and 1 more that saves less than 0.10 %: -v or `hlo-inspect lint`")
    assert "HI102" in call_text("lint", "-", given=program).stdout
