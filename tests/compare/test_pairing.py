"""Pairs of modules of two inputs."""

from __future__ import annotations

from hlo_inspect.compare.pairing import pair_by, pair_names
from hlo_inspect.compare.table_changes import pair_parameters
from tests.compare.sides import module
from tests.linear_time import assert_linear


def test_one_module_on_each_side_is_a_pair_whatever_its_name() -> None:
    assert pair_names(["jit_step"], ["jit_train"]) == ([(0, 0)], [], [])


def test_names_that_occur_once_on_both_sides_make_pairs() -> None:
    old, new = ["a", "b", "b", "c"], ["c", "b", "a", "d"]
    assert pair_names(old, new) == ([(0, 2), (3, 0)], [1, 2], [1, 3])


def test_content_decides_among_the_others_and_order_among_equal_ones() -> None:
    old, new = ["a1", "a2", "b1", "x9"], ["a2", "a3", "b7", "a3"]
    by_all = lambda name: name  # noqa: E731 - as short as what it says
    by_letter = lambda name: None if name[0] == "x" else name[0]  # noqa: E731
    assert pair_by(old, new, (by_all, by_letter)) == ([(1, 0), (0, 1), (2, 2)], [3], [3])


def test_many_are_paired_in_linear_time() -> None:
    def pair(count: int) -> None:
        names = [f"name {number}" for number in range(count)]
        assert len(pair_by(names, names[::-1], (lambda name: name,)).pairs) == count

    assert_linear(pair, 4_000)


def test_parameters_are_paired_by_their_paths_in_linear_time() -> None:
    def pair(count: int) -> None:
        old, new = ([{"path": f"{side}[{number}]"} for number in range(count)] for side in ("a", "b"))
        paired = pair_parameters([*old, {"path": "both"}], [{"path": "both"}, *new])
        assert paired == ([({"path": "both"}, {"path": "both"})], old, new)

    assert_linear(pair, 4_000)


def test_modules_of_an_unknown_interface_have_no_signature_to_be_paired_by() -> None:
    """A text that ends before its entry tells no parameters. They are unknown, which is not the same as none.

    An entry without parameters has the signature of its result, and of 0 parameters.
    """
    cut = module("HloModule m\n\n%f (a: f32[4]) -> f32[4] {\n  %a = f32[4] parameter(0)\n")
    assert cut.context is not None
    assert not cut.context.interface.parameters_known
    assert cut.signature is None
    assert module("HloModule m\n\nENTRY %e {\n  ROOT %c = f32[] constant(1)\n}\n").signature == ("f32[]", "0")
