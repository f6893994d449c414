"""The rules see one of several equal updates of a step, and each weight has its own row.

The network has four layers of products; its loss is half the sum of squares of the last one's outputs. Each weight has Adam,
with the gradient clipped by the global norm. Changes of one detail of one layer are worked out by hand. All rows are also
compared with those of a matching in which the rules see every update.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
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
from hlo_inspect.optimizer.overview import Overview, Row
from hlo_inspect.optimizer.step.state_arrays import TrainingStep, find_state_arrays
from hlo_inspect.optimizer.step.successions import Result
from tests.linear_time import assert_linear
from tests.optimizer.programs import DATA, changed, entry_of, flow_of, module_of, overview_of, text_of

LAYERS = range(4)
MATRIX = "f32[4,4]{1,0}"

HEAD = (
    "%one = f32[] constant(1)",
    "%zero = f32[] constant(0)",
    "%ten = f32[] constant(0.1)",
    "%beta1_s = f32[] constant(0.9)",
    "%beta1 = f32[4,4]{1,0} broadcast(%beta1_s), dimensions={}",
    "%rest1 = f32[4,4]{1,0} broadcast(%ten), dimensions={}",
    "%beta2_s = f32[] constant(0.5)",
    "%beta2 = f32[4,4]{1,0} broadcast(%beta2_s), dimensions={}",
    "%epsilon_s = f32[] constant(1e-08)",
    "%epsilon = f32[4,4]{1,0} broadcast(%epsilon_s), dimensions={}",
    "%rate_s = f32[] constant(0.01)",
    "%rate = f32[4,4]{1,0} broadcast(%rate_s), dimensions={}",
    "%quarter_s = f32[] constant(0.25)",
    "%quarter = f32[4,4]{1,0} broadcast(%quarter_s), dimensions={}",
    "%others_s = f32[] constant(0.75)",
    "%others = f32[4,4]{1,0} broadcast(%others_s), dimensions={}",
    "%tens = f32[4,4]{1,0} broadcast(%ten), dimensions={}",
    "%noise = f32[4,4]{1,0} dot(%x, %x), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
)
FORWARD = (
    "%w{k} = f32[4,4]{{1,0}} parameter({w})",
    "%m{k} = f32[4,4]{{1,0}} parameter({m})",
    "%v{k} = f32[4,4]{{1,0}} parameter({v})",
    "%h{next} = f32[9,4]{{1,0}} dot(%h{k}, %w{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
)
BACKWARD = (
    "%g{k} = f32[4,4]{{1,0}} dot(%h{k}, %e{next}), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}",
    "%e{k} = f32[9,4]{{1,0}} dot(%e{next}, %w{k}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
    "%square{k} = f32[4,4]{{1,0}} multiply(%g{k}, %g{k})",
    "%sum{k} = f32[] reduce(%square{k}, %zero), dimensions={{0,1}}, to_apply=%add",
)
UPDATE = (
    "%below{k} = pred[] compare(%norm, %one), direction=LT",
    "%mask{k} = pred[4,4]{{1,0}} broadcast(%below{k}), dimensions={{}}",
    "%short{k} = f32[4,4]{{1,0}} divide(%g{k}, %norms)",
    "%clipped{k} = f32[4,4]{{1,0}} select(%mask{k}, %g{k}, %short{k})",
    "%old1{k} = f32[4,4]{{1,0}} multiply(%m{k}, %beta1)",
    "%add1{k} = f32[4,4]{{1,0}} multiply(%clipped{k}, %rest1)",
    "%new_m{k} = f32[4,4]{{1,0}} add(%old1{k}, %add1{k})",
    "%old2{k} = f32[4,4]{{1,0}} multiply(%v{k}, %beta2)",
    "%again{k} = f32[4,4]{{1,0}} multiply(%clipped{k}, %clipped{k})",
    "%add2{k} = f32[4,4]{{1,0}} multiply(%again{k}, %beta2)",
    "%new_v{k} = f32[4,4]{{1,0}} add(%old2{k}, %add2{k})",
    "%root{k} = f32[4,4]{{1,0}} sqrt(%new_v{k})",
    "%below_root{k} = f32[4,4]{{1,0}} add(%root{k}, %epsilon)",
    "%step{k} = f32[4,4]{{1,0}} divide(%new_m{k}, %below_root{k})",
    "%scaled{k} = f32[4,4]{{1,0}} multiply(%step{k}, %rate)",
    "%new_w{k} = f32[4,4]{{1,0}} subtract(%w{k}, %scaled{k})",
)


def network() -> str:
    """Return the step: layer k has its weight in parameter 3k, its moments in 3k + 1 and 3k + 2."""
    last = len(LAYERS)
    lines = [f"%x = f32[9,4]{{1,0}} parameter({3 * last})", *HEAD, "%h0 = f32[9,4]{1,0} copy(%x)"]
    for k in LAYERS:
        lines += [line.format(k=k, next=k + 1, w=3 * k, m=3 * k + 1, v=3 * k + 2) for line in FORWARD]
    lines.append(f"%e{last} = f32[9,4]{{1,0}} copy(%h{last})")
    for k in reversed(LAYERS):
        lines += [line.format(k=k, next=k + 1) for line in BACKWARD]
    lines += ["%total1 = f32[] add(%sum0, %sum1)", "%total2 = f32[] add(%sum2, %sum3)", "%total = f32[] add(%total1, %total2)"]
    lines += ["%norm = f32[] sqrt(%total)", f"%norms = {MATRIX} broadcast(%norm), dimensions={{}}"]
    for k in LAYERS:
        lines += [line.format(k=k) for line in UPDATE]
    results = [f"%new_{array}{k}" for k in LAYERS for array in "wmv"]
    aliases = ", ".join(f"{{{n}}}: ({n}, {{}}, may-alias)" for n in range(len(results)))
    lines.append(f"ROOT %results = ({', '.join([MATRIX] * len(results))}) tuple({', '.join(results)})")
    return entry_of(*lines, header=f", input_output_alias={{ {aliases} }}")


NETWORK = network()


def facts_of(row: Row, overview: Overview) -> dict[str, object]:
    values = {name: value.value for name, value in row.hyperparameters.items() if value.status == "constant"}
    roles = {role: overview.number(array) for role, array in row.roles.items()}
    return {"weight": overview.number(row.weight), "rule": row.rule, "clip": row.clip_text, **values, **roles}


def adam(layer: int, **others: object) -> dict[str, object]:
    values = {"learning_rate": 0.01, "beta1": 0.9, "beta2": 0.5, "epsilon": 1e-8, "clip": "global norm 1"}
    roles = {"first_moment": 3 * layer + 1, "second_moment": 3 * layer + 2}
    return {"weight": 3 * layer, "rule": "adam", **values, **roles, **others}


def rows_of(text: str) -> list[dict[str, object]]:
    overview = overview_of(text)
    return [facts_of(row, overview) for row in overview.rows]


def asked(text: str) -> int:
    """Return the number of updates that the rules saw."""
    return overview_of(text).updates.asked_count


def test_equal_updates_are_asked_once() -> None:
    assert rows_of(NETWORK) == [adam(layer) for layer in LAYERS]
    assert asked(NETWORK) == 1


def test_each_weight_has_its_own_gradient() -> None:
    overview = overview_of(NETWORK)
    places = [row.matched.gradient_places() for row in overview.rows]
    names = [[overview.frames.name(place) for place, _ in weight_places] for weight_places in places]
    assert names == [[f"g{layer}"] for layer in LAYERS]


def test_each_weight_has_its_own_part_of_gradients_that_are_summed_together() -> None:
    """The gradients are flattened and joined for one all-reduce: layer k has the elements from 16k on."""
    lines = [f"%flat{k} = f32[16]{{0}} reshape(%g{k})" for k in LAYERS]
    lines.append("%joined = f32[64]{0} concatenate(%flat0, %flat1, %flat2, %flat3), dimensions={0}")
    lines.append("%all = f32[64]{0} all-reduce(%joined), replica_groups={{0,1}}, to_apply=%add")
    lines += [f"%part{k} = f32[16]{{0}} slice(%all), slice={{[{16 * k}:{16 * k + 16}]}}" for k in LAYERS]
    lines += [f"%mean{k} = {MATRIX} reshape(%part{k})" for k in LAYERS]
    text = changed(NETWORK, r"  %below0 =", "".join(f"  {line}\n" for line in lines) + "  %below0 =")
    for k in LAYERS:
        text = changed(text, rf"divide\(%g{k}, %norms\)", f"divide(%mean{k}, %norms)")
        text = changed(text, rf"select\(%mask{k}, %g{k}, ", f"select(%mask{k}, %mean{k}, ")
    overview = overview_of(text)
    assert [facts_of(row, overview) for row in overview.rows] == [adam(layer) for layer in LAYERS]
    assert overview.updates.asked_count == 1
    places = [row.matched.gradient_places() for row in overview.rows]
    parts = [[(overview.frames.name(place), part) for place, part in weight_places] for weight_places in places]
    assert parts == [[("all", SliceDimension(16 * k, 16 * k + 16, 1))] for k in LAYERS]


CHANGES: dict[str, tuple[tuple[tuple[str, str], ...], dict[str, object]]] = {
    "a decay": (
        (
            (r"multiply\(%m2, %beta1\)", "multiply(%m2, %quarter)"),
            (r"multiply\(%clipped2, %rest1\)", "multiply(%clipped2, %others)"),
        ),
        {"beta1": 0.25},
    ),
    "a rate": (((r"multiply\(%step2, %rate\)", "multiply(%step2, %quarter)"),), {"learning_rate": 0.25}),
    "an epsilon": (((r"add\(%root2, %epsilon\)", "add(%root2, %quarter)"),), {"epsilon": 0.25}),
    "no clip": (((r"select\(%mask2, %g2, %short2\)", "copy(%g2)"),), {"clip": None}),
}
"""Changes of layer 2, and the facts of its row that differ."""


@pytest.mark.parametrize("change", CHANGES)
def test_one_layer_with_another_update(change: str) -> None:
    replacements, others = CHANGES[change]
    text = NETWORK
    for pattern, by in replacements:
        text = changed(text, pattern, by, count=1)
    assert rows_of(text) == [adam(layer, **(others if layer == 2 else {})) for layer in LAYERS]
    assert asked(text) == 2


def test_another_direction_of_a_comparison_is_no_clip() -> None:
    """`norm > 1 ? g : g / norm` bounds nothing."""
    text = changed(NETWORK, r"(%below2 = .*)direction=LT", r"\1direction=GT")
    rows = rows_of(text)
    assert [rows[layer] for layer in (0, 1, 3)] == [adam(layer) for layer in (0, 1, 3)]
    assert rows[2]["clip"] != "global norm 1"
    assert asked(text) == 2


def test_swapped_moments_keep_their_roles() -> None:
    """Layer 2 has its second moment in parameter 7 and its first in 8: the update is equal, its arrays are not."""
    text = changed(NETWORK, r"%m2 = f32\[4,4\]\{1,0\} parameter\(7\)", "%m2 = f32[4,4]{1,0} parameter(8)")
    text = changed(text, r"%v2 = f32\[4,4\]\{1,0\} parameter\(8\)", "%v2 = f32[4,4]{1,0} parameter(7)")
    text = changed(text, "%new_m2, %new_v2", "%new_v2, %new_m2")
    assert rows_of(text) == [adam(layer, **({"first_moment": 8, "second_moment": 7} if layer == 2 else {})) for layer in LAYERS]
    assert asked(text) == 1


def test_a_second_moment_of_two_gradients_is_not_adams() -> None:
    """Layer 2 averages `g2 * g1`: its cone has two leaves, that of any other layer has one leaf twice."""
    text = changed(NETWORK, r"multiply\(%clipped2, %clipped2\)", "multiply(%clipped2, %clipped1)")
    rows = rows_of(text)
    assert [row for row in rows if row["weight"] != 6] == [adam(layer) for layer in (0, 1, 3)]
    assert "adam" not in [row["rule"] for row in rows if row["weight"] == 6]


def test_another_shape_is_another_update() -> None:
    """Layer 2 keeps its weight as a vector."""
    text = changed(
        NETWORK,
        r"%w2 = f32\[4,4\]\{1,0\} parameter\(6\)",
        "%flat2 = f32[16]{0} parameter(6)\n  %w2 = f32[4,4]{1,0} reshape(%flat2)",
    )
    text = changed(text, r"%new_w2 = (.*)", r"%matrix2 = \1" + "\n  %new_w2 = f32[16]{0} reshape(%matrix2)")
    text = changed(text, r"ROOT %results = \((.*)\) tuple", lambda match: f"ROOT %results = ({shapes(match[1])}) tuple")
    overview = overview_of(text)
    assert [facts_of(row, overview) for row in overview.rows] == [adam(layer) for layer in LAYERS]
    assert [str(row.weight.shape) for row in overview.rows] == ["f32[4,4]", "f32[4,4]", "f32[16]", "f32[4,4]"]
    assert overview.updates.asked_count == 2


def shapes(text: str) -> str:
    """Return the shapes of the results, the seventh of a vector."""
    parts = text.split(", ")
    return ", ".join([*parts[:6], "f32[16]{0}", *parts[7:]])


def test_an_array_without_its_buffer_is_paired_by_its_flow() -> None:
    text = changed(NETWORK, r"\{6\}: \(6, \{\}, may-alias\), ", "")
    assert rows_of(text) == [adam(layer) for layer in LAYERS]


def test_an_array_that_no_gradient_moves_is_a_state() -> None:
    """Noise moves the array of layer 2, so it is no weight. The other gradients read it, and no rule allows that of a state."""
    text = changed(NETWORK, r"%noise = .*", f'%noise = {MATRIX} custom-call(%x), custom_call_target="noise"')
    text = changed(text, r"select\(%mask2, %g2, %short2\)", "copy(%noise)")
    assert [(row["weight"], row["rule"]) for row in rows_of(text)] == [(0, "unknown"), (3, "unknown"), (9, "unknown")]


def test_a_gradient_that_reads_a_state_of_another_weight() -> None:
    """The step of layer 1 goes through the first moment of layer 3, so that this is no state of an optimizer alone."""
    text = changed(NETWORK, r"%h2 = f32\[9,4\]\{1,0\} dot\(%h1, %w1\)", "%h2 = f32[9,4]{1,0} dot(%h1, %mixed)")
    text = changed(text, r"(  %h2 = .*\n)", "  %mixed = f32[4,4]{1,0} add(%w1, %m3)\n" + r"\1")
    text = changed(text, r"(  %m3 = .*\n)", "")
    text = changed(text, r"(  %w1 = .*\n)", r"\1" + "  %m3 = f32[4,4]{1,0} parameter(10)\n")
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
    (r"multiply\(%m{k}, %beta1\)", "multiply(%m{k}, %beta2)"),
    (r"multiply\(%v{k}, %beta2\)", "multiply(%v{k}, %beta1)"),
    (r"multiply\(%step{k}, %rate\)", "multiply(%step{k}, %tens)"),
    (r"add\(%root{k}, %epsilon\)", "add(%root{k}, %quarter)"),
    (r"select\(%mask{k}, %g{k}, %short{k}\)", "select(%mask{k}, %short{k}, %g{k})"),
    (r"select\(%mask{k}, %g{k}, %short{k}\)", "copy(%g{k})"),
    (r"(%below{k} = .*)direction=LT", r"\1direction=GE"),
    (r"multiply\(%clipped{k}, %clipped{k}\)", "multiply(%g{k}, %g{k})"),
    (r"divide\(%new_m{k}, %below_root{k}\)", "copy(%new_m{k})"),
    (r"subtract\(%w{k}, %scaled{k}\)", "add(%w{k}, %scaled{k})"),
    (r"subtract\(%w{k}, %scaled{k}\)", "subtract(%w0, %scaled{k})"),
    (r"subtract\(%w{k}, %scaled{k}\)", "multiply(%w{k}, %beta1)"),
    (r"subtract\(%w{k}, %scaled{k}\)", "copy(%w{k})"),
    (r"multiply\(%clipped{k}, %rest1\)", "multiply(%w{k}, %rest1)"),
    (r"multiply\(%clipped{k}, %rest1\)", "multiply(%noise, %rest1)"),
    (r"multiply\(%clipped{k}, %rest1\)", "multiply(%clipped0, %rest1)"),
    (r"add\(%old1{k}, %add1{k}\)", "add(%old2{k}, %add1{k})"),
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
