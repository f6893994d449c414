"""Statements by name, in every spelling of their operands."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.optimizer.text import Body, small_number
from hlo_inspect.analysis.view import View
from tests.analysis.optimizer.reading import module_of, statement_of, text_of


@pytest.mark.parametrize(
    "operands",
    [
        "%a, %b",
        "a, b",
        "f32[8]{0} %a, f32[8]{0:T(256)} %b",
        "(f32[], s32[2]) %a, f32[8]{0} %b",
        "%a, /*index=1*/%b",
    ],
)
def test_operands(operands: str) -> None:
    assert statement_of("f32[8]{0} add", f"{operands}), metadata={{}}").operands == (("a", ()), ("b", ()))


def test_an_index_behind_a_name() -> None:
    assert statement_of("f32[8]{0} negate", "%a#1#0)").operands == (("a", (1, 0)),)


@pytest.mark.parametrize("tail", ["%a, (%b", "%a, {", "f32[8]{0 %a", ""])
def test_operands_that_are_cut_off(tail: str) -> None:
    statement = statement_of("f32[8]{0} add", tail)
    assert (statement.operands, statement.literal, statement.attribute("index")) == ((), "", "")


def test_attributes() -> None:
    statement = statement_of("f32[] get-tuple-element", '%a), index=12, metadata={op_name="index=3"}')
    assert statement.word("index") == "12"
    assert statement.attribute("index") == "12"
    assert statement.word("calls") == statement.attribute("calls") == ""


def test_a_shape_that_is_none() -> None:
    statement = statement_of("f32[999999999999999999999999999999] add", "%a, %b)")
    assert (statement.opcode, statement.dtype, statement.size) == ("add", "", 0)


def test_a_body_by_name() -> None:
    module = module_of(text_of("sgd.before"))
    assert module.entry is not None
    body = Body(View(module.entry))
    root = body.statement(body.root)
    assert root is not None
    assert root.opcode == "tuple"
    assert body.statement("nobody") is None
    line = body.line(body.root)
    assert line is not None
    assert text_of("sgd.before").splitlines()[line - 1].lstrip().startswith("ROOT")


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("", None), ("1" * 30, None), ("٣", None), ("-1", None)])
def test_small_numbers(text: str, number: int | None) -> None:
    assert small_number(text) == number
