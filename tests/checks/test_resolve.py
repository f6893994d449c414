from __future__ import annotations

from dataclasses import replace

import pytest

from hlo_inspect.checks.policy import Check, parse_assertion, remark, resolve, value_of
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report.facts import find_spec
from hlo_inspect.report.model import FactSpec
from tests.checks.sample import FACTS, NOTES, SPECS, parse_policy, sample_report


def covered(name: str) -> tuple[str, str | None] | None:
    match = find_spec(name, SPECS)
    return match and (match[0].name, match[1])


def check(text: str) -> Check:
    return resolve(parse_assertion(text), SPECS)


@pytest.mark.parametrize(
    ("name", "spec", "member"),
    [
        ("collectives.count", "collectives.count", None),
        ("collectives.all-to-all.count", "collectives.<kind>.count", "all-to-all"),
        ("collectives.all-to-all.operand_bytes", "collectives.<kind>.operand_bytes", "all-to-all"),
        ("collectives.group_size.16.count", "collectives.group_size.<n>.count", "16"),
        ("collectives.phase.forward.count", "collectives.phase.<phase>.count", "forward"),
        ("opcode.get-tuple-element", "opcode.<opcode>", "get-tuple-element"),
        ("custom_calls.target.__cublas$gemm", "custom_calls.target.<target>", "__cublas$gemm"),
        ("custom_calls.target.xla.sdy.Anything", "custom_calls.target.<target>", "xla.sdy.Anything"),
    ],
)
def test_existing_names_are_covered(name: str, spec: str, member: str | None) -> None:
    assert covered(name) == (spec, member)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "collectives",
        "collectives.count.count",
        "collectives..count",
        "collectives.<kind>.count",
        "collectives.all-to-al.count",
        "collectives.group_size.count",
        "collectives.group_size.8x.count",
        "collectives.group_size.0.count",
        "collectives.group_size.08.count",
        "collectives.group_size.٨.count",
        "collectives.phase.optimiser.count",
        "opcode.fusoin",
        "opcode.",
        "Opcode.dot",
        "custom_calls.target.",
        "fusions.kind.kloop",
        "xopcode.dot",
    ],
)
def test_other_names_are_not_covered(name: str) -> None:
    assert covered(name) is None


def test_the_family_with_more_fixed_text_has_the_fact() -> None:
    specs = (
        FactSpec("a.<any>.count", "count", "open to all"),
        FactSpec("a.group.<n>.count", "count", "by number"),
        FactSpec("a.b.count", "bytes", "a fact of its own"),
    )
    for order in (specs, specs[::-1]):
        assert find_spec("a.group.8.count", order) == (specs[1], "8")
        assert find_spec("a.b.count", order) == (specs[2], None)
        assert find_spec("a.c.count", order) == (specs[0], "c")


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("opcode.fusoin", "'opcode.fusion'"),
        ("collectives.all-to-al.count", "'collectives.all-to-all.count'"),
        ("colectives.count", "'collectives.count'"),
        ("param.unused_count", "'params.unused_count'"),
        ("aliased_bytes", "'params.aliased_bytes'"),
        ("fusions.kind.kloop", "'fusions.kind.kLoop'"),
        ("collectives.group_size.eight.count", "'collectives.group_size.<n>.count'"),
        ("custom_call.target.foo", "'custom_calls.target.<target>'"),
        ("optimizer.weightdecay", "'optimizer.weight_decay'"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_closest_names(name: str, suggested: str) -> None:
    assertion = parse_policy(f"checks:\n  mesh.shape: known\n  {name}: 0\n", "p.yaml").assertions[1]
    with pytest.raises(UsageError) as caught:
        resolve(assertion, SPECS)
    assert caught.value.location == Location("p.yaml", 3, 3)
    reason, _, hints = caught.value.message.partition("; did you mean ")
    assert reason == f"there is no fact {name!r}"
    assert hints.startswith(suggested)


def test_a_name_like_no_other_is_refused_too() -> None:
    with pytest.raises(UsageError, match=r"^--assert:1:1: there is no fact 'zzz'\n  zzz == 0\n  \^$"):
        check("zzz == 0")


def test_an_expression_that_does_not_fit_the_fact_is_refused_at_its_place() -> None:
    assertion = parse_policy("checks:\n  optimizer.name: '> 3'\n", "p.yaml").assertions[0]
    with pytest.raises(UsageError) as caught:
        resolve(assertion, SPECS)
    assert caught.value.location == Location("p.yaml", 2, 19)
    assert caught.value.message.startswith("optimizer.name: `>` needs an order")
    with pytest.raises(UsageError, match="MiB"):
        check("collectives.count == 1 MiB")


def test_values_are_those_of_the_report() -> None:
    report = sample_report()
    assert value_of(check("collectives.all-reduce.count == 0"), report) == 2
    assert value_of(check("custom_calls.target.xla.sdy.FuncResultSharding == 0"), report) == 1
    assert value_of(check("collectives.executed_count == 0"), report) is None


def test_a_member_that_does_not_occur_is_zero() -> None:
    for name in ("collectives.reduce-scatter.count", "collectives.group_size.16.count", "opcode.add", "custom_calls.target.x"):
        assert value_of(check(f"{name} == 0"), sample_report()) == 0


def test_a_fact_that_was_not_computed_is_no_zero() -> None:
    with pytest.raises(UsageError, match=r"^--assert:1:1: the fact 'mesh.order' is not computed by this command"):
        value_of(check("mesh.order known"), sample_report())


def test_an_unknown_value_is_explained_by_the_notes_about_it() -> None:
    unknown = check("collectives.executed_count > 0")
    reason = "the trip count of while.7 (line 812) depends on a parameter"
    assert remark(unknown, sample_report()) == reason
    notes = ("collectives.executed_counts: no", "x.collectives.executed_count: no", "see collectives.executed_count.total")
    assert remark(unknown, sample_report(notes=notes)) == "the report does not say why"
    notes = ("mesh.shape, collectives.executed_count: one.", "neither", "two: collectives.executed_count.")
    assert remark(unknown, sample_report(notes=notes)) == f"{notes[0]}; {notes[2]}"


def test_an_absent_value_is_explained_by_its_specification() -> None:
    """A note of the report comes first: it says why this value is unknown."""
    unknown = check("collectives.executed_count > 0")
    spec = unknown.spec._replace(absent="no collective runs")
    assert remark(replace(unknown, spec=spec), sample_report(notes=())) == "no collective runs"
    assert remark(replace(unknown, spec=spec), sample_report()).startswith("the trip count")


def test_a_known_value_needs_no_remark() -> None:
    assert remark(check("time.step_s < 1 s"), sample_report()) == ""
    assert remark(check("collectives.reduce-scatter.count == 0"), sample_report()) == ""


def test_an_absent_target_names_similar_targets() -> None:
    misspelt = check("custom_calls.target.__cublas$gem == 0")
    assert remark(misspelt, sample_report()) == "__cublas$gem does not occur; did you mean '__cublas$gemm'?"
    facts = {name: value for name, value in FACTS.items() if not name.startswith("custom_calls.")}
    assert remark(misspelt, sample_report(facts=facts)) == ""


def test_the_lower_bound_of_a_fact() -> None:
    """It is in the report, or equals a known fact; a text has none."""
    report = sample_report()
    name = "collectives.executed_count.lower_bound"
    assert value_of(check(f"{name} >= 1"), report) is None
    assert remark(check(f"{name} >= 1"), report) == remark(check("collectives.executed_count >= 1"), report)
    assert value_of(check(f"{name} >= 1"), replace(report, facts={**report.facts, name: 4})) == 4
    assert value_of(check("collectives.all-reduce.count.lower_bound >= 1"), report) == 2
    assert value_of(check("collectives.all-gather.operand_bytes.lower_bound == 0"), report) == 0  # a member without one
    assert covered("mesh.order.lower_bound") is None


def test_the_lower_bound_of_an_unknown_fact_is_named() -> None:
    name = "collectives.executed_count.lower_bound"
    report = sample_report(facts=FACTS | {name: 7})
    assert (
        remark(check("collectives.executed_count <= 9"), report) == f"{NOTES[0].partition(': ')[2]}; its lower bound is {name}"
    )
