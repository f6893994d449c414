"""`lint --prove`: findings of a program that is compiled here, each with what its remedy saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from hlo_inspect.checks.lint_reports import LintRun
from hlo_inspect.cli.compile_options import without_places
from hlo_inspect.cli.report_stream import ReadingBar
from hlo_inspect.compiler.program import read_program
from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.inspection.compilations import DEFAULT_LIMITS, Compilations
from hlo_inspect.inspection.proving import prove
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request


def proved(inputs: Sequence[str], request: Request, run: LintRun, on: str, keep: str | None, *, wants_bar: bool) -> Report:
    """Return the report of `lint` on one program, with a proof for each finding that counts."""
    if len(inputs) != 1:
        raise click.UsageError(f"--prove compiles one program, not {len(inputs)}.")
    (path,) = inputs

    def linted(report: Report) -> Report:
        if keep is None:
            report = replace(without_places(report), input=report.input._replace(path=path))
        return next(run.reports([report]))

    program, target = read_program(path, request.module), parse_target(on)
    with ReadingBar(wanted=wants_bar) as bar, Compilations(program, target, DEFAULT_LIMITS, {}, keep) as compilations:
        bar.reading(path, 0)
        report = prove(compilations, compilations.on_target(request), linted, bar.analysing)
        return replace(report, notes=(compilations.made_by, *report.notes))
