"""The command `fingerprint`: three hashes of a module."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.compare.programs.identities import explained
from hlo_inspect.report.model import Report

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


# -- the hash for caches ------------------------------------------------------------------------------------------------


def parts_of(text: str | Path) -> dict[str, str | None]:
    rows = hlo_inspect.inspect(text, "fingerprint").table("cache_parts").rows
    return {str(name): digest if digest is None else str(digest) for name, digest in rows}


def changed_parts(old: str | Path, new: str | Path) -> set[str]:
    """Return the parts of the cache's hash that differ, and assert that the hash does so too if there are some."""
    first, second = parts_of(old), parts_of(new)
    hashes = [hlo_inspect.inspect(text, "fingerprint").table("identities").rows[2][1] for text in (old, new)]
    changed = {name for name in first if first[name] != second[name]}
    assert (hashes[0] != hashes[1]) == bool(changed)
    return changed


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("HloModule m", "HloModule m", set()),
        ("HloModule m", "HloModule n", {"module name"}),
        ("%c", "%total", {"instruction names"}),
        ('op_name="sum"', 'op_name="add"', {"metadata"}),
        ("constant(1)", "constant(2)", {"program", "schedule"}),
    ],
)
def test_the_third_hash_covers_names_and_metadata(old: str, new: str, parts: set[str]) -> None:
    assert changed_parts(TEXT, TEXT.replace(old, new)) == parts


def test_the_hash_of_names_is_that_of_the_names() -> None:
    names = "".join(f"{name}\n" for name in ("sum", "a", "b", "c", "e", "one", "p", "r"))
    assert parts_of(TEXT)["instruction names"] == blake2b(names.encode(), digest_size=16).hexdigest()
    assert [parts_of(TEXT)[name] for name in ("flags", "options", "weak types")] == [None, None, None]


LOOP = DATA / "recompiles" / "loop"


def text_of(number: int) -> Path:
    return LOOP / f"module_{number:04d}.jit_train_step.before_optimizations.txt.xz"


@pytest.mark.parametrize(("number", "parts"), [(2, {"weak types"}), (12, {"flags", "options"})])
def test_weak_types_flags_and_options_come_from_files_beside_the_text(number: int, parts: set[str]) -> None:
    assert changed_parts(text_of(0), text_of(number)) == {*parts, "metadata"}


def test_modules_of_one_program_say_what_else_differs() -> None:
    reports = [hlo_inspect.inspect(text_of(number), "fingerprint") for number in (0, 2, 6, 0)]
    named = f"jit_train_step ({reports[0].input.place})"
    assert [sentence_of(report) for report in explained(reports)] == [
        "",
        f"the same program as {named}; a cache may tell them apart by metadata, weak types",
        "",
        f"program, schedule and names as {named}",
    ]
    constant, parameter = "  %one = f32[] constant(1)\n", "  %p = f32[4]{0} parameter(0)\n"
    moved = TEXT.replace(constant + parameter, parameter + constant)
    assert sentence_of(list(explained(hlo_inspect.inspect(text, "fingerprint") for text in (TEXT, moved)))[1]) == (
        "the same program in another schedule than m (<text>); a cache may tell them apart by instruction names, "
        "which JAX's persistent cache leaves out by default"
    )


def sentence_of(report: Report) -> str:
    return "".join(str(part) for row in report.headline if row.label == "same" for part in row.parts)


def test_values_of_elided_constants_count(tmp_path: Path) -> None:
    text = "HloModule f\n\nENTRY e {\n  ROOT c = f32[12]{0} constant({...})\n}\n"
    programs = []
    for number, values in enumerate(("00", "01", "01")):
        folder = tmp_path / f"module_000{number}.f"
        folder.mkdir()
        mlir = f'%c = stablehlo.constant dense<"0x{values}"> : tensor<12xf32>\n'
        (folder / "module.mlir").write_text(mlir, encoding="utf-8")
        path = tmp_path / f"module_000{number}.f.before_optimizations.txt"
        path.write_text(text, encoding="utf-8")
        programs.append(hlo_inspect.inspect(path, "fingerprint").facts["fingerprint.program"])
    assert programs[0] != programs[1] == programs[2]
    report = hlo_inspect.inspect(text, "fingerprint")
    assert report.notes[0].startswith("fingerprint.program: values of constants that the text elides as {...} are unknown")
