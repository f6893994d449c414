"""The command `top` on dumps: its rows add up, and notes and widths of its page. Small programs are in tests/cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.table import Value
from tests.tables import columns, totals

DATA = Path(__file__).parents[1] / "data"
DUMPS = sorted(json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"])


def rows(report: Report, table: str, *names: str) -> dict[Value, tuple[object, ...]]:
    kernels = report.table(table)
    return {row[0]: values for row, values in zip(kernels.rows, columns(kernels, *names), strict=True)}


@pytest.mark.parametrize("name", DUMPS)
def test_rows_add_up_to_what_the_module_costs(name: str) -> None:
    for report in hlo_inspect.inspect_all(DATA / name, ("top", "cost")):
        for table in ("kernels", "kernel_groups"):
            sums = totals(report.table(table))
            for column, fact in (("flops", "flops"), ("bytes", "bytes_accessed"), ("matmul_flops", "matmul_flops")):
                if sums.get(column) is not None and not report.facts["cost.unknown_custom_calls"]:
                    assert sums[column] == report.facts[f"cost.executed_{fact}"]


@pytest.mark.parametrize("command", ["top", "cost", "fusions"])
def test_calls_that_double_without_end(command: str) -> None:
    """2^3000 runs are more than can be counted, and than a float holds."""
    step = "%step {\n  %x = f32[8] parameter(0)\n  ROOT %y = f32[8] negate(%x)\n}\n"
    doubling = "".join(
        f"%c{i} {{\n  %x = f32[8] parameter(0)\n  %y = f32[8] call(%x), to_apply={callee}\n"
        f"  ROOT %z = f32[8] call(%y), to_apply={callee}\n}}\n"
        for i in range(3000)
        for callee in [f"%c{i - 1}" if i else "%step"]
    )
    entry = "ENTRY %main {\n  %p = f32[8] parameter(0)\n  ROOT %c = f32[8] call(%p), to_apply=%c2999\n}\n"
    report = hlo_inspect.inspect(f"HloModule m\n\n{step}{doubling}{entry}", command, profile="h100-sxm")
    if command == "top":
        assert report.facts["kernels.executed_count"] is None
        assert rows(report, "kernels", "flops", "bytes_lower_bound")["y"] == (None, 10**30)


TPU_DUMP = DATA / "tpu" / "scan_forward.after.txt"


@pytest.mark.parametrize("command", ["top", "cost"])
def test_a_note_names_an_inferred_clock(command: str) -> None:
    """No document states the clock of a TPU v6e; that of a v5e is stated."""
    said = "the compiler's cycles are converted to seconds by an inferred clock of tpu-v6e, 1.75 GHz: no document states it"
    assert any(note.endswith(said) for note in hlo_inspect.inspect(TPU_DUMP, command, profile="tpu-v6e").notes)
    assert not any("inferred clock" in note for note in hlo_inspect.inspect(TPU_DUMP, command, profile="tpu-v5e").notes)


@pytest.mark.parametrize("profile", [None, "h100-sxm"])
@pytest.mark.parametrize("raw_bytes", [False, True])
def test_a_page_of_the_usual_width_has_the_source(profile: str | None, raw_bytes: bool) -> None:
    groups = hlo_inspect.inspect(DATA / DUMPS[0], "top", profile=profile).table("kernel_groups")
    assert "source" not in make_grid(groups, None, raw_bytes).hidden


def test_the_page_says_how_much_of_its_rows_is_hidden() -> None:
    """A transpose of 16 MiB hides its 6.0 us of one gather, a product hides another whole: 18.6 us and 24 MiB on the links."""
    report = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "top", profile="h100-sxm")
    hidden = next(row for row in report.headline if row.label == "rows")
    bounds = 2**24 / 3352e9 + 3 * 2**23 / 450e9
    estimates = (1e-6 + 2**24 / 3352e9) + (18.6e-6 + 3 * 2**23 / (0.824 * 450e9))
    text = f"bounds add up to {1e6 * bounds:.1f} µs more than the step, estimates {1e6 * estimates:.1f} µs more"
    assert headline_text(hidden).replace("\u00a0", " ").startswith(text)
    time = hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "time", profile="h100-sxm").facts["time.estimate_step_s"]
    assert isinstance(time, float)
    assert totals(report.table("kernels"))["estimate_s"] == pytest.approx(time + estimates, rel=1e-3)
    assert not hlo_inspect.inspect(DATA / "gpu/gathered_matmul.after.txt", "top").headline
