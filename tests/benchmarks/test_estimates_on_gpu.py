"""Recorded times beside estimates: kinds of kernels, and the programs of the recorder."""

from __future__ import annotations

import lzma
import zipfile
from pathlib import Path

import pytest

from benchmarks.estimates_on_gpu import KindTimes, read_archive

PROFILE = Path(__file__).parents[1] / "data" / "profile"
US = 1e-6


def test_a_row_has_multiples_of_the_measured_time() -> None:
    times = KindTimes("mlp", "fusion kLoop", 2, 20 * US, 5 * US, 24 * US, is_known=False)
    assert times.row == "| mlp | fusion kLoop | 2 | 20.0 µs | 0.25 | >= 1.20 |"


def test_kinds_of_a_recorded_program(tmp_path: Path) -> None:
    """All kernels of the dump with a measured time are in one kind."""
    path = tmp_path / "recorded.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mlp.hlo", lzma.decompress((PROFILE / "mlp.hlo.xz").read_bytes()))
        archive.writestr("mlp.xplane.pb", (PROFILE / "mlp.xplane.pb").read_bytes())
        archive.writestr("failed.txt", "")
    with zipfile.ZipFile(path) as archive:
        kinds = list(read_archive(archive, "h200"))
    assert {kind.program for kind in kinds} == {"mlp"}
    assert len({kind.kind for kind in kinds}) == len(kinds) > 0
    assert all(0 < kind.bound_s <= kind.estimate_s for kind in kinds)


@pytest.mark.extras("jax")
def test_small_programs_are_recorded() -> None:
    on_gpu = pytest.importorskip("benchmarks.on_gpu", exc_type=ImportError)
    assert set(on_gpu.PROGRAMS) >= {"product_bf16", "product_f8", "product_f32", "product_f64", "attention", "scan"}
    names = [name for name, _ in on_gpu.record_all(on_gpu.SMALL, seconds=-1)]
    assert names == ["failed.txt"]  # no program begins without time
