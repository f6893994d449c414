"""Alpa's counts and costs by its own expressions on the texts of dumps and of a case, which has them by hand."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from tests.cases.case import FOLDER, cases_of

DATA = Path(__file__).parents[1] / "data"

TEXT = next(cases_of(FOLDER / "passes/alpa/costs.hlo")).text


def test_costs_equal_those_of_alpa_s_own_expressions() -> None:
    def matched(pattern: str) -> list[float]:
        return [math.prod(map(float, match.groups())) for match in re.finditer(pattern, TEXT)]

    shape = r"f32\[(\d+),(\d+)\]"
    multiplications = sum(map(math.sqrt, matched(f"custom-call.*{shape}.*{shape}.*{shape}.*cublas")))
    reduced, exchanged = matched(rf"all-reduce\({shape}"), matched(r"all-to-all\(f32\[(\d+),(\d+),(\d+)\]")
    gathered = matched(r"all-gather\(f32\[(\d+),(\d+),(\d+)\]")
    assert len([*reduced, *exchanged, *gathered]) == TEXT.count("channel_id")
    expected = 0.001 * multiplications + 2 * sum(reduced) + sum(exchanged) + 4 * sum(gathered)
    assert hlo_inspect.inspect(TEXT, "alpa").facts["alpa.search_cost"] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("dump", sorted(DATA.glob("*/collectives*.txt")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_tuple_is_what_alpa_counts_in_a_text(dump: Path) -> None:
    text = dump.read_text(encoding="utf-8")
    facts = hlo_inspect.inspect(dump, "alpa").facts
    assert facts["alpa.collectives.total"] == text.count("channel_id")
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
        counted = text.count(f"{kind}(") + text.count(f"{kind}-start(")
        assert (kind, facts[f"alpa.collectives.{kind.replace('-', '_')}"]) == (kind, counted)


@pytest.mark.parametrize(
    ("name", "beta", "message"),
    [
        ("alpa-mesh", f"d0={'9' * 5000}", "is not a valid beta"),
        ("alpa", None, "--cost-model is one of alpa-search, alpa-mesh, not 'alpa'"),
    ],
)
def test_options_that_make_no_sense(name: Any, beta: str | None, message: str) -> None:
    with pytest.raises(hlo_inspect.UsageError, match=message):
        hlo_inspect.inspect(TEXT, ("collectives", "alpa"), cost_model=name, beta=beta)


def test_collectives_in_a_loop_cost_each_run() -> None:
    """scan_forward gathers 256 bytes over d0 in each of three runs, and reduces one number over both axes."""
    facts = hlo_inspect.inspect(DATA / "cpu/scan_forward.after.txt", "alpa").facts
    assert facts["alpa.mesh_cost.d0"] == pytest.approx(3 * (1 + 1 * 1 / 2 * 256 + 0.1))


def test_collectives_without_a_cost_have_a_note() -> None:
    alpa_report = hlo_inspect.inspect(DATA / "cpu/collectives.after.txt", "alpa")
    assert any(note.startswith("1 collective has no cost") for note in alpa_report.notes)
