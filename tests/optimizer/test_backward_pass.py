"""Gradients come from a backward pass; fields of solvers, samplers and simulations do not.

`m1`, `m2` are arrays that are handed in, `w` the array that is updated, `x` a batch with which `g` is a gradient.
"""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.graph.frames import Frames, Place
from tests.optimizer.programs import (
    DESCENT,
    DONATED,
    STAGES,
    adam_of,
    changed,
    entry_of,
    overview_of,
    rules_of,
    step_of,
    text_of,
)

ALONG = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
ACROSS = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
RIGHT = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
DOWN = ("u = multiply o rate", "new = add w u")


def dot(name: str, left: str, right: str, contracted: str = ALONG) -> str:
    return f"{name} = f32[4,4]{{1,0}} dot(%{left}, %{right}), {contracted}"


FIELD = (dot("f", "w", "m1"), "a = tanh f", dot("o", "a", "m2"))
"""A network of two layers on `w`; the twin of each test below has the gradient in its place."""


def test_a_network_is_no_gradient() -> None:
    assert rules_of(step_of(*FIELD, *DOWN, states=2)) == []
    assert rules_of(step_of(*DESCENT)) == ["sgd"]


def test_a_momentum_of_a_vector_field_is_no_sgd() -> None:
    momentum = ("b = multiply m3 nine", "m = add b {}", "u = multiply m rate", "new = add w u")
    states = ("new", "m1", "m2", "m")
    lines = [line.format("o") for line in momentum]
    assert rules_of(step_of(*FIELD, *lines, outputs=" ".join(states), states=3)) == []
    lines = [line.format("g") for line in momentum]
    assert rules_of(step_of(*lines, outputs=" ".join(states), states=3)) == ["sgd"]


def test_a_second_moment_of_a_vector_field_is_no_adam() -> None:
    """An integrator with the length of its steps by the error's root mean square."""
    moment = ("b = multiply m3 nine", "d = multiply {0} {0}", "e = multiply d tenth", "v = add b e", "s = rsqrt v")
    scaled = (*moment, "q = multiply {0} s", "u = multiply q rate", "new = add w u")
    field = [line.format("o") for line in scaled]
    assert rules_of(step_of(*FIELD, *field, outputs="new m1 m2 v", states=3)) == []
    gradient = [line.format("g") for line in scaled]
    assert rules_of(step_of(*gradient, outputs="new m1 m2 v", states=3)) == ["rmsprop"]


@pytest.mark.parametrize("weights", ["gradient", "field", "gradient field", "field gradient"])
def test_two_states_of_an_unclear_gradient_are_adam_beside_a_clear_one(weights: str) -> None:
    """In either order: no field has two states, and the gradient of one weight shows that the step trains."""
    names = weights.split()
    lines, outputs = [], []
    for number, name in enumerate(names):
        weight = "w" if not number else "m3"
        if name == "field":
            lines += [dot("f", weight, "m6"), "i = tanh f", dot("o", "i", "m7")]
        else:
            lines += [f"y = f32[9,4]{{1,0}} dot(%x, %{weight}), {ALONG}", f"p = f32[4,4]{{1,0}} dot(%x, %y), {ACROSS}"]
        lines += adam_of(number, weight, "p" if name == "gradient" else "o")
        outputs += [f"new_{number}", f"m_{number}", f"v_{number}"]
    rules = rules_of(step_of(*lines, outputs=" ".join(outputs), states=7))
    assert rules == ([] if names == ["field"] else ["adam"] * len(names))


@pytest.mark.parametrize(("way_back", "rules"), [("oi", []), ("io", ["sgd"])])
def test_a_product_of_matrices_as_a_convolution(way_back: str, rules: list[str]) -> None:
    """As texts for TPUs have it: `tanh(w @ m1) @ m1` is a field, `tanh(w @ m1) @ m1.T` is none."""
    along = "f = f32[4,4]{1,0} convolution(%w, %m1), dim_labels=bf_oi->bf"
    back = f"o = f32[4,4]{{1,0}} convolution(%a, %m1), dim_labels=bf_{way_back}->bf"
    assert rules_of(step_of(along, "a = tanh f", back, *DOWN, states=1)) == rules


@pytest.mark.parametrize("function", ["negate", "tanh", "copy"])
def test_a_function_of_a_vector_field_is_no_gradient(function: str) -> None:
    assert rules_of(step_of(dot("f", "w", "m1"), "a = tanh f", dot("c", "a", "m2"), f"o = {function} c", *DOWN, states=2)) == []


def test_the_cofactor_may_be_computed_again() -> None:
    """Rematerialization: the product on the way back has another instruction of the same value."""
    lines = ("a = tanh m1", dot("f", "a", "w"), "q = tanh f", "b = copy m1", "c = tanh b", dot("o", "c", "q", ACROSS))
    assert rules_of(step_of(*lines, *DOWN, states=1)) == ["sgd"]
    hidden = ("a = tanh m1", dot("z", "a", "m2"), "b = tanh z", dot("f", "b", "w"), "q = tanh f")
    again = ("c = tanh m1", dot("y", "c", "m2"), "d = tanh y", dot("o", "d", "q", ACROSS))
    assert rules_of(step_of(*hidden, *again, *DOWN, states=2)) == ["sgd"]


@pytest.mark.parametrize(("contracted", "rules"), [(ACROSS, ["sgd"]), (ALONG, [])])
def test_cofactors_of_merged_products_are_recognized(contracted: str, rules: list[str]) -> None:
    """A loss over pairs: `[m1; m2] @ w` on the way to it, `m1.T @ d1 + m2.T @ d2` on the way back."""
    whole = "f32[8,4]{1,0}"
    lines = (
        f"c = {whole} concatenate(%m1, %m2), dimensions={{0}}",
        f"f = {whole} dot(%c, %w), {ALONG}",
        f"q = {whole} tanh(%f)",
        "d1 = f32[4,4]{1,0} slice(%q), slice={[0:4], [0:4]}",
        "d2 = f32[4,4]{1,0} slice(%q), slice={[4:8], [0:4]}",
        dot("o1", "m1", "d1", contracted),
        dot("o2", "m2", "d2", contracted),
        "o = add o1 o2",
    )
    assert rules_of(step_of(*lines, *DOWN, states=2)) == rules


@pytest.mark.parametrize(("batches", "rules"), [(("m1", "m2"), ["sgd"]), (("m3", "m3"), [])])
def test_a_part_of_a_cofactor_may_be_computed_again(batches: tuple[str, str], rules: list[str]) -> None:
    """Two batches were put together on the way to the loss. What is no part of them comes from another input."""
    whole = "f32[8,4]{1,0}"
    lines = (
        "e1 = tanh m1",
        "e2 = tanh m2",
        f"c = {whole} concatenate(%e1, %e2), dimensions={{0}}",
        f"f = {whole} dot(%c, %w), {ALONG}",
        f"q = {whole} tanh(%f)",
        "d1 = f32[4,4]{1,0} slice(%q), slice={[0:4], [0:4]}",
        "d2 = f32[4,4]{1,0} slice(%q), slice={[4:8], [0:4]}",
        f"k1 = tanh {batches[0]}",
        f"k2 = tanh {batches[1]}",
        dot("o1", "k1", "d1", ACROSS),
        dot("o2", "k2", "d2", ACROSS),
        "o = add o1 o2",
    )
    assert rules_of(step_of(*lines, *DOWN, states=3)) == rules


INDICES = """
%{0} () -> s32[9,1] {{
  %i = s32[9,1]{{1,0}} iota(), iota_dimension=0
  %c = s32[] constant(7)
  %cs = s32[9,1]{{1,0}} broadcast(%c), dimensions={{}}
  ROOT %r = s32[9,1]{{1,0}} minimum({1})
}}
"""


def lookup_of(back: str, summed: str) -> str:
    """Return a lookup of rows of a table, and the gradient of that."""
    gathered = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"
    scattered = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    return entry_of(
        "%w = f32[8,4]{1,0} parameter(0)",
        "%x = f32[9,4]{1,0} parameter(1)",
        "%there = s32[9,1]{1,0} fusion(), kind=kLoop, calls=%first",
        f"%back = {back} fusion(), kind=kLoop, calls=%second",
        f"%y = f32[9,4]{{1,0}} gather(%w, %there), {gathered}",
        f"%d = {summed}",
        "%zero = f32[] constant(0)",
        "%zeros = f32[8,4]{1,0} broadcast(%zero), dimensions={}",
        f"%g = f32[8,4]{{1,0}} scatter(%zeros, %back, %d), {scattered}, to_apply=%add",
        "%rate = f32[] constant(0.1)",
        "%rates = f32[8,4]{1,0} broadcast(%rate), dimensions={}",
        "%u = f32[8,4]{1,0} multiply(%g, %rates)",
        "ROOT %new = f32[8,4]{1,0} subtract(%w, %u)",
        before=INDICES.format("first", "%i, %cs") + INDICES.format("second", "%cs, %i"),
        header=DONATED,
    )


def test_indices_that_depend_on_no_input_may_be_equal() -> None:
    """Relative positions are computed once for the lookup and once more for the scatter of its gradient."""
    assert rules_of(lookup_of("s32[9,1]{1,0}", "f32[9,4]{1,0} multiply(%x, %y)")) == ["sgd"]
    assert rules_of(lookup_of("s32[5,1]{1,0}", "f32[5,4]{1,0} slice(%y), slice={[0:5], [0:4]}")) == []  # other positions


CONVOLUTIONS = """HloModule step

ENTRY main {
  w = f32[3,3,3,4]{3,2,1,0} parameter(0)
  x = f32[2,8,8,3]{3,2,1,0} parameter(1)
  upper = f32[2,5,8,3]{3,2,1,0} slice(x), slice={[0:2], [0:5], [0:8], [0:3]}
  lower = f32[2,5,8,3]{3,2,1,0} slice(x), slice={[0:2], [3:8], [0:8], [0:3]}
  halves = f32[4,5,8,3]{3,2,1,0} concatenate(upper, lower), dimensions={0}
  y = f32[4,3,6,4]{3,2,1,0} convolution(halves, w), window={size=3x3}, dim_labels=b01f_01io->b01f
  t = f32[4,3,6,4]{3,2,1,0} tanh(y)
  first = f32[2,3,6,4]{3,2,1,0} slice(t), slice={[0:2], [0:3], [0:6], [0:4]}
  second = f32[2,3,6,4]{3,2,1,0} slice(t), slice={[2:4], [0:3], [0:6], [0:4]}
  d = f32[2,6,6,4]{3,2,1,0} concatenate(first, second), dimensions={1}
  g = f32[3,3,3,4]{3,2,1,0} convolution(x, d), window={size=6x6}, dim_labels=f01b_i01o->01bf
  rate = f32[] constant(0.1)
  rates = f32[3,3,3,4]{3,2,1,0} broadcast(rate), dimensions={}
  u = f32[3,3,3,4]{3,2,1,0} multiply(g, rates)
  ROOT new = f32[3,3,3,4]{3,2,1,0} subtract(w, u)
}
"""


def test_a_convolution_of_the_parts_of_an_image() -> None:
    """The compiler for TPUs convolves parts of a small image as a larger batch, and the image itself on the way back.

    A product of matrices takes the same factor both times.
    """
    assert rules_of(CONVOLUTIONS.replace("HloModule step", f"HloModule step{DONATED}")) == ["sgd"]
    product = (dot("f", "a", "w"), "q = tanh f", dot("o", "m1", "q", ACROSS))
    assert rules_of(step_of("a = tanh m1", *product, *DOWN, states=1)) == []


def test_the_cofactor_comes_before_the_gradient() -> None:
    """Broyden's method: `x - J @ f(x)`; a change of J beside it multiplies J with a product of x.

    Gradients of masked weights have their cofactor from such a product too, and follow from it.
    """
    field = (dot("f", "m1", "w"), "a = tanh f", dot("o", "m2", "a"))
    change = ("c = multiply w w", dot("d", "c", "m2"), "e = multiply d tenth", "k = add m2 e")
    assert rules_of(step_of(*field, *change, *DOWN, outputs="new m1 k", states=2)) == []
    masked = ("c = multiply w m1", dot("d", "c", "m2"), "e = tanh d", dot("o", "e", "m2", RIGHT))
    assert rules_of(step_of(*masked, *DOWN, outputs="new m1 m2", states=2)) == ["sgd"]


def test_a_sum_over_pairs_of_rows_of_the_weight_is_no_gradient() -> None:
    """An embedding of points that attract each other: the twin compares each row with a batch."""
    points = "{0} = f32[4,4,4]{{2,1,0}} broadcast(%{1}), dimensions={{{2}}}"
    lines = ("d = f32[4,4,4]{2,1,0} subtract(%i, %j)", "e = f32[4,4,4]{2,1,0} tanh(%d)")
    summed = "o = f32[4,4]{1,0} reduce(%e, %zero_s), dimensions={1}, to_apply=%add"
    first = points.format("i", "w", "0,2")
    assert rules_of(step_of(first, points.format("j", "w", "1,2"), *lines, summed, *DOWN)) == []
    assert rules_of(step_of(first, points.format("j", "m1", "1,2"), *lines, summed, *DOWN, states=1)) == ["sgd"]


def test_a_transposed_cofactor_counts_with_its_own_dimensions() -> None:
    """The contracted dimension counts at the origin of the cofactor."""
    lines = (dot("f", "m1", "w"), "q = tanh f", "y = f32[4,4]{1,0} transpose(%m1), dimensions={1,0}")
    assert rules_of(step_of(*lines, dot("o", "y", "q"), *DOWN, states=1)) == ["sgd"]
    assert rules_of(step_of(*lines, dot("o", "y", "q", ACROSS), *DOWN, states=1)) == []


def test_a_part_of_a_loop_is_not_judged() -> None:
    text = step_of(*FIELD, *DOWN, states=2)
    text = changed(text, r"tanh\(%f\)", 'custom-call(%f), custom_call_target="someone_s_kernel"')
    assert rules_of(text) == ["sgd"]


@pytest.mark.parametrize(
    "solver",
    [
        "triangular-solve(%m1, %f), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
        'custom-call(%m1, %f), custom_call_target="lapack_sgetrf_ffi"',
    ],
)
def test_the_result_of_a_linear_solver_is_no_gradient(solver: str) -> None:
    lines = (dot("f", "m1", "w"), f"o = f32[4,4]{{1,0}} {solver}")
    assert rules_of(step_of(*lines, *DOWN, states=1)) == []
    after = (dot("f", "m1", "w"), f"s = f32[4,4]{{1,0}} {solver}", "r = tanh s", dot("o", "m2", "r"))
    assert rules_of(step_of(*after, *DOWN, states=2)) == []


@pytest.mark.parametrize(("decay", "rules"), [("one", ["unknown"]), ("nine", ["sgd"])])
def test_a_velocity_that_never_decays(decay: str, rules: list[str]) -> None:
    lines = (f"a = multiply m1 {decay}", "b = multiply g rate", "m = add a b", "new = add w m")
    assert rules_of(step_of(*lines, outputs="new m", states=1)) == rules


HANDED = ("y = f32[] reduce(%m1, %zero_s), dimensions={0,1}, to_apply=%add", "r = f32[4,4]{1,0} broadcast(%y), dimensions={}")
"""`r` is a scalar in all elements, made of an array that is handed in."""
COLUMNS = ("c = f32[4,4]{1,0} add(%w, %m2)", "e = f32[4]{0} reduce(%c, %zero_s), dimensions={0}, to_apply=%add")
BIAS = (*COLUMNS, "o = f32[4,4]{1,0} broadcast(%e), dimensions={1}")
"""Something of `w` of which cannot be told whether it is a gradient."""


def test_a_computed_rate_descends_if_it_is_subtracted() -> None:
    text = step_of(*BIAS, "u = multiply o r", "new = OPCODE w u", states=2)
    rate = "%r = f32[4,4]{1,0} broadcast(%y), dimensions={}\n  %y = f32[] parameter(9)\n  %u ="
    for sign, rules in (("add", []), ("subtract", ["sgd"])):
        lines = text.replace("OPCODE", sign).replace("%u =", rate, 1)
        assert rules_of(lines) == rules


def test_a_factor_made_of_a_state_is_no_learning_rate() -> None:
    """The method of conjugate gradients: its steps have their length from the direction, which the step changes."""
    lines = (*HANDED, *BIAS, "u = multiply o r", "new = subtract w u")
    assert rules_of(step_of(*lines, "k = add m1 one", outputs="new k", states=2)) == []
    assert rules_of(step_of(*lines, states=2)) == ["sgd"]


# -- updates that no rule explains --------------------------------------------------------------------------------------

ROOT = 'r = f32[4,4]{1,0} custom-call(%l), custom_call_target="someone_s_root"'
"""The inverse root of a sum of outer products, which Shampoo keeps."""


def preconditioned(gradient: str, *before: str) -> list[str]:
    """Return the rules of a step with a value between two matrices, one made of a state that sums its outer products."""
    products = (dot("c", gradient, gradient, "lhs_contracting_dims={1}, rhs_contracting_dims={1}"), "l = add m2 c")
    matrices = (ROOT, dot("k", "r", gradient), dot("o", "k", "m3"))
    return rules_of(step_of(*before, *products, *matrices, *DOWN, outputs="new m1 l m3", states=3))


def test_a_gradient_between_matrices_is_unknown() -> None:
    """The twin multiplies a field in its place, and updates no weight."""
    field = (dot("f", "w", "m1"), "a = tanh f", dot("field", "a", "m3"))
    assert preconditioned("g") == ["unknown"]
    assert preconditioned("field", *field) == []


@pytest.mark.parametrize(("rate", "rules"), [("tenth", ["unknown"]), ("one", [])])
def test_ascent_along_a_gradient_is_unknown(rate: str, rules: list[str]) -> None:
    """The discriminator of two networks may go up; a residual network with shared weights adds the whole of its last layer."""
    assert rules_of(step_of(f"u = multiply g {rate}", "new = add w u")) == rules
    assert rules_of(step_of(*FIELD, f"u = multiply o {rate}", "new = add w u", states=2)) == []


def test_a_vector_field_behind_a_solver_is_no_gradient() -> None:
    """A Kalman filter: the gain, a solver's result times a matrix, stands before two more products."""
    solve = "s = f32[4,4]{1,0} triangular-solve(%m1, %f), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
    gain = (dot("f", "m1", "w"), solve, dot("k", "m2", "s"), dot("l", "k", "m1"), dot("o", "l", "w"))
    assert rules_of(step_of(*gain, *DOWN, states=2)) == []


@pytest.mark.parametrize(("kept", "rules"), [("nine", []), ("one", ["sgd"])])
def test_a_part_of_the_way_to_another_value_is_no_gradient(kept: str, rules: list[str]) -> None:
    """`w + 0.1 * (f(w) - w)`, relaxed: a fixed point of f is looked for. Without the decay it may be descent along a bias."""
    lines = (*BIAS, f"a = multiply w {kept}", "p = negate o", "u = multiply p tenth", "new = add a u")
    assert rules_of(step_of(*lines, states=2)) == rules


def test_a_step_between_rotations_is_unknown() -> None:
    """SOAP: Adam's step in the basis of a matrix, and back; the twin rotates a field."""
    steps = ("s = multiply y y", "r = rsqrt s", "z = multiply y r", dot("o", "m1", "z"))
    assert rules_of(step_of(dot("y", "m1", "g", ACROSS), *steps, *DOWN, states=1)) == ["unknown"]
    field = (dot("f", "w", "m2"), "a = tanh f", dot("field", "a", "m3"))
    assert rules_of(step_of(*field, dot("y", "m1", "field", ACROSS), *steps, *DOWN, states=3)) == []


@pytest.mark.parametrize(("ahead", "behind", "rules"), [("1.9", "0.9", ["unknown"]), ("2", "1", [])])
def test_momentum_may_be_the_difference_to_the_previous_weight(ahead: str, behind: str, rules: list[str]) -> None:
    """`w + b * (w - last) - rate * g`; if b is 1 it is a wave."""
    constants = [f"{name} = f32[4,4]{{1,0}} broadcast(%{name}s), dimensions={{}}" for name in ("ahead", "behind")]
    scalars = [f"aheads = f32[] constant({ahead})", f"behinds = f32[] constant(-{behind})"]
    step = ("b = multiply w ahead", "d = multiply m3 behind", "e = add b d", "u = multiply g rate", "new = add e u")
    assert rules_of(step_of(*scalars, *constants, *step, outputs="new m1 m2 w", states=3)) == rules


@pytest.mark.parametrize("gradient", ["multiply(r, nobody)", "add(w, nobody)", "multiply(nobody, nobody)"])
def test_a_value_that_is_not_defined_is_no_sum_over_pairs(gradient: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undefined value has no row, and so no operands that could have the size of pairs."""
    lines = ["w = f32[8,4] parameter(0)", "l = f32[] parameter(1)", "r = f32[8,4] broadcast(l), dimensions={}"]
    lines += [f"g = f32[8,4] {gradient}", "n = f32[8,4] subtract(w, g)", "ROOT t = (f32[8,4]) tuple(n)"]
    asked: list[int] = []
    operands = Frames.operands

    def noted(frames: Frames, place: Place) -> tuple[Place, ...]:
        asked.append(place[1])
        return operands(frames, place)

    monkeypatch.setattr(Frames, "operands", noted)
    header = "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }"
    report = hlo_inspect.inspect(f"{header}\n\nENTRY e {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n", "optimizer")
    assert report.facts["optimizer.name"] in {None, "unknown"}
    assert "HI008" in {finding.rule for finding in report.findings}
    assert min(asked, default=0) >= 0


@pytest.mark.parametrize("stage", STAGES)
def test_a_matrix_shows_that_biases_before_it_are_learnt_too(stage: str) -> None:
    """With decay on matrices alone: the rule of the bias is another one, and its gradient is a sum."""
    weights = overview_of(text_of(f"adamw.{stage}")).updates.weights
    learnt = [(weight.array.shape.dimensions, weight.rule, weight.is_learnt) for weight in weights]
    assert learnt == [((4,), "adam", True), ((8, 4), "adamw", True)]


def test_a_subtracted_projection_is_no_step() -> None:
    """A softmax takes the maximum off each row. Beside a weight that is learnt with a rate of 1 it may be a bias."""
    assert rules_of(step_of(*BIAS, "new = subtract w o", states=2)) == []
    bias = (*(line.replace("%w", "%m1") for line in BIAS), "b = subtract m1 o")
    assert rules_of(step_of(*bias, "new = subtract w g", outputs="new b", states=2)) == ["sgd", "sgd"]
