"""The collectives in one step of programs with loops: sites, runs and bytes of each kind, worked out by hand.

The bodies that hold collectives, the trip counts, and the shapes were read from the texts. The larger dumps are kept
beside the checkout; their tests are skipped without that folder.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from tests.tables import totals

DATA = Path(__file__).parents[1] / "data"
BESIDE = Path(__file__).parents[3] / "shared/dumps"

Step = dict[str, tuple[int, int, int, int]]
"""By kind: sites, runs of one step, bytes of their operands, bytes that one device sends."""

# Three layers: each weight of 8 x 8 floats is gathered from 2 devices, forward and again backward, and its gradient scattered
# to them; the gradients of all, 3 x 4 x 8, are summed over 4 devices, and a float over 8.
FSDP: Step = {
    "all-gather": (2, 6, 6 * 128, 6 * 128),
    "reduce-scatter": (1, 3, 3 * 256, 3 * 128),
    "all-reduce": (2, 2, 384 + 4, 576 + 7),
}
FORWARD: Step = {"all-gather": (1, 3, 3 * 128, 3 * 128), "all-reduce": (1, 1, 4, 7)}
BETWEEN_SLICES: Step = {"all-reduce": (1, 1, 64 * 128 * 4, 64 * 128 * 4 * 6 // 4)}

STEPS: dict[str, Step] = {
    "cpu/scan_fsdp.after": FSDP,
    "jax_0_5_0/scan_fsdp.after": FSDP,
    "gpu/scan_forward.after": FORWARD,
    "tpu/scan_forward.after": FORWARD,
    "tpu/between_slices.after": BETWEEN_SLICES,
}

# pipeline_ppermute: 15 = 8 stages + 7 runs of each of two loops pass on 16 x 256 numbers, on TPU forward as bf16; 8 x 16 x 256
# floats are summed over 8 devices. ring_attention_ppermute: 8 runs of two loops pass on keys and values, 2 x 32 x 4 x 64
# numbers each. tf_fsdp_scan: 7 weights of 4 layers are gathered in each of two loops, with tokens and the vocabulary outside;
# the gradients of the layers are summed in the second loop, on TPU scattered.
STEPS_BESIDE: dict[str, Step] = {
    "cpu/tf_fsdp_scan": {
        "all-gather": (16, 58, 4_194_816, 29_363_712),
        "all-reduce": (3, 6, 17_835_048, 31_211_334),
        "all-to-all": (2, 2, 262_144, 229_376),
    },
    "tpu_v5e_2x4/tf_fsdp_scan": {
        "all-gather": (16, 58, 2_097_664, 14_683_648),
        "reduce-scatter": (2, 5, 8_912_896, 7_798_784),
        "all-to-all": (2, 2, 131_072, 114_688),
        "all-reduce": (2, 2, 4_648, 8_134),
    },
    "gpu_h100x8/tf_dptp_scan": {"all-reduce": (12, 27, 7_347_752, 9_840_426)},
    "cpu/pipeline_ppermute": {
        "collective-permute": (2, 30, 30 * 16 * 256 * 4, 30 * 16 * 256 * 4),
        "all-reduce": (1, 1, 131_072, 131_072 * 14 // 8),
    },
    "tpu_v5e_2x4/pipeline_ppermute": {
        "collective-permute": (2, 30, 15 * 16 * 256 * (2 + 4), 15 * 16 * 256 * (2 + 4)),
        "all-reduce": (1, 1, 131_072, 131_072 * 14 // 8),
    },
    "cpu/ring_attention_ppermute": {
        "collective-permute": (4, 32, 32 * 2 * 32 * 4 * 64 * 4, 32 * 2 * 32 * 4 * 64 * 4),
        "all-reduce": (1, 1, 4, 7),
    },
    "timeline/tpu_v5e_2x4_ring_attention_ppermute": {
        "collective-permute": (4, 32, 32 * 2 * 32 * 4 * 64 * 2, 32 * 2 * 32 * 4 * 64 * 2),
        "all-reduce": (1, 1, 4, 7),
    },
}

CASES = [(DATA / f"{name}.txt", step) for name, step in STEPS.items()]
CASES += [(BESIDE / f"{name}.opt.hlo.txt.xz", step) for name, step in STEPS_BESIDE.items() if BESIDE.is_dir()]


@pytest.mark.parametrize(("path", "step"), CASES, ids=[str(path.relative_to(path.parents[1])) for path, _ in CASES])
def test_step(path: Path, step: Step) -> None:
    report = hlo_inspect.inspect(path, "collectives")
    figures = ("count", "executed_count", "executed_operand_bytes", "executed_wire_bytes")
    kinds = [name.split(".")[1] for name in report.facts if name.endswith(".executed_operand_bytes") and name.count(".") == 2]
    by_kind = {kind: tuple(report.facts[f"collectives.{kind}.{figure}"] for figure in figures) for kind in kinds}
    assert {kind: values for kind, values in by_kind.items() if values[0]} == step
    total = [sum(column) for column in zip(*step.values(), strict=True)]
    assert [report.facts[f"collectives.{figure}"] for figure in figures] == total
    sums = totals(report.table("collectives_by_kind"))
    assert [sums[name] for name in ("sites", "runs", "executed_operand_bytes", "executed_wire_bytes")] == total
    sums = totals(report.table("collective_groups"))
    assert [sums[name] for name in ("sites", "runs", "executed_operand_bytes", "executed_wire_bytes")] == total
