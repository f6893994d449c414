"""`show`: its columns, and instructions of dumps. Blocks, operands, users and paths are in tests/cases/passes/show."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.formats.terminal import render_table
from hlo_inspect.report.model import Report
from hlo_inspect.report.page import headline_text
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Value
from hlo_inspect.report.units import format_value
from tests.cases.case import cases_of

DATA = Path(__file__).parents[1] / "data"
STEP = next(cases_of(Path(__file__).parents[1] / "cases/passes/show/blocks.hlo")).text


def show(name: str, text: str | Path = STEP, **asked: object) -> Report:
    return hlo_inspect.inspect(text, "show", name=name, **asked)  # type: ignore[arg-type]


def block(report: Report) -> dict[str, str]:
    return {row.label: headline_text(row).replace("\u00a0", " ") for row in report.headline}


def test_the_title_counts_operands_and_users() -> None:
    """More operands than are kept, and one reader: only of the operands there are more."""
    operands = "".join(f"  p{number} = f32[] parameter({number})\n" for number in range(2_100))
    names = ", ".join(f"p{number}" for number in range(2_100))
    shapes = ", ".join(["f32[]"] * 2_100)
    using = 'ROOT o = token[] custom-call(t), custom_call_target="x"'
    text = f"HloModule m\n\nENTRY e {{\n{operands}  t = ({shapes}) tuple({names})\n  {using}\n}}\n"
    titles = {table.name: table.title for table in hlo_inspect.inspect(text, "show", name="t").tables}
    assert titles["feeds"] == "Operands and their operands, within 2 steps: 2,000 or more instructions"
    assert titles["reads"] == "Users and their users, within 2 steps: 1 instruction"


def test_a_parameter_with_the_finding_that_names_it() -> None:
    report = show("mask", DATA / "cpu/sgd_unused.after.txt")
    assert block(report)["parameter"] == 'number 4, mask, divided ("d0",), not donated: no output has its shape and type'
    assert [(finding.rule, finding.message) for finding in report.findings] == [("HI102", "no instruction reads parameter 4")]
    assert show("x", DATA / "cpu/sgd_unused.after.txt").findings == ()


def test_live_ranges_and_times() -> None:
    said = block(show("all-reduce-start", DATA / "gpu/collectives.after.txt", profile="h100-sxm"))
    assert said["memory"].startswith("256 B live from 6 to 24")
    assert said["time"].startswith("bound 0.569 ns on h100-sxm, over nvlink")  # 256 B at 450 GB/s, reduced by the switch


COLUMNS = {
    "show": "name opcode shape bytes expression computation runs runs_lower_bound flops accessed_bytes "
    "executed_wire_bytes executed_wire_bytes_lower_bound bound_s bound_s_lower_bound estimate_s estimate_s_lower_bound phase "
    "op_name source line",
    "operands": "number name shape",
    "users": "name opcode shape line",
    "feeds": "steps name opcode shape bytes into expression phase computation op_name source line",
    "reads": "steps name opcode shape bytes of expression phase computation op_name source line",
    "ways": "steps way lines",
    "graph_nodes": "node name opcode shape expression phase computation side steps line",
    "graph_edges": "source target",
}
"""The columns of each table, which scripts may rely on."""


def test_the_columns_of_all_tables() -> None:
    for report in (show("dot.4"), show("all-reduce-start", DATA / "gpu/collectives.after.txt")):
        columns_of_tables = {
            table.name: [column.name for column in report.table(table.name).columns]
            for table in report.tables
            if table.name in COLUMNS
        }
        assert columns_of_tables == {name: columns.split() for name, columns in COLUMNS.items()}


@pytest.mark.parametrize(
    ("dump", "name", "row"),
    [
        # 2 x 4096 x 8192 x 2048, and 2 x 4096 x 8192 of conversions
        (
            "gpu/gathered_matmul.after",
            "gemm_fusion_dot_general.6",
            {"opcode": "fusion", "runs": 1, "flops": 2 * 4096 * 2048 * 8192 + 2 * 4096 * 8192, "line": 83, "phase": "unknown"},
        ),
        # 4 x 8 numbers gathered from 2 devices, three times; 128 bytes are read and 256 written
        (
            "cpu/scan_fsdp.after",
            "all_gather.6",
            {"shape": "f32[8,8]", "bytes": 256, "runs": 3, "accessed_bytes": 3 * (128 + 256), "computation": "region_0.1_spmd"},
        ),
    ],
)
def test_the_row_of_an_instruction(dump: str, name: str, row: dict[str, Value]) -> None:
    (record,) = show(name, DATA / f"{dump}.txt").table("show").records()
    assert {column: record[column] for column in row} == row


def test_names_of_a_dump_do_not_steer_the_page() -> None:
    text = STEP.replace("jit(step)/jvp(layer)/dot_general", "a\\033[31m<b>|`{evil}")
    page = StringIO()
    render_table([show("dot.4", text)], page, RenderOptions(width=80))
    assert "\033" not in page.getvalue()


@pytest.mark.parametrize(
    ("dump", "profile", "part", "whole", "words"),
    [
        ("cpu/adamw_step.after", None, "bytes", "cost.executed_bytes_accessed", "accessed in a step, {} of the step's bytes"),
        ("cpu/adamw_step.before", None, "flops", "cost.executed_flops", "as written in a step, {} of the step's FLOPs"),
        ("gpu/gathered_matmul.after", "h100-sxm", "estimate_s", "time.estimate_step_s", "in a step, {} of the step's estimate"),
    ],
)
def test_the_share_of_an_instruction_says_of_what(dump: str, profile: str | None, part: str, whole: str, words: str) -> None:
    """Before, a share of time or FLOPs was called one of bytes."""
    report = hlo_inspect.inspect(DATA / f"{dump}.txt", ("top", "cost"), profile=profile)
    first = report.table("kernels").records()[0]
    costs = block(hlo_inspect.inspect(DATA / f"{dump}.txt", "show", name=str(first["line"]), profile=profile))["costs"]
    value, total = first[part], report.facts[whole]
    assert isinstance(value, int | float)
    assert isinstance(total, int | float)
    assert words.format(format_value(value / total, "share")) in costs
