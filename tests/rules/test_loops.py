"""Faults of loops and calls, told once however many passes count by them."""

from __future__ import annotations

import pytest

import hlo_inspect

CALL = "ROOT %r = f32[8]{0} call(%x), to_apply=%again"
AGAIN = "%again {\n  %x = f32[8]{0} parameter(0)\n  LINE\n}\n".replace("LINE", CALL)
LOOP = 'ROOT %r = f32[8]{0} while(%x), body=%gone, condition=%gone, backend_config={"known_trip_count":{"n":"many"}}'


def text(line: str) -> str:
    return f"HloModule m\n\n{AGAIN}\nENTRY %main {{\n  %x = f32[8]{{0}} parameter(0)\n  {line}\n}}\n"


@pytest.mark.parametrize("passes", [("cost",), ("collectives",), ("cost", "collectives")])
@pytest.mark.parametrize(
    ("line", "rule", "severity", "subject", "place"),
    [(LOOP, "HI501", "warning", "r", 10), (CALL, "HI502", "error", "again", 3)],
)
def test_faults(passes: tuple[str, ...], line: str, rule: str, severity: str, subject: str, place: int) -> None:
    findings = [f for f in hlo_inspect.inspect(text(line), passes).findings if f.rule.startswith("HI5")]
    assert [(f.rule, f.severity, f.subject, f.location.line if f.location else 0) for f in findings] == [
        (rule, severity, subject, place)
    ]
