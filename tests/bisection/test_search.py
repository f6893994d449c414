"""The search: the least part that is enough, pairs if no pass alone is necessary, names in XLA's log."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hlo_inspect.bisection import passes
from hlo_inspect.bisection.conditions import Observation
from hlo_inspect.bisection.flags import FlagChange, least_part
from hlo_inspect.bisection.passes import bisect_passes, names_in_log
from hlo_inspect.bisection.trials import Trial

LOG = """\
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:303] Running HLO pass pipeline on module jit_f: simplification
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:181]   HLO pass algsimp
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:176] HLO pass: algsimp time: 15 us (15 us)
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:181]   HLO pass cse
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:181]   HLO pass algsimp
I1129 00:57:45.03 437 hlo_pass_pipeline.cc:181]   HLO pass dce
"""


class PlannedTrials:
    """Trials whose condition holds unless one of some groups of passes is disabled."""

    def __init__(self, *groups: Collection[str], required: Collection[str] = (), unknown: Collection[str] = ()) -> None:
        self._groups, self._required, self._unknown = groups, required, unknown
        self.compilations = SimpleNamespace(flags={})
        self.lines: list[str] = []

    def first(self) -> tuple[Trial, Any, str]:
        return self.of({}), SimpleNamespace(folder=Path()), LOG

    def of(self, flags: dict[str, str]) -> Trial:
        disabled = set(flags.get("xla_disable_hlo_passes", "").split(","))
        if disabled & set(self._required):
            return Trial(None, "refused")
        if disabled & set(self._unknown):
            return Trial(Observation(None, "unknown"))
        holds = not any(disabled.issuperset(group) for group in self._groups)
        return Trial(Observation(holds, f"{holds}"))

    def confirm(self, trial: Trial, flags: dict[str, str], _label: str) -> None:
        assert self.of(flags).holds == trial.holds

    def tell(self, number: int, total: int, label: str, _trial: Trial) -> None:
        self.lines.append(f"{number} of {total} {label}")


@pytest.fixture(autouse=True)
def _changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_changes", lambda _folder: {"cse": "-1 instruction", "algsimp": "1 rewritten"})


def test_passes_and_pipelines_are_named_once_in_their_order() -> None:
    assert names_in_log(LOG) == ["simplification", "algsimp", "cse", "dce"]


def test_passes_that_changed_the_module_are_first_and_results_in_order_of_the_pipeline() -> None:
    trials: Any = PlannedTrials(["dce"], ["algsimp"], required=["simplification"])
    result = bisect_passes(trials)
    assert trials.lines[:3] == ["1 of 5 all passes", "2 of 5 without algsimp", "3 of 5 without cse"]
    assert [own.name for own in result.necessary] == ["algsimp", "dce"]
    assert [own.name for own in result.required] == ["simplification"]


def test_a_pass_without_which_the_condition_is_unknown_is_neither_necessary_nor_required() -> None:
    trials: Any = PlannedTrials(["dce"], required=["simplification"], unknown=["cse"])
    result = bisect_passes(trials)
    assert [own.name for own in result.necessary] == ["dce"]
    assert [own.name for own in result.required] == ["simplification"]
    assert result.others == []


def test_pairs_are_tried_if_none_alone_is_necessary() -> None:
    trials: Any = PlannedTrials(["algsimp", "cse"])
    result = bisect_passes(trials)
    assert [own.name for own in result.necessary] == ["algsimp,cse"]
    assert result.necessary[0].change == "1 rewritten; -1 instruction"
    assert bisect_passes(PlannedTrials(["algsimp", "cse", "dce"])).necessary == []  # type: ignore[arg-type]  # planned


@pytest.mark.parametrize("least", [{3}, {0, 39}, {1, 2, 3}, {7, 20, 33, 34}])
def test_the_least_part_of_forty_flags(least: set[int]) -> None:
    """A few tens of trials are enough: a single one needs a power of two of them."""
    whole, tried = [FlagChange(f"xla_{number}", None, number) for number in range(40)], []

    def is_enough(part: Any) -> bool:
        tried.append(part)
        return least <= {change.new for change in part}

    assert {change.new for change in least_part(whole, is_enough)} == least
    assert len(tried) <= (12 if len(least) == 1 else 150)
