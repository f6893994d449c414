"""Measurements of each commit: one line of JSON a run, in `benchmarks/history.jsonl`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Figure
from benchmarks.measure import ROOT

HISTORY = ROOT / "benchmarks/history.jsonl"


class Run(NamedTuple):
    """Run of the benchmarks: commit (with `+` if the tree had other changes), time, and figures by dump and name."""

    commit: str
    time: str
    figures: dict[str, dict[str, float]]


def append(measured: Mapping[str, Mapping[Figure, float]], path: Path = HISTORY) -> None:
    """Add a run of this tree."""
    figures = {dump: {figure.name: round(value, 3) for figure, value in values.items()} for dump, values in measured.items()}
    run = Run(_commit(), datetime.now(UTC).isoformat(timespec="seconds"), figures)
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(run._asdict()) + "\n")


def read_history(path: Path = HISTORY) -> list[Run]:
    """Return all runs, with the runs of one commit joined: the later value of a figure wins."""
    runs: dict[str, Run] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        run = Run(**json.loads(line))
        merged = runs.setdefault(run.commit, Run(run.commit, run.time, {}))
        for dump, figures in run.figures.items():
            merged.figures.setdefault(dump, {}).update(figures)
    return list(runs.values())


def _commit() -> str:
    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S607

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "hlo_inspect")
    return (git("rev-parse", "--short=9", "HEAD") or "unknown") + ("+" if changed else "")
