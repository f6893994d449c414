"""Differences of two answers to one command line, by kind: status, error, file, fact, column, row, total, note, finding, page.

JSON reports are compared part by part, all others line by line. Values are equal if their `repr` is, so 1, 1.0 and True differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, NamedTuple

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
OWN_PARTS = {"tool", "facts", "tables", "findings", "notes"}
"""Parts of a report that are compared by functions of their own; that of the tool names the version only."""

Rows = list[list[Any]]

_ABSENT: Any = object()


class Difference(NamedTuple):
    """A difference; `label` names the fact, column, table, rule or command."""

    kind: str
    label: str
    change: str
    detail: str

    @property
    def name(self) -> str:
        """The name by which `--allow` permits an addition."""
        return f"{self.kind} {self.label}"


def differences(line: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield what differs between two answers to a command line."""
    if old == new:
        return
    command = line[0]
    if old["status"] != new["status"]:
        yield Difference("status", command, CHANGED, f"{old['status']} -> {new['status']}")
    if old["errors"] != new["errors"]:
        yield Difference("error", command, CHANGED, _first_lines(old["errors"], new["errors"]))
    yield from _of_mappings("file", old["files"], new["files"], f"{command} ")
    if old["output"] == new["output"]:
        return
    reports, other_reports = (_reports(answer["output"]) if line[-1] == "json" else [] for answer in (old, new))
    if not reports or not other_reports:
        yield Difference("page", command, CHANGED, _first_lines(old["output"], new["output"]))
        return
    if len(reports) != len(other_reports):
        yield Difference("other", f"{command} reports", CHANGED, f"{len(reports)} -> {len(other_reports)}")
    for first, second in zip(reports, other_reports, strict=False):
        yield from _of_reports(command, first, second)


def _reports(text: str) -> list[dict[str, Any]]:
    """Return the reports of a JSON text; none of other texts."""
    try:
        document = json.loads(text)
    except ValueError:
        return []
    reports: list[dict[str, Any]] = document.get("reports", [document]) if isinstance(document, dict) else []
    return reports


def _of_reports(command: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    yield from _of_mappings("fact", old.get("facts", {}), new.get("facts", {}))
    first, second = _tables(old), _tables(new)
    yield from _of_mappings("table", dict.fromkeys(first), dict.fromkeys(second))
    for name in first.keys() & second.keys():
        yield from _of_tables(name, first[name], second[name])
    yield from _of_texts("note", old.get("notes", []), new.get("notes", []), lambda note: str(note).partition(":")[0])
    yield from _of_texts("finding", old.get("findings", []), new.get("findings", []), lambda finding: str(finding["rule"]))
    rest, other_rest = ({key: value for key, value in report.items() if key not in OWN_PARTS} for report in (old, new))
    yield from _of_mappings("other", rest, other_rest, f"{command} ")


def _tables(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tables by name; the second of a name gets a number."""
    tables: dict[str, dict[str, Any]] = {}
    for table in report.get("tables", []):
        number = sum(name.partition("#")[0] == table["name"] for name in tables)
        tables[table["name"] if not number else f"{table['name']}#{number + 1}"] = table
    return tables


def _of_tables(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    first, second = ([column["name"] for column in table["columns"]] for table in (old, new))
    units, other_units = ({column["name"]: column["unit"] for column in table["columns"]} for table in (old, new))
    yield from _of_mappings("column", units, other_units, f"{name}.")
    common = [column for column in first if column in other_units]
    if common != [column for column in second if column in units]:
        yield Difference("column", f"{name} order", CHANGED, f"{first} -> {second}")
    if repr(old["title"]) != repr(new["title"]):
        yield Difference("other", f"{name} title", CHANGED, f"{old['title']} -> {new['title']}")
    pairs = yield from _paired_rows(name, old["rows"], new["rows"])
    for column in common:
        place, other_place = first.index(column), second.index(column)
        changed = [pair for pair in pairs if repr(pair[0][place]) != repr(pair[1][other_place])]
        if changed:
            row, other = changed[0]
            detail = f"{len(changed)} of {len(pairs)} rows, first {row[0]!r}: {row[place]!r} -> {other[other_place]!r}"
            yield Difference("row", f"{name}.{column}", CHANGED, detail)
        for part, values, other_values in _sums(old, new):
            if values and other_values and repr(values[place]) != repr(other_values[other_place]):
                yield Difference(
                    "total", f"{name}.{column}{part}", CHANGED, f"{values[place]!r} -> {other_values[other_place]!r}"
                )
    for part, values, other_values in _sums(old, new):
        if (values is None) != (other_values is None):
            yield Difference("total", f"{name}{part}", CHANGED, f"{values!r} -> {other_values!r}")


def _paired_rows(name: str, old: Rows, new: Rows) -> Generator[Difference, None, list[tuple[list[Any], list[Any]]]]:
    """Return pairs of rows: by place in tables of one length, else by their first cells if each names one row."""
    if len(old) == len(new):
        return list(zip(old, new, strict=True))
    rows, other_rows = ({repr(row[0]): row for row in table} for table in (old, new))
    if len(rows) != len(old) or len(other_rows) != len(new):
        yield Difference("row", name, CHANGED, f"{len(old)} -> {len(new)} rows")
        return list(zip(old, new, strict=False))
    by_name = [{str(row[0]): row for row in table} for table in (old, new)]
    for difference in _of_mappings("row", by_name[0], by_name[1], f"{name} "):
        if difference.change != CHANGED:
            yield difference
    return [(row, other_rows[key]) for key, row in rows.items() if key in other_rows]


def _sums(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, list[Any] | None, list[Any] | None]]:
    """Yield the totals of a table, and the sums of the rows that it leaves out."""
    yield "", old["total"], new["total"]
    yield " (left out)", *(table.get("left_out", {}).get("sums") for table in (old, new))


def _of_mappings(kind: str, old: Mapping[str, Any], new: Mapping[str, Any], before: str = "") -> Iterator[Difference]:
    for key in [*old, *(key for key in new if key not in old)]:
        value, other = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if value is _ABSENT:
            yield Difference(kind, before + key, ADDED, repr(other))
        elif other is _ABSENT:
            yield Difference(kind, before + key, REMOVED, repr(value))
        elif repr(value) != repr(other):
            yield Difference(kind, before + key, CHANGED, f"{value!r} -> {other!r}")


def _of_texts(kind: str, old: Iterable[Any], new: Iterable[Any], label: Callable[[Any], str]) -> Iterator[Difference]:
    """Compare lists whose order does not count as sets with repetitions."""
    values = {repr(value): value for value in (*old, *new)}
    first, second = Counter(map(repr, old)), Counter(map(repr, new))
    for text in first - second:
        yield Difference(kind, label(values[text]), REMOVED, text)
    for text in second - first:
        yield Difference(kind, label(values[text]), ADDED, text)


def _first_lines(old: str, new: str) -> str:
    """Return the first lines that differ, and how many do."""
    first, second = old.splitlines(), new.splitlines()
    if max(len(first), len(second)) > 2000:  # a matcher of sequences is quadratic
        pairs = [pair for pair in zip_longest(first, second) if pair[0] != pair[1]]
        return f"{len(pairs)} lines, first: {pairs[0][0]!r} -> {pairs[0][1]!r}" if pairs else "line ends"
    changed = [code for code in SequenceMatcher(a=first, b=second, autojunk=False).get_opcodes() if code[0] != "equal"]
    if not changed:
        return "line ends"
    _, start, end, other_start, other_end = changed[0]
    lines = sum(max(code[2] - code[1], code[4] - code[3]) for code in changed)
    return f"{lines} lines, first: {' | '.join(first[start:end][:3])!r} -> {' | '.join(second[other_start:other_end][:3])!r}"
