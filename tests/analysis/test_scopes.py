"""op_names as JAX of several years and XLA's passes write them."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.scopes import scope_of

DOT = "dot_general[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]"


@pytest.mark.parametrize(
    ("op_name", "phase"),
    [
        ("", "unknown"),
        ("jit(step)/reduce_sum", "unknown"),
        ("jit(step)/jvp(layer_0)/attention/dot_general", "forward"),
        ("jit(step)/jit(main)/jvp(while)/body/mlp/dot_general", "forward"),
        ("jit(step)/transpose(jvp(layer_0))/mlp/dot_general", "backward"),
        ("jit(step)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/mlp/dot_general", "backward"),
        ("jit(step)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/rematted_computation/mlp/dot_general", "recompute"),
        ("jit(step)/jvp(vmap(layer))/dot_general", "forward"),
        # a primitive, a name and a parameter are no transformations
        ("jit(step)/jvp(layer)/transpose", "forward"),
        ("jit(step)/transpose[permutation=(1, 0)]", "unknown"),
        ("jit(step)/my_transpose(x)/jvpx(y)/add", "unknown"),
        ("jit(step)/core_call[name=transpose(jvp(f))]/add", "unknown"),
        ("jit(step)/rematted_computation_of(x)/add", "unknown"),
    ],
)
def test_phases_of_scopes(op_name: str, phase: str) -> None:
    scope = scope_of(op_name)
    assert (scope.phase, scope.parts) == (phase, ())


@pytest.mark.parametrize(
    ("op_name", "parts"),
    [
        ("jit(step)/(jvp()/gather:transpose(jvp(layer_0))/mlp/dot_general:reduce_sum)", ("forward", "backward", "unknown")),
        ("jit(step)/transpose(jvp())/while/body/(mlp/dot_general:attention/reduce_sum)", ("backward", "backward")),
        ("jit(step)/transpose(jvp())/checkpoint/(add:rematted_computation/mul)", ("backward", "recompute")),
        ("jit(step)/mul;jit(step)/jvp(layer_0)/add", ("unknown", "forward")),
        ("jit(step)/jvp(layer_0)/add;reshape", ("forward",)),
        ("jit(step)/(jvp()/a:transpose(jvp())/b);jit(step)/c", ("forward", "backward", "unknown")),
        ("a;b", ()),
    ],
)
def test_parts_of_combined_names(op_name: str, parts: tuple[str, ...]) -> None:
    assert scope_of(op_name).parts == parts


def test_a_path_is_cut_outside_of_brackets() -> None:
    scope = scope_of(f"jit(f)/jvp(a/b)/{DOT}")
    assert scope.path == ("jit(f)", "jvp(a/b)", DOT)
    assert scope.primitive == "dot_general"
    assert scope.parameters == "[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]"


@pytest.mark.parametrize(
    ("op_name", "is_bare", "has_name", "names"),
    [
        ("jit(step)/reduce_sum", True, False, ()),
        ("jit(step)/jvp()/reduce_sum", True, False, ()),
        ("parallelize(train_step)/jit(main)/reduce_max[axes=(2,)]", True, False, ()),
        ("jit(<lambda>)/jit(main)/jvp()/reduce_sum", True, False, ()),
        ("reduce_sum", False, False, ()),
        ("jvp(f)/reduce_sum", False, False, ()),
        ("jit(step)/jit(main)/jvp(jit(log_softmax))/reduce_max", False, False, ("log_softmax",)),
        ("jit(step)/jvp(layer_0)/attention/dot_general", False, True, ("layer_0", "attention")),
        ("jit(step)/jvp()/while/body/closed_call/mlp/dot_general", False, True, ("while", "body", "closed_call", "mlp")),
        ("jit(step)/jvp()/shard_map/while/body/psum", False, False, ("shard_map", "while", "body")),
        ("jit(step)/transpose(jvp(Model))/dot_general", False, True, ("Model",)),
        ("jit(step)/jvp(checkpoint)/add", False, False, ("checkpoint",)),
    ],
)
def test_what_encloses_an_operation(op_name: str, is_bare: bool, has_name: bool, names: tuple[str, ...]) -> None:
    scope = scope_of(op_name)
    assert (scope.is_bare, scope.has_name, scope.names) == (is_bare, has_name, names)


@pytest.mark.parametrize("op_name", ["(" * 5000 + ")" * 9000, "/" * 5000, ";" * 5000, "a/(" + ":" * 5000 + ")", "jvp(" * 2000])
def test_senseless_names_are_passed_over(op_name: str) -> None:
    assert scope_of(op_name).phase == "unknown" or op_name.startswith("jvp(")
