"""Training steps that differ in what they keep, against what XLA says of their memory (`data/make_memory.py`)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[2] / "data/memory"
EXPECTED: dict[str, dict[str, int]] = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
FIGURES = {"argument_size": "argument", "output_size": "output", "alias_size": "alias", "peak_memory": "xla_peak"}


@cache
def facts(name: str) -> dict[str, Value]:
    return dict(hlo_inspect.inspect(DATA / f"{name}.hlo", "memory").facts)


def temp(name: str) -> int:
    size = facts(name)["memory.temp_bytes"]
    assert isinstance(size, int)
    return size


@pytest.mark.parametrize("name", EXPECTED)
def test_the_figures_of_memory_analysis(name: str) -> None:
    stated = EXPECTED[name]
    assert {key: facts(name)[f"memory.{figure}_bytes"] for key, figure in FIGURES.items()} == {
        key: stated[key] for key in FIGURES
    }
    assert facts(name)["memory.host_bytes"] == stated["host_temp_size"]
    rounded = 16384 if name.startswith("tpu") else 1  # memory_analysis() rounds temporaries of a TPU up to it
    assert -(-temp(name) // rounded) * rounded == stated["temp_size"]


@pytest.mark.parametrize("target", ["cpu", "gpu", "tpu"])
def test_checkpointing_in_a_loop_halves_what_is_kept(target: str) -> None:
    assert temp(f"{target}_scan_remat") < temp(f"{target}_scan") / 2


def test_checkpointing_without_a_loop_gains_nothing_on_cpu() -> None:
    """As XLA says it: CPU's schedule computes again before it has to."""
    assert temp("cpu_unrolled_remat") == temp("cpu_unrolled")


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_without_donation_temporaries_lie_in_the_new_outputs(target: str) -> None:
    """They take 32 MiB less, which the outputs take more: the program needs as much."""
    with_it, without = f"{target}_scan", f"{target}_scan_not_donated"
    assert temp(with_it) - temp(without) == 32 << 20
    assert facts(with_it)["memory.needed_bytes"] == facts(without)["memory.needed_bytes"]


def test_bfloat16_halves_the_arguments() -> None:
    for target in ("cpu", "gpu", "tpu"):
        argument = [facts(f"{target}_{name}")["memory.argument_bytes"] for name in ("scan_bf16", "scan")]
        assert argument == [18 << 20, 36 << 20]
    assert temp("gpu_scan_bf16") < temp("gpu_scan") * 0.6
    assert temp("cpu_scan_bf16") > temp("cpu_scan")  # but its products are of float32


def test_offloaded_arrays_are_in_host_memory() -> None:
    """Four layers of 2048 x 512 floats."""
    assert facts("tpu_scan_offload")["memory.host_bytes"] == 4 * 2048 * 512 * 4
    assert temp("tpu_scan_offload") < temp("tpu_scan_remat") < temp("tpu_scan")
