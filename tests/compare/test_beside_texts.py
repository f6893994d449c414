"""The lines of `diff` besides the instructions: code beside the texts, the mesh, roles of the same arrays."""

from __future__ import annotations

import json
from pathlib import Path

from hlo_inspect.compare.changes import Aspect
from hlo_inspect.compare.pairing import Record, RecordPairs
from hlo_inspect.compare.table_changes import optimizer_changes
from tests.calling import call_text
from tests.compare.sides import changes, module

TEXT = """\
HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} sine(%p)
}
"""


def dump(folder: Path, number: int, **files: bytes) -> Path:
    """Write the dump of a module, and files beside it; `_` in a name is a dot."""
    folder.mkdir()
    text = folder / f"module_{number:04d}.jit_f.cpu_after_optimizations.txt"
    text.write_text(TEXT, encoding="utf-8")
    for name, content in files.items():
        (folder / f"module_{number:04d}.jit_f.{name.replace('_', '.')}").write_bytes(content)
    (folder / "module_9999.jit_g.kernel.o").write_bytes(b"of another module")
    return text


def head(*sides: Path) -> list[str]:
    """Return the verdict and the line behind it."""
    lines = [line.strip() for line in call_text("diff", *sides).stdout.splitlines()]
    verdict = next(number for number, line in enumerate(lines) if line in ("same program", "different programs"))
    return lines[verdict : verdict + 2]


def test_other_object_files_beside_equal_texts_are_told(tmp_path: Path) -> None:
    old = dump(tmp_path / "old", 6, kernel_o=bytes(1400), kernel_ll=b"a")
    new = dump(tmp_path / "new", 8, kernel_o=bytes(2840), kernel_ll=b"a")
    assert head(old, new) == ["same program", "code  1 of 1 object files differ, 1,400 → 2,840 B; 1 of 1 LLVM modules equal"]
    report = json.loads(call_text("diff", old, new, "--format", "json").stdout)
    (rows,) = (table["rows"] for table in report["tables"] if table["name"] == "code_files")
    assert rows == [["object files", 1, 1, 1400, 2840], ["LLVM modules", 1, 0, 0, 0]]


def test_a_kernel_that_one_side_lacks_differs_and_equal_sizes_do_not_hide_a_difference(tmp_path: Path) -> None:
    old = dump(tmp_path / "old", 6, a_ptx=b"1", b_ptx=b"2", c_ptx=b"3")
    new = dump(tmp_path / "new", 6, a_ptx=b"1", b_ptx=b"4")
    assert head(old, new)[1] == "code  2 of 3 PTX files differ, 2 → 1 B"


def test_nothing_is_said_if_a_side_has_no_code(tmp_path: Path) -> None:
    old, new = dump(tmp_path / "old", 6, a_o=b"1"), dump(tmp_path / "new", 6)
    for sides in ((old, new), (new, old), (new, new)):
        assert not any(line.startswith("code") for line in head(*sides))


MESH = """\
HloModule m, num_partitions={devices}

ENTRY %e {{
  %p = f32[{rows},{columns}]{{1,0}} parameter(0), sharding={{devices=[{devices},1]<=[{devices}]}}, metadata={{op_name="x"}}
  ROOT %r = f32[{rows},{columns}]{{1,0}} sine(%p), sharding={{devices=[{devices},1]<=[{devices}]}}
}}
"""


def test_the_mesh_stands_first_and_equal_sides_are_no_change(tmp_path: Path) -> None:
    """64 rows over 8 devices and over 16: 8 and 4 rows each."""
    sides = [tmp_path / "old.txt", tmp_path / "new.txt"]
    for path, devices in zip(sides, (8, 16), strict=True):
        path.write_text(MESH.format(devices=devices, rows=64 // devices, columns=32), encoding="utf-8")
    assert [line.split() for line in head(*sides)] == [["different", "programs"], ["mesh", "d0=8", "→", "d0=16"]]
    differences = changes(*(module(path.read_text(encoding="utf-8")) for path in sides))
    assert all(aspect.was != aspect.now for change in differences for aspect in change.aspects)
    assert not [change for change in differences if change.area in ("parameters", "outputs")]


def test_a_shape_that_does_not_follow_from_the_mesh_is_a_change() -> None:
    old, new = (module(MESH.format(devices=devices, rows=8, columns=8 * devices)) for devices in (8, 16))
    (change,) = (change for change in changes(old, new) if change.area == "parameters")
    assert change.aspects == (Aspect("shape", "f32[8,64]", "f32[8,128]"),)


def updates(*weights: tuple[int, int]) -> list[Record]:
    return [
        {"weight": weight, "path": "", "shape": "f32[8]", "rule": "momentum", "first_moment": moment, "learning_rate": 0.1}
        for weight, moment in weights
    ]


PARAMETERS = RecordPairs([({"number": number}, {"number": number}) for number in range(6)], [], [])


def test_weights_and_states_that_change_places_are_one_change() -> None:
    """Arrays 0 and 1 are a weight and its moment on both sides, the other way round."""
    (change,) = optimizer_changes(updates((0, 1), (2, 3)), updates((1, 0), (2, 3)), PARAMETERS)
    assert (change.what, change.aspects) == ("changed", (Aspect("roles of the same arrays"),))
    both = list(optimizer_changes(updates((0, 1), (2, 3)), updates((1, 4), (2, 3)), PARAMETERS))
    assert [change.what for change in both] == ["gone", "new"]


def test_hashes_of_an_older_report_are_told_and_not_compared(tmp_path: Path) -> None:
    text = tmp_path / "m.txt"
    text.write_text(TEXT, encoding="utf-8")
    new = json.loads(call_text("fingerprint", text, "--format", "json").stdout)
    facts = {**new["facts"], "fingerprint.program": "0" * 32}
    paths = []
    for name, version in (("old", "1.0.0"), ("new", "1.1.0")):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps({**new, "facts": facts, "tool": {**new["tool"], "version": version}}), encoding="utf-8")
        facts = new["facts"]
    report = json.loads(call_text("diff", *paths, "--format", "json").stdout)
    assert [note for note in report["notes"] if note.startswith("OLD: hashes of programs: those of hlo-inspect 1.0.0")]
    assert report["facts"]["diff.fact_count"] == 0
    report = json.loads(call_text("diff", paths[1], paths[1], "--format", "json").stdout)
    assert not [note for note in report["notes"] if "hashes" in note]
