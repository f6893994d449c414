from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.checks.policy import parse_assertion, read_policy
from hlo_inspect.configs import shipped_configs
from hlo_inspect.errors import Location, UsageError
from hlo_inspect.report.model import Finding
from tests.checks.sample import parse_policy

EXAMPLES = sorted(shipped_configs("checks").glob("*.yaml"))


def expressions(checks: str) -> list[str]:
    lines = "".join(f"  {line}\n" for line in checks.splitlines())
    return [f"{a.fact.scalar} {a.expression}" for a in parse_policy(f"checks:\n{lines}", "p.yaml").assertions]


def refused(text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        parse_policy(text, "p.yaml")
    return caught.value


def test_a_whole_policy() -> None:
    policy = parse_policy(
        """\
checks:
  collectives.all-to-all.count: 0
  params.aliased_bytes: ">= 180 MiB"
  optimizer.name: adamw
  optimizer.weight_decay: "in [0.01, 0.1]"
  mesh.shape: known
fail-on: warning          # findings of this severity or above fail too
ignore:
  - rule: HI102
    reason: the embedding is kept for the decoder
""",
        "p.yaml",
    )
    assert [f"{a.fact.scalar} {a.expression}" for a in policy.assertions] == [
        "collectives.all-to-all.count == 0",
        "params.aliased_bytes >= 180 MiB",
        "optimizer.name == adamw",
        "optimizer.weight_decay in [0.01, 0.1]",
        "mesh.shape known",
    ]
    assert policy.assertions[1].place.location == Location("p.yaml", 3, 25)
    assert policy.fail_on == "warning"
    ignore = policy.ignores[0]
    assert (ignore.rule, ignore.reason, ignore.globs) == ("HI102", "the embedding is kept for the decoder", ())


def test_the_scalar_counts_as_it_is_written() -> None:
    assert expressions("a: 010") == ["a == 010"]  # not 8
    assert expressions("a: 1:30") == ["a == 1:30"]  # not 90
    assert expressions("a: yes") == ["a == yes"]  # not true
    assert expressions("a: 2024-01-31") == ["a == 2024-01-31"]
    assert expressions("a: true") == expressions('a: "true"') == ["a == true"]
    assert expressions("a: 0") == expressions("a: '0'") == expressions("a: == 0") == ["a == 0"]
    assert expressions("a: null") == ["a null"]
    assert expressions("a: < 3 ms\nb: in (0, 1]") == ["a < 3 ms", "b in (0, 1]"]


def test_a_list_means_any_of_its_values() -> None:
    assert expressions("a: [adamw, lion]") == ["a one of {adamw, lion}"]
    assert expressions("a:\n  - 1 MiB\n  - 2 MiB") == ["a one of {1 MiB, 2 MiB}"]


@pytest.mark.parametrize(
    ("text", "place", "part"),
    [
        (
            "check:\n  a: 0\n",
            (1, 1),
            "unknown key 'check'; the keys are checks, fail-if, fail-on, ignore; did you mean 'checks'?",
        ),
        ("checks:\n  a: 0\nfail_on: error\n", (3, 1), "did you mean 'fail-on'?"),
        ("checks:\n  a: 0\n  b: 1\n  a: 2\n", (4, 3), "duplicate key 'a'; the first is on line 2"),
        ("checks: {a: 0}\nchecks: {b: 0}\n", (2, 1), "duplicate key 'checks'; the first is on line 1"),
        ("checks:\n  - a: 0\n", (2, 3), "expected a value of kind mapping, found list"),
        ("checks:\n", (1, 8), "expected a value of kind mapping, found null"),
        ("- a\n", (1, 1), "expected a value of kind mapping, found list"),
        ("checks:\n  a: '= 3'\n", (2, 6), "'= 3' is not a value"),
        ("checks:\n  a: in [1, 2, 3]\n", (2, 6), "a range has two bounds"),
        ("checks:\n  a:\n", (2, 5), "a value is missing"),
        ("checks:\n  a: {b: 0}\n", (2, 6), "a value, an expression or a list of values, not a mapping"),
        ("checks:\n  a: []\n", (2, 6), "the list of values is empty"),
        ("checks:\n  a: [1, [2]]\n", (2, 10), "a value, an expression or a list of values, not a list"),
        ("checks:\n  a: [1, null]\n", (2, 10), "`null` stands alone"),
        ("checks:\n  a: [1, '>= 2']\n", (2, 10), "'>= 2' is not a value"),
        ("checks:\n  a: >= 3\n", (2, 7), "text that begins with > or | needs quotes"),
        ("checks:\n  a: != 3\n", (2, 6), "text that begins with & or ! needs quotes"),
        ("fail-on: warn\n", (1, 10), "'warn' is not one of error, warning, info; did you mean 'warning'?"),
        ("fail-on: true\n", (1, 10), "expected a value of kind text, found bool"),
        ("fail-on: [error]\n", (1, 10), "expected a value of kind text, found list"),
        ("ignore:\n  rule: HI102\n  reason: x\n", (2, 3), "expected a value of kind list, found mapping"),
        ("ignore:\n  - HI102\n", (2, 5), "expected a value of kind mapping, found text"),
        ("ignore:\n  - rule: HI102\n", (2, 5), "missing key: reason"),
        ("ignore:\n  - reason: x\n", (2, 5), "missing key: rule"),
        ("ignore:\n  - rule: HI102\n    reason:\n", (3, 12), "expected a value of kind text, found null"),
        ("ignore:\n  - rule: HI102\n    reason: ' '\n", (3, 13), "the reason is empty"),
        ("ignore:\n  - rule: HI1020\n    reason: x\n", (2, 11), "there is no rule 'HI1020'; did you mean 'HI102'"),
        ("ignore:\n  - rule: hi102\n    reason: x\n", (2, 11), "there is no rule 'hi102'"),
        ("ignore:\n  - rule: 104\n    reason: x\n", (2, 11), "expected a value of kind text, found number"),
        ("ignore:\n  - {rule: HI102, reason: x, subjects: y}\n", (2, 30), "did you mean 'subject'?"),
    ],
)
def test_malformed_policies_are_refused_at_their_place(text: str, place: tuple[int | None, int | None], part: str) -> None:
    error = refused(text)
    assert (error.path, error.line, error.column) == ("p.yaml", *place)
    assert part in error.message


@pytest.mark.parametrize(
    ("text", "fact", "expression", "column"),
    [
        ("collectives.all-to-all.count == 0", "collectives.all-to-all.count", "== 0", 30),
        ("collectives.count==0", "collectives.count", "== 0", 18),
        ("  a  in [1, 2]  ", "a", "in [1, 2]", 6),
        ("mesh.shape known", "mesh.shape", "known", 12),
        ("optimizer.name one of {adamw, lion}", "optimizer.name", "one of {adamw, lion}", 16),
        ("custom_calls.target.__cublas$gemm>=1", "custom_calls.target.__cublas$gemm", ">= 1", 34),
        ("optimizer.name adamw", "optimizer.name", "== adamw", 16),
    ],
)
def test_assertions_of_the_command_line(text: str, fact: str, expression: str, column: int) -> None:
    assertion = parse_assertion(text)
    assert (assertion.fact.scalar, str(assertion.expression)) == (fact, expression)
    assert assertion.place.location == Location("--assert", 1, column)


@pytest.mark.parametrize(
    ("text", "column", "part"),
    [
        ("", 1, "an assertion is a fact and an expression"),
        ("== 0", 1, "an assertion is a fact and an expression"),
        ("mesh.shape", 11, "a value is missing"),
        ("mesh.shape = 2x8", 12, "'= 2x8' is not a value"),
    ],
)
def test_malformed_assertions(text: str, column: int, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_assertion(text)
    assert caught.value.location == Location("--assert", 1, column)
    assert part in caught.value.message


def test_an_ignore_covers_the_findings_of_its_rule_and_subject() -> None:
    entries = "ignore:\n  - {rule: HI102, reason: x}\n  - {rule: HI102, reason: x, subject: 'embed.*'}\n"
    every, some = parse_policy(entries, "p.yaml").ignores
    embedded = Finding("HI102", "info", "", subject="embed.table")
    nameless = Finding("HI102", "info", "")
    other_rule = Finding("HI103", "info", "", subject="embed.table")
    other_subject = Finding("HI102", "info", "", subject="Embed.table")
    assert [every.covers(f) for f in (embedded, nameless, other_rule, other_subject)] == [True, True, False, True]
    assert [some.covers(f) for f in (embedded, nameless, other_rule, other_subject)] == [True, False, False, False]


def test_a_rule_can_be_named_by_its_name() -> None:
    (ignore,) = parse_policy("ignore:\n  - {rule: unused-parameter, reason: x}\n", "p.yaml").ignores
    assert (ignore.rule, ignore.covers(Finding("HI102", "info", ""))) == ("HI102", True)


@pytest.mark.parametrize(
    ("rule", "nearest"),
    [("HI999", "'HI703'"), ("HI018", "'HI013'"), ("unused-parameters", "'unused-parameter'"), ("HI5", "'HI511'")],
)
def test_a_rule_that_does_not_exist_is_refused_with_the_nearest_names(rule: str, nearest: str) -> None:
    error = refused(f"ignore:\n  - {{rule: {rule}, reason: x}}\n")
    assert (error.line, error.column) == (2, 12)
    assert f"there is no rule '{rule}'" in error.message
    assert nearest in error.message


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_policy(path: Path) -> None:
    assert read_policy(path).assertions


def test_policies_have_two_examples_or_more() -> None:
    assert len(EXAMPLES) >= 2
