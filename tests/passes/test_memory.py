"""The command `memory` on dumps: live arrays add up, and files and hardware count. Small programs are in tests/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.table import Value

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(path for folder in ("cpu", "gpu", "tpu", "jax_0_5_0") for path in (DATA / folder).glob("*.after.txt"))


def columns(report: Report, table: str, *names: str) -> list[tuple[Value, ...]]:
    return [tuple(record[name] for name in names) for record in report.table(table).records()]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_live_arrays_add_up_to_the_peak(dump: Path) -> None:
    report = hlo_inspect.inspect(dump, "memory")
    peak = report.facts["memory.peak_bytes"]
    live = report.table("live_at_peak")
    assert peak is not None
    for table in ("live_at_peak", "live_at_peak_groups", "live_by_role", "live_by_source"):
        peak_table = report.table(table)
        index = [column.name for column in peak_table.columns].index("bytes")
        assert peak_table.total is not None
        assert peak_table.total[index] == peak
    padding = [record["padding_bytes"] for record in live.records()]
    assert sum(size for size in padding if isinstance(size, int)) == report.facts["memory.padding_bytes"]
    curve = [size for (size,) in columns(report, "live_bytes", "bytes") if isinstance(size, int)]
    assert max(curve, default=peak) == peak
    for first, last in columns(report, "live_at_peak", "live_from", "live_to"):
        assert first is None or (isinstance(first, int) and isinstance(last, int) and 0 <= first <= last)


@pytest.mark.parametrize("folder", ["xla_dump_to", "dump_jax_0_12"])
def test_the_temporaries_of_xla_are_those_of_its_file(folder: str, tmp_path: Path) -> None:
    """The buffer assignment has `allocation 8: size 896, page 0, preallocated-temp`; without it they are computed alone."""
    text = DATA / folder / "module_0000.jit_step.cpu_after_optimizations.txt"
    assert hlo_inspect.inspect(text, "memory").facts["memory.xla_temp_bytes"] == 896
    alone = tmp_path / text.name
    alone.write_bytes(text.read_bytes())
    facts = hlo_inspect.inspect(alone, "memory").facts
    assert (facts["memory.temp_bytes"], facts.get("memory.xla_temp_bytes")) == (896, None)


def test_the_share_that_jax_preallocates_is_named() -> None:
    text = (DATA / "memory" / "gpu_scan.hlo").read_text()
    assert first_lines(text, "h100-sxm").endswith("; JAX preallocates 75 % unless XLA_PYTHON_CLIENT_MEM_FRACTION is set")
    larger = text.replace("2048", "40960")  # more than 59.7 GiB of 79.6
    assert "left, but not in the 75 % that JAX preallocates unless" in first_lines(larger, "h100-sxm")


def first_lines(text: str, profile: str) -> str:
    """Return the first line of the page of `memory`."""
    report = hlo_inspect.inspect(text, "memory", profile=profile)
    return " ".join(headline_text(report.headline[0], raw_bytes=False).replace("\u00a0", " ").split())
