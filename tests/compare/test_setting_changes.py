"""Flags, options and devices that differ between two compiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_inspect.cli.main import run
from hlo_inspect.compare.setting_changes import incomparable_settings, setting_changes
from hlo_inspect.hlo.settings.compile_settings import CompileSettings

DATA = Path(__file__).parents[1] / "data" / "recompiles"
SHARED = Path(__file__).parents[3] / "shared" / "dumps"


def changes(old: CompileSettings, new: CompileSettings) -> list[tuple[str, str, str, str]]:
    return list(map(tuple, setting_changes(old, new)))  # type: ignore[arg-type]


def test_a_missing_flag_has_its_default() -> None:
    old = CompileSettings(flags={"xla_min_max": "false", "xla_same": "1"}, process_flags={"xla_fast": "false"})
    new = CompileSettings(flags={"xla_same": "1", "xla_fast": "true"}, overrides={"xla_fast": "true", "xla_min_max": "true"})
    assert changes(old, new) == [
        ("flag", "xla_min_max", "false", "true"),
        ("flag", "xla_fast", "false", "true"),
    ]
    assert changes(new, CompileSettings(flags={"xla_same": "1"})) == [("flag", "xla_fast", "true", "default")]


def test_flags_that_an_incomplete_file_lacks_are_unknown() -> None:
    old = CompileSettings(flags={"xla_a": "1"}, complete=False, unknown=("f:2:1: bad",))
    new = CompileSettings(flags={"xla_a": "2", "xla_b": "3"})
    assert changes(old, new) == [("flag", "xla_a", "1", "2")]
    assert incomparable_settings(old, new) == ["f:2:1: bad"]


def test_an_override_without_effect_is_an_option() -> None:
    old, new = (CompileSettings(flags={}, overrides=overrides) for overrides in ({}, {"xla_a": "false"}))
    assert changes(old, new) == [("option", "env_option_overrides.xla_a", "not overridden", "false")]


def test_all_flags_are_compared_after_overrides() -> None:
    old = CompileSettings(process_flags={"xla_a": "1", "xla_b": "2"}, overrides={"xla_b": "3"})
    new = CompileSettings(process_flags={"xla_a": "1", "xla_b": "3", "xla_c": "4"})
    assert ("flag", "xla_c", "default", "4") in changes(old, new)
    assert not [change for change in changes(old, new) if change[1] == "xla_b" and change[0] == "flag"]


def test_options_of_one_kind_and_devices_are_compared() -> None:
    old = CompileSettings(options={"level": "O1"}, options_kind="compile_options", devices=(("0",), ("1",)), platform="cpu")
    new = CompileSettings(options={"level": "O2"}, options_kind="compile_options", devices=(("1",), ("0",)), platform="cuda 12")
    assert changes(old, new) == [
        ("option", "level", "O1", "O2"),
        ("option", "platform", "cpu", "cuda 12"),
        ("devices", "device_assignment", "0,1", "1,0"),
    ]
    assert changes(old, CompileSettings(options={}, options_kind="module_config", devices=(("0",),))) == []
    assert len(incomparable_settings(CompileSettings(flags={}), CompileSettings(process_flags={}))) == 1


def text_of(number: int) -> str:
    return str(DATA / "loop" / f"module_{number:04d}.jit_train_step.cpu_after_optimizations.txt.xz")


@pytest.mark.parametrize(("number", "flags", "status"), [(12, [["xla_cpu_enable_fast_math", "false", "true"]], 1), (4, [], 0)])
def test_diff_names_flags_of_one_program(
    number: int, flags: list[list[str]], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", text_of(0), text_of(number), "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    tables = {table["name"]: table["rows"] for table in answer["tables"]}
    assert (answer["facts"]["diff.same_program"], tables["flags"]) == (True, flags)
    assert run(["diff", text_of(0), text_of(number), "--fail-if", "flags"]) == status
    shown = capsys.readouterr().out
    assert ("flags  xla_cpu_enable_fast_math false → true" in shown) == bool(flags)
    assert run(["diff", text_of(0), text_of(number), "--fail-if", "different"]) == 0


def test_unknown_flags_meet_the_condition(capsys: pytest.CaptureFixture[str]) -> None:
    text = str(DATA.parent / "handmade" / "two_modules.txt")
    assert run(["diff", text, text, "--fail-if", "flags"]) == 1
    assert "unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "flag"), [("gpu_h100_ddp_adam", "xla_gpu_autotune_level"), ("tpu_v5e_mlp", "xla_jf_llo_level")]
)
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the dumps beside the checkout")
def test_flags_of_gpu_and_tpu(folder: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = SHARED / "xla_dump_to" / folder
    for name in ("config.pbtxt", "hlo_module_config.txt", "tpu_comp_env.txt", "before_optimizations.txt"):
        for path in source.glob(f"*.{name}"):
            text = path.read_text(encoding="utf-8")
            for number, line in enumerate(text.splitlines()):
                if line.strip().startswith(f"{flag}:") and not name.startswith("before"):
                    text = "\n".join((*text.splitlines()[:number], f"{flag}: 77", *text.splitlines()[number + 1 :], ""))
            (tmp_path / path.name).write_text(text, encoding="utf-8")
    assert (
        run(["diff", str(source), str(tmp_path), "--stage", "before_optimizations", "--table", "flags", "--format", "csv"]) == 0
    )
    name, *rows = capsys.readouterr().out.splitlines()
    assert (name, [row.split(",")[::2] for row in rows]) == ("name,old,new", [[flag, "77"]])


def test_summary_of_a_dump_lists_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["summary", text_of(12), "--table", "flags", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "name,value",
        "xla_cpu_enable_fast_math,true",
        "xla_cpu_enable_fast_min_max,false",
    ]


def test_summary_says_why_flags_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "module_0001.m.before_optimizations.txt"
    path.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n", encoding="utf-8")
    for config, reason in (
        ("", "has no .debug_options and no compile_options.textproto beside it"),
        ("debug_options {\n  xla_a: 1\n}\n", "the dump states all flags and no defaults"),
    ):
        if config:
            (tmp_path / "module_0001.m.config.pbtxt").write_text(config, encoding="utf-8")
        assert run(["summary", str(path), "--format", "json"]) == 0
        notes = json.loads(capsys.readouterr().out)["notes"]
        assert any(note.startswith("flags: ") and reason in note for note in notes)


def test_values_of_elided_constants_make_another_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "HloModule f\n\nENTRY e {\n  ROOT c = f32[12]{0} constant({...})\n}\n"
    paths = []
    for number, values in enumerate(("00", "01")):
        folder = tmp_path / f"module_000{number}.f"
        folder.mkdir()
        (folder / "module.mlir").write_text(f'%c = stablehlo.constant dense<"0x{values}"> : tensor<12xf32>\n', encoding="utf-8")
        paths.append(tmp_path / f"module_000{number}.f.before_optimizations.txt")
        paths[-1].write_text(text, encoding="utf-8")
    assert run(["diff", *map(str, paths)]) == 0
    assert "different programs" in capsys.readouterr().out
    (tmp_path / "module_0001.f" / "module.mlir").unlink()
    assert run(["diff", *map(str, paths)]) == 0
    assert "same program" in capsys.readouterr().out
