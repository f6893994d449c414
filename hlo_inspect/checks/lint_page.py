"""The page of `lint` on several modules: one table of all findings, the largest saving first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from os.path import commonprefix

from hlo_inspect.checks.lint_reports import LINT, LINT_SPECS, LintRun, headline
from hlo_inspect.findings.small_findings import SmallFindings
from hlo_inspect.report.finding_groups import FindingGroup, group_findings, worst_first
from hlo_inspect.report.model import Input, Passage, Report
from hlo_inspect.report.table import number_of


def one_page(reports: Iterable[Report], run: LintRun) -> Iterator[Report]:
    """Yield one report for all reports of a run if there are several."""
    coming = iter(reports)
    first = list(islice(coming, 2))
    if len(first) < 2:
        yield from first
        return
    page = _Page()
    for report in chain(first, coming):
        page.take(report)
    yield page.report(run)


class _Page:
    """Sums over the reports so far; it keeps findings and drops reports."""

    def __init__(self) -> None:
        self._modules = 0
        self._groups: list[FindingGroup] = []
        self._facts: Counter[str] = Counter()
        self._notes: dict[str, None] = {}
        self._small = SmallFindings()
        self._passages: dict[Passage, None] = {}
        self._undecided: dict[str, None] = {}

    def take(self, report: Report) -> None:
        self._modules += 1
        self._groups += group_findings(report.findings, report.module_name, report.input.place)
        self._facts.update({spec.name: int(str(report.facts[spec.name])) for spec in LINT_SPECS})
        self._notes |= dict.fromkeys(note for note in report.notes if not self._small.take(note))
        self._passages |= dict.fromkeys(report.passages)
        self._undecided |= dict.fromkeys(report.undecided_rules)

    def report(self, run: LintRun) -> Report:
        findings = [finding for group in self._groups for finding in group.findings]
        verdict, modules = run.verdict, number_of(self._modules, "module")
        is_clean = not findings
        facts = {spec.name: self._facts[spec.name] for spec in LINT_SPECS}
        undecided = list(self._undecided)
        return Report(
            LINT,
            Input("", 1, 0, 0),
            facts,
            ()
            if is_clean
            else (*run.tables(worst_first(self._with_short_paths()), undecided, ()), run.results(findings, undecided)),
            tuple(findings),
            run.last_notes if is_clean else (*self._notes, *self._small.notes()),
            specs=LINT_SPECS,
            title=verdict.text if is_clean else modules,
            passages=tuple(self._passages),
            headline=() if is_clean else (headline(facts),),
            verdict=None if is_clean else verdict,
        )

    def _with_short_paths(self) -> Iterator[FindingGroup]:
        """Yield the groups with paths that tell rows apart when they are cut."""
        paths = without_common_ending(below_common_folder([group.path for group in self._groups]))
        return (replace(group, path=path) for group, path in zip(self._groups, paths, strict=True))


def below_common_folder(paths: Sequence[str]) -> list[str]:
    """Return paths below the folder of all. A root is no such folder, nor is `s3://`."""
    common = commonprefix(paths)  # noqa: RUF071 - up to the last slash of it
    folder = common[: common.rfind("/") + 1]
    is_root = not folder.rstrip("/").rpartition(":")[2]
    return [path if is_root else path.removeprefix(folder) for path in paths]


def without_common_ending(paths: Sequence[str]) -> list[str]:
    """Return paths without what all file names have from some dot on, such as `.hlo.txt.xz`. Equal paths stay whole."""
    ending = commonprefix([path[::-1] for path in paths])[::-1]  # noqa: RUF071 - from a dot of it on
    name = ending.rpartition("/")[2]
    ending = name[name.find(".") :] if "." in name[1:] else ""
    return [path.removesuffix(ending) for path in paths] if len(set(paths)) > 1 else list(paths)
