"""The fact reference: name, unit and meaning of each fact, by the command that gives it."""

from __future__ import annotations

from docs.pages.markdown import NOTE, make_table
from hlo_inspect.passes import ALPA, EXPORT, MEASURED, MODULE_FACTS, OTHERS, PASSES, workload_pass
from hlo_inspect.passes.base import Question
from hlo_inspect.report.model import FactSpec

_INTRODUCTION = """\
A fact is a named value for scripts: an integer of bytes, a share, a name. [`check`](commands/check.md) asserts facts,
[`--format json`](commands/index.md#output) has them under `facts`, and in Python they are
[`report.facts`](python.md). `hlo-inspect check DUMP --list-facts` prints each with its value in a dump.

* A segment in angle brackets stands for many names: `opcode.add` is a fact of `opcode.<opcode>`. A member that does not
  occur is 0.
* An unknown fact is null and has a note. If a part is known, `FACT.lower_bound` has it; if there is a limit,
  `FACT.upper_bound`.
* `executed` figures count every run in one step. Others count the instructions of the text.
"""

_MOST_MEMBERS = 12
"""Families with more members than this are not spelled out."""


def fact_texts() -> dict[str, str]:
    """Return the page by its path below `docs`."""
    parts = [NOTE, "", "# Facts", "", _INTRODUCTION]
    for heading, text, question in _sections():
        rows = [(f"`{spec.name}`", spec.unit, _meaning(spec)) for spec in question.specs]
        parts += [f"## {heading}", "", *([text, ""] if text else []), make_table(("fact", "unit", "meaning"), rows)]
    return {"facts.md": "\n".join(parts)}


def _sections() -> list[tuple[str, str, Question]]:
    """Return heading, introduction and pass of each section that has facts."""
    sections: list[tuple[str, str, Question]] = [("Of every command", "", OTHERS.load(MODULE_FACTS))]
    sections += [(pass_.name, f"From [`{pass_.name}`](commands/{pass_.name}.md).", pass_) for pass_ in PASSES]
    sections += [
        (MEASURED, "Of a [recorded profile](measured.md).", OTHERS.load(MEASURED)),
        (EXPORT, "Of an [exported step](simulation.md).", OTHERS.load(EXPORT)),
        ("workload", "Of a [workload file](commands/workload.md).", workload_pass()),
        ("Alpa", "With `--cost-model`, see [`collectives`](commands/collectives.md).", OTHERS.load(ALPA)),
    ]
    return [section for section in sections if section[2].specs]


def _meaning(spec: FactSpec) -> str:
    parts = [spec.meaning]
    if spec.members is not None and len(spec.members) <= _MOST_MEMBERS:
        parts.append(f"one of {', '.join(sorted(spec.members))}")
    if spec.absent:
        parts.append(f"null: {spec.absent}")
    return "; ".join(parts)
