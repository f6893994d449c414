"""Proofs of findings: what the remedy of each saves, by a compile before and after; their table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.remedies.remedy import CannotBeTriedError, Remedy
from hlo_inspect.report.model import STAKE_UNITS, Finding
from hlo_inspect.report.table import Column, Unit, Value, figure_of
from hlo_inspect.report.table_spec import TableSpec

Verdict = Literal["confirmed", "not confirmed", "cannot be tried"]
CONFIRMED: Verdict = "confirmed"
NOT_CONFIRMED: Verdict = "not confirmed"
CANNOT_BE_TRIED: Verdict = "cannot be tried"

FACTS = {
    "needed_bytes": "memory.needed_bytes",
    "sent_bytes": "collectives.executed_wire_bytes",
    "flops": "cost.executed_flops",
    "estimate_s": "time.estimate_step_s",
}
"""Facts that a proof compares, by the first part of its columns."""
_WORDS = {"needed_bytes": "memory", "sent_bytes": "sent bytes", "flops": "FLOPs"}
_NOTICEABLE = 0.01
"""Share of a figure by which it has to rise so that a remedy costs elsewhere."""

Facts = Mapping[str, Value]
Compile = Callable[[str, Remedy], Facts]
"""Function from the code of a rule and its remedy to the facts of the compiled program. Raise CannotBeTriedError if refused."""


class Proof(NamedTuple):
    """A finding with its remedy: the facts before, and after unless it cannot be tried; `said` is why, or what it costs."""

    finding: Finding
    remedy: Remedy | None
    before: Facts
    after: Facts | None
    said: str = ""

    @property
    def verdict(self) -> Verdict:
        if self.after is None:
            return CANNOT_BE_TRIED
        return NOT_CONFIRMED if self.said else CONFIRMED

    def value(self, column: str) -> Value:
        """Return the value of a column such as `needed_bytes_before`."""
        name, _, side = column.rpartition("_")
        facts = self.before if side == "before" else self.after
        return None if facts is None else figure_of(facts, FACTS[name])


def find_proofs(
    findings: Sequence[Finding], context: Context, description: Description, before: Facts, compile_with: Compile
) -> Iterator[Proof]:
    """Yield a proof for each finding, the largest stake first. Equal remedies are compiled once."""
    compiled: dict[str, Facts] = {}
    for finding in sorted(findings, key=_by_stake):
        remedy = None
        try:
            remedy = _remedy(context, finding, description)
            key = json.dumps(remedy.edits)
            if key not in compiled:
                compiled[key] = compile_with(finding.rule, remedy)
        except CannotBeTriedError as error:
            yield Proof(finding, remedy, before, None, str(error))
        else:
            yield Proof(finding, remedy, before, compiled[key], _costs(before, compiled[key]))


def _by_stake(finding: Finding) -> tuple[int, float]:
    return STAKE_UNITS.index(finding.stake_unit), -(finding.stake or 0)


def _remedy(context: Context, finding: Finding, description: Description) -> Remedy:
    """Return the remedy of a finding: a file of this package has the name of its rule."""
    name = f"{__package__}.{finding.name.replace('-', '_')}"
    if find_spec(name) is None:
        raise CannotBeTriedError("no remedy that can be tried")
    remedy: Remedy = import_module(name).remedy(context, finding, description)
    return remedy


def _costs(before: Facts, after: Facts) -> str:
    """Say what a remedy does not save, or costs elsewhere; empty if it saves something and costs nothing."""
    changes: dict[str, float] = {}
    for column, words in _WORDS.items():
        old, new = before[FACTS[column]], after[FACTS[column]]
        if isinstance(old, int | float) and isinstance(new, int | float):
            changes[words] = (new - old) / max(old, 1)
    risen = [f"{words} +{share:.0%}" for words, share in changes.items() if share > _NOTICEABLE]
    if not any(share < 0 for share in changes.values()):
        return f"saves nothing{': ' if risen else ''}{', '.join(risen)}"
    return f"costs elsewhere: {', '.join(risen)}" if risen else ""


def _keeps_outputs(proof: Proof) -> bool | None:
    return None if proof.after is None else proof.before["outputs.bytes"] == proof.after["outputs.bytes"]


def _column(name: str, unit: Unit, words: str) -> Column:
    side = "before" if name.endswith("before") else "after"
    meaning = f"{words} {'as it is' if side == 'before' else 'with the remedy'}"
    heading = f"{words.split(maxsplit=1)[0]} {side}"
    return Column(
        name,
        unit,
        optional=True,
        detail=0 if "needed" in name else 3,
        meaning=meaning,
        page_name=heading,
        get=lambda row: row.value(name),
    )


_FIGURES: tuple[tuple[str, Unit, str], ...] = (
    ("needed_bytes", "bytes", "memory of a device"),
    ("sent_bytes", "bytes", "sent bytes of a step"),
    ("flops", "flops", "FLOPs of a step"),
    ("estimate_s", "seconds", "estimated time of a step"),
)
PROOFS = TableSpec("proofs", "Remedies, compiled").with_columns(
    Column("rule", meaning="code of the rule", get=lambda proof: proof.finding.rule),
    Column(
        "subject",
        width=12,
        optional=True,
        meaning="instruction or parameter that the finding is about",
        get=lambda proof: proof.finding.subject,
    ),
    Column("verdict", meaning="`confirmed`, `not confirmed` (it saves nothing or costs elsewhere) or `cannot be tried`"),
    *(_column(f"{name}_{side}", unit, words) for name, unit, words in _FIGURES for side in ("before", "after")),
    Column(
        "keeps_outputs",
        "bool",
        optional=True,
        detail=5,
        meaning="outputs of a device have their shapes and sizes",
        get=_keeps_outputs,
    ),
    Column(
        "remedy",
        width=24,
        optional=True,
        detail=4,
        wraps=True,
        meaning="what was changed in the program",
        get=lambda proof: proof.remedy and proof.remedy.words,
    ),
    Column(
        "line",
        width=40,
        optional=True,
        detail=1,
        wraps=True,
        meaning="what to write in Python",
        get=lambda proof: proof.remedy and proof.remedy.line,
    ),
    Column(
        "said",
        width=24,
        optional=True,
        wraps=True,
        page_name="why not",
        meaning="why it is not confirmed or cannot be tried",
        get=lambda proof: proof.said or None,
    ),
)
