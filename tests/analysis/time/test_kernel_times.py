"""The compiler's own estimates: of dumps, and of a number that no program holds. tests/cases/analysis/time has worked ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("dump", sorted((DATA / "tpu").glob("*.after.txt")) + sorted((DATA / "memory").glob("tpu_*.hlo")))
def test_the_compilers_estimates_of_a_dump(dump: Path) -> None:
    """Every estimate of a loop or output fusion that runs on a TPU v5e is read; no bound exceeds one by over 5 %.

    On-chip memory is free in bounds, and costs in the model.
    """
    text = dump.read_text(encoding="utf-8")
    stated = re.findall(r'kind=k(?:Loop|Output).*"estimated_cycles":"(\d+)"', text)
    report = hlo_inspect.inspect(dump, "top", profile="tpu-v5e")
    rows = report.table("kernels").records()
    fusions = [row for row in rows if row["fusion_kind"] in ("kLoop", "kOutput")]
    cycles = [round(number(row["compiler_s"]) / number(row["runs"] or 1) * 1.5e9) for row in fusions]
    assert sorted(cycles) == sorted(map(int, stated))
    assert all(number(row["bound_s"]) <= 1.05 * number(row["compiler_s"]) for row in rows if row["compiler_s"])


def test_cycles_of_thousands_of_digits_are_no_estimate() -> None:
    config = f'{{"window_config":{{"estimated_cycles":"{"9" * 5000}"}}}}'
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p), backend_config={config}\n}}\n"
    (kernel,) = hlo_inspect.inspect(text, "top", profile="tpu-v5e").table("kernels").records()
    assert kernel["compiler_s"] is None


def number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
