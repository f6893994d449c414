"""Alpa's counts and costs, each by hand, and by its own expressions on the text."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.request import CostModelName

DATA = Path(__file__).parents[1] / "data"

TEXT = """HloModule m, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %x, f32[] %y)
}

ENTRY %e (a: f32[8,4], b: f32[4,2], c: f32[4,2,2]) -> f32[8,2] {
  %a = f32[8,4]{1,0} parameter(0)
  %b = f32[4,2]{1,0} parameter(1)
  %c = f32[4,2,2]{2,1,0} parameter(2)
  %custom-call.1 = f32[8,2]{1,0} custom-call(f32[8,4]{1,0} %a, f32[4,2]{1,0} %b), custom_call_target="__cublas$gemm"
  %gemm.2 = f32[8,2]{1,0} custom-call(f32[8,4]{1,0} %a, f32[4,2]{1,0} %b), custom_call_target="__cublas$gemm"
  %sharding.3 = f32[8,2]{1,0} custom-call(f32[8,2]{1,0} %gemm.2), custom_call_target="Sharding"
  %all-reduce.4 = f32[8,2]{1,0} all-reduce(f32[8,2]{1,0} %custom-call.1), channel_id=1, replica_groups={{0,1,2,3}}, \
use_global_device_ids=true, to_apply=%add
  %all-to-all.5 = f32[4,2,2]{2,1,0} all-to-all(f32[4,2,2]{2,1,0} %c), channel_id=2, replica_groups={{0,1},{2,3}}, dimensions={0}
  %all-gather.6 = f32[8,2,2]{2,1,0} all-gather(f32[4,2,2]{2,1,0} %c), channel_id=3, replica_groups={{0,2},{1,3}}, \
dimensions={0}, use_global_device_ids=true
  ROOT %r = f32[8,2]{1,0} add(f32[8,2]{1,0} %all-reduce.4, f32[8,2]{1,0} %sharding.3)
}
"""
SCALAR = (
    "  %loss.7 = f32[] constant(1)\n"
    "  %all-reduce.8 = f32[] all-reduce(f32[] %loss.7), replica_groups={{0}}, channel_id=4, to_apply=%add\n  ROOT"
)


def report(text: str, name: CostModelName | None = None, alpha: str | None = None, beta: str | None = None) -> Report:
    return hlo_inspect.inspect(text, ("collectives", "alpa"), cost_model=name, alpha=alpha, beta=beta)


def test_the_cost_of_the_search() -> None:
    """8 x 4 x 2 multiplications, once: the other call's name does not say custom-call. Then elements."""
    facts = report(TEXT).facts
    assert facts["alpa.search_cost"] == pytest.approx(0.001 * 64 + 2 * 16 + 16 + 4 * 16)


def test_costs_equal_those_of_alpa_s_own_expressions() -> None:
    def matched(pattern: str) -> list[float]:
        return [math.prod(map(float, match.groups())) for match in re.finditer(pattern, TEXT)]

    shape = r"f32\[(\d+),(\d+)\]"
    multiplications = sum(map(math.sqrt, matched(f"custom-call.*{shape}.*{shape}.*{shape}.*cublas")))
    reduced, exchanged = matched(rf"all-reduce\({shape}"), matched(r"all-to-all\(f32\[(\d+),(\d+),(\d+)\]")
    gathered = matched(r"all-gather\(f32\[(\d+),(\d+),(\d+)\]")
    assert len([*reduced, *exchanged, *gathered]) == TEXT.count("channel_id")
    expected = 0.001 * multiplications + 2 * sum(reduced) + sum(exchanged) + 4 * sum(gathered)
    assert report(TEXT).facts["alpa.search_cost"] == pytest.approx(expected, rel=1e-15)


def test_an_assertion_that_fails_is_a_reason() -> None:
    alpa_report = report(TEXT.replace("  ROOT %r", f"{SCALAR} %r"))
    assert alpa_report.facts["alpa.search_cost"] is None
    assert any("it matches 3 collectives, and 4 instructions have a channel" in note for note in alpa_report.notes)


def test_a_permute_has_an_infinite_cost() -> None:
    permute = "  %p = f32[8,4]{1,0} collective-permute(f32[8,4]{1,0} %a), channel_id=4, source_target_pairs={{0,1}}\n  ROOT"
    assert report(TEXT.replace("  ROOT %r", f"{permute} %r")).facts["alpa.search_cost"] == math.inf


def test_the_tuple_with_and_without_scalars() -> None:
    facts = report(TEXT.replace("  ROOT %r", f"{SCALAR} %r")).facts
    names = ("total", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
    assert [facts[f"alpa.collectives.{name}"] for name in names] == [4, 2, 1, 0, 1]
    assert [facts[f"alpa.nonscalar_collectives.{name}"] for name in names] == [3, 1, 1, 0, 1]


@pytest.mark.parametrize("dump", sorted(DATA.glob("*/collectives*.txt")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_tuple_is_what_alpa_counts_in_a_text(dump: Path) -> None:
    text = dump.read_text(encoding="utf-8")
    facts = hlo_inspect.inspect(dump, "alpa").facts
    assert facts["alpa.collectives.total"] == text.count("channel_id")
    for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all"):
        counted = text.count(f"{kind}(") + text.count(f"{kind}-start(")
        assert (kind, facts[f"alpa.collectives.{kind.replace('-', '_')}"]) == (kind, counted)


def test_the_cost_of_the_mesh() -> None:
    """The mesh is 2 x 2.

    Whole arrays: 128 bytes gathered; 64 bytes on each of 2 devices exchanged, with a penalty of 2 / 2; 64 bytes reduced over
    both axes together, with the smaller beta.
    """
    facts = report(TEXT).facts
    assert facts["mesh.shape"] == "2x2"
    assert facts["alpa.mesh_cost.d0"] == pytest.approx(1 + 1 * 1 / 2 * 128 + 0.1)
    assert facts["alpa.mesh_cost.d1"] == pytest.approx(1 + 0.1 * 1 / 2 / 2 * 128 * 1 + 0.001)
    assert facts["alpa.mesh_cost.d0,d1"] == pytest.approx(1 + 0.1 * 2 * 3 / 4 * 64 + 0.01)


def test_alpha_and_beta_of_the_user() -> None:
    alpa_report = report(TEXT, name="alpa-mesh", alpha="d0=5,d1=7", beta="d0=0.5")
    assert alpa_report.facts["alpa.mesh_cost.d0"] == pytest.approx(5 + 0.5 * 1 / 2 * 128 + 0.1)
    assert alpa_report.facts["alpa.mesh_cost.d0,d1"] == pytest.approx(7 + 0.1 * 2 * 3 / 4 * 64 + 0.01)
    assert [table.name for table in alpa_report.tables if table.name.startswith("alpa")] == ["alpa_mesh"]


@pytest.mark.parametrize(
    ("name", "beta", "message"),
    [
        ("alpa-mesh", "d0", "is not a valid beta"),
        ("alpa-mesh", "d0=x", "is not a valid beta"),
        ("alpa-mesh", "d0=1,d0=2", "is not a valid beta"),
        ("alpa-mesh", f"d0={'9' * 5000}", "is not a valid beta"),
        ("alpa-mesh", "model=1", "the mesh has no axis 'model'; there are: d0, d1"),
        ("alpa", None, "--cost-model is one of alpa-search, alpa-mesh, not 'alpa'"),
    ],
)
def test_options_that_make_no_sense(name: Any, beta: str | None, message: str) -> None:
    with pytest.raises(hlo_inspect.UsageError, match=message):
        report(TEXT, name=name, beta=beta)


def test_collectives_in_a_loop_cost_each_run() -> None:
    """scan_forward gathers 256 bytes over d0 in each of three runs, and reduces one number over both axes."""
    facts = hlo_inspect.inspect(DATA / "cpu/scan_forward.after.txt", "alpa").facts
    assert facts["alpa.mesh_cost.d0"] == pytest.approx(3 * (1 + 1 * 1 / 2 * 256 + 0.1))


def test_collectives_without_a_cost_have_a_note() -> None:
    alpa_report = hlo_inspect.inspect(DATA / "cpu/collectives.after.txt", "alpa")
    assert any(note.startswith("1 collective has no cost") for note in alpa_report.notes)
    assert "alpa.search_cost: costs have no unit; compare them with each other, never with times" in alpa_report.notes
