"""The reports of `profiles`."""

from pathlib import Path

import pytest

from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.errors import UsageError
from hlo_inspect.passes.profiles import profile_report, profiles_report
from hlo_inspect.report.table import Table, Value


def columns(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def row(table: Table, **key: Value) -> dict[str, Value]:
    """Return the only row with these values, by column."""
    rows = [dict(zip(columns(table), values, strict=True)) for values in table.rows]
    (match,) = [values for values in rows if key.items() <= values.items()]
    return match


def test_list_has_a_row_for_each_profile() -> None:
    report = profiles_report()
    table = report.table("profiles")
    assert report.command == "profiles"
    assert [values[0] for values in table.rows] == list(profile_names())
    assert row(table, name="h100-sxm") == {
        "name": "h100-sxm",
        "title": "NVIDIA H100 SXM5 80 GB",
        "bf16": 989_400_000_000_000,
        "memory": 80_000_000_000,
        "usable_memory": 81_559 * 2**20,
        "memory_bandwidth": 3_352_000_000_000,
        "devices_per_node": 8,
        "link": "nvlink",
        "link_bandwidth": 450_000_000_000,
        "link_devices": 8,
        "network_bandwidth": 50_000_000_000,
    }
    assert row(table, name="tpu-v5e")["usable_memory"] == 15.75 * 2**30
    assert row(table, name="tpu-v4")["network_bandwidth"] == 6_250_000_000
    assert row(table, name="l4")["network_bandwidth"] is None


def test_units_of_the_list() -> None:
    units = {column.name: column.unit for column in profiles_report().table("profiles").columns}
    assert units == {
        "name": "text",
        "title": "text",
        "bf16": "flops_per_s",
        "memory": "bytes",
        "usable_memory": "bytes",
        "memory_bandwidth": "bytes_per_s",
        "devices_per_node": "count",
        "link": "text",
        "link_bandwidth": "bytes_per_s",
        "link_devices": "count",
        "network_bandwidth": "bytes_per_s",
    }


@pytest.mark.parametrize("name", profile_names())
def test_a_row_for_every_figure_with_its_source(name: str) -> None:
    report, profile = profile_report(name), load_profile(name)
    table, sources = report.table("profile"), report.table("sources")
    assert len(table.rows) == len(profile.figures)
    pages = {values[0]: row(sources, id=values[0])["page"] for values in sources.rows}
    for values in table.rows:
        cells = dict(zip(columns(table), values, strict=True))
        assert (cells["value"] is None) == (cells["source"] is None)
        if cells["value"] is not None:
            assert cells["page"] == pages[cells["source"]]
    assert set(pages) == {figure.source for figure in profile.figures.values() if figure}
    assert (report.profile, table.title) == (name, profile.title)


def test_cells_of_a_figure() -> None:
    table = profile_report("tpu-v5e").table("profile")
    assert row(table, level="links.ici", quantity="bandwidth") == {
        "level": "links.ici",
        "quantity": "bandwidth",
        "stated": "400 GB/s",
        "value": 400_000_000_000,
        "unit": "bytes_per_s",
        "basis": "per device, both directions",
        "source": "cloud-v5e",
        "page": 'section "System architecture", table of key specifications',
        "note": "",
        "confidence": "primary",
    }
    assert row(table, level="links.ici", quantity="wraparound")["basis"] == "axes of this size"
    assert row(table, level="links.dcn", quantity="count")["basis"] == "per node"
    assert row(table, level="", quantity="devices_per_node")["value"] == 8


def test_unknown_figures_have_a_note() -> None:
    report = profile_report("tpu-v4")
    unknown, others = report.notes
    assert unknown.startswith("no source states matmul.f64, matmul.f32, ")
    assert "links.host.bandwidth" in unknown
    assert others.startswith("not from the maker's documents: ")
    assert "links.dcn.bandwidth" in others
    assert "matmul.bf16" not in others
    assert "matmul.bf16" not in unknown


def test_input_is_the_file_of_the_profile() -> None:
    given = profile_report("h100-sxm").input
    text = Path(given.path).read_text()
    assert given.path.endswith("configs/hardware/h100-sxm.yaml")
    assert (given.first_line, given.lines, given.bytes) == (1, text.count("\n"), len(text))


def test_input_of_the_list_is_the_folder() -> None:
    files = list(Path(profiles_report().input.path).glob("*.yaml"))
    assert profiles_report().input.bytes == sum(file.stat().st_size for file in files)
    assert len(files) == len(profile_names())


def test_a_file_of_ones_own_shows_the_sources_that_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: Mine\nmaker: Me\nmatmul: {}\nvector: {}\n"
        "memory:\n  capacity: {value: 1 GB, source: a}\n  bandwidth: null\n"
        'sources:\n  - {id: a, title: A, publisher: P, version: "1", url: "https://example.org", page: p. 2}\n'
        '  - {id: b, title: B, publisher: P, version: "1", url: "https://example.org", page: p. 3}\n'
    )
    report = profile_report(str(path))
    assert [values[0] for values in report.table("sources").rows] == ["a"]
    assert report.notes == ("no source states memory.bandwidth",)
    assert report.profile == "mine"


def test_unknown_profile() -> None:
    with pytest.raises(UsageError, match="no profile 'h300'"):
        profile_report("h300")
