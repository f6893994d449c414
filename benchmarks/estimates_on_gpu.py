"""Estimates beside what `benchmarks.on_gpu` recorded: `python -m benchmarks.estimates_on_gpu OUT.zip [--profile h200]`.

Each row is a kind of kernel of a program: its measured time in a step, and bound and estimate as multiples of it.
"""

from __future__ import annotations

import argparse
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import hlo_inspect
from hlo_inspect.report.model import Report


class KindTimes(NamedTuple):
    """The kernels of one kind in a step of a program: seconds measured, by the bound and by the estimate.

    `is_known` is False if the estimate of one of them is unknown.
    """

    program: str
    kind: str
    kernels: int
    measured_s: float
    bound_s: float
    estimate_s: float
    is_known: bool

    @property
    def row(self) -> str:
        bound, estimate = (seconds / self.measured_s for seconds in (self.bound_s, self.estimate_s))
        sign, measured = "" if self.is_known else ">= ", f"{self.measured_s * 1e6:,.1f} µs"
        return f"| {self.program} | {self.kind} | {self.kernels} | {measured} | {bound:.2f} | {sign}{estimate:.2f} |"


HEAD = "| program | kernels | count | measured | bound / measured | estimate / measured |\n|---|---|---|---|---|---|"


def kinds_of(program: str, report: Report) -> Iterator[KindTimes]:
    """Yield the kinds of kernels with a measured time."""
    rows: defaultdict[str, list[tuple[float, float, float, bool]]] = defaultdict(list)
    for row in report.table("kernels").records():
        measured = row["measured_s"]
        if isinstance(measured, float) and measured > 0:
            bound, estimate = (row[name] if row[name] is not None else row[f"{name}_lower_bound"] for name in _TIMES)
            kind = f"{row['kind']} {row['fusion_kind'] or ''}".strip()
            rows[kind].append((measured, float(str(bound)), float(str(estimate)), row["estimate_s"] is not None))
    for kind, times in rows.items():
        measured_s, bound_s, estimate_s = (sum(time[column] for time in times) for column in range(3))
        is_known = all(time[3] for time in times)
        yield KindTimes(program, kind, len(times), measured_s, bound_s, estimate_s, is_known)


_TIMES = ("bound_s", "estimate_s")
FAILED = "failed.txt"


def read_archive(archive: zipfile.ZipFile, profile: str) -> Iterator[KindTimes]:
    """Yield the kinds of kernels of all programs of an archive."""
    for name in archive.namelist():
        if not name.endswith(".hlo"):
            continue
        program = name.removesuffix(".hlo")
        with tempfile.TemporaryDirectory() as folder:
            dump, recorded = (Path(archive.extract(file, folder)) for file in (name, f"{program}.xplane.pb"))
            report = hlo_inspect.inspect(dump, ("time",), profile=profile, recorded=str(recorded))
        yield from kinds_of(program, report)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare estimates with recorded times")
    parser.add_argument("archive", type=Path, metavar="OUT.zip")
    parser.add_argument("--profile", default="h200", help="the hardware profile (h200)")
    options = parser.parse_args()
    with zipfile.ZipFile(options.archive) as archive:
        print(HEAD)
        for kind in read_archive(archive, options.profile):
            print(kind.row)
        print(archive.read(FAILED).decode(), end="")


if __name__ == "__main__":
    main()
