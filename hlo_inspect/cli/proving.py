"""`lint --prove`: findings of a program that is compiled here, each with what its remedy saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import click

from hlo_inspect.checks.lint_reports import LintRun
from hlo_inspect.cli.compile_options import made_by, on_target, without_places
from hlo_inspect.cli.report_stream import ReadingBar
from hlo_inspect.compiler.program import read_program
from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.inspection.compilations import Compilations
from hlo_inspect.inspection.proving import Prover, with_proofs
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from hlo_inspect.worker_process import Limits

_SECONDS = 600
"""The most that a compile may take."""


def proved(inputs: Sequence[str], request: Request, run: LintRun, on: str, keep: str | None, *, wants_bar: bool) -> Report:
    """Return the report of `lint` on one program, with a proof for each finding that counts."""
    if len(inputs) != 1:
        raise click.UsageError(f"--prove compiles one program, not {len(inputs)}.")
    (path,) = inputs
    program = read_program(path, request.module)
    with (
        ReadingBar(wanted=wants_bar) as bar,
        Compilations(program, parse_target(on), Limits(_SECONDS), {}, keep) as compilations,
    ):
        bar.reading(path, 0)
        prover = Prover(compilations, on_target(request, compilations), bar.analysing)
        report = prover.report()
        if keep is None:
            report = replace(without_places(report), input=report.input._replace(path=path))
        (linted,) = run.reports([report])
        linted = with_proofs(linted, list(prover.proofs(linted.findings)))
        return replace(linted, notes=(made_by(compilations), *linted.notes))
