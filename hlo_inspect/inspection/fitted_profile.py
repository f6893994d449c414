"""A hardware profile with the rates that the best kernels of a recorded profile achieved."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from math import ceil
from pathlib import Path

from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.errors import InputError, Location
from hlo_inspect.passes.measured.rates import RATES
from hlo_inspect.report.model import Report

_TITLE = ", fitted to a recorded profile"


class FittedRates:
    """The best rates of all programs of a recorded profile, by figure of the hardware profile that they replace."""

    def __init__(self, base: str, recorded: str) -> None:
        """Load the profile `base`. Raise UsageError if there is none."""
        self._base, self._recorded = load_profile(base), recorded
        self._is_shipped = base in profile_names()
        self._rates: dict[str, tuple[float, str]] = {}
        self._programs: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._rates)

    def noting(self, reports: Iterable[Report]) -> Iterator[Report]:
        """Yield reports of `measured` and note their rates."""
        for report in reports:
            for row in (row for table in report.tables if table.name == RATES.name for row in table.records()):
                figure, rate = str(row["figure"]), float(str(row["achieved"]))
                self._programs[report.module_name] = None
                if rate > self._rates.get(figure, (0.0, ""))[0]:
                    self._rates[figure] = rate, str(row["best"])
            yield report

    def text(self, target: Path) -> str:
        """Return the content of a file at `target`; shares of rates that were reached are 1. Raise InputError without rates."""
        if not self._rates:
            message = f"has no kernel that a rate of {self._base.name} binds, so there is nothing to fit"
            raise InputError(message, Location(self._recorded))
        names = (f"recorded-profile-{number}" for number in count(1))
        source = next(name for name in names if name not in self._base.sources)
        lines = [f"extends: {json.dumps(self._reference(target))}"]
        lines.append(f"title: {json.dumps(self._base.title.removesuffix(_TITLE) + _TITLE)}")
        sections: dict[str, list[str]] = {}
        for figure, (rate, kernel) in sorted(self._rates.items()):
            section, _, name = figure.partition(".")
            own = f"source: {source}, confidence: secondary, note: {json.dumps(f'best: {kernel}')}"
            if section == "links":
                sections.setdefault(section, []).extend(self._link(figure, rate, own))
                continue
            unit = "B/s" if name == "bandwidth" else "FLOP/s"
            sections.setdefault(section, []).append(f"  {name}: {{value: {ceil(rate)} {unit}, {own}}}")
            efficiency = f"  {section}: {{value: 1, {own}}}"
            stated = self._base.value(f"efficiency.{section}") is not None
            if stated and not any(line.startswith(f"  {section}:") for line in sections.get("efficiency", ())):
                sections.setdefault("efficiency", []).append(efficiency)
        for section, figures in sections.items():
            lines += ["", f"{section}:", *figures]
        return "\n".join([*lines, "", *self._sources(source), ""])

    def _reference(self, target: Path) -> str:
        """Return the name of a shipped profile, or the path of another one relative to the folder of `target`."""
        if self._is_shipped:
            return self._base.name
        return os.path.relpath(Path(self._base.path).resolve(), target.resolve().parent)

    def _link(self, figure: str, rate: float, own: str) -> Iterator[str]:
        """Yield the lines of a level of links. Its bandwidth counts links and directions as the profile does."""
        stated = self._base.figures.get(figure)
        basis = f"per: {stated.per}, directions: {stated.directions}, " if stated is not None else ""
        yield f"  {figure.removeprefix('links.').removesuffix('.bandwidth')}:"
        yield f"    bandwidth: {{value: {ceil(rate)} B/s, {basis}{own}}}"
        yield f"    efficiency: {{value: 1, {own}}}"

    def _sources(self, source: str) -> Iterator[str]:
        fields: Mapping[str, str] = {
            "id": source,
            "title": "Recorded profile of jax.profiler",
            "publisher": "hlo-inspect measured --fit",
            "version": ", ".join(self._programs),
            "url": Path(self._recorded).name,
            "page": "rates of the best kernels",
        }
        yield "sources:"
        yield from (f"  {'-' if key == 'id' else ' '} {key}: {json.dumps(text)}" for key, text in fields.items())
