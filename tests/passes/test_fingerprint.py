"""The command `fingerprint`: two hashes of a module."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data"

TEXT = """HloModule m, is_scheduled=true, frontend_attributes={fingerprint_before_lhs="1f"}

%sum {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b), metadata={op_name="sum"}
}

ENTRY %e {
  %one = f32[] constant(1)
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[] reduce(%p, %one), dimensions={0}, to_apply=%sum
}
"""


def bits(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def own(shape: str, opcode: str, literal: str, *attributes: str) -> int:
    """Return the number of an instruction, by its own line."""
    return bits("\n".join((shape, opcode, literal, *attributes, "", "")))


def numbers(*values: int) -> int:
    return int.from_bytes(blake2b(b"".join(v.to_bytes(8, "little") for v in values), digest_size=8).digest(), "little")


def test_the_hashes_are_those_of_the_text_in_canonical_names() -> None:
    """The text is written by hand, with the hashes in its names as the docstrings say them."""
    a, b = (own("f32[]", "parameter", number) for number in "01")
    add = own("f32[]", "add", "")
    flows = numbers(a, 0), numbers(b, 0)
    root = numbers(add, 2, *sorted(flows))
    body = numbers(root, *sorted((*flows, root)))
    constant, reduce = own("f32[]", "constant", "1"), own("f32[]", "reduce", "", "dimensions={0}", f"to_apply=[{body}]")
    names = f"applied.{body & 0xFFFFFF:06x}", f"constant.{constant & 0xFFFFF:05x}", f"reduce.{reduce & 0xFFFFF:05x}"
    first = f"""%{names[0]} {{
  %parameter.0 = f32[] parameter(0)
  %parameter.1 = f32[] parameter(1)
  ROOT %add.{add & 0xFFFFF:05x} = f32[] add(%parameter.0, %parameter.1)
}}

ENTRY %main {{
"""
    lines = [f"  %{names[1]} = f32[] constant(1)\n", "  %parameter.0 = f32[4]{0} parameter(0)\n"]
    last = f"  ROOT %{names[2]} = f32[] reduce(%parameter.0, %{names[1]}), dimensions={{0}}, to_apply=%{names[0]}\n}}\n"
    scheduled = ", frontend_attributes={}, is_scheduled=true" + first + "".join(lines) + last
    program = ", frontend_attributes={}" + first + "".join(reversed(lines)) + last

    report = hlo_inspect.inspect(TEXT, "fingerprint")
    hashes = [blake2b(text.encode(), digest_size=16).hexdigest() for text in (program, scheduled)]
    assert [report.facts["fingerprint.program"], report.facts["fingerprint.schedule"]] == hashes
    assert report.table("fingerprint").rows == (("m", *hashes),)


def test_a_text_that_is_not_scheduled_has_one_hash() -> None:
    report = hlo_inspect.inspect(TEXT.replace("is_scheduled=true, ", ""), "fingerprint")
    whole = hlo_inspect.inspect(TEXT, "fingerprint")
    assert report.facts["fingerprint.program"] == whole.facts["fingerprint.program"]
    assert report.facts["fingerprint.schedule"] is None
    assert report.table("fingerprint").rows[0][2] == ""


@pytest.mark.parametrize("name", ["no_percent", "no_signatures", "operand_shapes", "short_parsable", "short_with_metadata"])
def test_the_prints_of_one_program_have_one_hash(name: str) -> None:
    long_print, other = (hlo_inspect.inspect(DATA / f"prints/{print_}.txt", "fingerprint") for print_ in ("long", name))
    assert long_print.facts["fingerprint.program"] == other.facts["fingerprint.program"]
    assert long_print.facts["fingerprint.schedule"] == other.facts["fingerprint.schedule"]


def test_quoted_lines_have_none() -> None:
    report = hlo_inspect.inspect("  %a.1 = f32[4]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add\n", "fingerprint")
    assert report.facts["fingerprint.program"] is None
    assert report.table("fingerprint").rows == ()
