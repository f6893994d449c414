"""The optimizer's facts, tables, findings and notes, against the source of the programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.layout import make_grid
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value
from tests.optimizer.programs import changed, report_of, step_of, text_of
from tests.tables import column

DATA = Path(__file__).parents[1] / "data"
PROGRAMS = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["programs"]
CASES = [
    (path.relative_to(DATA).as_posix(), truth)
    for name, facts in PROGRAMS.items()
    if (truth := {fact: value for fact, value in facts.items() if fact.startswith("optimizer.")})
    for path in sorted(DATA.glob(f"*/{name}.*.txt"))
]


def report(name: str) -> Report:
    return hlo_inspect.inspect(DATA / name, ("optimizer",))


@pytest.mark.parametrize(("name", "truth"), CASES)
def test_facts_are_those_of_the_program(name: str, truth: dict[str, Value]) -> None:
    facts = report(name).facts
    assert {fact: facts[fact] for fact in truth} == truth


def test_the_cases_cover_every_platform() -> None:
    assert {name.split("/")[0] for name, _ in CASES} >= {"cpu", "gpu", "tpu", "jax_0_4_13", "jax_0_5_0"}


def test_the_parameters_have_roles_where_the_optimizer_is_asked_for() -> None:
    """The state of adamw_step is the counter, two first moments, two second ones, two weights; then come x and y."""
    parameters = hlo_inspect.inspect(DATA / "cpu/adamw_step.after.txt", "params").table("params")
    assert column(parameters, "role") == ["counter", *["first_moment"] * 2, *["second_moment"] * 2, *["weight"] * 2, None, None]


def test_groups_have_one_row_for_each_set_of_constants() -> None:
    groups = report_of(text_of("adamw.after")).table("optimizer_groups")
    assert column(groups, "rule") == ["adamw", "adamw"]
    assert sorted(column(groups, "weight_decay"), key=str) == [0.05, None]
    assert column(groups, "weights") == [1, 1]


@pytest.mark.parametrize("width", [80, 100, 120, 140, 160, 180, 200])
def test_columns_of_few_rules_take_no_room_from_those_of_most(width: int) -> None:
    """AdEMAMix alone has beta3 and alpha here; most have a rate, two betas, epsilon and a weight decay."""
    most = {"learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "rate"}
    adamw = report_of(text_of("adamw.after"))
    for name in ("optimizer", "optimizer_groups"):
        hidden = make_grid(adamw.table(name), width).hidden
        assert {"beta3", "alpha"} <= set(hidden) or not most & set(hidden)


def test_an_unknown_update_shows_its_expression() -> None:
    """Updates of one form are shown once, with the part that the nearest rule explains."""
    notes = report_of(changed(text_of("sign_sgd.after"), r" sign\(", " rsqrt(")).notes
    (shown,) = [note for note in notes if "no rule explains" in note]
    assert re.fullmatch(
        r"optimizer\.name: no rule explains parameters 0, 1, of which 0 becomes -0\.001\*(x#\d+\*\*-0\.5) \+ p0; "
        r"the nearest rule is sgd, which does not explain factor \1",
        shown,
    )
    smooth = ("a = multiply m1 nine", "m = add a g", "s = tanh m", "u = multiply s rate", "new = add w u")
    (shown,) = [note for note in report_of(step_of(*smooth, outputs="new m", states=1)).notes if "no rule explains" in note]
    assert re.search(
        r"tanh\((v#\d+)\).*, with \1 = .*; the nearest rule is sgd, which explains the momentum \1, not factor", shown
    )


def test_notes_say_why_a_value_is_unknown() -> None:
    notes = report_of(text_of("adamw_clip.after")).notes
    schedule = "linear warm-up 0 to 0.001 over 100 steps, then cosine to 0 over 900 steps"
    assert f"optimizer.learning_rate: the step computes it: {schedule}" in notes
    assert not any(note.startswith("optimizer.momentum:") for note in notes)  # there is none in adamw


def test_a_schedule_is_shown_by_its_name() -> None:
    """Warm-up over 100 steps to 0.001, then a cosine over 900: the counter is the last of the state's parameters."""
    report = report_of(text_of("adamw_clip.before"))
    updates = report.table("optimizer")
    name = "linear warm-up 0 to 0.001 over 100 steps, then cosine to 0 over 900 steps"
    assert set(column(updates, "rate")) == set(column(report.table("optimizer_groups"), "rate")) == {name}
    assert set(column(updates, "learning_rate")) == {None}
