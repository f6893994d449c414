"""Arrays that a step only reads, and to which it learns an addition of low rank: they are frozen weights."""

from __future__ import annotations

import pytest

import hlo_inspect
from tests.optimizer.programs import text_of
from tests.tables import columns

PARAMETERS = (
    ("a", "f32[16,2]", "lora['a']"),
    ("b", "f32[2,16]", "lora['b']"),
    ("bias", "f32[16]", "base['layers'][0]['bias']"),
    ("w", "f32[16,16]", "base['layers'][0]['w']"),
    ("x", "f32[9,16]", "batch['x']"),
    ("y", "f32[9,16]", "batch['y']"),
)
OUTER, INNER = "lhs_contracting_dims={0}, rhs_contracting_dims={0}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SECOND = "lhs_contracting_dims={1}, rhs_contracting_dims={1}"
ADDED = (
    f"%xw = f32[9,16] dot(%x, %w), {INNER}",
    f"%xa = f32[9,2] dot(%x, %a), {INNER}",
    f"%xab = f32[9,16] dot(%xa, %b), {INNER}",
    "%scaled = f32[9,16] multiply(%xab, %scale)",
    "%h = f32[9,16] add(%xw, %scaled)",
    "%e = f32[9,16] subtract(%h, %y)",
    f"%gb = f32[2,16] dot(%xa, %e), {OUTER}",
    f"%eb = f32[9,2] dot(%e, %b), {SECOND}",
    f"%ga = f32[16,2] dot(%x, %eb), {OUTER}",
)
"""The layer `x @ w + 2 * (x @ a) @ b` and the gradients of a and b."""
MERGED = (
    f"%ab = f32[16,16] dot(%a, %b), {INNER}",
    "%sum = f32[16,16] add(%w, %ab)",
    f"%h = f32[9,16] dot(%x, %sum), {INNER}",
    "%e = f32[9,16] subtract(%h, %y)",
    f"%gw = f32[16,16] dot(%x, %e), {OUTER}",
    f"%gb = f32[2,16] dot(%a, %gw), {OUTER}",
    f"%ga = f32[16,2] dot(%gw, %b), {SECOND}",
)
"""The layer `x @ (w + a @ b)`."""
FACTORIZATION = (
    f"%ab = f32[16,16] dot(%a, %b), {INNER}",
    "%e = f32[16,16] subtract(%w, %ab)",
    f"%gb = f32[2,16] dot(%a, %e), {OUTER}",
    f"%ga = f32[16,2] dot(%e, %b), {SECOND}",
)
"""The array w is given as `a @ b`."""
NODES = tuple(line.replace("dot(%x, %w), lhs_contracting_dims={1}", "dot(%x, %w), lhs_contracting_dims={0}") for line in ADDED)
"""A layer of a graph network with the matrix w of 16 nodes: `w.T @ x + 2 * (x @ a) @ b` if x has 16 rows."""


def roles_of(lines: tuple[str, ...], *edits: tuple[str, str]) -> dict[str, object]:
    """Return the roles of `PARAMETERS` in a step of SGD on a and b that computes `lines`, with these edits of the text."""
    text = "HloModule jit_step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }\n\nENTRY %main {\n"
    for number, (name, shape, path) in enumerate(PARAMETERS):
        text += f'  %{name} = {shape} parameter({number}), metadata={{op_name="{path}"}}\n'
    for name, value, shape in (("scale", 2.0, "f32[9,16]"), ("ra", 0.1, "f32[16,2]"), ("rb", 0.1, "f32[2,16]")):
        text += f"  %{name}_s = f32[] constant({value})\n  %{name} = {shape} broadcast(%{name}_s), dimensions={{}}\n"
    text += "".join(f"  {line}\n" for line in lines)
    for name, shape in (("a", "f32[16,2]"), ("b", "f32[2,16]")):
        text += f"  %u{name} = {shape} multiply(%g{name}, %r{name})\n  %n{name} = {shape} subtract(%{name}, %u{name})\n"
    text += "  ROOT %new = (f32[16,2], f32[2,16]) tuple(%na, %nb)\n}\n"
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    report = hlo_inspect.inspect(text, ("optimizer", "params"))
    assert report.facts["optimizer.update_count"] == 2
    return dict(
        zip([name for name, *_ in PARAMETERS], (role for (role,) in columns(report.table("params"), "role")), strict=True)
    )


def frozen(lines: tuple[str, ...], *edits: tuple[str, str]) -> list[str]:
    return [name for name, role in roles_of(lines, *edits).items() if role == "frozen"]


@pytest.mark.parametrize("lines", [ADDED, MERGED])
def test_an_array_with_a_learnt_addition_is_frozen_and_so_is_its_tree(lines: tuple[str, ...]) -> None:
    roles = {"a": "weight", "b": "weight", "bias": "frozen", "w": "frozen", "x": None, "y": None}
    assert roles_of(lines) == roles


@pytest.mark.parametrize("lines", [ADDED, MERGED])
def test_without_paths_only_the_array_itself_is_frozen(lines: tuple[str, ...]) -> None:
    assert frozen(lines, *((f', metadata={{op_name="{path}"}}', "") for *_, path in PARAMETERS)) == ["w"]


def test_a_tree_with_a_batch_is_not_frozen_as_a_whole() -> None:
    """The step multiplies x with w: one of the two is a batch, so only the tree of the layers is clean."""
    assert frozen(ADDED, ("batch['x']", "base['x']"), ("batch['y']", "base['y']")) == ["bias", "w"]
    assert frozen(ADDED, ("batch['x']", "base['layers'][0]['x']")) == ["w"]


def test_a_tree_with_weights_is_not_frozen_as_a_whole() -> None:
    assert frozen(ADDED, ("lora['a']", "base['layers'][0]['a']")) == ["w"]


def test_the_addition_may_take_a_part_of_the_layer_s_input() -> None:
    """As after a dropout: `(mask * x) @ a` beside `x @ w`."""
    mask = "%mask = f32[9,16] exponential(%y)\n  %mx = f32[9,16] multiply(%x, %mask)\n"
    edits = (
        ("%xa = f32[9,2] dot(%x,", f"{mask}  %xa = f32[9,2] dot(%mx,"),
        ("%ga = f32[16,2] dot(%x,", "%ga = f32[16,2] dot(%mx,"),
    )
    assert frozen(ADDED, *edits) == ["bias", "w"]


@pytest.mark.parametrize(
    ("lines", "edits"),
    [
        (FACTORIZATION, ()),
        (NODES, (("f32[9,", "f32[16,"),)),
        (ADDED, (("dot(%x, %w)", "dot(%y, %w)"),)),
        (ADDED, (("f32[16,2]", "f32[16,8]"), ("f32[2,16]", "f32[8,16]"), ("f32[9,2]", "f32[9,8]"))),
        (ADDED, (("%xab = f32[9,16] dot(%xa", "%t = f32[9,2] tanh(%xa)\n  %xab = f32[9,16] dot(%t"),)),
    ],
)
def test_other_arrays_stay_inputs(lines: tuple[str, ...], edits: tuple[tuple[str, str], ...]) -> None:
    """A factorized array, a graph, products of two batches, an addition as large as the matrix, an addition that bends."""
    assert frozen(lines, *edits) == []


@pytest.mark.parametrize("stage", ["before", "after"])
def test_layers_of_a_loop_are_frozen(stage: str) -> None:
    """The matrices of three layers are one array; `adamw_lora` has no other array of three dimensions beside its state."""
    table = hlo_inspect.inspect(text_of(f"adamw_lora.{stage}"), "params").table("params")
    roles = {str(shape).partition("{")[0]: role for shape, role in columns(table, "shape", "role") if role in {None, "frozen"}}
    assert roles == {"f32[3,8,8]": "frozen", "f32[16,8]": None, "f32[16,4]": None}
