"""Thresholds of rules: the least stake that is a finding, as `--threshold RULE=SIZE` sets it."""

from __future__ import annotations

from collections.abc import Iterable

from hlo_inspect.errors import UsageError
from hlo_inspect.findings import RULE_TABLE, RULES, find_rule
from hlo_inspect.report.units import parse_quantity


def parse_thresholds(written: Iterable[str]) -> dict[str, int | float]:
    """Return the thresholds by name of the rule, in bytes or FLOPs; of two for one rule the last.

    Raise UsageError for a text that is not RULE=SIZE, for an unknown rule or one without a threshold, and for a wrong unit.
    """
    return dict(_parse(text) for text in written)


def _parse(text: str) -> tuple[str, int | float]:
    label, sign, size = text.partition("=")
    if not sign:
        raise UsageError(f"--threshold {text!r} is not RULE=SIZE, for example small-collectives=4MiB")
    name = find_rule(label.strip()).name
    if name not in RULE_TABLE or not RULES.load(name).threshold:
        raise UsageError(f"--threshold {text!r}: {name} has no threshold")
    try:
        least = parse_quantity(size, "flops" if RULES.load(name).resource == "flops" else "bytes")
    except ValueError as error:
        raise UsageError(f"--threshold {name}: {error}") from error
    if least < 0:
        raise UsageError(f"--threshold {name}: {size.strip()!r} is less than 0")
    return name, least
