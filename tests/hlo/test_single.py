"""An input that is one instruction."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.hlo.single import as_module
from tests.hlo.strict import cases
from tests.hlo.strict.cases_texts import SINGLE

DOT = "%d = f32[32,16]{1,0} dot(f32[32,64]{1,0} %lhs, f32[64,16]{1,0} %rhs), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def test_each_operand_is_a_parameter() -> None:
    facts = hlo_inspect.inspect(DOT + "\n").facts
    assert (facts["params.count"], facts["params.bytes"]) == (2, 4 * (32 * 64 + 64 * 16))
    assert (facts["outputs.bytes"], facts["module.instructions"]) == (4 * 32 * 16, 3)


def test_the_name_may_be_left_out() -> None:
    facts = hlo_inspect.inspect("\n\n" + DOT.removeprefix("%d = ") + "\n").facts
    assert (facts["opcode.dot"], facts["module.computations"]) == (1, 1)


@pytest.mark.parametrize(("text", "opcode"), [("p = f32[2] parameter(0)", "parameter"), ("c = f32[] constant(1)", "constant")])
def test_what_has_no_operands(text: str, opcode: str) -> None:
    assert hlo_inspect.inspect(f"{text}\n", strict=True).facts[f"opcode.{opcode}"] == 1


@pytest.mark.parametrize("text", ["", "prose about f32[2]", "a = f32[2] negate(b)", DOT + "\n" + DOT, "x = 1"])
def test_what_is_none(text: str) -> None:
    """Operands need shapes: nothing else tells what the parameters are."""
    assert as_module(text) is None


@pytest.mark.parametrize("case", SINGLE, ids=cases.name)
def test_what_is_refused(case: cases.Case) -> None:
    cases.check(case)


def test_operands_without_names() -> None:
    facts = hlo_inspect.inspect(b"f32[2] add(f32[2], f32[2]{0} %y)", strict=True).facts
    assert (facts["params.count"], facts["params.bytes"], facts["opcode.add"]) == (2, 16, 1)


def test_where_things_stand() -> None:
    """One line is put in front; what has a name stands where it stood."""
    text = "\n " + DOT + ",\n  metadata={}"
    module = as_module(text)
    assert module is not None
    assert module.split("\n", 1)[1].startswith(text)
    assert module.startswith("ENTRY instruction { lhs = f32[32,64] parameter(0) rhs = f32[64,16] parameter(1) \n")
    assert "\nf32[2] add(f32[2] _0, f32[2] y)\n" in str(as_module("f32[2] add(f32[2], f32[2] y)"))
