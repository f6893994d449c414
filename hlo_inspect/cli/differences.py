"""The reports of `diff`, one after the other, and the exit status that they add up to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from hlo_inspect.checks.differences import conditions_table, examined, parse_difference
from hlo_inspect.cli.inputs import FAILED, UNREADABLE, USAGE
from hlo_inspect.cli.options import OutputOptions, ReadOptions
from hlo_inspect.cli.output import refuse_to_overwrite
from hlo_inspect.cli.progress import ReadingBar
from hlo_inspect.cli.streams import tell
from hlo_inspect.errors import InputError
from hlo_inspect.inspection.comparisons import ComparedInput, Comparisons
from hlo_inspect.passes import all_specs
from hlo_inspect.report.model import SEVERITIES, Report, Severity, Verdict


class Compared:
    """The reports of all pairs of modules, to be taken once. `status` is the exit status so far."""

    def __init__(
        self,
        old: str,
        new: str,
        new_module: str | None,
        read: ReadOptions,
        conditions: Sequence[str],
        fail_on: Severity | None,
        output: OutputOptions,
    ) -> None:
        self.status = 0
        self._inputs = ComparedInput(old), ComparedInput(new, new_module)
        self._read = read
        self._conditions = [parse_difference(text, all_specs()) for text in conditions]
        self._fail_on = fail_on
        self._output = output

    def __iter__(self) -> Iterator[Report]:
        asked = asdict(self._read)
        asked.pop("jobs")
        asked.pop("cost_model")
        refuse_to_overwrite(self._output.output, [*(str(one.source) for one in self._inputs), self._read.custom_calls])
        with ReadingBar(wanted=not self._output.quiet) as bar:
            comparisons = Comparisons(watch=lambda inspection: inspection.watch(bar), **asked)
            for one in comparisons.of(*self._inputs):
                report = one.report
                if self._reaches(report):
                    self.status = max(self.status, FAILED)
                if self._conditions and one.old is not None and one.new is not None:
                    report = self._judged(report, one.old.report, one.new.report, is_different=one.is_different)
                elif any(condition.assertion is None for condition in self._conditions):
                    self.status = max(self.status, FAILED)
                with bar.out_of_the_way():
                    yield report
            for error in comparisons.errors:
                with bar.out_of_the_way():
                    tell(f"hlo-inspect: {error}")
                self.status = max(self.status, UNREADABLE if isinstance(error, InputError) else USAGE)

    def _judged(self, report: Report, old: Report, new: Report, *, is_different: bool) -> Report:
        """The report with how the conditions came out."""
        results = examined(self._conditions, old, new, is_different=is_different)
        met = sum(result.is_met for result in results)
        if met:
            self.status = max(self.status, FAILED)
        text = f"{'FAILED' if met else 'PASSED'} {met:,} of {len(results):,} conditions met"
        return replace(report, tables=(*report.tables, conditions_table(results)), verdict=Verdict(text, passed=not met))

    def _reaches(self, report: Report) -> bool:
        if self._fail_on is None:
            return False
        limit = SEVERITIES.index(self._fail_on)
        return any(SEVERITIES.index(finding.severity) <= limit for finding in report.findings)
