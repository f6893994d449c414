"""The modules of a recorded profile, as inputs of every command."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.errors import InputError
from tests.profiler.spaces import metadata_plane, plane, space

ROOT = Path(__file__).parents[3] / "shared/dumps/profiles"
EXPECTED = sorted(ROOT.glob("*/expect.json"))

TEXT = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}%s

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY main {
  p = f32[8]{0} parameter(0)
  double = f32[8]{0} add(p, p)
  ROOT all-reduce = f32[8]{0} all-reduce(double), replica_groups={{0,1}}, channel_id=1, use_global_device_ids=true, to_apply=add
}
"""


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """Return a profile with two programs of one name."""
    path = tmp_path / "host.xplane.pb.gz"
    text = TEXT % ", num_partitions=2"
    data = space(metadata_plane({"jit_step(3)": text, "jit_step(12)": text.replace("[8]", "[16]")}), plane("/host:CPU", {}))
    path.write_bytes(gzip.compress(data))
    return path


def test_a_profile_has_the_modules_of_its_programs(profile: Path) -> None:
    reports = list(hlo_inspect.inspect_all(profile, "params"))
    assert [report.facts["params.bytes"] for report in reports] == [32, 64]
    assert [report.input.path for report in reports] == [f"{profile}#jit_step(3)", f"{profile}#jit_step(12)"]


@pytest.mark.parametrize("pattern", ["jit_step(12)", r"\(12\)", r"^jit_step\(1"])
def test_programs_of_one_name_are_chosen_by_their_id(profile: Path, pattern: str) -> None:
    (report,) = hlo_inspect.inspect_all(profile, "params", module=pattern)
    assert report.facts["params.bytes"] == 64
    with pytest.raises(InputError, match=r"there are: jit_step\(3\), jit_step\(12\)"):
        hlo_inspect.inspect(profile, "params", module="none")


def test_a_folder_of_several_hosts_has_the_modules_of_the_first(profile: Path, tmp_path: Path) -> None:
    run_folder = tmp_path / "logs/plugins/profile/2026_11_23_08_00_00"
    run_folder.mkdir(parents=True)
    for host in ("a", "b"):
        (run_folder / f"{host}.xplane.pb").write_bytes(gzip.decompress(profile.read_bytes()))
    (run_folder / "a.trace.json.gz").write_bytes(b"cache")
    reports = list(hlo_inspect.inspect_all(tmp_path / "logs", "params"))
    assert len(reports) == 2
    assert any("profiles of 1 other hosts" in note for note in reports[0].notes)
    second = run_folder.parent / "2026_11_24_08_00_00"
    run_folder.rename(second)
    run_folder.mkdir()
    (run_folder / "a.xplane.pb").write_bytes(b"")
    with pytest.raises(InputError, match="has profiles of 2 runs"):
        list(hlo_inspect.inspect_all(tmp_path / "logs", "params"))


@pytest.mark.parametrize("command", ["summary", "collectives", "list", "time", "show"])
def test_damaged_profiles_are_one_line_and_status_3(
    profile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    data = gzip.decompress(profile.read_bytes())
    bad = tmp_path / "bad.xplane.pb"
    inputs = {
        data[:-20]: "is truncated",
        space(plane("/host:CPU", {})): "without the modules of its programs",
        b"": "it is empty",
        bytes.fromhex("83af70d10d884a3f") + bytes(100): "Riegeli",
    }
    for content, message in inputs.items():
        bad.write_bytes(content)
        assert run([command, str(bad), *(["p"] if command == "show" else [])]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert message in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.parent.name)
def test_facts_of_a_profile_are_those_of_its_dump(path: Path, tmp_path: Path) -> None:
    expected = json.loads(path.read_text(encoding="utf-8"))
    for label, figures in expected["modules"].items():
        if not expected["kind"].startswith("real"):
            continue
        text = tmp_path / "dump.hlo.txt"
        text.write_bytes(lzma.decompress((path.parent / figures["text"]).read_bytes()))
        for command in ("summary", "collectives"):
            facts = dict(hlo_inspect.inspect(path.parent / expected["file"], command, module=label).facts)
            dump = dict(hlo_inspect.inspect(text, command).facts)
            assert {name: value for name, value in facts.items() if dump[name] != value} == {}


@pytest.mark.parametrize("command", ["params", "measured", "list"])
@pytest.mark.parametrize("damage", ["check sum", "end"])
def test_a_damaged_compressed_profile_is_one_error(
    profile: Path, command: str, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = profile.read_bytes()
    profile.write_bytes(packed[:-8] + b"\1\1\1\1" + packed[-4:] if damage == "check sum" else packed[: len(packed) * 2 // 3])
    assert run([command, str(profile)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"hlo-inspect: {profile}: cannot be read to its end: ")
    assert err.count("\n") == 1
