"""The rules see one of several equal updates of a step, and each weight has its own row.

The network is that of cases/optimizer/equal_updates.hlo, which has its rows. They are compared with those of a matching in
which the rules see every update.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from hlo_inspect.graph.parameters import find_interface
from hlo_inspect.hlo.values.attributes import SliceDimension
from hlo_inspect.optimizer.algebra.normal_form import key_of
from hlo_inspect.optimizer.dataflow import Dataflow
from hlo_inspect.optimizer.matching.instances import match_units
from hlo_inspect.optimizer.matching.training_steps import WeightUpdates, find_updates
from hlo_inspect.optimizer.matching.units import Units
from hlo_inspect.optimizer.matching.weight_matching import Matcher
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.step.state_arrays import TrainingStep, find_state_arrays
from hlo_inspect.optimizer.step.successions import Result
from tests.cases.case import cases_of
from tests.linear_time import assert_linear
from tests.optimizer.programs import DATA, changed, entry_of, flow_of, module_of, overview_of, report_of, text_of
from tests.tables import columns

LAYERS = range(4)
(CASE,) = cases_of(Path(__file__).parents[1] / "cases" / "optimizer" / "equal_updates.hlo")
NETWORK = CASE.text
"""Layer k has its weight in parameter 3k, its moments in 3k + 1 and 3k + 2."""
OTHERS = (
    (r"multiply\(m2, beta1\)", "multiply(m2, quarter)"),
    (r"multiply\(step2, rate\)", "multiply(step2, quarter)"),
    (r"add\(root2, epsilon\)", "add(root2, quarter)"),
    (r"select\(mask2, g2, short2\)", "copy(g2)"),
    (r"(below2 = .*)direction=LT", r"\1direction=GT"),
)
"""Other updates of layer 2."""


def rows_of(text: str) -> Sequence[object]:
    names = ("weight", "rule", "learning_rate", "beta1", "beta2", "epsilon", "clip", "first_moment", "second_moment")
    return columns(report_of(text).table("optimizer"), *names)


def asked(text: str) -> int:
    """Return the number of updates that the rules saw."""
    return overview_of(text).updates.asked_count


def test_equal_updates_are_asked_once() -> None:
    """Also if the moments of a layer are swapped: the update is equal, its arrays are not."""
    swapped = (
        NETWORK.replace("parameter(7)", "second").replace("parameter(8)", "parameter(7)").replace("second", "parameter(8)")
    )
    for text in (NETWORK, swapped.replace("new_m2, new_v2", "new_v2, new_m2")):
        assert asked(text) == 1


@pytest.mark.parametrize(("pattern", "by"), OTHERS)
def test_another_update_is_asked_too(pattern: str, by: str) -> None:
    assert asked(changed(NETWORK, pattern, by, count=1)) == 2


def test_each_weight_has_its_own_gradient() -> None:
    overview = overview_of(NETWORK)
    places = [row.matched.gradient_places() for row in overview.rows]
    names = [[overview.frames.name(place) for place, _ in weight_places] for weight_places in places]
    assert names == [[f"g{layer}"] for layer in LAYERS]


def test_each_weight_has_its_own_part_of_gradients_that_are_summed_together() -> None:
    """The gradients are flattened and joined for one all-reduce: layer k has the elements from 16k on."""
    lines = [f"flat{k} = f32[16] reshape(g{k})" for k in LAYERS]
    lines.append("joined = f32[64] concatenate(flat0, flat1, flat2, flat3), dimensions={0}")
    lines.append("all = f32[64] all-reduce(joined), replica_groups={{0,1}}, to_apply=add")
    lines += [f"part{k} = f32[16] slice(all), slice={{[{16 * k}:{16 * k + 16}]}}" for k in LAYERS]
    lines += [f"mean{k} = f32[4,4] reshape(part{k})" for k in LAYERS]
    text = changed(NETWORK, r"  below0 =", "".join(f"  {line}\n" for line in lines) + "  below0 =")
    for k in LAYERS:
        text = changed(text, rf"divide\(g{k}, norms\)", f"divide(mean{k}, norms)")
        text = changed(text, rf"select\(mask{k}, g{k}, ", f"select(mask{k}, mean{k}, ")
    overview = overview_of(text)
    assert rows_of(text) == rows_of(NETWORK)
    assert overview.updates.asked_count == 1
    places = [row.matched.gradient_places() for row in overview.rows]
    parts = [[(overview.frames.name(place), part) for place, part in weight_places] for weight_places in places]
    assert parts == [[("all", SliceDimension(16 * k, 16 * k + 16, 1))] for k in LAYERS]


def test_another_shape_is_another_update() -> None:
    """Layer 2 keeps its weight as a vector."""
    text = changed(
        NETWORK,
        r"w2 = f32\[4,4\] parameter\(6\)",
        "flat2 = f32[16] parameter(6)\n  w2 = f32[4,4] reshape(flat2)",
    )
    text = changed(text, r"new_w2 = (.*)", r"matrix2 = \1" + "\n  new_w2 = f32[16] reshape(matrix2)")
    text = changed(text, r"ROOT results = \((.*)\) tuple", lambda match: f"ROOT results = ({shapes(match[1])}) tuple")
    overview = overview_of(text)
    assert rows_of(text) == rows_of(NETWORK)
    assert [str(row.weight.shape) for row in overview.rows] == ["f32[4,4]", "f32[4,4]", "f32[16]", "f32[4,4]"]
    assert overview.updates.asked_count == 2


def shapes(text: str) -> str:
    """Return the shapes of the results, the seventh of a vector."""
    parts = text.split(", ")
    return ", ".join([*parts[:6], "f32[16]", *parts[7:]])


def test_a_gradient_that_reads_a_state_of_another_weight() -> None:
    """The step of layer 1 goes through the first moment of layer 3, so that this is no state of an optimizer alone."""
    text = changed(NETWORK, r"h2 = f32\[9,4\] dot\(h1, w1\)", "h2 = f32[9,4] dot(h1, mixed)")
    text = changed(text, r"(  h2 = .*\n)", "  mixed = f32[4,4] add(w1, m3)\n" + r"\1")
    text = changed(text, r"(  m3 = .*\n)", "")
    text = changed(text, r"(  w1 = .*\n)", r"\1" + "  m3 = f32[4,4] parameter(10)\n")
    assert_equal_to_asking_all(text)


# -- bounds of work -------------------------------------------------------------------------------------------------------

ARRAY = "f32[64]{0}"


def updates_of_one_value(count: int) -> str:
    """Return a step that adds one value, a long chain of functions of a batch, to each array."""
    lines = [f"%x = {ARRAY} parameter({count})", f"%y0 = {ARRAY} sine(%x)"]
    lines += [f"%y{n} = {ARRAY} sine(%y{n - 1})" for n in range(1, count)]
    lines += [f"%w{n} = {ARRAY} parameter({n})" for n in range(count)]
    lines += [f"%new{n} = {ARRAY} add(%w{n}, %y{count - 1})" for n in range(count)]
    results = ", ".join(f"%new{n}" for n in range(count))
    return entry_of(*lines, f"ROOT %results = ({', '.join([ARRAY] * count)}) tuple({results})")


def arrays_in_one_scalar(count: int) -> str:
    """Return a step whose rate is a sum of elements of all arrays."""
    lines = [f"%w{n} = {ARRAY} parameter({n})" for n in range(count)]
    lines += [f"%first{n} = f32[1]{{0}} slice(%w{n}), slice={{[0:1]}}" for n in range(count)]
    lines += [f"%sum{n} = f32[1]{{0}} add(%{f'sum{n - 1}' if n else 'first0'}, %first{n})" for n in range(count)]
    lines += [f"%rate = {ARRAY} broadcast(%sum{count - 1}), dimensions={{0}}"]
    lines += [f"%new{n} = {ARRAY} multiply(%w{n}, %rate)" for n in range(count)]
    results = ", ".join(f"%new{n}" for n in range(count))
    return entry_of(*lines, f"ROOT %results = ({', '.join([ARRAY] * count)}) tuple({results})")


@pytest.mark.parametrize("step", [updates_of_one_value, arrays_in_one_scalar])
def test_units_that_share_values_are_read_in_linear_time(step: Callable[[int], str]) -> None:
    steps = {count: arrays_of(step(count)) for count in (500, 2_000)}
    assert_linear(lambda count: Units(*steps[count]).split([]), 500)


def arrays_of(text: str) -> tuple[Dataflow, TrainingStep]:
    flow, frame = flow_of(text)
    interface = find_interface(module_of(text))
    inputs = {(frame, leaf.number, leaf.index): leaf.shape for leaf in interface.parameters}
    results = [Result(output.index, output.shape, None) for output in interface.outputs]
    return flow, find_state_arrays(flow, frame, inputs, results)


# -- against a matching in which the rules see each update ----------------------------------------------------------------


def updates_of(text: str) -> WeightUpdates:
    module = module_of(text)
    return find_updates(module, find_interface(module))


def described(weights: Iterable[Weight]) -> list[tuple[object, ...]]:
    """Describe weights by all that their rows show."""
    descriptions = []
    for weight in weights:
        claim, forms = weight.claim, weight.update.forms
        arrays = [array.source for array in (*weight.counters, *weight.arrays, weight.copy or weight.array)]
        claimed: tuple[object, ...] = ()
        if claim is not None:
            roles = {role: array.source for role, array in claim.roles.items()}
            leaves = {weight.own_node(forms.atoms[leaf].node or 0) for leaf in forms.leaves(claim.gradient)}
            claimed = (claim.hyperparameters, roles, key_of(claim.rate), leaves)
        kinds = weight.is_learnt, weight.is_frozen, weight.is_linear
        descriptions.append((weight.rule, arrays, *kinds, weight.gradient_places(), *claimed))
    return descriptions


def assert_equal_to_asking_all(text: str) -> None:
    """Compare the weights of each step, in one graph, so that nodes are comparable."""
    updates = updates_of(text)
    for step in updates.steps:
        if step.arrays:
            _, weights = match_units(updates.flow, step)
            assert described(weights) == described(Matcher(updates.flow, step).weights())


@pytest.mark.parametrize("path", sorted(DATA.glob("*.hlo"))[::4], ids=lambda path: path.stem)
def test_programs_have_the_weights_that_rules_see_one_by_one(path: Path) -> None:
    assert_equal_to_asking_all(text_of(path.stem))


PARTS = (
    (r"multiply\(m{k}, beta1\)", "multiply(m{k}, beta2)"),
    (r"multiply\(v{k}, beta2\)", "multiply(v{k}, beta1)"),
    (r"multiply\(step{k}, rate\)", "multiply(step{k}, tens)"),
    (r"add\(root{k}, epsilon\)", "add(root{k}, quarter)"),
    (r"select\(mask{k}, g{k}, short{k}\)", "select(mask{k}, short{k}, g{k})"),
    (r"select\(mask{k}, g{k}, short{k}\)", "copy(g{k})"),
    (r"(below{k} = .*)direction=LT", r"\1direction=GE"),
    (r"multiply\(clipped{k}, clipped{k}\)", "multiply(g{k}, g{k})"),
    (r"divide\(new_m{k}, below_root{k}\)", "copy(new_m{k})"),
    (r"subtract\(w{k}, scaled{k}\)", "add(w{k}, scaled{k})"),
    (r"subtract\(w{k}, scaled{k}\)", "subtract(w0, scaled{k})"),
    (r"subtract\(w{k}, scaled{k}\)", "multiply(w{k}, beta1)"),
    (r"subtract\(w{k}, scaled{k}\)", "copy(w{k})"),
    (r"multiply\(clipped{k}, rest1\)", "multiply(w{k}, rest1)"),
    (r"multiply\(clipped{k}, rest1\)", "multiply(noise, rest1)"),
    (r"multiply\(clipped{k}, rest1\)", "multiply(clipped0, rest1)"),
    (r"add\(old1{k}, add1{k}\)", "add(old2{k}, add1{k})"),
)
"""Changes of a layer's update."""


@pytest.mark.parametrize("seed", range(40))
def test_changed_layers_have_the_weights_that_rules_see_one_by_one(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311 - no secret
    text = NETWORK
    for _ in range(chosen.randint(1, 4)):
        pattern, by = chosen.choice(PARTS)
        for layer in chosen.sample(LAYERS, chosen.randint(1, 3)):
            text = _replaced(text, pattern.replace("{k}", str(layer)), by.replace("{k}", str(layer)))
    assert_equal_to_asking_all(text)


def _replaced(text: str, pattern: str, by: str) -> str:
    """Replace a pattern that an earlier change may have removed."""
    try:
        return changed(text, pattern, by)
    except AssertionError:
        return text
