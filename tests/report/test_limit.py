"""Output of a limited length in each format: valid for its readers, never longer, and its last line says what it lacks."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest

from hlo_inspect.errors import UsageError
from hlo_inspect.report.formats import ALL_FORMATS, CI_FORMATS, FORMATS, OWN_FORMATS, RenderOptions
from hlo_inspect.report.limit import Limit, limited_lines, render_limited
from hlo_inspect.report.model import Finding, HeadlineRow, Input, Passage, Report
from hlo_inspect.report.table import Column, Row, Table
from tests.report.drawn import large_report

COMMAND = "hlo-inspect summary dump.txt --profile h100-sxm"
ROOM = 10**9


def limited(form: str, reports: Sequence[Report], characters: int, **options: Any) -> str:
    stream = StringIO()
    render_limited(form, iter(reports), stream, RenderOptions(**options), Limit(characters, COMMAND))
    return stream.getvalue()


def shortest(form: str, reports: Sequence[Report], **options: Any) -> int:
    """Return the characters of the shortest output, which the refusal of a smaller one names."""
    with pytest.raises(UsageError, match="--max-chars 1 is too small") as caught:
        limited(form, reports, 1, **options)
    return int(str(caught.value).split()[-2].replace(",", ""))


def linted(name: str, *severities: str) -> Report:
    """Return a report of `lint` with a finding of each severity, and rules of which the last one fails."""
    findings = tuple(
        Finding(f"HI20{number}", severity, f"{severity} {number} of {name}", subject=f"i.{number}", name="a-rule")  # type: ignore[arg-type]
        for number, severity in enumerate(severities)
    )
    columns = (Column("code"), Column("rule"), Column("status"), Column("findings", "count"))
    rows = [(f"HI10{number}", "other-rule", "passed", 0) for number in range(8)]
    rows += [(finding.rule, "a-rule", "failed", 1) for finding in findings]
    table = Table("rule_results", "Rules", columns, tuple(rows), on_page=False)
    return Report("lint", Input("a.txt", 1, 9, 99), {"module.name": name}, (table,), findings)


def timeline(events: int) -> Report:
    columns = (
        *(Column(name) for name in ("stream", "event", "name")),
        Column("begin_s", "seconds"),
        Column("end_s", "seconds"),
        Column("iterations", "count"),
    )
    rows: list[Row] = [
        ("compute", "kernel", f"dot.{number}", number * 1e-6, (number + 1) * 1e-6, 1) for number in range(events)
    ]
    table = Table("time_events", "Timeline", columns, tuple(reversed(rows)))
    return Report("time", Input("a.txt", 1, 9, 99), {"module.name": "step"}, (table,))


def example(form: str, sample: Report) -> list[Report]:
    if form in CI_FORMATS:
        return [linted("first", "info", "info"), linted("second", "warning", "info"), linted("third", "error")]
    if form == "perfetto":
        return [timeline(40)]
    if form in OWN_FORMATS:
        return [large_report(30)]
    lines = (HeadlineRow("memory", ("arguments 4 GiB",)), HeadlineRow("", ("TRUNCATED",), "error"))
    whole = replace(sample, headline=lines, passages=(Passage("Why", "Because."),))
    return [whole, replace(whole, tables=whole.tables[3:], command="collectives")] if form in {"json", "jsonl"} else [whole]


def last_of_json(text: str) -> str:
    document = json.loads(text)
    assert '"left_out": ' in text.splitlines()[-1]
    assert list(document)[-1] == "left_out"
    return str(document["left_out"])


def last_of_jsonl(text: str) -> str:
    *reports, last = map(json.loads, text.splitlines())
    assert all({"facts", "tables", "findings", "notes"} <= report.keys() for report in reports)
    assert last.keys() == {"schema_version", "left_out"}
    return str(last["left_out"])


def last_of_rows(text: str, delimiter: str) -> str:
    rows = list(csv.reader(StringIO(text), delimiter=delimiter))
    assert len({len(row) for row in rows}) == 1
    assert set(rows[-1][1:]) <= {""}
    return rows[-1][0]


def last_of_sarif(text: str) -> str:
    document = json.loads(text)
    assert document["version"] == "2.1.0"
    assert len(document["runs"]) == 1
    assert '"left_out": ' in text.splitlines()[-1]
    return str(document["properties"]["left_out"])


def last_of_gitlab(text: str) -> str:
    *_, last = json.loads(text)
    assert (last["severity"], last["location"]["lines"]["begin"]) == ("info", 1)
    assert text.endswith(f"{json.dumps(last)}]\n")
    return str(last["description"])


def last_of_github(text: str) -> str:
    assert all(re.match(r"::(error|warning|notice) ", line) for line in text.splitlines())
    return text.splitlines()[-1].partition("::notice title=hlo-inspect::")[2].replace("%25", "%")


def last_of_junit(text: str) -> str:
    suites = list(ET.fromstring(text))  # noqa: S314 - the program's own output
    for suite in suites:
        assert suite.get("tests") == str(len(suite))
    (skipped,) = suites[-1].iter("skipped")
    assert text.splitlines()[-1].count("<testsuite ") == 1
    return str(skipped.get("message"))


def last_of_perfetto(text: str) -> str:
    document = json.loads(text)
    begins = [event["ts"] for event in document["traceEvents"] if event["ph"] == "X"]
    assert sorted(begins) == list(range(len(begins))), "the first events, one each microsecond"
    return str(document["otherData"]["left_out"])


def last_of_svg(text: str) -> str:
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - the program's own output
    return text.splitlines()[-1].removeprefix("<?hlo-inspect ").removesuffix("?>")


def last_of_dot(text: str) -> str:
    assert text.splitlines()[-2] == "}"
    return text.splitlines()[-1].removeprefix("// ")


READERS: dict[str, Callable[[str], str]] = {
    "table": lambda text: text.splitlines()[-1],
    "json": last_of_json,
    "jsonl": last_of_jsonl,
    "csv": lambda text: last_of_rows(text, ","),
    "tsv": lambda text: last_of_rows(text, "\t"),
    "markdown": lambda text: text.splitlines()[-1].replace("\\", ""),
    "dot": last_of_dot,
    "mermaid": lambda text: text.splitlines()[-1].removeprefix("%% "),
    "perfetto": last_of_perfetto,
    "svg": last_of_svg,
    "sarif": last_of_sarif,
    "junit": last_of_junit,
    "github": last_of_github,
    "gitlab": last_of_gitlab,
}
"""For each format a function that reads a cut output, asserts that it is valid, and returns the text of its last line."""


@pytest.mark.parametrize(
    "form", [*sorted({*ALL_FORMATS} - {"html", "svg"}), pytest.param("svg", marks=pytest.mark.extras("pygraphviz"))]
)
def test_each_limit_has_a_valid_output(form: str, sample: Report) -> None:
    reports = example(form, sample)
    whole = StringIO()
    ALL_FORMATS[form](reports, whole, RenderOptions())
    size = len(whole.getvalue())
    assert limited(form, reports, size) == whole.getvalue()
    least = shortest(form, reports)
    assert least < size
    lengths = []
    for characters in (least, *range(least + 1, size, max((size - least) // 7, 1)), size - 1):
        text = limited(form, reports, characters)
        last = READERS[form](text)
        assert last.startswith("left out: "), text[-200:]
        assert f" All: {COMMAND}" in last
        lengths.append((characters, len(text)))
    assert all(length <= characters for characters, length in lengths), lengths
    assert lengths[0][1] == least
    with pytest.raises(UsageError, match=f"the shortest answer has {least:,} characters"):
        limited(form, reports, least - 1)


def test_rows_that_are_cut_are_summed_and_counted(sample: Report) -> None:
    """Operand bytes of the 25 collectives are 2, 4, … 50 MiB: 650 MiB."""
    cuts = set()
    for characters in range(2500, 8000, 500):
        document = json.loads(limited("json", [sample], characters))
        for table in document["tables"]:
            if table["name"] == "collectives":
                assert sum(row[2] for row in table["rows"]) == table["total"][2] == 650 * 2**20
                others = re.match(r"\[(\d+) more\]", table["rows"][-1][0])
                if others:
                    shown = len(table["rows"]) - 1
                    assert shown + int(others[1]) == 25
                    assert f"{others[1]} rows of collectives" in document["left_out"]
                    cuts.add(shown)
    assert len(cuts) > 2


def test_a_single_table_of_json_has_room_before_the_facts(sample: Report) -> None:
    least = shortest("json", [sample], table="opcodes")
    document = json.loads(limited("json", [sample], least + 100, table="opcodes"))
    assert [row[0] for row in document["tables"][0]["rows"]] == ["fusion", "dot", "custom-call"]
    assert len(document["facts"]) < len(sample.facts)


def test_an_output_is_the_beginning_of_the_whole_one(sample: Report) -> None:
    whole = limited("table", [sample], ROOM).splitlines()
    cut = limited("table", [sample], 1180).splitlines()
    assert cut[:5] == whole[:5]
    assert cut[-1] == (
        f"left out: tables opcodes, custom_calls, collectives, 2 notes. All: {COMMAND}. One table: add --table opcodes"
    )


def test_findings_that_are_cut_are_not_none(sample: Report) -> None:
    """The page of `summary` without findings says so; a cut one does not know."""
    text = limited("table", [sample], shortest("table", [sample]))
    assert "Do first" not in text
    assert "3 findings" in text  # the page of `summary` has three
    assert "Do first" in limited("table", [replace(sample, findings=())], ROOM)


def test_the_command_is_short(sample: Report) -> None:
    stream = StringIO()
    render_limited("table", [sample], stream, RenderOptions(), Limit(900, f"hlo-inspect summary {'d' * 300}"))
    assert " All: the same command without --max-chars. One table" in stream.getvalue().splitlines()[-1]


def test_modules_without_room_are_counted_and_not_kept(sample: Report) -> None:
    """The limit is twice the characters of one of 200 modules, and some more."""
    made: list[int] = []

    def modules() -> Iterator[Report]:
        for number in range(200):
            made.append(number)
            yield replace(sample, facts={"module.name": f"jit_{number}"}, findings=(), notes=(), tables=sample.tables[:1])

    stream = StringIO()
    page = limited("table", [next(modules())], ROOM)
    render_limited("table", modules(), stream, RenderOptions(), Limit(2 * len(page) + 300, COMMAND))
    text = stream.getvalue()
    shown = len(re.findall("^jit_", text, re.MULTILINE))
    assert shown in (2, 3)
    assert re.search(rf"\b{200 - shown} modules\. All", text)
    assert len(made) == 1 + 200


def test_formats_for_ci_keep_the_worst_findings_of_all_modules(sample: Report) -> None:
    reports = example("sarif", sample)
    for form, room in (("github", 70), ("gitlab", 250)):
        text = limited(form, reports, shortest(form, reports) + room)
        assert "third: i.0: error 0 of third" in text
        assert "left out: 4 findings" in text


def test_failed_cases_come_first_with_their_findings() -> None:
    report = linted("m", "error")
    root = ET.fromstring(limited("junit", [report], len(limited("junit", [report], ROOM)) - 1))  # noqa: S314 - the program's own output
    (failure,) = root.iter("failure")
    assert failure.get("message") == "i.0: error 0 of m"
    (skipped,) = root.iter("skipped")
    assert re.match(r"left out: [1-8] rows of rule_results\. All", skipped.get("message", ""))
    without = limited("junit", [replace(report, findings=())], ROOM)
    assert 'message="1 x HI200 a-rule"' in without


def test_nearest_instructions_stay() -> None:
    text = limited("dot", [large_report(30)], shortest("dot", [large_report(30)]) + 500)
    names = [int(number) for number in re.findall(r"^  n(\d+) \[", text, re.MULTILINE)]
    assert names == list(range(len(names)))
    assert f"left out: {30 - len(names)} rows of graph_nodes." in text


def test_quiet_pages_lack_no_notes(sample: Report) -> None:
    text = limited("table", [sample], 1200, quiet=True)
    assert "note" not in text.splitlines()[-1]
    assert "finding" not in text.splitlines()[-1]


def test_a_table_with_one_total_is_whole_or_absent() -> None:
    rows: tuple[Row, ...] = tuple((f"row {number}", 1) for number in range(50))
    table = Table("whole", "Whole", (Column("name"), Column("count", "count", summed=True)), rows, page_rows=0)
    report = Report("memory", Input("a.txt", 1, 1, 1), {"module.name": "m"}, (table,))
    size = len(limited("table", [report], ROOM))
    assert "table whole. All" in limited("table", [report], size - 1)


def test_lines_end_at_a_whole_line() -> None:
    lines = [f"line {number:02}\n" for number in range(20)]
    assert limited_lines(lines, Limit(160, "hlo-inspect normalize a.txt"), "// ") == lines
    cut = limited_lines(iter(lines), Limit(159, "hlo-inspect normalize a.txt"), "// ")
    assert cut == [*lines[:13], "// left out: 7 lines. All: hlo-inspect normalize a.txt\n"]
    assert sum(map(len, cut)) <= 159
    with pytest.raises(UsageError, match="--max-chars 40 is too small: the shortest answer has 56 characters"):
        limited_lines(lines, Limit(40, "hlo-inspect normalize a.txt"), "// ")


def test_each_format_is_read_here() -> None:
    assert {*READERS, "html"} == {*ALL_FORMATS}
    assert {*FORMATS} < {*READERS}
