from __future__ import annotations

from dataclasses import replace

import pytest

from hlo_inspect.report.model import Input, Report
from hlo_inspect.report.render_options import RenderOptions, needed_tables, shown_tables
from hlo_inspect.report.table import Column, Table

COLUMNS = (Column("name"), Column("bytes", "bytes", summed=True))
SITES = Table("fusions", "Fusions", COLUMNS, (("a.1", 4), ("a.2", 4)), page_as="fusion_groups")
GROUPS = Table("fusion_groups", "Fusions, equal ones together", COLUMNS, (("a.* × 2", 8),))
OTHER = Table("custom_calls", "Custom calls", COLUMNS, ())
RAW = Table("raw", "For programs", COLUMNS, (("a", 1),), on_page=False)
REPORT = Report("fusions", Input("-", 1, 1, 1), {}, (SITES, OTHER, GROUPS, RAW))


def names(report: Report, options: RenderOptions, *, for_people: bool) -> list[str]:
    return [table.name for table in shown_tables(report, options, for_people=for_people)]


def test_a_page_shows_groups_in_the_place_of_their_sites() -> None:
    assert names(REPORT, RenderOptions(), for_people=True) == ["fusion_groups", "custom_calls"]
    assert names(REPORT, RenderOptions(sites=True), for_people=True) == ["fusions", "custom_calls"]


def test_programs_get_both() -> None:
    assert names(REPORT, RenderOptions(), for_people=False) == ["fusions", "custom_calls", "fusion_groups", "raw"]


def test_a_table_that_is_named_is_shown_as_it_is() -> None:
    for name in ("fusions", "fusion_groups", "raw"):
        assert names(REPORT, RenderOptions(table=name), for_people=True) == [name]


def test_sites_without_groups_are_shown() -> None:
    report = Report("fusions", Input("-", 1, 1, 1), {}, (SITES,))
    assert names(report, RenderOptions(), for_people=True) == ["fusions"]


@pytest.mark.parametrize(
    "options",
    [
        RenderOptions(),
        RenderOptions(top=1),
        RenderOptions(top=0),
        RenderOptions(sites=True, top=1),
        RenderOptions(verbose=True),
        RenderOptions(table="raw"),
        RenderOptions(table="fusions", top=1),
    ],
)
def test_needed_tables_give_the_same_page_as_all(options: RenderOptions) -> None:
    report = replace(REPORT, tables=tuple(needed_tables(REPORT.tables, options)))
    assert shown_tables(report, options, for_people=True) == shown_tables(REPORT, options, for_people=True)


def test_a_page_needs_no_table_that_it_does_not_show() -> None:
    assert [table.name for table in needed_tables(REPORT.tables, RenderOptions())] == ["fusion_groups", "custom_calls"]


def test_all_names_are_there_where_one_is_asked_for() -> None:
    """That of no table is answered with them."""
    assert [table.name for table in needed_tables(REPORT.tables, RenderOptions(table="x"))] == [t.name for t in REPORT.tables]
