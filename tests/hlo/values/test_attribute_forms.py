"""Values that are read once per form of text are those of each text alone."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.rows import HeadTable
from hlo_inspect.hlo.values import attribute_forms
from hlo_inspect.hlo.values.attribute_forms import AttributeForm, FormTable
from hlo_inspect.hlo.values.attributes import MalformedValue, ValueTable

NAMES = (
    "calls",
    "to_apply",
    "channel_id",
    "metadata",
    "kind",
    "backend_config",
    "replica_groups",
    "index",
    "branch_computations",
)
PARTS = [
    *(", calls=%a", ", calls=%b.1", ", to_apply=add", ", to_apply=%a, %b", ", calls={%a, %b}", ", branch_computations={%c}"),
    *(", channel_id=1", ", channel_id=2", ", channel_id=x", ", kind=kLoop", ", kind=kInput", ", index=0", ", index=1"),
    *(', metadata={op_name="x" stack_frame_id=3}', ', metadata={op_name="y, calls=%z"}', ", metadata={[}", ", metadata={a}5"),
    *(', backend_config="{, calls=%q"', ', backend_config={"a":"}, channel_id=7"}', ', backend_config="a, metadata={" , x="}"'),
    *(", replica_groups={{0,1}}", ", replica_groups={{0,1},{2,3}}", ", to_apply={ ROOT r = f32[] add(p, q) }", ", calls=%a%b"),
    *(
        ', s="\\", calls=%w"',
        " /* , calls=%n */",
        " /*, index=7, x*/",
        " //, index=8, x\n",
        ", to_apply={ r = f32[] fusion(p), kind=kLoop, index=9, calls=b }",
        ', metadata={op_name="\\"" }',
        ", calls=",
        ', k="/*"',
        ", \0",
        ", calls=\0000\0",
    ),
]


def instruction(attributes: str, computation: Computation) -> Instruction:
    return Instruction(computation.enclosing(), ("", "i", "", "%p)" + attributes), HeadTable()["f32[] fusion"], 1)


def value_in_text(attributes: str, name: str) -> object:
    """Return the value of the attribute's own text, without forms."""
    text = next((value for attribute, value in tokens.attributes(attributes) if attribute == name), None)
    return None if text is None else ValueTable().read(name, text)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_a_form_has_the_values_of_each_text(seed: int) -> None:
    """Texts that differ in one part are read from one table, in both orders."""
    chance = random.Random(seed)  # noqa: S311 - texts, not secrets
    parts = chance.choices(PARTS, k=chance.choice([1, 2, 3, 4, 5, 40]))
    texts = ["".join(parts)]
    for _ in range(3):
        parts[chance.randrange(len(parts))] = chance.choice(PARTS)
        texts.append("".join(parts))
    shared = Computation("main", 1, is_entry=True)
    for text in (*texts, *reversed(texts)):
        parsed = instruction(text, shared)
        for name in chance.sample(NAMES, len(NAMES)):
            value = repr(parsed.value(name))
            assert value == repr(instruction(text, Computation("main", 1, is_entry=True)).value(name)), (text, name)
            with suppress(tokens.ScanError):  # in a malformed text the first values may or may not be read
                assert value == repr(value_in_text(text, name)), (text, name)
        assert parsed.tail == "%p)" + text


@pytest.mark.parametrize(
    ("left", "right", "is_one_form"),
    [
        (", kind=kLoop, calls=%a", ", kind=kLoop, calls=%b.17", True),
        (", channel_id=1, to_apply=%a", ", channel_id=22, to_apply=%b", True),
        (', kind=kLoop, metadata={op_name="a"}', ', kind=kLoop, metadata={op_name="b" source_line=3}', True),
        (", kind=kLoop, calls=%a", ", kind=kInput, calls=%a", False),
        (", index=1", ", index=2", False),
        (", replica_groups={{0,1}}", ", replica_groups={{0,2}}", False),
        (", calls=%a", ", calls=a", False),
        (", calls=%a", ", to_apply=%a", False),
        (', backend_config="1"', ', backend_config="2"', False),
    ],
)
def test_texts_that_share_a_form(left: str, right: str, is_one_form: bool) -> None:
    table: FormTable[object] = FormTable()
    assert (table.take_apart(left)[0] is table.take_apart(right)[0]) == is_one_form


def test_input_texts_are_one_object_even_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribute_forms, "MAX_FORMS", 1)
    table: FormTable[object] = FormTable()
    texts = [', metadata={op_name="a"}', ', metadata={op_name="b"}', ', metadata={op_name="a"}']
    first, other, again = (table.take_apart(text)[1][0] for text in texts)
    assert again is first
    assert other == '{op_name="b"}'


def test_a_brace_in_a_string_closes_no_bracket() -> None:
    text = ', backend_config={"a":"}"}, to_apply={ r = f32[] fusion(p), kind=kLoop, calls=b }, kind=kInput'
    assert AttributeForm[object](text).texts["kind"] == "kInput"


def test_attributes_after_a_malformed_value_are_malformed() -> None:
    form: AttributeForm[object] = AttributeForm(", calls=%a, index=0, kind=}, index=1, channel_id=7")
    assert (form.texts, form.fault) == ({"calls": "%a", "index": "0"}, "expected a value")
    parsed = instruction(form.text, Computation("main", 1, is_entry=True))
    malformed = MalformedValue(form.text, "expected a value")
    assert [parsed.value(name) for name in ("calls", "index", "channel_id", "window")] == [("a",), 0, malformed, None]
    assert parsed.attr("channel_id") is None
