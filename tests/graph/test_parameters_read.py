"""Unread parameters, and the interface of an entry that the text does not hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
P = "%p = f32[4]{0} parameter(0)"
Q = "%q = f32[4]{0} parameter(1)"
LAYOUT = "entry_computation_layout={(f32[4]{0}, (s32[], bf16[2]{0}), f32[8]{0})->(f32[4]{0}, f32[8]{0})}"


def unused(context: Context) -> list[tuple[int, tuple[int, ...]]]:
    return [(leaf.number, leaf.index) for leaf in context.interface.parameters if leaf.unused]


def test_a_parameter_without_users_is_unused(entry: Entry) -> None:
    assert unused(entry(P, Q, "ROOT %n = f32[4]{0} negate(%p)")) == [(1, ())]


@pytest.mark.parametrize(
    "lines",
    [
        (P, Q, "ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%p, %q)"),
        (P, Q, "%n = f32[4]{0} add(p, q)", "ROOT %m = f32[4]{0} negate(%n)"),
        (P, Q, "ROOT %n = f32[4]{0} add(f32[4]{0} %p, /*index=1*/f32[4]{0} %q)"),
        ("ROOT %p = f32[4]{0} parameter(0)",),
        ("%p = f32[4]{0} parameter(0)",),
    ],
    ids=["tuple", "no percent signs", "shapes and comments", "is the root", "is the only line"],
)
def test_a_parameter_with_a_user_is_used(entry: Entry, lines: tuple[str, ...]) -> None:
    assert unused(entry(*lines)) == []


def test_a_parameter_that_is_the_root_is_used(entry: Entry) -> None:
    assert unused(entry("ROOT %p = f32[4]{0} parameter(0)", Q)) == [(1, ())]


def test_control_dependencies_and_other_computations_are_not_users(entry: Entry) -> None:
    other = "%other (q: f32[4]) -> f32[4] {\n  %q = f32[4]{0} parameter(0)\n  ROOT %n = f32[4]{0} negate(%q)\n}\n"
    line = "ROOT %c = f32[4]{0} call(%p), to_apply=%other, control-predecessors={%q}"
    assert unused(entry(P, Q, line, before=other)) == [(1, ())]


def test_a_use_of_a_longer_name_does_not_count(entry: Entry) -> None:
    lines = (P, "%p.1 = f32[4]{0} parameter(1)", "ROOT %n = f32[4]{0} negate(%p.1)")
    assert unused(entry(*lines)) == [(0, ())]


def test_tuple_elements_that_no_instruction_reads_are_unused(entry: Entry) -> None:
    """JAX passes very many arguments as one tuple, so each element counts separately."""
    t = "%t = (f32[4]{0}, s32[], bf16[2]{0}) parameter(0)"
    only = "ROOT %g = f32[4]{0} get-tuple-element(%t), index=0"
    assert unused(entry(t, only)) == [(0, (1,)), (0, (2,))]
    assert unused(entry(t, "ROOT %g = (f32[4]{0}, s32[], bf16[2]{0}) copy(%t)")) == []


def test_tuple_indices_after_an_operand_name_are_uses(entry: Entry) -> None:
    t = "%t = (f32[4]{0}, f32[4]{0}) parameter(0)"
    assert unused(entry(t, Q, "ROOT %n = f32[4]{0} add(%t#1, %t#0)")) == [(1, ())]


@pytest.mark.parametrize("name", ["cpu/sgd_unused.after.txt", "tpu/sgd_unused.after.txt", "jax_0_4_13/sgd_unused.before.txt"])
def test_only_the_unread_argument_of_a_real_program_is_unused(read: Entry, name: str) -> None:
    """It is `mask`, the fifth argument."""
    assert unused(read((DATA / name).read_text(encoding="utf-8"))) == [(4, ())]


def test_no_parameter_is_unused_if_operands_have_no_names(read: Entry) -> None:
    assert unused(read((DATA / "prints/no_operand_names.txt").read_text(encoding="utf-8"))) == []


def test_the_layout_in_the_header_describes_a_missing_entry(read: Entry) -> None:
    """Numbers, shapes and aliases are in the header; lines, names and uses are not."""
    interface = read(f"HloModule m, input_output_alias={{ {{1}}: (2, {{}}, may-alias) }}, {LAYOUT}\n").interface
    assert interface.count == 3
    rows = [(leaf.number, leaf.index, str(leaf.shape), leaf.donated, leaf.line, leaf.name) for leaf in interface.parameters]
    assert rows == [
        (0, (), "f32[4]", False, None, ""),
        (1, (0,), "s32[]", False, None, ""),
        (1, (1,), "bf16[2]", False, None, ""),
        (2, (), "f32[8]", True, None, ""),
    ]
    assert [(out.index, str(out.shape), out.alias is not None) for out in interface.outputs] == [
        ((0,), "f32[4]", False),
        ((1,), "f32[8]", True),
    ]
    assert interface.faults == ()


def test_an_interface_is_incomplete_without_entry_and_layout(read: Entry) -> None:
    interface = read("HloModule m, num_partitions=2\n").interface
    assert (interface.parameters, interface.outputs, interface.complete) == ((), (), False)


def test_the_header_completes_the_parameters_of_a_truncated_entry(read: Entry) -> None:
    """The text has one of three parameters. The header has all of them and the result."""
    interface = read(f"HloModule m, {LAYOUT}\n\nENTRY %main {{\n  {P}\n  %x = f32[4]{{0}} nega").interface
    assert interface.count == 3
    assert [leaf.number for leaf in interface.parameters] == [0, 1, 1, 2]
    assert [str(out.shape) for out in interface.outputs] == ["f32[4]", "f32[8]"]


def test_a_truncated_entry_has_no_outputs_and_no_unused_parameters(read: Entry) -> None:
    interface = read(
        f"HloModule m\n\nENTRY %main {{\n  {P}\n  {Q}\n  %x = f32[4]{{0}} negate(%p)\n  %y = f32[4]{{0}} ad"
    ).interface
    assert interface.outputs == ()
    assert not interface.complete
    assert not any(leaf.unused for leaf in interface.parameters)


@pytest.mark.parametrize(
    ("lines", "is_known"),
    [
        (", num_partitions=2", False),
        (", entry_computation_layout={(f32[4]{0})->f32[4]{0}}", True),
        ("\n\nENTRY %main {", False),
        ("\n\nENTRY %main (p: f32[4]) -> f32[4] {", True),
    ],
    ids=["nothing", "layout", "entry without signature", "signature"],
)
def test_an_interface_is_known_if_a_layout_or_a_signature_states_it(read: Entry, lines: str, is_known: bool) -> None:
    """No text here has an instruction. Layout and signature each name one parameter, and one result."""
    interface = read(f"HloModule m{lines}\n").interface
    assert (interface.parameters_known, interface.outputs_known) == (is_known, is_known)
    assert (interface.count, len(interface.outputs)) == (int(is_known), int(is_known))
