"""Matching: the regions of a step, its arrays and what succeeds them, whatever things are called."""

from __future__ import annotations

import random
import re

import pytest

from hlo_inspect.graph.frames import Input
from hlo_inspect.graph.parameters import find_interface
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.optimizer.algebra import normal_form
from hlo_inspect.optimizer.algebra.update import Update, split
from hlo_inspect.optimizer.matching import weight_matching
from hlo_inspect.optimizer.matching.training_steps import find_updates
from hlo_inspect.optimizer.step.state_arrays import TrainingStep, find_state_arrays
from hlo_inspect.optimizer.step.successions import Result
from tests.optimizer.programs import (
    DATA,
    DESCENT,
    STAGES,
    changed,
    entry_of,
    facts_of,
    flow_of,
    module_of,
    overview_of,
    report_of,
    rules_of,
    step_of,
    text_of,
    written,
)


def test_a_loop_over_steps_leads_to_the_entry_s_parameters() -> None:
    """The state is (b, w), the counter and two moments of each, in the order of its leaves."""
    module = module_of(text_of("adamw_loop.after"))
    updates = find_updates(module, find_interface(module))
    assert len(updates.steps) == len(updates.expressions) == 2
    assert [updates.parameters[weight.array.source] for weight in updates.weights] == [(0, ()), (1, ())]


def test_a_module_without_an_entry() -> None:
    text = "HloModule test\n\n%f (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n"
    assert facts_of(text)["name"] == "none"


def test_an_alias_to_a_parameter_that_is_not_there() -> None:
    """The parameter that an output succeeds is found without it."""
    text = changed(text_of("sgd.before"), r"\{0\}: \(0, \{\}", "{0}: (99, {}")
    assert facts_of(text)["update_count"] == 2


def test_nan_and_infinity() -> None:
    for literal in ("nan", "inf", "-inf"):
        text = changed(text_of("adam.before"), r"constant\(0\.85\)", f"constant({literal})")
        assert facts_of(text)["update_count"] == 2


def test_an_entry_that_gives_its_parameters_back() -> None:
    text = entry_of("ROOT %p = f32[8]{0} parameter(0)", header=", input_output_alias={ {}: (0, {}, may-alias) }")
    assert facts_of(text)["name"] == "none"


# -- Claims are held against the numbers --------------------------------------------------------------------------------


def test_an_algebra_with_a_fault_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a cube root taken for a square root the expression would be Adam's, and the values of the text are others."""
    text = changed(text_of("adam.before"), r" sqrt\(", " cbrt(")
    monkeypatch.setitem(normal_form._ROOTS, "cbrt", 0.5)
    assert rules_of(text) == ["unknown", "unknown"]
    monkeypatch.setattr(weight_matching, "agrees", lambda *_: True)
    assert rules_of(text) == ["adam", "adam"]


# -- Copies hold the value of another array -----------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "inputs"), [("add(%p, %p)", [0, 1]), ("sine(%p)", [0])])
def test_only_a_copy_takes_an_input_that_is_left(value: str, inputs: list[int]) -> None:
    """Without donation: the second output is in bf16, as the second input is, whose value it does not hold."""
    q, narrow = "%q = bf16[8]{0} parameter(1)", ArrayShape("bf16", (8,))
    lines = ("%a = f32[8]{0} add(%p, %p)", f"%k = f32[8]{{0}} {value}", "%b = bf16[8]{0} convert(%k)")
    flow, frame = flow_of(entry_of(P, q, *lines, "ROOT %t = (f32[8]{0}, bf16[8]{0}) tuple(%a, %b)"))
    shapes: dict[Input, ArrayShape] = {(frame, 0, ()): ARRAY, (frame, 1, ()): narrow}
    step = find_state_arrays(flow, frame, shapes, [Result((0,), ARRAY, None), Result((1,), narrow, None)])
    assert [array.source[1] for array in step.arrays] == inputs


# -- Which arrays are weights, whatever things are called and in whatever order they stand ------------------------------


DEFINITION = re.compile(r"^\s+(?:ROOT )?%?([A-Za-z_][\w.\-]*) = ", re.MULTILINE)
LINE = re.compile(r"^(\s+(?:ROOT )?%?)([A-Za-z_][\w.\-]*)( = .*? [a-z][a-z0-9\-]*\()(.*)$")
HEADER = re.compile(r"^(ENTRY )?(%?)([A-Za-z_][\w.\-]*) .*\{$")
WORD = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.\-])[A-Za-z_][\w.\-]*(?![\w.\-=])')


def renamed(text: str, seed: int) -> str:
    """Every instruction and computation under a random name."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    names = DEFINITION.findall(text) + [match[3] for line in text.splitlines() if (match := HEADER.match(line))]
    new = {name: f"z{n}_{chance.randrange(10**6)}" for n, name in enumerate(dict.fromkeys(names)) if name != "HloModule"}

    def line(old: str) -> str:
        match = LINE.match(old)
        if match is not None:
            rest = WORD.sub(lambda word: new.get(word[0], word[0]), match[4])
            return f"{match[1]}{new[match[2]]}{match[3]}{rest}"
        match = HEADER.match(old)
        if match is None or old.startswith("HloModule"):
            return old
        return f"{match[1] or ''}{match[2]}{new[match[3]]} {{"

    return "\n".join(map(line, text.split("\n")))


def reordered(text: str, seed: int) -> str:
    """Return the instructions of each computation in a random order in which operands come first."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    done: list[str] = []
    block: dict[str, str] = {}
    for line in text.split("\n"):
        match = LINE.match(line)
        if match is not None:
            block[match[2]] = line
            continue
        waiting = {
            name: {w for w in WORD.findall(line_of_name.split(" = ", 1)[1]) if w in block and w != name}
            for name, line_of_name in block.items()
        }
        while waiting:
            ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
            chosen = chance.choice(ready)
            done.append(block[chosen])
            del waiting[chosen]
        block = {}
        done.append(line)
    return "\n".join(done)


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.after.hlo")))
def test_names_and_order_decide_nothing(name: str) -> None:
    text = text_of(name)
    assert facts_of(reordered(renamed(text, 1), 2)) == facts_of(text)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", sorted({path.name.split(".")[0] for path in DATA.glob("none_*")}))
def test_other_states_are_no_weights(kind: str, stage: str) -> None:
    assert facts_of(text_of(f"{kind}.{stage}")) == {"name": "none", "update_count": 0, "decayed_count": 0}


def test_a_second_moment_without_its_square_makes_that_weight_unknown() -> None:
    text = changed(text_of("adamw_accumulated.before"), r"multiply\((\S+), \1\)", r"abs(\1)", count=1)
    report = report_of(text)
    assert sorted(rules_of(text)) == ["adamw", "unknown"]
    assert report.facts["optimizer.name"] == "unknown"
    assert any(note.startswith("optimizer.name: no rule explains parameter ") for note in report.notes)


def test_another_decay_in_one_update_shows_in_the_groups() -> None:
    text = text_of("adamw_accumulated.before")
    lines = text.splitlines()
    groups = set()
    for place in [n for n, line in enumerate(lines) if "constant(0.9)" in line]:
        edited = "\n".join([*lines[:place], lines[place].replace("0.9", "0.8"), *lines[place + 1 :]]) + "\n"
        report = report_of(edited)
        groups.add(
            (report.facts["optimizer.name"], report.facts["optimizer.beta1"], len(report.table("optimizer_groups").rows))
        )
    assert ("adamw", None, 2) in groups


def test_masters_and_copies() -> None:
    """A copy in 2 bytes beside a master in 4: 8 * 4 + 4 elements."""
    overview = overview_of(text_of("adamw_bf16_master.after"))
    assert [str(row.weight.shape) for row in overview.rows] == ["bf16[4]", "bf16[8,4]"]
    assert overview.bytes_of(row.weight for row in overview.rows) == 36 * 2
    assert overview.bytes_of(row.master for row in overview.rows) == 36 * 4


# -- Which input an output succeeds, and what guards it -----------------------------------------------------------------


ARRAY = ArrayShape("f32", (8,))
P, Q, C = "%p = f32[8]{0} parameter(0)", "%q = f32[8]{0} parameter(1)", "%c = pred[] parameter(2)"


def sites_of(*lines: str, outputs: int, given: bool) -> tuple[TrainingStep, list[str]]:
    flow, frame = flow_of(entry_of(P, Q, C, *lines))
    inputs: dict[Input, ArrayShape] = {(frame, n, ()): ARRAY for n in range(2)}
    results = [Result((n,), ARRAY, (frame, n, ()) if given else None) for n in range(outputs)]
    region = find_state_arrays(flow, frame, inputs, results)
    return region, [f"{array.source[1]}: {written(flow, array.new)}" for array in region.arrays]


def test_aliases_pair_outputs_with_inputs() -> None:
    lines = ("%a = f32[8]{0} add(%p, %q)", "%n = f32[8]{0} negate(%q)", "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %n)")
    assert sites_of(*lines, outputs=2, given=True)[1] == ["0: add(p0, p1)", "1: negate(p1)"]


def test_an_alias_against_the_data_flow_is_only_a_buffer() -> None:
    """Each output is the old value of the other's alias and something added."""
    lines = (
        "%f = f32[8]{0} tanh(%p)",
        "%h = f32[8]{0} tanh(%q)",
        "%a = f32[8]{0} add(%q, %h)",
        "%b = f32[8]{0} add(%p, %f)",
        "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %b)",
    )
    assert sites_of(*lines, outputs=2, given=True)[1] == ["1: add(p1, tanh(p1))", "0: add(p0, tanh(p0))"]


def test_a_value_kept_in_place_of_an_input_succeeds_it() -> None:
    """The last gradient: `w' = w - 0.1 * (2 * g - last)`, and `g` is returned."""
    lines = (
        '%g = f32[8]{0} custom-call(%p), custom_call_target="gradient"',
        "%d = f32[8]{0} add(%g, %g)",
        "%e = f32[8]{0} subtract(%d, %q)",
        "%r = f32[] constant(0.1)",
        "%s = f32[8]{0} broadcast(%r), dimensions={}",
        "%u = f32[8]{0} multiply(%e, %s)",
        "%n = f32[8]{0} subtract(%p, %u)",
        "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%g, %n)",
    )
    sites = sites_of(*lines, outputs=2, given=False)
    assert sites[1] == ["1: <g>", "0: subtract(p0, multiply(0.1, subtract(add(<g>, <g>), p1)))"]
    assert [array.is_given for array in sites[0].arrays] == [True, False]


def test_without_aliases_expressions_pair_outputs_with_inputs() -> None:
    lines = ("%a = f32[8]{0} add(%p, %q)", "%n = f32[8]{0} negate(%p)", "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%a, %n)")
    assert sites_of(*lines, outputs=2, given=False)[1] == ["1: add(p0, p1)", "0: negate(p0)"]


def test_guards_are_assumed_everywhere() -> None:
    lines = (
        "%n = f32[8]{0} negate(%p)",
        "%s = f32[8]{0} select(%c, %n, %p)",
        "%f = f32[] convert(%c)",
        "%b = f32[8]{0} broadcast(%f), dimensions={}",
        "%m = f32[8]{0} multiply(%n, %b)",
        "%a = f32[8]{0} add(%q, %m)",
        "ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%s, %a)",
    )
    region, sites = sites_of(*lines, outputs=2, given=True)
    assert sites == ["0: negate(p0)", "1: add(negate(p0), p1)"]
    assert list(region.guards.values()) == [True]


def test_a_guard_that_keeps_the_old_value_when_true() -> None:
    lines = ("%n = f32[8]{0} negate(%p)", "%s = f32[8]{0} select(%c, %p, %n)", "ROOT %t = (f32[8]{0}) tuple(%s)")
    region, sites = sites_of(*lines, outputs=1, given=True)
    assert sites == ["0: negate(p0)"]
    assert list(region.guards.values()) == [False]


def test_a_device_s_own_part_stands_for_the_whole() -> None:
    part = "%d = f32[2]{0} slice(%p), slice={[2:4]}"
    lines = (
        part,
        "%n = f32[2]{0} negate(%d)",
        "%g = f32[8]{0} all-gather(%n), dimensions={0}",
        "ROOT %t = (f32[8]{0}) tuple(%g)",
    )
    assert sites_of(*lines, outputs=1, given=True)[1] == ["0: negate(p0)"]


def test_two_parts_of_one_array_stay_different() -> None:
    lines = (
        "%d = f32[2]{0} slice(%p), slice={[0:2]}",
        "%e = f32[2]{0} slice(%p), slice={[2:4]}",
        "%a = f32[2]{0} add(%d, %e)",
        "%g = f32[8]{0} all-gather(%a), dimensions={0}",
        "ROOT %t = (f32[8]{0}) tuple(%g)",
    )
    assert sites_of(*lines, outputs=1, given=True)[1] == ["0: add(slice(p0), slice(p0))"]


# -- What of an update is explained, and what is read of it -------------------------------------------------------------


def update_of(*lines: str) -> Update:
    (row,) = overview_of(step_of(*lines)).rows
    return row.matched.update


def test_an_update_splits_into_weight_and_gradient() -> None:
    update = update_of(*DESCENT)
    assert update.is_plain()
    assert update.is_step()
    assert update.is_gradient(update.rest)
    assert not update.are_scalar(update.rest)
    assert split(update.form, update.weight) == (update.kept, update.rest)
