"""Regions: the entry, and loops over steps."""

from __future__ import annotations

import random
import re

import pytest

import hlo_inspect
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
    ADAM,
    DATA,
    DESCENT,
    DONATED,
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


def copy_of(*lines: str) -> str | None:
    """Return the type of the working copy of a weight, if the second output, in bf16 as its input is, is `k`."""
    text = step_of(*DESCENT, *lines, "c = bf16[4,4]{1,0} convert(%k)", outputs="new c", states=1)
    text = changed(text, r"%m1 = f32", "%m1 = bf16")
    (row,) = overview_of(changed(text, r", f32\[4,4\]\{1,0\}\) tuple", ", bf16[4,4]{1,0}) tuple")).rows
    return row.matched.copy.shape.dtype if row.matched.copy is not None else None


def test_a_copy_in_another_type() -> None:
    assert copy_of("k = copy new") == "bf16"
    assert copy_of("z = multiply m1 zero", "k = add new z") == "bf16"


@pytest.mark.parametrize("line", ["multiply new two", "multiply new new", "negate new", "add new one", "sine new"])
def test_an_array_of_another_value_is_no_copy(line: str) -> None:
    assert copy_of(f"k = {line}") is None


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


def test_the_old_value_of_a_moment_behind_a_product_is_no_gradient() -> None:
    """Muon's momentum goes through products of matrices, which plain descent has no place for."""
    lines = (
        "a = multiply m1 nine",
        "m = add a g",
        "o = f32[4,4]{1,0} dot(%m, %m), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "u = multiply o rate",
        "new = add w u",
    )
    assert rules_of(step_of(*lines, outputs="new m", states=1)) == ["unknown"]


def test_a_gradient_behind_the_new_value_of_another_weight() -> None:
    """A second network, `m2` with momentum `m3`, is trained on the first one's result after its step.

    Critic and actor take turns like that. Its gradient holds the momentum of the first one, which is a state of no other weight
    once that is explained.
    """
    lines = (
        "a = multiply m1 nine",
        "m = add a g",
        "u = multiply m rate",
        "new = add w u",
        "y = f32[9,4]{1,0} dot(%x, %new), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "z = f32[9,4]{1,0} dot(%y, %m2), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "d = f32[4,4]{1,0} dot(%y, %z), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "b = multiply m3 nine",
        "v = add b d",
        "e = multiply v rate",
        "last = add m2 e",
    )
    assert rules_of(step_of(*lines, outputs="new m last v", states=3)) == ["sgd", "sgd"]


def test_an_opaque_value_is_no_gradient() -> None:
    assert rules_of(step_of("k = multiply g nobody", "u = multiply k rate", "new = add w u")) == ["unknown"]
    assert rules_of(step_of("u = multiply nobody rate", "new = add w u")) == ["unknown"]


def test_an_average_of_the_weights_is_not_counted() -> None:
    lines = (*DESCENT, "a = multiply m1 nine", "b = multiply new tenth", "e = add a b")
    assert rules_of(step_of(*lines, outputs="new e", states=1)) == ["sgd"]


def test_updates_without_donation_are_recognized() -> None:
    assert rules_of(step_of(*ADAM, outputs="new m v", states=2, donated=False)) == ["adam"]


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


# -- What goes one way is no gradient: products of `w` with another input, in steps that look like descent --------------


CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
DOWN = ("u = multiply o rate", "new = add w u")


def dot(name: str, left: str, right: str) -> str:
    return f"{name} = f32[4,4]{{1,0}} dot(%{left}, %{right}), {CONTRACTED}"


@pytest.mark.parametrize(
    "lines",
    [
        (dot("o", "m1", "w"),),
        (dot("o", "w", "m1"),),
        (dot("h", "m1", "w"), "o = tanh h"),
        ("s = sine w", dot("o", "m1", "s")),
        ("o = f32[4,4]{1,0} convolution(%w, %m1), window={size=3x3 pad=1_1x1_1}, dim_labels=01_01->01",),
    ],
)
def test_one_product_is_no_gradient(lines: tuple[str, ...]) -> None:
    assert rules_of(step_of(*lines, *DOWN, states=1)) == []


def test_a_velocity_of_a_vector_field_is_no_momentum() -> None:
    lines = (dot("f", "m2", "w"), "a = multiply m1 nine", "o = add a f")
    assert rules_of(step_of(*lines, *DOWN, outputs="new o", states=2)) == []


def force(name: str, source: str) -> tuple[str, str]:
    """Return the gradient of a quadratic energy of an array."""
    first, second = "lhs_contracting_dims={1}, rhs_contracting_dims={0}", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    return (
        f"{name}h = f32[9,4]{{1,0}} dot(%x, %{source}), {first}",
        f"{name} = f32[4,4]{{1,0}} dot(%x, %{name}h), {second}",
    )


@pytest.mark.parametrize(
    ("position", "is_trained"),
    [
        (("d = multiply v tenth", "p = add m1 d"), False),  # leapfrog: m1 + dt * v
        (("k = multiply m1 nine", "d = multiply v tenth", "p = add k d"), True),  # the teacher of a weight v
    ],
)
def test_positions_and_velocities_are_no_sgd(position: tuple[str, ...], is_trained: bool) -> None:
    """`w` takes two half steps down the energy, before and behind the step of `m1`, which `w` makes."""
    kick = ("a = multiply first rate", "v = add w a")
    again = ("b = multiply second rate", "new = add v b")
    text = step_of(*force("first", "m1"), *kick, *position, *force("second", "p"), *again, outputs="new p", states=1)
    assert ("sgd" in rules_of(text)) is is_trained


def test_a_product_with_a_matrix_and_its_transpose_is_a_gradient() -> None:
    back = "o = f32[4,4]{1,0} dot(%m1, %t), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    assert rules_of(step_of(dot("f", "m1", "w"), "t = tanh f", back, *DOWN, states=1)) == ["sgd"]


def test_products_without_a_way_back_are_no_gradient() -> None:
    """Twice along the same dimension is a step of a method of Runge and Kutta, with another matrix a layer of a network."""
    assert rules_of(step_of(dot("f", "m1", "w"), "t = tanh f", dot("o", "m1", "t"), *DOWN, states=1)) == []
    assert rules_of(step_of(dot("f", "w", "m1"), "t = tanh f", dot("o", "t", "m2"), *DOWN, states=2)) == []


def test_a_product_of_the_weight_may_stand_beside_a_gradient() -> None:
    assert rules_of(step_of(dot("f", "m1", "w"), "o = add f g", *DOWN, states=1)) == ["sgd"]


def test_two_products_can_be_the_gradient_of_a_quadratic_form() -> None:
    assert rules_of(step_of(dot("f", "m1", "w"), dot("h", "w", "m1"), "o = add f h", *DOWN, states=1)) != []


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


@pytest.mark.parametrize(
    ("lines", "decay"),
    [
        (("d = multiply w tenth", "s = add g d", "u = multiply s rate", "new = add w u"), 0.1),
        (("d = multiply w zero", "s = add g d", "u = multiply s rate", "new = add w u"), 0.0),
    ],
)
def test_decay_beside_the_step(lines: tuple[str, ...], decay: float) -> None:
    assert facts_of(step_of(*lines))["weight_decay"] == decay


def test_a_value_without_the_weight_is_no_gradient() -> None:
    """Without the weight in it, what is added can be anything."""
    other = "o = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    assert rules_of(step_of(other, "u = multiply o rate", "new = add w u")) == []


def test_a_gate_is_no_decay() -> None:
    lines = ("k = logistic g", "i = subtract one k", "a = multiply w i", "b = multiply g k", "new = add a b")
    assert rules_of(step_of(*lines)) == []


# -- Weights that are not left out --------------------------------------------------------------------------------------


def test_a_gradient_that_holds_another_weight_follows_none() -> None:
    """Weight norm: the gradient is multiplied with the scale, a weight of its own, which comes first."""
    scaled = ("c = multiply m1 w", "y = f32[9,4]{1,0} dot(%x, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    back = "d = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    other = ("k = tanh d", "e = multiply k m1", "i = multiply e w", "j = sign i", "v = multiply j rate", "new = add w v")
    scale = ("l = multiply d w", "n = multiply l rate", "m = add m1 n")
    assert sorted(rules_of(step_of(*scaled, back, *other, *scale, outputs="new m", states=1))) == ["sgd", "unknown"]


BACK = "d = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}"


def test_descent_of_a_normalized_weight() -> None:
    """The loss reads c = w / norm(w), column by column, with the gradient d along c.

    The gradient along w is `d / norm(w) - w * sum(w * d) / norm(w) ** 3`. Divided by the norm without the other term it is no
    gradient of a loss.
    """
    repeated = "{} = f32[4,4]{{1,0}} broadcast(%{}), dimensions={{1}}"
    norm = ("q = multiply w w", "n = f32[4]{0} reduce(%q, %zero_s), dimensions={0}, to_apply=%add", "ns = f32[4]{0} rsqrt(%n)")
    forward = (
        repeated.format("r", "ns"),
        "c = multiply w r",
        "y = f32[9,4]{1,0} dot(%x, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        BACK,
    )
    inner = ("e = multiply w d", "p = f32[4]{0} reduce(%e, %zero_s), dimensions={0}, to_apply=%add", repeated.format("ps", "p"))
    back = ("a = multiply d r", *inner, "i = multiply w ps", "j = multiply r r", "k = multiply j r", "l = multiply i k")
    descent = ("z = subtract a l", "u = multiply z rate", "new = add w u")
    facts = facts_of(step_of(*norm, *forward, *back, *descent))
    assert (facts["name"], facts["update_count"], facts["learning_rate"]) == ("sgd", 1, 0.01)
    assert rules_of(step_of(*norm, *forward, "a = multiply d r", "u = multiply a rate", "new = add w u")) == ["unknown"]


def test_a_loop_that_leads_the_weights() -> None:
    """Reptile: a tenth of the way to the result of three steps of descent."""
    body = """%body (s: (s32[], f32[4,4], f32[9,4])) -> (s32[], f32[4,4], f32[9,4]) {
  %s = (s32[], f32[4,4]{1,0}, f32[9,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %w = f32[4,4]{1,0} get-tuple-element(%s), index=1
  %x = f32[9,4]{1,0} get-tuple-element(%s), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[9,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %g = f32[4,4]{1,0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  %rate = f32[] constant(0.01)
  %rates = f32[4,4]{1,0} broadcast(%rate), dimensions={}
  %step = f32[4,4]{1,0} multiply(%g, %rates)
  %new = f32[4,4]{1,0} subtract(%w, %step)
  ROOT %state = (s32[], f32[4,4]{1,0}, f32[9,4]{1,0}) tuple(%next, %new, %x)
}

%condition (t: (s32[], f32[4,4], f32[9,4])) -> pred[] {
  %t = (s32[], f32[4,4]{1,0}, f32[9,4]{1,0}) parameter(0)
  %k = s32[] get-tuple-element(%t), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%k, %three), direction=LT
}

"""
    lines = (
        "%p = f32[4,4]{1,0} parameter(0)",
        "%b = f32[9,4]{1,0} parameter(1)",
        "%zero = s32[] constant(0)",
        "%start = (s32[], f32[4,4]{1,0}, f32[9,4]{1,0}) tuple(%zero, %p, %b)",
        "%loop = (s32[], f32[4,4]{1,0}, f32[9,4]{1,0}) while(%start), condition=%condition, body=%body",
        "%q = f32[4,4]{1,0} get-tuple-element(%loop), index=1",
        "%away = f32[4,4]{1,0} subtract(%q, %p)",
        "%tenth = f32[] constant(0.1)",
        "%tenths = f32[4,4]{1,0} broadcast(%tenth), dimensions={}",
        "%part = f32[4,4]{1,0} multiply(%away, %tenths)",
        "ROOT %moved = f32[4,4]{1,0} add(%p, %part)",
    )
    facts = facts_of(entry_of(*lines, before=body, header=DONATED))
    assert (facts["name"], facts["update_count"], facts["learning_rate"]) == ("sgd", 1, 0.01)


def handed_in(*lines: str, outputs: str, states: int, donated: bool = True) -> str:
    """`step_of` with the gradient, and a scalar `free_s` with its array `free`, as parameters."""
    text = step_of(*lines, outputs=outputs, states=states, donated=donated)
    gradient = f"%g = f32[4,4]{{1,0}} parameter({states + 3})\n  %free_s = f32[] parameter({states + 4})\n"
    gradient += "  %free = f32[4,4]{1,0} broadcast(%free_s), dimensions={}\n"
    return changed(text, r"%g = [^\n]*\n", gradient)


def test_the_gradient_of_an_update_alone_is_handed_in() -> None:
    """Two moments that make a step of Adam are those of an optimizer, even without a backward pass."""
    text = handed_in(*ADAM, outputs="new m v", states=2)
    facts = facts_of(text)
    names = ("name", "update_count", "learning_rate", "beta1", "beta2", "epsilon")
    assert [facts[name] for name in names] == ["adam", 1, 0.01, 0.9, 0.5, 1e-8]
    assert facts_of(changed(text, "sqrt", "cbrt"))["name"] == "none"
    rising = changed(text, r"add\(%w, %u\)", "subtract(%w, %u)")
    assert facts_of(rising)["update_count"] == 0  # an ascent is no update


def test_a_weight_that_is_decayed_by_a_scalar_after_the_step() -> None:
    """`(w + s) * (1 + free)`, with a number that is handed in."""
    lines = (*ADAM, "less = multiply new free", "after = add new less")
    facts = facts_of(handed_in(*lines, outputs="after m v", states=2))
    assert (facts["name"], facts["decayed_count"], facts.get("weight_decay")) == ("adamw", 1, None)


@pytest.mark.parametrize("donated", [False, True])
@pytest.mark.parametrize("shares", ["a = multiply m1 free|b = multiply g rest", "a = multiply m1 rest|b = multiply g free"])
def test_the_old_value_of_an_average_with_a_decay_that_is_handed_in(shares: str, *, donated: bool) -> None:
    """An average is `free * m1 + (1 - free) * g`, or with the shares in turn; other states add the gradient too."""
    rest = ("rest_s = f32[] subtract(%one_s, %free_s)", "rest = f32[4,4]{1,0} broadcast(%rest_s), dimensions={}")
    lines = (*rest, *shares.split("|"), *ADAM[2:])
    (row,) = overview_of(handed_in(*lines, outputs="new m v", states=2, donated=donated)).rows
    assert (row.rule, row.roles["first_moment"].source[1], row.roles["second_moment"].source[1]) == ("adam", 1, 2)


def test_a_step_along_a_parameter_and_one_state_is_no_optimizer() -> None:
    """A mass that is pushed moves as momentum does."""
    text = handed_in("a = multiply m1 nine", "m = add a g", "u = multiply m rate", "new = add w u", outputs="new m", states=1)
    assert facts_of(text)["name"] == "none"


def test_a_norm_that_is_kept_in_place_of_an_argument_is_no_state() -> None:
    """The norm of the gradients is added up from an argument, clips them, and is returned."""
    clip = (
        "last = f32[] parameter(5)",
        "squares = f32[4,4]{1,0} multiply(%g, %g)",
        "added = f32[] reduce(%squares, %zero_s), dimensions={0,1}, to_apply=%add",
        "total = f32[] add(%last, %added)",
        "norm = f32[] sqrt(%total)",
        "inverse = f32[] divide(%one_s, %norm)",
        "least = f32[] minimum(%inverse, %one_s)",
        "leasts = f32[4,4]{1,0} broadcast(%least), dimensions={}",
        "clipped = multiply g leasts",
    )
    lines = [line.replace(" g", " clipped") for line in ADAM]
    text = step_of(*clip, *lines, outputs="new m v", states=2)
    text = changed(text, r"\) tuple\(%new, %m, %v\)", ", f32[]) tuple(%new, %m, %v, %norm)")
    assert facts_of(text)["name"] == "adam"
    divided = changed(text, r"minimum\(%inverse, %one_s\)", "multiply(%inverse, %one_s)")
    assert facts_of(divided)["name"] != "adam"  # the norm of all steps is a state


def test_a_running_norm_of_gradients_is_a_state() -> None:
    """AdaGrad-Norm is no SGD: its step is divided by the norm that it keeps."""
    text = step_of(
        "last = f32[] parameter(3)",
        "squares = f32[4,4]{1,0} multiply(%g, %g)",
        "added = f32[] reduce(%squares, %zero_s), dimensions={0,1}, to_apply=%add",
        "before = f32[] multiply(%last, %last)",
        "total = f32[] add(%before, %added)",
        "norm = f32[] sqrt(%total)",
        "norms = f32[4,4]{1,0} broadcast(%norm), dimensions={}",
        "unit = divide g norms",
        "u = multiply unit rate",
        "new = add w u",
    )
    text = changed(text, r"\(f32\[4,4\]\{1,0\}\) tuple\(%new\)", "(f32[4,4]{1,0}, f32[]) tuple(%new, %norm)")
    assert rules_of(text) == ["unknown"]


def test_arrays_moved_by_neuron_custom_calls_keep_their_value() -> None:
    """The custom call says how an array is moved, and returns it: the weight to the forward pass, and what the step returns."""
    call = 'f32[4,4]{1,0} custom-call(%OPERAND), custom_call_target="AwsNeuronTransferWithStaticRing"'
    sent, moved, new = (call.replace("OPERAND", name) for name in ("w", "g", "v"))
    text = step_of(f"moved = {moved}", "u = multiply moved rate", "v = add w u", f"new = {new}")
    text = changed(text, "%h = ", f"%sent = {sent}\n  %h = ")
    facts = facts_of(changed(text, r"dot\(%x, %w\)", "dot(%x, %sent)"))
    assert (facts["name"], facts["learning_rate"]) == ("sgd", 0.01)
    assert hlo_inspect.inspect(text, ("cost",)).facts["cost.unknown_custom_calls"] == 0


HISTORY = (
    "%w = f32[4]{0} parameter(0)",
    "%last = f32[4]{0} parameter(1)",
    "%h = f32[3,4]{1,0} parameter(2)",
    "%x = f32[9,4]{1,0} parameter(3)",
    "%i = s32[] parameter(4)",
    "%z = s32[] constant(0)",
    "%y = f32[9]{0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%g = f32[4]{0} dot(%x, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "%s = f32[4]{0} subtract(%w, %last)",
    "%row = f32[1,4]{1,0} reshape(%s)",
    "%old = f32[2,4]{1,0} slice(%h), slice={[1:3], [0:4]}",
)
INTO_HISTORY = (
    "%new_h = f32[3,4]{1,0} dynamic-update-slice(%h, %row, %i, %z)",
    "%new_h = f32[3,4]{1,0} concatenate(%old, %row), dimensions={0}",
)


@pytest.mark.parametrize("into", INTO_HISTORY)
@pytest.mark.parametrize("is_read", [True, False])
def test_a_step_that_depends_on_how_the_weight_changed_before_is_no_descent(into: str, *, is_read: bool) -> None:
    """L-BFGS: nobody sees what the loop makes of the gradient and of the differences that it is given."""
    step = (
        f'%a = f32[4]{{0}} custom-call(%g, {"%new_h" if is_read else "%x"}), custom_call_target="two_loops"',
        "%w2 = f32[4]{0} subtract(%w, %a)",
        "ROOT %r = (f32[4]{0}, f32[4]{0}, f32[3,4]{1,0}) tuple(%w2, %w, %new_h)",
    )
    assert rules_of(entry_of(*HISTORY, into, *step, header=DONATED.replace("{}:", "{0}:"))) == (
        ["unknown"] if is_read else ["sgd"]
    )


def test_a_moment_with_decay_0_is_a_state() -> None:
    momentum = ("a = multiply m1 zero", "m = add a g", "u = multiply m rate", "new = add w u")
    facts = facts_of(step_of(*momentum, outputs="new m", states=1))
    assert (facts["name"], facts["momentum"], facts["learning_rate"]) == ("sgd", 0.0, 0.01)
    adam = facts_of(step_of("a = multiply m1 zero", *ADAM[1:], outputs="new m v", states=2))
    assert (adam["name"], adam["beta1"], adam["beta2"]) == ("adam", 0.0, 0.5)
