"""The pictures of a recorded profile: their marks have the figures of its tables."""

from __future__ import annotations

from hlo_inspect.report.formats.html.charts.measured_charts import bounds_chart, measured_parts_chart, waits_chart
from hlo_inspect.report.formats.html.module_sections import module_sections
from hlo_inspect.report.table import Column, TablePlace
from hlo_inspect.report.table_spec import TableSpec

KERNELS = (
    TableSpec("measured_kernel_groups", "Kernels", TablePlace("measured", "Measured kernels", "merged"))
    .with_columns(
        Column("name", get=lambda row: row[0]),
        Column("runs", "number", get=lambda row: row[1]),
        Column("self_s", "seconds", get=lambda row: row[2]),
        Column("bound_s", "seconds", optional=True, get=lambda row: row[3]),
        Column("ratio", "number", optional=True, get=lambda row: row[4]),
        Column("phase", get=lambda row: row[5]),
        Column("source", get=lambda row: row[6]),
    )
    .of([("dot", 1, 4e-6, 1e-6, 4, "forward", "a.py:1"), ("while", 1, 1e-6, None, None, "loss", "a.py:2")])
)
PARTS = (
    TableSpec("measured_parts", "Parts", TablePlace("measured", "Measured time", "by part"))
    .with_columns(
        Column("part", get=lambda row: row[0]),
        Column("time_s", "seconds", get=lambda row: row[1]),
        Column("share", "share", get=lambda row: row[1] / 10e-6),
    )
    .of([("kernels", 5e-6), ("transfer of collectives, d0", 2e-6), ("waiting of collectives, d0", 3e-6), ("idle", 0.0)])
)
DEVICES = (
    TableSpec("measured_by_device", "Devices", TablePlace("measured", "Measured time", "by device", 4))
    .with_columns(
        Column("device", get=lambda row: row[0]),
        Column("wait_s", "seconds", optional=True, get=lambda row: row[1]),
        Column("held_s", "seconds", optional=True, get=lambda row: row[2]),
    )
    .of([("0", 3e-6, 0.0), ("1", 0.0, 3e-6)])
)
TABLES = {table.name: table for table in (KERNELS, PARTS, DEVICES)}


def test_a_kernel_has_its_bound_and_its_measured_time_on_logarithmic_axes() -> None:
    chart = bounds_chart(TABLES)
    assert chart is not None
    data, layout = chart.figure["data"], chart.figure["layout"]
    assert layout["x"]["is_log"]
    assert layout["y"]["is_log"]
    line, forward = data
    assert line["x"] == line["y"] == [1e-6, 4e-6]
    assert (forward["name"], forward["x"], forward["y"], forward["keys"]) == (
        "forward",
        [1e-6],
        [4e-6],
        ["measured_kernel_groups:0"],
    )
    assert "Not shown: 1 loops" in chart.sentence
    assert bounds_chart({}) is None


def test_the_parts_of_a_step_are_one_bar_and_devices_have_two() -> None:
    chart, waits = measured_parts_chart(TABLES), waits_chart(TABLES)
    assert chart is not None
    assert waits is not None
    assert [(trace["name"], trace["x"]) for trace in chart.figure["data"]] == [
        ("kernels", [5e-6]),
        ("transfer of collectives, d0", [2e-6]),
        ("waiting of collectives, d0", [3e-6]),
    ]
    assert [(trace["name"], trace["x"]) for trace in waits.figure["data"]] == [
        ("waits for others", [0.0, 3e-6]),
        ("others wait for it", [3e-6, 0.0]),
    ]
    assert measured_parts_chart({}) is waits_chart({}) is None


def test_only_a_module_that_ran_has_the_section() -> None:
    assert module_sections(tuple(TABLES.values()))[0].name == "measured"
    assert len(module_sections(tuple(TABLES.values()))[0].pictures) == 3
    assert "measured" not in [section.name for section in module_sections(())]
