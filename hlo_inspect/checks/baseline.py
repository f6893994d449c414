"""Baselines of `lint`: the findings that a team has accepted, in a JSON file that is made for review.

For example:

    {"version": 1,
     "findings": [
      {"rule": "sliced-all-reduce", "label": "all-reduce f32[1024,1024] of jit_step", "count": 24,
       "stake": 3670016, "stake_unit": "bytes", "fingerprint": "5a0b…"}
    ]}

An entry accepts `count` findings of its fingerprint; one more is new. Entries are sorted, and hold no names of instructions, no
lines and no paths.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path

from hlo_inspect import configs
from hlo_inspect.configs import Node
from hlo_inspect.errors import UsageError
from hlo_inspect.findings import find_rule
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import STAKE_UNITS, Finding

VERSION = 1
_KEYS = ("rule", "label", "count", "stake", "stake_unit", "fingerprint")


@dataclass(frozen=True, slots=True)
class Entry:
    """Accepted findings of one fingerprint: how many, and their stake in total."""

    rule: str
    label: str
    count: int
    stake: int | float | None
    stake_unit: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.rule} ({self.label})"


@dataclass(slots=True)
class Baseline:
    """Accepted findings. `left` are those that no finding has matched yet, by fingerprint."""

    entries: tuple[Entry, ...]
    left: Counter[str]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Baseline:
        kept = tuple(entries)
        return cls(kept, Counter({entry.fingerprint: entry.count for entry in kept}))

    def accepts(self, finding: Finding) -> bool:
        """Return True if a finding is accepted, which uses up one of its entry's count."""
        if self.left[finding.fingerprint] <= 0:
            return False
        self.left[finding.fingerprint] -= 1
        return True

    @property
    def stale(self) -> list[tuple[Entry, int]]:
        """The entries with accepted findings that did not occur, and their number."""
        return [(entry, self.left[entry.fingerprint]) for entry in self.entries if self.left[entry.fingerprint] > 0]


def read_baseline(path: str) -> Baseline:
    """Read a baseline. Raise UsageError with the place of a wrong key, type, unit, rule or version."""
    root = _read_json(path)
    fields = root.fields(allowed=("version", "findings"), required=("version", "findings"))
    version = fields["version"]
    if version.kind != "number" or version.scalar != str(VERSION):
        raise version.error(f"this version of hlo-inspect reads baselines of version {VERSION}, not {version.scalar!r}")
    entries = [_entry(node) for node in fields["findings"].items()]
    seen: set[str] = set()
    for entry, node in zip(entries, fields["findings"].items(), strict=True):
        if entry.fingerprint in seen:
            raise node.error(f"the fingerprint {entry.fingerprint!r} stands in two entries")
        seen.add(entry.fingerprint)
    return Baseline.of(entries)


def _read_json(path: str) -> Node:
    """Return the root of a JSON file, with places: YAML, of which JSON is a part, keeps them."""
    try:
        return configs.read(path)
    except UsageError as error:
        if error.location is None or error.location.line is None:
            raise
        message = error.message.replace("not valid YAML", "not valid JSON")
        raise UsageError(message, error.location) from error


def _entry(node: Node) -> Entry:
    fields = node.fields(allowed=_KEYS, required=_KEYS)
    with fields["rule"].located():
        rule = find_rule(fields["rule"].text()).name
    count, stake = _number(fields["count"]), fields["stake"]
    if not isinstance(count, int) or count < 1:
        raise fields["count"].error("a count is a whole number of 1 or more")
    return Entry(
        rule,
        fields["label"].text(),
        count,
        None if stake.kind == "null" else _number(stake),
        fields["stake_unit"].choice(STAKE_UNITS),
        fields["fingerprint"].text(),
    )


def _number(node: Node) -> int | float:
    if node.kind != "number":
        raise node.error(f"expected a number, found {node.kind}")
    value = float(node.scalar)
    return int(value) if value.is_integer() else value


def write_baseline(path: str, findings: Iterable[Finding]) -> int:
    """Write a baseline that accepts these findings; return the number of its entries."""
    entries = []
    for group in group_rows(findings, attrgetter("fingerprint")):
        first, stakes = group[0], [finding.stake for finding in group if finding.stake is not None]
        stake = sum(stakes) if stakes else None
        entries.append(Entry(first.name, first.label, len(group), stake, first.stake_unit, first.fingerprint))
    entries.sort(key=lambda entry: (entry.rule, entry.label, entry.fingerprint))
    body = ",\n  ".join(json.dumps(asdict(entry)) for entry in entries)
    text = f'{{"version": {VERSION},\n "findings": [\n  {body}\n]}}\n'
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the baseline {path} cannot be written: {error.strerror or error}") from error
    return len(entries)
