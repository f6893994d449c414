"""Reports that `--format json` or `jsonl` wrote, read back: their facts, tables, findings and notes.

What a saved report answers are the facts that it has, and the families of passes of which it has others. A file of another
schema, or one that is JSON and no report, is an `InputError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from hlo_inspect.errors import InputError, Location
from hlo_inspect.hlo.input.source import START_CHARS, Source
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.passes import ALPA, MODULE_FACTS, OTHERS, PASSES, pass_tables, workload_passes
from hlo_inspect.report.facts import Facts, is_family
from hlo_inspect.report.model import LEFT_OUT, SCHEMA_VERSION, SEVERITIES, STAKE_UNITS, FactSpec, Finding, Input, Report
from hlo_inspect.report.table import Column, Row, Table, Unit, Value
from hlo_inspect.version import HASHES, has_older_hashes

_HASHING = frozenset({"recompiles", "ranks"})
"""Commands whose figures follow from hashes of programs."""
MAX_DEPTH = 64
"""Deeper nesting than any report has."""

_OBJECT = lazy_pattern(rb"\s*+(?:\xef\xbb\xbf)?\{\s*+\"")
_OPENING = lazy_pattern(r'"(?:[^"\\]++|\\.)*+"|([\[{])|([\]}])', re.DOTALL)
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def holds_report(source: Source) -> bool:
    """Return True if the first bytes of the source begin JSON."""
    return _OBJECT.match(source.peek()[:START_CHARS]) is not None


def saved_reports(source: Source) -> Iterator[Report]:
    """Yield the reports of a JSON source: one object, an object with a list of them, or one object a line."""
    text = b"".join(source.raw_pieces()).decode(errors="replace")
    _require_shallow(text, source.name)
    try:
        objects = [json.loads(text, parse_int=_integer)]
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            objects = [json.loads(line, parse_int=_integer) for line in lines]
        except ValueError:
            raise InputError(f"is unreadable JSON: {error}", Location(source.name)) from error
    for document in objects:
        yield from _reports(document, source.name)


def _require_shallow(text: str, name: str) -> None:
    depth = 0
    for match in _OPENING.finditer(text):
        depth += bool(match[1]) - bool(match[2])
        if depth > MAX_DEPTH:
            raise InputError("is JSON, but nested too deep for a report", Location(name))


def _integer(text: str) -> int | float:
    return int(text) if len(text) < 32 else float(text)  # more digits than any figure needs


def _reports(document: Any, name: str) -> Iterator[Report]:  # noqa: ANN401 - what JSON holds
    if not isinstance(document, dict) or "schema_version" not in document:
        raise InputError("is JSON, but not a report of `--format json`", Location(name))
    version = document["schema_version"]
    if version != SCHEMA_VERSION or isinstance(version, bool):
        message = f"is a report of schema {version!r:.20}; this version reads schema {SCHEMA_VERSION}"
        raise InputError(message, Location(name))
    if LEFT_OUT in document:
        raise InputError("is a report that --max-chars cut; write it again without", Location(name))
    several = document.get("reports")
    if isinstance(several, list):
        for part in several:
            yield from _reports(part, name)
        return
    try:
        yield _report(document, name)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise InputError(f"is a report whose {error} makes no sense", Location(name)) from error


def _report(saved: Mapping[str, Any], name: str) -> Report:
    values = {fact: _value(value) for fact, value in saved["facts"].items()}
    source, tool = saved["input"], saved["tool"]
    title = "" if "module.name" in values else _text(source, "path")
    notes, version = _texts(saved, "notes"), _text(tool, "version")
    _text(tool, "name")
    hashes = [fact for fact in values if fact.startswith("fingerprint.")]
    if has_older_hashes(version) and (hashes or saved["command"] in _HASHING):
        notes += (f"{HASHES}: those of hlo-inspect {version:.20} never equal those of this version; write the report again",)
        values = {fact: value for fact, value in values.items() if fact not in hashes}
    specs = _answered(values)
    return Report(
        command=_text(saved, "command"),
        input=Input(name, _number(source, "first_line"), _number(source, "lines"), _number(source, "bytes")),
        facts=Facts(values, specs),
        tables=tuple(map(_table, saved["tables"])),
        findings=tuple(map(_finding, saved["findings"])),
        notes=notes,
        profile=None if saved["profile"] is None else _text(saved, "profile"),
        specs=specs,
        title=title,
    )


def _answered(values: Mapping[str, Value]) -> tuple[FactSpec, ...]:
    """Return the specifications of the facts of the report, and the families of the passes that gave it."""
    answered: list[FactSpec] = []
    for question in (OTHERS.load(MODULE_FACTS), *PASSES, OTHERS.load(ALPA), *workload_passes()):
        plain = [spec for spec in question.specs if spec.name in values]
        answered += plain + [spec for spec in question.specs if plain and is_family(spec)]
    return tuple(dict.fromkeys(answered))


def _table(saved: Mapping[str, Any]) -> Table:
    units: tuple[Unit, ...] = get_args(Unit)
    columns = tuple(
        Column(_text(column, "name"), next((unit for unit in units if unit == column["unit"]), "text"))
        for column in saved["columns"]
    )
    names = [column.name for column in columns]
    listed = [[row.get(name) for name in names] if isinstance(row, dict) else row for row in saved["rows"]]
    rows: tuple[Row, ...] = tuple(tuple(map(_value, row)) for row in listed if len(row) == len(columns))
    name = _text(saved, "name")
    specified = pass_tables().get(name)
    return Table(name, _text(saved, "title"), columns, rows, place=specified.spec.place if specified is not None else None)


def _value(value: Any) -> Value:  # noqa: ANN401 - what JSON holds
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if value is None or isinstance(value, bool | int | float):
        return value
    raise ValueError(f"value {value!r:.20}")


def _text(saved: Mapping[str, Any], key: str) -> str:
    """Return a text of an object. Raise TypeError for a value of another type."""
    value = saved[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} {value!r:.20}")
    return value


def _texts(saved: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = saved[key]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{key} {values!r:.20}")
    return tuple(values)


def _number(saved: Mapping[str, Any], key: str) -> int:
    value = saved[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{key} {value!r:.20}")
    return value


def _finding(saved: Mapping[str, Any]) -> Finding:
    place = saved["location"]
    return Finding(
        rule=_text(saved, "rule"),
        severity=SEVERITIES[SEVERITIES.index(saved["severity"])],
        message=_text(saved, "message"),
        location=None if place is None else Location(_text(place, "path"), place["line"], place["column"]),
        subject=None if saved["subject"] is None else _text(saved, "subject"),
        stake=saved.get("stake"),
        stake_unit=STAKE_UNITS[STAKE_UNITS.index(saved.get("stake_unit") or "bytes")],
        name=str(saved.get("name", "")),
        source=saved.get("source"),
        fingerprint=str(saved.get("fingerprint", "")),
        share=saved.get("share"),
        share_of=saved.get("share_of") or "",
    )
