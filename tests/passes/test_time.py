"""The page of `time`: rows that add up to the facts, shares, comparisons, and what there is without a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report, Value

DATA = Path(__file__).parents[1] / "data"
GATHERED = DATA / "gpu/gathered_matmul.after.txt"
SCAN = DATA / "cpu/scan_fsdp.after.txt"
BEFORE = DATA / "cpu/gathered_matmul.before.txt"

WINDOW = 2 * 2**23 / 3352e9
"""8 MiB are transposed between start and done of the first gather."""


def report(path: Path, *profiles: str, what_if: Sequence[str] = ()) -> Report:
    return hlo_inspect.inspect(path, ("time",), profile=profiles or "h100-sxm", what_if=what_if)


def number(value: Value) -> float:
    assert isinstance(value, int | float)
    return value


def column(found: Report, table: str, name: str) -> list[Value]:
    return [row[name] for row in found.table(table).records()]


def total(found: Report, table: str, name: str) -> float:
    return sum(value for value in column(found, table, name) if isinstance(value, int | float))


@pytest.mark.parametrize("path", [GATHERED, SCAN, DATA / "tpu/gathered_matmul.after.txt", DATA / "gpu/scan_forward.after.txt"])
def test_rows_add_up_to_the_facts(path: Path) -> None:
    found = report(path, "tpu-v5e" if "tpu" in str(path) else "h100-sxm")
    facts = found.facts

    def least(name: str) -> float:
        return number(facts[name] if facts[name] is not None else facts[f"{name}.lower_bound"])

    step, likely = least("time.step_s"), least("time.estimate_step_s")
    assert step == pytest.approx(least("time.kernels_s") + least("time.exposed_collective_s"), rel=1e-9)
    for table in ("step", "time_by_phase", "time_by_scope", "time_by_source"):
        assert total(found, table, "bound_s") == pytest.approx(step, rel=1e-9), table
        assert total(found, table, "estimate_s") == pytest.approx(likely, rel=1e-9), table
        assert total(found, table, "share") == pytest.approx(1), table
    assert total(found, "time_by_phase", "exposed_s") == pytest.approx(least("time.estimate_exposed_collective_s"), rel=1e-9)
    kernels = [row for row in found.table("kernels").records() if row["bound_by"] != "collective"]
    assert sum(number(row["bound_s"]) for row in kernels) == pytest.approx(least("time.kernels_s"), rel=1e-9)


def test_an_exposed_collective_and_what_could_hide_it() -> None:
    """The second gather is hidden by a product; the first one has a transpose to hide it, and could have nothing else, as all
    that follows uses its result, but for the other transpose, which is that one.
    """
    rows = {row["name"]: row for row in report(GATHERED).table("exposed_collectives").records()}
    assert list(rows) == ["all-gather-start", "reduce-scatter-start"]
    first, last = rows.values()
    assert first["window_s"] == pytest.approx(1e-6 + WINDOW)
    assert first["could_hide_s"] == pytest.approx(1e-6 + WINDOW)
    assert first["longest"] == "wrapped_transpose.1"
    assert first["exposed_s"] == pytest.approx(18.6e-6 + 3 * 2**23 / (0.824 * 450e9) - 1e-6 - WINDOW)
    assert (last["window_s"], last["could_hide_s"], last["longest"]) == (0, 0, None)


def test_what_is_busy_and_what_binds() -> None:
    found = report(GATHERED)
    busy = dict(zip(column(found, "resources", "resource"), column(found, "resources", "busy_s"), strict=True))
    assert busy["matrix unit"] == pytest.approx(2 * 2 * 4096 * 2048 * 8192 / 989.4e12)
    assert busy["nvlink"] == pytest.approx((2 * 3 * 2**23 + 3 * 2**22) / 450e9)
    (binds,) = (row for row in found.headline if row.label == "binds")
    assert binds.parts[0] == "matrix unit, busy at least "


def test_without_a_schedule_there_is_a_range() -> None:
    found = report(BEFORE)
    assert found.facts["time.exposed_collective_s"] is None
    assert found.facts["time.estimate_step_s"] is None
    least = number(found.facts["time.step_s"] or found.facts["time.step_s.lower_bound"])
    assert least == max(number(found.facts[f"time.{name}_s"] or 0) for name in ("compute", "memory", "collective"))
    assert {table.name for table in found.tables} >= {"resources", "kernels"}
    assert "step" not in {table.name for table in found.tables}
    assert any("the text is no schedule" in str(part) for row in found.headline for part in row.parts)


def test_without_a_profile_there_is_no_time() -> None:
    found = hlo_inspect.inspect(BEFORE, ("time",))
    assert found.tables == ()
    assert found.facts["time.step_s"] is None


def test_profiles_side_by_side() -> None:
    found = report(GATHERED, "a100-sxm-80gb", "h100-sxm")
    rows = {row["figure"]: row for row in found.table("compared").records()}
    flops = rows["all FLOPs alone"]
    alone = hlo_inspect.inspect(GATHERED, ("cost",), profile="h100-sxm").facts["time.compute_s"]
    assert flops["h100-sxm"] == alone
    assert flops["times_as_fast"] == pytest.approx(number(flops["a100-sxm-80gb"]) / number(alone), abs=1e-3)
    assert rows["binds"]["a100-sxm-80gb"] == "matrix unit"


def test_what_a_change_of_the_machine_buys() -> None:
    found = report(GATHERED, "h100-sxm", what_if=["links.nvlink.bandwidth=2x"])
    rows = {row["figure"]: row for row in found.table("compared").records()}
    assert rows["all collectives alone"]["times_as_fast"] == 2
    assert rows["all FLOPs alone"]["times_as_fast"] == 1
    likely = 2 * 3 * 2**23 / 450e9 / 2
    assert number(rows["exposed collectives at bounds"]["changed"]) < likely
