"""The first screens of `summary`, as a terminal of 24 lines shows them at three widths.

The samples and larger dumps lie beside the repository; tests are skipped without them.
HLO_INSPECT_REWRITE_GOLDEN=1 writes the files in `golden`; read them before you keep them.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.modules import ModuleList
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value
from hlo_inspect.request import Request

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
DUMPS = ROOT.parent / "shared" / "dumps"
SAMPLES = DUMPS / "seeds"
GOLDEN = Path(__file__).parent / "golden"
WIDTHS = (80, 120, 200)
LINES = 24

SCREENS = {
    "sample_000": (SAMPLES, "000_0dd7b20a7ec1e4a1.txt", None),
    "sample_001": (SAMPLES, "001_f260b7b1b8c886c1.txt", "a100-sxm-80gb"),
    "sample_002": (SAMPLES, "002_496ac125c3946675.txt", "tpu-v5e"),
    "sample_003": (SAMPLES, "003_ec526f178b8c47e2.txt", None),
    "sample_004": (SAMPLES, "004_b1cf5d3eba6d7049.txt", None),
    "gpu": (DATA, "gpu/bf16_master.after.txt", "h100-sxm"),
    "tpu": (DATA, "tpu/scan_forward.after.txt", "tpu-v5e"),
    "gpu_step": (DUMPS, "gpu_h100x8/tf_fsdp_unroll.opt.hlo.txt.xz", "h100-sxm"),
    "tpu_step": (DUMPS, "tpu_v5e_2x4/tf_fsdp_scan.opt.hlo.txt.xz", None),
    "llama_as_written": (DUMPS, "real/hlo_llama3_8b_bf16_activation_offloading_1x8.hlo.txt.xz", "h100-sxm"),
    "does_not_fit": (DUMPS, "newest/v5e_16b.txt.xz", "tpu-v2"),
    "directory": (DATA, "gpu", None),
    "cut_off": (DATA, "handmade/cut_off.txt", None),
    "workload": (DATA, "workloads/simai.txt", None),
}
WORKLOADS = {"sample_003", "workload"}
"""Screens of workload files of network simulators, which have no memory."""


@cache
def screens(name: str) -> dict[int, list[str]]:
    """Return the lines of the page at each width."""
    folder, path, profile = SCREENS[name]
    if not folder.is_dir():
        pytest.skip("the samples are not there")
    before = Path.cwd()
    os.chdir(folder)
    try:
        with Inspection(Request("summary", profile=profile)) as inspection:
            reports = list(inspection.reports(Path(path)))
    finally:
        os.chdir(before)
    if len(reports) > 3:
        modules = ModuleList()
        assert list(modules.noting(reports)) == reports
        reports = [modules.report(path)]  # it is the last, so that it stays on the screen
    return {width: rendered(reports, width) for width in WIDTHS}


def rendered(reports: list[Report], width: int) -> list[str]:
    stream = StringIO()
    FORMATS["table"](reports, stream, RenderOptions(width=width))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("name", SCREENS)
def test_first_screens(name: str) -> None:
    pages = screens(name)
    text = "".join(f"== {width} columns ==\n" + "".join(f"{line}\n" for line in pages[width][:LINES]) for width in WIDTHS)
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("HLO_INSPECT_REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8", newline="\n")
    assert text == golden.read_text(encoding="utf-8")
    assert all(len(line) <= width for width in WIDTHS for line in pages[width][:LINES])


@pytest.mark.parametrize("name", sorted(SCREENS.keys() - {"directory"}))
def test_the_first_dozen_lines_answer_the_questions_of_a_newcomer(name: str) -> None:
    first = screens(name)[120][:12]
    starts = [re.split(r"\s{2,}", line)[0] for line in first]
    assert {"compute", "collectives", "findings", *(() if name in WORKLOADS else ("memory",))} <= set(starts)


def table_of(title: str, page: list[str]) -> list[str]:
    """Return the lines of a table, its heading first."""
    rest = page[page.index(title) + 1 :]
    return rest[: rest.index("")] if "" in rest else rest


@pytest.mark.parametrize("width", [80, 100, 120])
def test_columns_go_before_a_label_is_cut(width: int) -> None:
    with Inspection(Request("cost", profile="tpu-v5e")) as inspection:
        (report,) = inspection.reports(DATA / "tpu/bf16_master.after.txt")
    cells: dict[str, Value] = {"phase": "optimizer", "flops": 27_300_000, "transcendentals": 1_706_115, "bound": "compute"}
    cells |= {"matmul_flops": 872_400_000, "bytes_accessed": 178_000_000}
    cells |= {"share": 0.00001, "compute_s": 1e-13, "memory_s": 1.47e-11}
    table = report.table("cost_by_phase")
    grid = make_grid(replace(table, rows=(tuple(cells.get(column.name) for column in table.columns),)), width)
    assert grid.rows[0][0] == "optimizer"
    assert grid.width <= width


def test_a_computed_rate_takes_the_place_of_the_learning_rate() -> None:
    for name, shown, hidden in (("adamw_clip", "rate", "learning rate"), ("adamw", "learning rate", "rate")):
        with Inspection(Request("summary")) as inspection:
            header = table_of("Optimizer", rendered(list(inspection.reports(DATA / f"optimizers/{name}.after.hlo")), 80))[0]
        headings = re.split(r"\s{2,}", header)
        assert shown in headings
        assert hidden not in headings


def test_the_groups_of_an_optimizer_show_a_computed_rate() -> None:
    with Inspection(Request("optimizer")) as inspection:
        page = rendered(list(inspection.reports(DATA / "optimizers/adamw_clip.after.hlo")), 80)
    assert "rate" in re.split(r"\s{2,}", table_of("Rules and constants", page)[0])


@pytest.mark.parametrize("name", sorted(name for name in SCREENS.keys() - WORKLOADS if name.startswith("sample")))
def test_first_lines_and_findings_take_at_most_45_lines_of_80_columns(name: str) -> None:
    page = screens(name)[80]
    assert page.index("Entry parameters and outputs") <= 45


@pytest.mark.parametrize("name", sorted(name for name in SCREENS.keys() - WORKLOADS if name.startswith("sample")))
def test_the_pages_show_the_first_lines_of_the_samples(name: str) -> None:
    """At 120 columns, without the line of the file."""
    golden = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").split("== 120 columns ==\n")[1].splitlines()
    assert "\n".join(golden[2 : golden.index("")]) in (ROOT / "docs/commands/summary.md").read_text(encoding="utf-8")
