"""The kind of program of dumps, whose names say what was compiled. tests/cases/analysis has small programs."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.program import Program
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes import PASSES

DATA = Path(__file__).parents[1] / "data"
WANTS = next(iter(PASSES)).wants
for pass_ in PASSES:
    WANTS |= pass_.wants


def program(text: str | Path) -> Program:
    (module,) = read_modules(open_source(text), WANTS)
    return Context(module).program


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cpu/adamw_step.after.txt", "training step"),
        ("gpu/bf16_master.after.txt", "training step"),
        ("cpu/sgd_unused.after.txt", "training step"),
        ("optimizers/lion.after.hlo", "training step"),
        ("optimizers/lion.before.hlo", "training step"),
        ("cpu/collectives.after.txt", "program"),  # collectives of every kind and no matrix multiplication
    ],
)
def test_dumps(name: str, kind: str) -> None:
    assert program(DATA / name).kind == kind


SHARED = Path(__file__).parents[3] / "shared" / "dumps"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the dumps are not there")
@pytest.mark.parametrize(
    ("name", "kind", "caches"),
    [
        ("cpu/decode_tp.opt", "decode step", 8),  # keys and values of 4 layers
        ("cpu/decode_tp.pre", "decode step", 8),
        ("tpu_v5e_2x4/decode_tp.opt", "decode step", 8),
        ("cpu/fwd_mlp_inference.opt", "forward pass", 0),
        ("gpu_h100x8/tf_fsdp_unroll.opt", "training step", 0),
        ("cpu/ring_attention_ppermute.opt", "forward and backward pass", 0),
    ],
)
def test_dumps_of_compilers(name: str, kind: str, caches: int) -> None:
    step = program(lzma.decompress((SHARED / f"{name}.hlo.txt.xz").read_bytes()).decode())
    assert (step.kind, len(step.cache)) == (kind, caches)
