"""The plain text next to tables in the formats for people (terminal, Markdown): headline, findings, remarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from hlo_inspect.errors import printable
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.report.layout import Grid
from hlo_inspect.report.model import Amount, Finding, HeadlineRow, Passage, Report
from hlo_inspect.report.render_options import RenderOptions
from hlo_inspect.report.table import Unit, Value, number_of
from hlo_inspect.report.units import format_value

NO_BREAK = "\u00a0"

SUMMARY = "summary"  # the command that is a page of small tables
CHECK, CHECKS = "check", "checks"  # its page names facts; its own table
LINT = "lint"  # its tables are the findings

_SUMMARY_FINDINGS, _PAGE_FINDINGS = 3, 20
_WORTH_DOING_FIRST = 0.001
"""The least saving, as a share, on a summary: a smaller one changes no figure, as pages print three digits."""
_NOTE_SUBJECTS = 3  # figures that a note names
_SUBJECT = lazy_pattern(r"[a-z]\w*(\.[^\s:]+)*")
_FAMILIES = {"mesh": "mesh", "collectives": "collective", "custom_calls": "custom-call", "params": "parameter"}
_SUBJECT_WORDS = {"flops": "FLOPs", "temp": "temporary", "wire": "sent", "s": "time"}
_COUNTED = (("module.devices", "device"), ("module.num_partitions", "partition"), ("module.replica_count", "replica"))
_SHAPES = {"per_device": "per-device shapes", "global": "global shapes", "mixed": "global shapes with per-device regions"}


def module_name(report: Report) -> str:
    """Return the module's name, "?" if it is unknown; for a report about no module its title, or the command."""
    return format_value(report.facts.get("module.name", report.title or report.command), "text")


def module_details(report: Report) -> list[str]:
    """Return the layout of the module on devices; a fact that the report lacks is left out, an unknown one is "?".

    A single partition or replica goes without saying, and so does an unknown count of them.
    """
    facts = report.facts
    if facts.get("module.slices", 1) != 1:
        details = [f"{_count(facts['module.slices'], 'slice')} x {_count(facts['module.num_partitions'], 'device')}"]
    else:
        details = [
            _count(facts[name], noun)
            for name, noun in _COUNTED
            if name in facts and (facts[name] not in {1, None} or noun == "device")
        ]
    shapes = facts.get("module.shapes")
    if isinstance(shapes, str):
        details.append(_SHAPES.get(shapes, printable(shapes)))
    if "module.is_scheduled" in facts:
        details.append("scheduled" if facts["module.is_scheduled"] else "not scheduled")
    return details


def input_details(report: Report, options: RenderOptions) -> list[str]:
    """Return the file of the module, the size of its text, the hardware profile, and a configuration of a folder above.

    Return nothing if no input was read.
    """
    source = report.input
    if not source.lines:
        return []
    details = [
        printable(source.place),
        f"{source.counted}{number_of(source.lines, 'line')}",
        format_value(source.bytes, "bytes"),
    ]
    if report.profile is not None:
        details.append(f"profile {printable(report.profile)}")
    if options.config is not None:
        details.append(f"options of {printable(options.config)}")
    return details


def _count(value: Value, noun: str) -> str:
    return number_of(value, noun) if isinstance(value, int) else f"{format_value(value, 'count')} {noun}s"


def split_headline(report: Report) -> tuple[list[HeadlineRow], list[HeadlineRow]]:
    """Return the lines that come before everything else, since they warn of all that follows; and the others."""
    first = [row for row in report.headline if row.severity is not None and not row.label]
    return first, [row for row in report.headline if row not in first]


def headline_text(row: HeadlineRow, raw_bytes: bool = False) -> str:
    """Return the parts of a first line as one text, in which a no-break space keeps a number with its unit."""
    return "".join(_amount(part, raw_bytes) if isinstance(part, Amount) else printable(part) for part in row.parts)


def _amount(amount: Amount, raw_bytes: bool) -> str:
    text = format_value(amount.value, amount.unit, raw_bytes)
    if amount.noun:
        text += f" {amount.noun}{'' if amount.value == 1 else 's'}"
    return text.replace(" ", NO_BREAK)


def paragraphs(passage: Passage) -> list[str]:
    """Return the text of a passage: its paragraphs, each in one line, or its lines if it is verbatim; it may quote a dump."""
    if passage.verbatim:
        return [printable(line) for line in passage.text.split("\n")]
    return [printable(" ".join(paragraph.split())) for paragraph in passage.text.split("\n\n")]


def has_findings(report: Report, options: RenderOptions) -> bool:
    """Return True if the page lists findings besides its tables.

    The summary says so when there are none, if its first lines do not. The tables of `lint` hold its findings. An output that a
    limit cuts need not have them.
    """
    if report.command == LINT:
        return False
    return bool(listed_findings(report)) or (report.command == SUMMARY and not report.headline and not options.left_out)


def listed_findings(report: Report) -> Sequence[Finding]:
    """Return the findings without those that are failed rows of the page's checks."""
    checks = [table.records() for table in report.tables if table.name == CHECKS] if report.command == CHECK else []
    failed = {(row["check"], row["actual"]) for rows in checks for row in rows}
    return [finding for finding in report.findings if (finding.rule, finding.severity) not in failed]


def findings_heading(report: Report) -> str:
    """Return the heading of the findings: their question, if they are not of all, and the rules that are left out.

    The first lines of a summary have said that already.
    """
    name = "Do first" if report.command == SUMMARY else "Findings"
    return name if report.command == SUMMARY and report.headline else f"{name}{report.findings_scope}"


def finding_details(finding: Finding, raw_bytes: bool = False) -> list[str]:
    """Return the saving of a finding, and its line of Python or else its place in the dump."""
    place = finding.source or (str(finding.location) if finding.location is not None else "")
    return [detail for detail in (saving_text(finding, raw_bytes), printable(place)) if detail]


def saving_text(finding: Finding, raw_bytes: bool = False) -> str:
    """Return what mending the finding saves at most, as an amount and a share; empty if nothing is counted."""
    if finding.stake is None or finding.share is None:
        return ""
    unit: Unit = "seconds" if finding.stake_unit == "s" else finding.stake_unit
    saving = format_value(finding.stake, unit, raw_bytes)
    return f"saves up to {saving}, {format_value(finding.share, 'share')} of {finding.share_of}"


def shown_findings(report: Report, options: RenderOptions) -> Sequence[Finding]:
    """Return the first findings, fewer for the summary and merged if equal there, or all with -v."""
    if options.verbose:
        return listed_findings(report)
    if report.command == SUMMARY:
        return [finding for finding in _merged_findings(report) if not _is_trifle(finding)][:_SUMMARY_FINDINGS]
    return listed_findings(report)[:_PAGE_FINDINGS]


def findings_left_out(report: Report, options: RenderOptions) -> str:
    """Return the number of findings that are not shown and how to see them; empty when all are."""
    merged = report.command == SUMMARY and not options.verbose
    findings = _merged_findings(report) if merged else listed_findings(report)
    left_out = len(findings) - len(shown_findings(report, options))
    if not left_out:
        return ""
    trifles = sum(map(_is_trifle, findings)) if merged else 0
    which = " that" if trifles == left_out else f", {trifles:,} of which"
    share = format_value(_WORTH_DOING_FIRST, "share")
    saved = f"{which} {'saves' if trifles == 1 else 'save'} less than {share}" if trifles else ""
    return f"and {left_out:,} more{saved}: -v or `hlo-inspect lint`"


def _merged_findings(report: Report) -> list[Finding]:
    from hlo_inspect.report.finding_groups import group_findings

    return [group.merged for group in group_findings(listed_findings(report))]


def _is_trifle(finding: Finding) -> bool:
    """Return True if mending the finding changes no figure of a page. Errors are none."""
    return finding.severity != "error" and finding.share is not None and finding.share < _WORTH_DOING_FIRST


def hidden_columns(grids: Sequence[Grid]) -> str:
    """Return the columns that did not fit, by table; empty when all did."""
    hidden = "; ".join(f"{grid.title} ({', '.join(grid.hidden)})" for grid in grids if grid.hidden)
    return f"more columns, for --columns: {hidden}" if hidden else ""


def has_unknown(report: Report, grids: Sequence[Grid]) -> bool:
    """Return True if the page shows a "?" for a value."""
    headline = [report.facts.get("module.name", ""), *(report.facts.get(name, 0) for name, _ in _COUNTED)]
    return None in headline or any(grid.has_unknown for grid in grids)


class PageNotes(NamedTuple):
    """The notes of a page: `reasons` of unknown figures, and other `remarks`."""

    reasons: list[str]
    remarks: list[str]


def page_notes(report: Report) -> PageNotes:
    """Return the notes of a report in the words of its page. Notes with equal text are one, which names their figures."""
    subjects_of_text: dict[str, list[str]] = {}
    for note in report.notes:
        subject, colon, text = note.partition(": ")
        if not colon or not _SUBJECT.fullmatch(subject):
            subject, text = "", note
        subjects_of_text.setdefault(text, []).append(subject)
    notes = PageNotes([], [])
    for text, subjects in subjects_of_text.items():
        explains = any(subject in {"phases", "findings"} or report.facts.get(subject, "") is None for subject in subjects)
        names = subjects if report.command == CHECK else list(dict.fromkeys(map(_figure, subjects)))
        (notes.reasons if explains else notes.remarks).append(f"{_enumeration(names)}: {text}" if subjects[0] else text)
    return notes


def _figure(subject: str) -> str:
    """Return the words for a fact or column. Facts of some families begin with the thing counted."""
    family, dot, name = subject.partition(".")
    words = re.split(r"[_.](?=[a-z])", name if dot else family)
    if words[0] == "target":
        return name.partition(".")[2]
    counted = [_FAMILIES[family]] if dot and family in _FAMILIES else []
    return " ".join(counted + [_SUBJECT_WORDS.get(word, word) for word in words])


def _enumeration(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    others = len(names) - _NOTE_SUBJECTS
    shown = ", ".join(names[:_NOTE_SUBJECTS] if others > 1 else names)
    return f"{shown} and {others} others" if others > 1 else shown
