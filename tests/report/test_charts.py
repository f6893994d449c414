"""Pictures: their marks add up to the facts, names stay text, colours differ, and the page draws them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from io import StringIO
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.report.formats.html.assets import DRAWINGS
from hlo_inspect.report.formats.html.charts import palette
from hlo_inspect.report.formats.html.charts.chart_rows import hover, short
from hlo_inspect.report.formats.html.charts.drawings import amounts_axis
from hlo_inspect.report.formats.html.charts.memory import fit_chart
from hlo_inspect.report.formats.html.module_sections import module_sections
from hlo_inspect.report.formats.html.page_model import Chart
from hlo_inspect.report.formats.html.page_text import write_page
from hlo_inspect.report.formats.html.pictures import PICTURES
from hlo_inspect.report.formats.html.views import distinct_tables, page_of
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.units import format_value
from tests.browser.page_data import PageData

DATA = Path(__file__).parents[1] / "data"
PASSES = ("summary", "cost", "time", "top", "collectives", "memory", "params", "pictures")

DUMPS = {
    "cpu/adamw_step.after.txt": None,
    "cpu/scan_fsdp.after.txt": None,
    "gpu/gathered_matmul.after.txt": "h100-sxm",
    "tpu/gathered_matmul.after.txt": "tpu-v5e",
    "handmade/attention_in_a_loop.txt": None,
    "cpu/adamw_step.before.txt": "h100-sxm",
}


@cache
def report(dump: str) -> Report:
    return hlo_inspect.inspect(DATA / dump, PASSES, profile=DUMPS[dump])


def drawn_of(tables: Iterable[Table]) -> dict[str, Chart]:
    """Return the pictures of a module by their names."""
    drawn = [chart for section in module_sections(tuple(tables)) for chart in section.pictures]
    assert len({chart.name for chart in drawn}) == len(drawn)
    return {chart.name: chart for chart in drawn}


@cache
def charts(dump: str) -> dict[str, Chart]:
    return drawn_of(distinct_tables(report(dump)))


def figures(chart: Chart) -> list[tuple[str, dict[str, Any]]]:
    """Return each figure of a picture with the label of its button."""
    measures = [(measure.label, measure.figure) for measure in chart.measures] or [("", chart.figure)]
    return [(label, dict(figure)) for label, figure in measures]


def marks(figure: Mapping[str, Any], values: str) -> list[Any]:
    return [value for trace in figure["data"] for value in trace.get(values, ())]


def strings(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the strings of a figure, with the key of each."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from strings(item, str(name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item, key)


# -- sums -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize("name", ["scope-tree", "source-tree"])
def test_the_total_of_an_icicle_is_the_fact(dump: str, name: str) -> None:
    facts = report(dump).facts
    step = "step_s" if facts["module.is_scheduled"] else "kernels_s"
    of_label = {"FLOPs": "cost.executed_flops", "Bytes": "cost.executed_bytes_accessed", "Time": f"time.estimate_{step}"}
    chart = charts(dump).get(name)
    if chart is None:
        labels = {row[2] for row in report(dump).table(name.replace("-", "_")).rows[1:]}
        assert labels <= {"(no named scope)", "(not printed)"}
        return
    for label, figure in figures(chart):
        fact = of_label.get(label, f"time.{step}")
        whole = facts[fact] if facts[fact] is not None else facts[f"{fact}.lower_bound"]
        assert sum(marks(figure, "values")) == pytest.approx(whole, rel=1e-12 if label in ("FLOPs", "Bytes") else 1e-6)


def test_a_share_of_an_icicle_is_shown_where_the_whole_is_known(tmp_path: Path) -> None:
    """The second time the loop runs an unknown number of times."""
    text = (DATA / "handmade/attention_in_a_loop.txt").read_text(encoding="utf-8")
    trips = ', backend_config={"known_trip_count":{"n":"126"}}'
    assert trips in text
    path = tmp_path / "m.txt"
    for is_known in (True, False):
        path.write_text(text if is_known else text.replace(trips, "").replace("add(%i", "multiply(%i"), encoding="utf-8")
        tables = distinct_tables(hlo_inspect.inspect(path, PASSES))
        chart = drawn_of(tables)["scope-tree"]
        for _, figure in figures(chart):
            (trace,) = figure["data"]
            assert any("of the whole" in text for text in trace["hovers"]) == is_known


def test_marks_have_a_size_where_no_share_is_known() -> None:
    """Before fusion no time is known, but what each takes at least."""
    dump = "cpu/adamw_step.before.txt"
    table = report(dump).table("roofline")
    assert {row["share"] for row in table.records()} == {None}
    ((_, figure),) = figures(charts(dump)["roofline"])
    sizes = [size for trace in figure["data"] for size in trace["sizes"]]
    bounds = [value for row in table.records() if isinstance(value := row["bound_s_lower_bound"], float)]
    assert len(bounds) == len(table.rows)
    areas = {round((size / max(sizes)) ** 2, 6) for size in sizes}
    assert areas == {round(bound / max(bounds), 6) for bound in bounds}
    assert len(sizes) == len(table.rows)


@pytest.mark.parametrize("dump", DUMPS)
def test_bars_of_collectives_add_up_to_what_is_sent(dump: str) -> None:
    sent = report(dump).facts["collectives.executed_wire_bytes"]
    if not sent:
        assert "collectives-by-axis" not in charts(dump)
        return
    assert sum(marks(charts(dump)["collectives-by-axis"].figure, "x")) == sent
    by_label = dict(figures(charts(dump)["collective-sizes"]))
    assert sum(marks(by_label["Bytes sent"], "y")) == sent
    assert sum(marks(by_label["Collectives"], "y")) == report(dump).facts["collectives.executed_count"]


@pytest.mark.parametrize("dump", DUMPS)
def test_the_bars_of_the_step_add_up(dump: str) -> None:
    """At least and by the model; without an accelerator the bytes and FLOPs of one step."""
    facts, drawn = report(dump).facts, figures(charts(dump)["step"])
    if DUMPS[dump] is not None:
        (figure,) = [figure for _, figure in drawn]
        fact = "time.step_s" if facts["module.is_scheduled"] else "time.kernels_s"
        least = sum(x for trace in figure["data"] for x, y in zip(trace["x"], trace["y"], strict=True) if y == 0)
        assert least == pytest.approx(facts[fact] or facts[f"{fact}.lower_bound"])
        return
    for label, figure in drawn:
        fact = "cost.executed_flops" if label == "FLOPs" else "cost.executed_bytes_accessed"
        assert sum(marks(figure, "x")) == (facts[fact] if facts[fact] is not None else facts[f"{fact}.lower_bound"])


@pytest.mark.parametrize("dump", [dump for dump in DUMPS if not dump.startswith("handmade") and ".before" not in dump])
def test_memory_adds_up(dump: str) -> None:
    facts, drawn = report(dump).facts, charts(dump)
    parts = [trace for trace in drawn["memory-fit"].figure["data"] if trace["y"] == [0]]
    assert sum(length for trace in parts for length in trace["x"]) == facts["memory.needed_bytes"]
    assert sum(marks(drawn["live-tree"].figure, "values")) == facts["memory.peak_bytes"]
    curve = drawn["live-bytes"].figure["data"][0]
    assert max(curve["y"]) == facts["memory.peak_bytes"]
    donated = [trace for trace in drawn["parameters"].figure["data"] if trace["name"] == "donated"]
    assert sum(length for trace in donated for length in trace["x"]) == facts["params.donated_bytes"]
    assert sum(marks(drawn["parameters"].figure, "x")) == facts["params.bytes"]


@pytest.mark.parametrize("dump", DUMPS)
@pytest.mark.parametrize(
    ("name", "table"), [("roofline", "roofline"), ("timeline", "timeline"), ("largest-collectives", "collectives")]
)
def test_each_row_has_a_mark(dump: str, name: str, table: str) -> None:
    chart = charts(dump).get(name)
    rows = {table_.name: table_ for table_ in report(dump).tables}.get(table)
    if chart is None:
        assert rows is None or not rows.rows
        return
    of_timeline = [f"timeline:{row}" for row in range(len(chart.figure["data"][0].get("kinds", ())))]
    keys = of_timeline or marks(chart.figure, "keys")
    assert rows is not None
    assert len(keys) == len(set(keys)) == min(len(rows.rows), 12 if table == "collectives" else len(rows.rows))


@pytest.mark.parametrize("dump", DUMPS)
def test_a_click_leads_to_a_row_of_the_page(dump: str) -> None:
    """Beside its data the table has a place on the page."""
    stream = StringIO()
    write_page(page_of([report(dump)]), stream, RenderOptions())
    page = PageData(stream.getvalue())
    tables = page.tables()
    for name, picture in page.pictures().items():
        assert f"table/{picture['table']}" in page.ids, name
        traces = [trace for measure in picture["figures"] for trace in measure["figure"]["data"]]
        for key in strings([trace.get("keys", ()) for trace in traces]):
            table, row = key[1].split(":")
            assert f"table/{table}" in page.ids, (name, table)
            assert int(row) < len(tables[table].rows)


def test_parts_of_memory_that_are_not_known_are_named() -> None:
    columns = (Column("part"), Column("bytes", "bytes"))
    rows = (("arguments", 1024), ("outputs beside arguments", 0), ("constants", 0), ("temporaries", None))
    chart = fit_chart({"memory_parts": Table("memory_parts", "", columns, rows)})
    assert chart is not None
    assert chart.sentence == "Device memory that the program needs, or more: temporaries are unknown."
    assert chart.text == "arguments: 1.00 KiB; temporaries: ?"
    assert marks(chart.figure, "x") == [1024]


def test_the_peak_is_marked_where_it_is(tmp_path: Path) -> None:
    """The instruction that reads the large array makes the peak, 1 of 1,504; a point of the curve stands for three."""
    lines = [f"  n{number} = f32[8]{{0}} negate(n{number - 1})" for number in range(1, 1501)]
    lines[1000:1000] = ["  big = f32[1024]{0} iota(), iota_dimension=0", "  s = f32[8]{0} slice(big), slice={[0:8]}"]
    lines[-1] = "  n1500 = f32[8]{0} add(n1499, s)"
    text = f"""HloModule m, is_scheduled=true, entry_computation_layout={{(f32[8]{{0}})->f32[8]{{0}}}}

ENTRY e {{
  n0 = f32[8]{{0}} parameter(0)
{chr(10).join(lines)}
  ROOT r = f32[8]{{0}} negate(n1500)
}}
"""
    path = tmp_path / "m.txt"
    path.write_text(text)
    memory = hlo_inspect.inspect(path, ("memory", "pictures"))
    (row,) = [row for row in memory.table("live_curve").records() if row["highest_name"] == "s"]
    assert row["bytes"] == memory.facts["memory.peak_bytes"]
    assert row["first"] != row["highest_at"] == 1002
    chart = drawn_of(memory.tables)["live-bytes"]
    assert chart.text.startswith("The peak of 4.09 KiB is at instruction 1002, s: big 4.00 KiB, s 32 B")
    assert dict(chart.figure)["layout"]["notes"][0]["x"] == row["highest_at"]


def test_a_program_without_temporaries_has_no_list_of_them(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} negate(p)\n}\n"
    )
    chart = drawn_of(hlo_inspect.inspect(path, PASSES).tables)["live-bytes"]
    assert chart.text == "64 B are live all the time, none of them temporaries."


def test_without_a_roofline_the_section_says_why(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  p = f32[4,8]{1,0} parameter(0)\n"
        "  ROOT t = f32[8,4]{1,0} transpose(p), dimensions={1,0}\n}\n"
    )
    report_ = hlo_inspect.inspect(path, PASSES)
    sections = {section.name: section for section in module_sections(report_.tables)}
    assert sections["kernels"].text == "No kernel has a point on the roofline: 1 kernel without FLOPs."


def test_collectives_of_unknown_size_are_counted(tmp_path: Path) -> None:
    """The second collective sends an unknown number of bytes: one device is in two groups."""
    text = """HloModule m, is_scheduled=true, num_partitions=2

ENTRY e {
  p = f32[1024]{0} parameter(0)
  a = f32[1024]{0} collective-permute(p), source_target_pairs={{0,1},{1,0}}, channel_id=1
  ROOT b = f32[1024]{0} all-to-all(a), replica_groups={{0,1},{0}}, dimensions={0}
}
"""
    path = tmp_path / "m.txt"
    path.write_text(text)
    report_ = hlo_inspect.inspect(path, PASSES)
    assert [row["executed_wire_bytes"] for row in report_.table("collectives").records()] == [4096, None]
    drawn = drawn_of(report_.tables)
    for name in ("collectives-by-axis", "collective-sizes", "largest-collectives"):
        assert drawn[name].sentence.endswith(": 1 of unknown size."), name
    assert drawn["largest-collectives"].text == "a: 4.00 KiB among {{0,1},{1,0}}"
    assert drawn["collective-sizes"].text.endswith("collective-permute up to 4.00 KiB: 4.00 KiB sent")


def test_each_device_of_a_mesh_is_a_cell_and_a_large_mesh_is_cut_aloud(tmp_path: Path) -> None:
    """The first 1,024 of 2 x 1,024 devices are drawn, in lines of 32."""
    text = """HloModule m, is_scheduled=true, num_partitions=2048, frontend_attributes={xla.sdy.meshes={mesh = \
#sdy.mesh<["a"=2, "b"=1024]>}}

ENTRY e {
  ROOT p = f32[1024]{0} parameter(0)
}
"""
    path = tmp_path / "m.txt"
    path.write_text(text)
    chart = drawn_of(hlo_inspect.inspect(path, PASSES).tables)["mesh"]
    assert chart.title == "The first 1,024 of 2,048 devices of the mesh"
    ((_, figure),) = figures(chart)
    (trace,) = figure["data"]
    assert trace["keys"] == [f"mesh_devices:{number}" for number in range(1024)]
    places = set(zip(trace["x"], trace["y"], strict=True))
    assert places == {(column, row) for column in range(32) for row in range(32)}


@pytest.mark.parametrize("dump", DUMPS)
def test_each_measure_has_its_figures_in_words(dump: str) -> None:
    for chart in charts(dump).values():
        texts = [measure.text for measure in chart.measures]
        assert all(texts), chart.name
        assert len(texts) == len(set(texts)), chart.name


def test_the_timeline_says_how_long_phases_take() -> None:
    dump = "gpu/gathered_matmul.after.txt"
    rows = report(dump).table("time_by_phase").records()
    text = charts(dump)["timeline"].text
    assert len(text.split("; ")) == len(rows)
    assert all(f"{row['phase']}: estimate {format_value(row['estimate_s'], 'seconds')}" in text for row in rows)


# -- texts ------------------------------------------------------------------------------------------------------------------

HOSTILE = """HloModule m, is_scheduled=true, num_partitions=4, entry_computation_layout={(f32[8,8]{1,0})->f32[8,8]{1,0}}

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  p = f32[8,8]{1,0} parameter(0), metadata={op_name="NAME"}
  d = f32[8,8]{1,0} dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}, \
metadata={op_name="jit(f)/NAME/x/dot" source_file="/t/NAME.py" source_line=3}
  m = f32[8,8]{1,0} multiply(p, p), metadata={op_name="jit(f)/other/mul" source_file="/t/b.py" source_line=3}
  a = f32[8,8]{1,0} all-reduce(m), replica_groups={{0,1},{2,3}}, to_apply=add, channel_id=1, use_global_device_ids=true
  ROOT c = f32[8,8]{1,0} add(d, a)
}
"""


@pytest.mark.parametrize(
    "name",
    [
        "<b>bold</b>",
        "<a href='javascript:alert(1)'>x</a>",
        "%{x} %{customdata}",
        "</script><script>alert(1)</script>",
        "$x^2$ &lt;i&gt; &amp;",
        "$forward",
        "\\u202e\\x07",
    ],
)
def test_names_stay_text(name: str, tmp_path: Path) -> None:
    """A figure has texts as they were written, on one line, without control characters; the script makes text nodes of them."""
    path = tmp_path / "m.txt"
    path.write_text(HOSTILE.replace("NAME", name))
    tables = distinct_tables(hlo_inspect.inspect(path, PASSES, profile="h100-sxm"))
    drawn = list(drawn_of(tables).values())
    assert {"scope-tree", "source-tree", "roofline", "timeline", "mesh", "live-tree"} <= {chart.name for chart in drawn}
    shown = [text for chart in drawn for _, figure in figures(chart) for _, text in strings(figure)]
    assert any(short(f"{name}.py:3".rpartition("/")[2]) in text for text in shown)
    assert all(text.replace("\n", "").isprintable() for text in shown)


def test_long_texts_lose_their_middle() -> None:
    assert short("a" * 100 + "b" * 100, 11) == "aaaaa…bbbbb"
    assert hover("<b>", "", None, 'x="1" & y', 5) == '<b>\nx="1" & y\n5'
    assert hover("a\nb") == "a\\nb"


# -- looks ------------------------------------------------------------------------------------------------------------------


def test_each_colour_of_a_figure_is_in_the_palette() -> None:
    names = set(re.findall(r"--c-([\w-]+):", palette.css_variables()))
    for dump in DUMPS:
        for chart in charts(dump).values():
            for _, figure in figures(chart):
                for key, text in strings(figure):
                    if text.startswith("$"):
                        assert key.endswith(("color", "colors", "colorscale")), (chart.name, key)
                        assert text[1:] in names, (chart.name, text)


_DEFICIENCIES = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
"""Linear RGB as seen without one kind of cone: Machado, Oliveira and Fernandes 2009, severity 1."""

_TOGETHER = {
    "phases": ("forward", "recompute", "loss", "backward", "optimizer", "unknown"),
    "what binds": ("compute", "memory", "collective", "fixed", "other"),
    "roles": ("weight", "state", "gradient", "activation", "temporary", "input", "copy", "new-value"),
    "donation": ("donated", "not-donated"),
    "kinds": ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"),
    "difference": ("more", "less"),
    "sides": ("old", "new"),
}


def lab(colour: str, matrix: tuple[tuple[float, ...], ...]) -> tuple[float, float, float]:
    """Return CIE L*a*b* of `#rrggbb` as somebody with the deficiency sees it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    seen = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in matrix]
    to_xyz = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    scaled = [sum(a * b for a, b in zip(row, seen, strict=True)) / w for row, w in zip(to_xyz, white, strict=True)]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("deficiency", _DEFICIENCIES)
@pytest.mark.parametrize("group", _TOGETHER)
def test_colours_of_one_picture_are_told_apart(group: str, deficiency: str) -> None:
    """A distance of 10 in L*a*b* is seen at a glance; 2.3 is the least that is seen at all."""
    for side in ("light", "dark"):
        for first, second in combinations(_TOGETHER[group], 2):
            ends = [lab(getattr(palette.PALETTE[name], side), _DEFICIENCIES[deficiency]) for name in (first, second)]
            distance = sum((a - b) ** 2 for a, b in zip(*ends, strict=True)) ** 0.5
            assert distance > 10, (side, first, second, round(distance, 1))


@pytest.mark.parametrize("side", ["light", "dark"])
def test_texts_have_contrast(side: str) -> None:
    """4.5 as WCAG 2 asks for texts, on the page and on marks; 1.5 of marks, which have lines round them and texts beside."""
    paper = palette.luminance(getattr(palette.PALETTE["paper"], side))

    def contrast(first: float, second: float) -> float:
        return (max(first, second) + 0.05) / (min(first, second) + 0.05)

    for name in ("text", "quiet"):
        assert contrast(palette.luminance(getattr(palette.PALETTE[name], side)), paper) > 4.5
    for name, colour in palette.PALETTE.items():
        ground = palette.luminance(getattr(colour, side))
        assert max(contrast(ground, 0.0), contrast(ground, 1.0)) > 4.5
        if name not in ("paper", "grid", "line", "soft"):
            assert contrast(ground, paper) > 1.5, name


@pytest.mark.parametrize(
    ("greatest", "unit", "ticks"),
    [
        (0, "bytes", ["0 B"]),
        (3, "count", ["0", "1", "2", "3"]),
        (1, "count", ["0", "1"]),
        (50 * 2**20, "bytes", ["0 B", "20 MiB", "40 MiB"]),
        (1100 * 2**30, "bytes", ["0 B", "512 GiB", "1 TiB"]),
        (3.2e-4, "seconds", ["0 s", "100 µs", "200 µs", "300 µs"]),
        (4.1e12, "flops", ["0 FLOP", "2 TFLOP", "4 TFLOP"]),
    ],
)
def test_ticks_are_round(greatest: float, unit: Any, ticks: list[str]) -> None:
    assert amounts_axis([greatest], unit)["labels"] == ticks


# -- figures ----------------------------------------------------------------------------------------------------------------


LISTS = ("x", "y", "hovers", "keys", "texts", "sizes", "colors", "parents", "labels", "values")
"""Lists of a trace with an item for each mark."""


def test_figures_are_drawn_by_files_of_the_page() -> None:
    """Each kind has its files, and each list of a trace is as long as the others."""
    drawn = set()
    for dump in DUMPS:
        for chart in charts(dump).values():
            for _, figure in figures(chart):
                assert {trace["type"] for trace in figure["data"]} <= set(DRAWINGS)
                for trace in figure["data"]:
                    if trace["type"] != "timeline":
                        assert len({len(trace[name]) for name in LISTS if trace.get(name)}) == 1, (chart.name, trace)
            drawn.add(chart.name)
    assert len(drawn) == sum(len(PICTURES.get(section.name, ())) for section in module_sections(()))
