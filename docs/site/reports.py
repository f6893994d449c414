"""The live reports of the site: pages of `report`, made of dumps of the repository."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.cli.main import run

ROOT = Path(__file__).parents[2]
FOLDER = "reports"
"""Folder of the live reports on the site."""


class LiveReport(NamedTuple):
    """A page of `report`: its name on the site, and the command line that makes it."""

    name: str
    arguments: tuple[str, ...]


REPORTS = (
    LiveReport("gpu-step", ("tests/data/planted/replicated-weight.gpu.fault.hlo.xz", "--profile", "h100-sxm")),
    LiveReport("tpu-step", ("tests/data/tpu/gathered_matmul.after.txt",)),
    LiveReport("diff", ("tests/data/memory/gpu_scan.hlo", "tests/data/memory/gpu_scan_remat.hlo", "--diff")),
    LiveReport("many-modules", ("tests/data/memory", "--profile", "h100-sxm")),
)


def write_report(report: LiveReport, path: Path) -> None:
    """Write a live report to a file. Its inputs have the paths of the repository. Raise RuntimeError if `report` fails."""
    folder = Path.cwd()
    os.chdir(ROOT)
    try:
        status = run(["report", *report.arguments, "-q", "-o", str(path)])
    finally:
        os.chdir(folder)
    if status:
        raise RuntimeError(f"the live report {report.name} cannot be made: exit status {status}")
