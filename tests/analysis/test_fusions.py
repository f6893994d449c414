"""Fusions of texts that are not read whole, and of a dump. tests/cases/analysis has small texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.fusion_contents import (
    metadata_of_fusions,
)
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes.custom_calls import operand_bytes, result_bytes
from tests.hlo.reading import module

Entry = Callable[..., Context]

DATA = Path(__file__).parents[1] / "data"
P = "%p = f32[4]{0} parameter(0)"
Q = "%q = bf16[8,2]{1,0} parameter(1)"

ADDED = """%added (x: f32[4], y: bf16[8,2]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %y = bf16[8,2]{1,0} parameter(1)
  %n = f32[4]{0} negate(%x)
  ROOT %z = f32[4]{0} add(%n, %x)
}
"""


def test_operands_that_were_not_read() -> None:
    """Their bytes are unknown, which is not 0."""
    text = f'HloModule m\n\nENTRY %e {{\n  {P}\n  ROOT %c = f32[4] custom-call(%p), custom_call_target="next"\n}}\n'
    (call,) = module(text, Wants(frozenset({"custom-call"}))).instructions
    assert (operand_bytes(call), result_bytes(call)) == (None, 16)


def test_metadata_is_read_once_for_all_fusions_that_have_the_same() -> None:
    """Also behind a string, within which a text may look like metadata; the other fusions stay text."""
    note = "frontend_attributes={note=\"it, metadata={op_name='no'}\"}"
    named = [f', metadata={{op_name="{name}"}}' for name in "aabab"]
    rows = [f"%f.{number} = f32[4]{{0}} fusion(%p, %q), kind=kLoop, calls=%added{more}" for number, more in enumerate(named)]
    rows += [f"%s = f32[4]{{0}} fusion(%p, %q), kind=kLoop, calls=%added, {note}{named[0]}"]
    rows += ["ROOT %r = f32[4]{0} fusion(%p, %q), kind=kLoop, calls=%added"]
    text = f"HloModule m\n\n{ADDED}\nENTRY %e {{\n  {P}\n  {Q}\n  " + "\n  ".join(rows) + "\n}\n"
    for graph in (False, True):
        read = module(text, Wants(frozenset({"fusion"}), checked=True, graph=graph))
        assert {metadata.op_name for metadata in metadata_of_fusions(read)} == {"a", "b"}
    read = module(text, Wants(frozenset({"fusion"}), checked=True))
    assert [metadata.op_name for metadata in metadata_of_fusions(read)] == ["a", "b", "a"]
    assert read.entry is not None
    assert [metadata.name for metadata in read.entry.instructions if metadata.untouched] == ["f.1", "f.3", "f.4", "r"]


def test_fusions_of_a_dump_counted_by_hand(read: Entry) -> None:
    fusions = read((DATA / "handmade/fusions.txt").read_text(encoding="utf-8")).fusions
    rows = [(f.name, f.kind, f.callee and f.callee.root_opcode, f.outputs, f.operand_bytes, f.result_bytes) for f in fusions]
    assert rows == [
        ("b", "kLoop", "negate", 1, 16, 16),
        ("two", "kInput", "tuple", 2, 16, 32),
        ("custom", "kCustom", "iota", 1, 0, 16),
        ("output", "kOutput", "negate", 1, 16, 16),
    ]
