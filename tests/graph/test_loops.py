"""Trip counts: printed, and derived from conditions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlo_inspect.graph.calls import WANTS
from hlo_inspect.graph.loops import Progression, UnknownError, find_loops, printed_count, runs
from hlo_inspect.hlo.values.attributes import BackendConfig, ValueTable
from hlo_inspect.hlo.wants import Wants
from tests.graph.loops import BODY, CONDITION, ELEMENTS, LOOP, START, STATE, STEP, computation, loop_of, loop_text
from tests.hlo.reading import module

DATA = Path(__file__).parents[1] / "data"
OUT = f"ROOT %out = {STATE} tuple(%next, %n, %x)"
COMPARED = (
    computation(
        "%compared", ("%a = s32[] parameter(0)", "%b = s32[] parameter(1)", "ROOT %c = pred[] compare(%a, %b), direction=LT")
    )
    + "\n"
)
BELOW_4 = (
    computation(
        "%below_4",
        ("%a = s32[] parameter(0)", "%four = s32[] constant(4)", "ROOT %c = pred[] compare(%a, %four), direction=LT"),
    )
    + "\n"
)
ADDED = computation("%added", ("%b = s32[] parameter(0)", "%two = s32[] constant(2)", "ROOT %c = s32[] add(%two, %b)")) + "\n"


def test_a_loop_from_0_below_10_has_10_iterations() -> None:
    loop = loop_of(loop_text())
    assert (loop.trip_count, loop.source, loop.reason, loop.fault) == (10, "derived", None, None)


@pytest.mark.parametrize(
    ("root", "count"),
    [
        (("ROOT %c = pred[] compare(%i, %n), direction=LT",), 6),
        (("ROOT %c = pred[] compare(%n, %i), direction=GT",), 6),
        (("ROOT %c = pred[] compare(%i, %n), direction=LE",), 7),
        (("ROOT %c = pred[] compare(%n, %i), direction=NE",), 6),
        (("ROOT %c = pred[] compare(%i, %n), direction=GT",), 0),
        (("ROOT %c = pred[] compare(s32[] %s#0, s32[] %s#1), direction=LT",), 6),
        (
            ("%k = s32[] copy(%i)", "%l = s64[] convert(%k)", "ROOT %c = pred[] compare(%l, %ten), direction=LT, type=SIGNED"),
            10,
        ),
        (("%k = s32[] add(%i, %one)", "ROOT %c = pred[] compare(%k, %ten), direction=LT"), 9),
        (("%k = s32[] subtract(%ten, %one)", "ROOT %c = pred[] compare(%i, %k), direction=LT"), 9),
        (("%c = pred[] compare(%i, %n), direction=LT", "ROOT %d = pred[] copy(%c)"), 6),
        (("ROOT %c = pred[] fusion(%i, %n), kind=kLoop, calls=%compared",), 6),
        (("ROOT %c = pred[] fusion(%n, %i), kind=kLoop, calls=%compared",), 0),
        (("ROOT %c = pred[] fusion(%i), kind=kLoop, calls=%below_4",), 4),
        (("ROOT %c = pred[] call(%i), to_apply=%below_4",), 4),
        (("ROOT %c = pred[]{:T(512)} compare(%i, %ten), direction=LT",), 10),
    ],
)
def test_trip_counts_of_conditions(root: tuple[str, ...], count: int) -> None:
    loop = loop_of(loop_text(condition=(*ELEMENTS, *root), before=COMPARED + BELOW_4))
    assert (loop.trip_count, loop.reason) == (count, None)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("%k = s32[] copy(%i)", "%next = s32[] add(%one, %k)"), 10),
        (("%three = s32[] constant(3)", "%next = s32[] add(%i, %three)"), 4),
        (("%back = s32[] constant(-3)", "%next = s32[] subtract(%i, %back)"), 4),
        (("%next = s32[] fusion(%i), kind=kLoop, calls=%added",), 5),
        (("%next = s32[] call(%i), to_apply=%added",), 5),
        (("%j = s32[] add(%i, %one)", "%next = s32[] add(%j, %one)"), 5),
        (
            (
                "%pair = (s32[], f32[8]{0}) tuple(%i, %x)",
                "%k = s32[] get-tuple-element(%pair), index=0",
                "%next = s32[] add(%k, %one)",
            ),
            10,
        ),
        (("%p = (s32[], s32[], u32[]) copy-start(%i)", "%k = s32[] copy-done(%p)", "%next = s32[] add(%k, %one)"), 10),
        (
            (
                "%b = (s32[], f32[8]{0}) opt-barrier(%t)",
                "%t = (s32[], f32[8]{0}) tuple(%i, %x)",
                "%next = s32[] add(%b#0, %one)",
            ),
            10,
        ),
    ],
)
def test_trip_counts_of_bodies(lines: tuple[str, ...], count: int) -> None:
    loop = loop_of(loop_text(body=(*ELEMENTS, *lines, OUT), before=ADDED))
    assert (loop.trip_count, loop.reason) == (count, None)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        (("%c = s32[] copy(%six)", "%d = s32[] bitcast(%c)", f"%start = {STATE} tuple(%d, %six, %data)"), 4),
        ((f"%start = {STATE} copy(%init)",), 10),
        (("%p = (s32[], s32[]) tuple(%six, %zero)", f"%start = {STATE} tuple(%p#0, %p#1, %data)"), 4),
        (("%far = s32[] constant(-2000000000)", f"%start = {STATE} tuple(%far, %six, %data)"), 2000000010),
    ],
)
def test_trip_counts_of_start_values(lines: tuple[str, ...], count: int) -> None:
    loop = loop_of(loop_text(entry=(*START, *lines, LOOP.replace("%init", "%start"))))
    assert (loop.trip_count, loop.reason) == (count, None)


def test_the_last_of_two_roots_of_a_condition_counts() -> None:
    first = ("%four = s32[] constant(4)", "ROOT %first = pred[] compare(%i, %four), direction=LT")
    assert loop_of(loop_text(condition=(*ELEMENTS, *first, CONDITION[-1]))).trip_count == 10


def test_a_decreasing_counter_in_a_nested_tuple_is_counted() -> None:
    state = "((s32[], f32[2]{0}), f32[8]{0})"
    text = f"""HloModule m

%body (s: {state}) -> {state} {{
  %s = {state} parameter(0)
  %one = s32[] constant(1)
  %i = s32[] subtract(%s#0#0, %one)
  %p = (s32[], f32[2]{{0}}) tuple(%i, %s#0#1)
  ROOT %out = {state} tuple(%p, %s#1)
}}

%cond (s.1: {state}) -> pred[] {{
  %s.1 = {state} parameter(0)
  %zero = s32[] constant(0)
  ROOT %more = pred[] compare(%s.1#0#0, %zero), direction=GE
}}

ENTRY %main (a: f32[2], b: f32[8]) -> {state} {{
  %a = f32[2]{{0}} parameter(0)
  %b = f32[8]{{0}} parameter(1)
  %last = s32[] constant(11)
  %p = (s32[], f32[2]{{0}}) tuple(%last, %a)
  %init = {state} tuple(%p, %b)
  ROOT %loop = {state} while(%init), condition=%cond, body=%body
}}
"""
    assert loop_of(text).trip_count == 12


def test_a_loop_state_may_be_the_counter_itself() -> None:
    condition = ("%i = s32[] parameter(0)", "%ten = s32[] constant(10)", "ROOT %c = pred[] compare(%i, %ten), direction=LT")
    body = ("%i = s32[] parameter(0)", "%four = s32[] constant(4)", "ROOT %j = s32[] add(%i, %four)")
    entry = ("%zero = s32[] constant(0)", "ROOT %loop = s32[] while(%zero), condition=%cond, body=%body")
    assert loop_of(loop_text(condition=condition, body=body, entry=entry)).trip_count == 3


DEPENDS = [
    (
        "entry",
        (*START, f"%s = {STATE} tuple(%bound, %six, %data)", LOOP.replace("%init", "%s")),
        "parameter bound (line 29) of main",
    ),
    (
        "condition",
        ("%f = f32[] constant(1)", "ROOT %c = pred[] compare(%f, %ten), direction=LT"),
        "f, which the compare c (line 23) reads",
    ),
    (
        "condition",
        ("%c = pred[] compare(%i, %n), direction=LT", "ROOT %d = pred[] and(%c, %c)"),
        "the and d (line 23), in which",
    ),
    (
        "condition",
        ("%m = s32[] multiply(%i, %n)", "ROOT %c = pred[] compare(%m, %n), direction=LT"),
        "the multiply m (line 22)",
    ),
    ("body", ("%next = s32[] add(%i, %n)", OUT), "the add next (line 11), of two numbers that change"),
    ("body", ("%next = s32[] subtract(%one, %i)", OUT), "the subtract next (line 11), of two numbers that change"),
    ("body", ("%next = s32[] constant(3)", OUT), "what the tuple out (line 12) puts in place"),
    (
        "body",
        ("%next = s32[] add(%i, %one)", OUT.replace("%next, %n", "%n, %next")),
        "what the tuple out (line 12) puts in place",
    ),
    ("body", ("%next = s32[] custom-call(%i), custom_call_target='f'", OUT), "the custom-call next (line 11)"),
    ("body", ("%k = pred[] constant(true)", "%next = s32[] add(%i, %k)", OUT), "the constant k (line 11), which is no integer"),
    ("body", ("%next = s32[] add(%i)", OUT), "an operand that the add next (line 11) does not have"),
    ("body", (f"ROOT %out = {STATE} custom-call(%i, %n, %x)",), "the custom-call out (line 11)"),
    ("body", ("%e = s32[] get-tuple-element(%s)", "%next = s32[] add(%e, %one)", OUT), "the get-tuple-element e (line 11)"),
]


@pytest.mark.parametrize(("part", "lines", "reason"), DEPENDS)
def test_a_trip_count_that_depends_on_other_values_is_unknown(part: str, lines: tuple[str, ...], reason: str) -> None:
    condition = (*ELEMENTS, *lines) if part == "condition" else CONDITION
    body = (*ELEMENTS, *lines) if part == "body" else BODY
    loop = loop_of(loop_text(condition=condition, body=body, entry=lines if part == "entry" else (*START, LOOP)))
    assert (loop.trip_count, loop.source) == (None, None)
    assert loop.reason is not None
    assert reason in loop.reason


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ("condition=%cond", "is unknown: its body is not named"),
        ("body=%body", "is unknown: its condition is not named"),
        ("", "is unknown: its condition is not named"),
        ("condition=%cond, body=%gone", "is unknown: its body gone is not in the text, or gives no integer"),
        ("condition=%gone, body=%body", "is unknown: its condition gone is not in the text, or gives no integer"),
    ],
)
def test_a_trip_count_is_unknown_if_body_or_condition_is_missing(attributes: str, reason: str) -> None:
    loop = loop_of(loop_text(entry=(*START, f"ROOT %loop = {STATE} while(%init), {attributes}".rstrip(", "))))
    assert (loop.trip_count, loop.reason) == (None, reason)


@pytest.mark.parametrize(
    "lines",
    [
        ("%next = s32[] copy(%next)",),
        ("%next = s32[] add(%later, %one)", "%later = s32[] copy(%next)"),
        (*(f"%a{n + 1} = s32[] add(%a{n}, %one)" for n in range(200)), "%a0 = s32[] copy(%i)", "%next = s32[] copy(%a200)"),
        (*(f"%a{n + 1} = s32[] add(%a{n}, %a{n})" for n in range(60)), "%a0 = s32[] copy(%i)", "%next = s32[] copy(%a60)"),
        ("%next = s32[] call(%i), to_apply=%again",),
    ],
    ids=["itself", "circle", "long", "wide", "recursion"],
)
def test_a_trip_count_is_unknown_for_cyclic_or_very_long_counters(lines: tuple[str, ...]) -> None:
    again = computation("%again", ("%p = s32[] parameter(0)", "ROOT %r = s32[] call(%p), to_apply=%again")) + "\n"
    loop = loop_of(loop_text(body=(*ELEMENTS, *lines, OUT), before=again))
    assert loop.trip_count is None
    assert loop.reason is not None


def text_with_two_calls(first: str, second: str) -> str:
    """Write a loop whose limit is a parameter of its computation, and two calls of that computation."""
    inner = (
        "%bound = s32[] parameter(0)",
        "%data = f32[8]{0} parameter(1)",
        "%zero = s32[] constant(0)",
        f"%init = {STATE} tuple(%zero, %bound, %data)",
        LOOP,
    )
    condition = (*ELEMENTS, "ROOT %c = pred[] compare(%i, %n), direction=LT")
    entry = (
        "%data = f32[8]{0} parameter(0)",
        "%given = s32[] parameter(1)",
        "%five = s32[] constant(5)",
        "%copied = s32[] copy(%five)",
        "%seven = s32[] constant(7)",
        f"%a = {STATE} call({first}, %data), to_apply=%inner",
        f"ROOT %b = {STATE} call({second}, %data), to_apply=%inner",
    )
    before = "\n".join(computation(n, lines) for n, lines in (("%body", BODY), ("%cond", condition), ("%inner", inner)))
    return f"HloModule m\n\n{before}\n{computation('ENTRY %main', entry)}"


def test_a_limit_is_known_if_all_callers_pass_the_same_value() -> None:
    assert loop_of(text_with_two_calls("%five", "%copied")).trip_count == 5


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("%five", "%seven", "the parameter bound (line 25) of inner"),
        ("%five", "%given", "the parameter given (line 34) of main"),
    ],
)
def test_a_limit_is_unknown_if_callers_pass_different_values(first: str, second: str, reason: str) -> None:
    loop = loop_of(text_with_two_calls(first, second))
    assert (loop.trip_count, loop.reason) == (None, f"depends on {reason}")


@pytest.mark.parametrize(("passed_value", "count"), [("%n", 6), ("%i", None)])
def test_an_inner_limit_must_not_change_in_the_outer_loop(passed_value: str, count: int | None) -> None:
    """The inner limit is 6, which the outer loop passes on unchanged, or the outer counter."""
    before = computation("%cond.1", (*ELEMENTS, "ROOT %c = pred[] compare(%i, %n), direction=LT"))
    before += computation("%body.1", BODY)
    body = (
        *STEP,
        "%none = s32[] constant(0)",
        f"%init = {STATE} tuple(%none, {passed_value}, %x)",
        f"%inner = {STATE} while(%init), condition=%cond.1, body=%body.1",
        "%y = f32[8]{0} get-tuple-element(%inner), index=2",
        f"ROOT %out = {STATE} tuple(%next, %n, %y)",
    )
    text = loop_text(body=body, before=before)
    assert loop_of(text).trip_count == 10
    assert loop_of(text, "inner").trip_count == count


@pytest.mark.parametrize(("element", "count"), [(1, 6), (0, None)])
def test_a_limit_may_be_an_unchanged_value_of_an_earlier_loop(element: int, count: int | None) -> None:
    entry = (
        *START,
        LOOP.replace("ROOT %loop", "%first"),
        f"%limit = s32[] get-tuple-element(%first), index={element}",
        f"%again = {STATE} tuple(%zero, %limit, %data)",
        LOOP.replace("%init", "%again").replace("%cond", "%cond.1"),
    )
    before = computation("%cond.1", (*ELEMENTS, "ROOT %c = pred[] compare(%i, %n), direction=LT"))
    loop = loop_of(loop_text(entry=entry, before=before))
    assert loop.trip_count == count
    assert (loop.reason is None) == (count is not None)


# -- printed counts, and counts from two progressions -----------------------------------------------------------------------


def parse_config(config: str) -> BackendConfig:
    value = ValueTable().read("backend_config", config)
    assert isinstance(value, BackendConfig)
    return value


@pytest.mark.parametrize(
    ("config", "count"),
    [
        ('{"known_trip_count":{"n":"4"}}', 4),
        ('{"known_trip_count":{"n":4}}', 4),
        ('{"known_trip_count":{"n":"0"},"known_induction_variable":{"tuple_index":"0"}}', 0),
        ('{ "dynamic_variables" : [], "known_trip_count" : { "n" : "12" } }', 12),
        (r'"{\"known_trip_count\":{\"n\":\"15\"}}"', 15),
        (r'"{\"known_trip_count\": {\"n\": 3}}"', 3),
        ("", None),
        ('{"known_init_step":{"init":"0","step":"1"}}', None),
    ],
)
def test_the_known_trip_count_of_a_backend_config_is_read(config: str, count: int | None) -> None:
    assert printed_count(parse_config(config)) == (count, None)


@pytest.mark.parametrize(
    "value",
    ['{"n":"four"}', '{"n":"-1"}', '{"n":""}', "{}", "7", '{"n":"1e3"}', '{"n":"٣"}', '{"n":"' + "9" * 5000 + '"}', '{"n":"4}'],
)
def test_a_known_trip_count_that_is_no_count_is_a_fault(value: str) -> None:
    count, fault = printed_count(parse_config(f'{{"known_trip_count":{value}}}'))
    assert count is None
    assert fault is not None
    assert fault.startswith("known_trip_count is no count: ")
    assert len(fault) < 100


def test_a_known_trip_count_goes_before_the_derived_one() -> None:
    config = ', backend_config={"known_trip_count":{"n":"7"}}'
    loop = loop_of(loop_text(entry=(*START, LOOP + config)))
    assert (loop.trip_count, loop.source, loop.body, loop.condition) == (7, "known_trip_count", "body", "cond")


def test_the_trip_count_is_derived_if_the_printed_one_is_unreadable() -> None:
    config = ', backend_config={"known_trip_count":{"n":"many"}}'
    loop = loop_of(loop_text(entry=(*START, LOOP + config)))
    assert (loop.trip_count, loop.source) == (10, "derived")
    assert loop.fault == """known_trip_count is no count: '{"n":"many"}'"""


def test_a_data_dependent_loop_has_a_reason_and_no_trip_count() -> None:
    text = (DATA / "cpu" / "control_flow.after.txt").read_text()
    unknown, counted = find_loops(module(text.encode(), WANTS))
    assert (unknown.trip_count, unknown.source, counted.trip_count) == (None, None, 5)
    line = next(n for n, line in enumerate(text.splitlines(), 1) if "ROOT %lt.4 = " in line)
    assert unknown.reason == f"depends on reduce_sum.0, which the compare lt.4 (line {line}) reads and which is no integer"


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cpu/scan_fsdp.after", [3, 3]),
        ("cpu/scan_fsdp.before", [3, 3]),
        ("cpu/scan_forward.after", [3]),
        ("cpu/scan_forward.before", [3]),
        ("gpu/scan_forward.after", [3]),
        ("tpu/scan_forward.after", [3]),
        ("jax_0_5_0/scan_fsdp.after", [3, 3]),
        ("jax_0_5_0/scan_fsdp.before", [3, 3]),
        ("jax_0_4_13/scan_forward.after", [3]),
        ("jax_0_4_13/scan_forward.before", [3]),
        ("cpu/control_flow.after", [None, 5]),
        ("cpu/control_flow.before", [5, None]),
        ("handmade/control_flow", [4]),
    ],
)
@pytest.mark.parametrize(
    "wants", [WANTS, WANTS | Wants(every_line=True), WANTS | Wants(graph=True)], ids=["light", "lines", "graph"]
)
def test_trip_counts_of_real_loops_are_derived_without_printed_ones(name: str, counts: list[int | None], wants: Wants) -> None:
    """`programs.py` scans over 3 layers and counts to 5. The test removes the printed counts."""
    text = re.sub("known_trip_count", "taken_out", (DATA / f"{name}.txt").read_text())
    loops = find_loops(module(text.encode(), wants))
    assert [loop.trip_count for loop in loops] == counts
    assert {loop.source for loop in loops} <= {"derived", None}


COMPARE = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "NE": lambda a, b: a != b,
}


def count_by_running(direction: str, left: Progression, right: Progression) -> int | None:
    """Count the iterations by running the loop. Return None if a value leaves s8 or the loop does not end."""
    a, b = left.start, right.start
    for n in range(600):
        if not (-128 <= a < 128 and -128 <= b < 128):
            return None
        if not COMPARE[direction](a, b):
            return n
        a, b = a + left.step, b + right.step
    return None


NUMBERS = st.builds(Progression, st.integers(-128, 127), st.integers(-9, 9), st.just("s8"))


@given(st.sampled_from(sorted(COMPARE)), NUMBERS, NUMBERS)
def test_derived_counts_equal_those_of_running_the_loop(direction: str, left: Progression, right: Progression) -> None:
    expected = count_by_running(direction, left, right)
    if expected is not None:
        assert runs(direction, left, right) == expected
    else:
        with pytest.raises(UnknownError, match="stays true, or its counter overflows"):
            runs(direction, left, right)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Progression(0, 1, "s32"), Progression(2**31 - 1, 0, ""), 2**31 - 1),
        (Progression(0, 1, "u32"), Progression(2**32 - 1, 0, ""), 2**32 - 1),
        (Progression(0, 3, "u8"), Progression(253, 0, ""), 85),
        (Progression(-5, 2, "s64"), Progression(10**15, 0, ""), (10**15 + 5 + 1) // 2),
    ],
)
def test_a_counter_may_reach_the_largest_value_of_its_type(left: Progression, right: Progression, expected: int) -> None:
    assert runs("LT", left, right) == expected


@pytest.mark.parametrize("dtype", ["s32", "u32"])
def test_the_count_is_unknown_if_the_counter_overflows(dtype: str) -> None:
    top = 2**31 - 1 if dtype == "s32" else 2**32 - 1
    with pytest.raises(UnknownError):
        runs("LE", Progression(0, 1, dtype), Progression(top, 0, ""))
    with pytest.raises(UnknownError):
        runs("LT", Progression(0, 2, dtype), Progression(top, 0, ""))


@pytest.mark.parametrize("direction", ["EQ", "", "lt"])
def test_a_loop_with_another_compare_direction_is_not_counted(direction: str) -> None:
    with pytest.raises(UnknownError, match="direction="):
        runs(direction, Progression(0, 1, "s32"), Progression(4, 0, ""))
