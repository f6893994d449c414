"""Flags, options and devices of a compile, from the files beside its module."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.hlo.settings.compile_settings import CompileSettings, is_relevant_flag, read_settings, stablehlo_file

DATA = Path(__file__).parents[2] / "data"
SHARED = Path(__file__).parents[4] / "shared" / "dumps"

COMPILE_OPTIONS = """\
executable_build_options {
  device_ordinal: -1
  debug_options {
    xla_cpu_enable_fast_math: false
    xla_backend_optimization_level: 3
    xla_dump_to: "/d"
  }
  num_replicas: 1
  num_partitions: 2
  device_assignment {
    replica_count: 1
    computation_count: 2
    computation_devices { replica_device_ids: 4 }
    computation_devices { replica_device_ids: 5 }
  }
  allow_spmd_sharding_propagation_to_output: true
  process_index: 3
  memory_fitting_level: EFFORT_O2
}
env_option_overrides { key: "xla_cpu_enable_fast_math" value { bool_field: true } }
env_option_overrides { key: "xla_embed_ir_in_executable" value { string_field: "yes" } }
profile_version: -1
"""


def write(root: Path, **files: str) -> Path:
    """Write the files of module 3, `jit_f`, and return its text. Names have `__` for a folder's mark."""
    (root / "module_0003.jit_f").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / f"module_0003.jit_f{name}".replace("__", "/").replace("-", ".")).write_text(text, encoding="utf-8")
    return root / "module_0003.jit_f.cpu_after_optimizations.txt"


def test_the_files_of_a_compile_are_read(tmp_path: Path) -> None:
    module = write(
        tmp_path,
        **{
            "-debug_options": 'xla_cpu_enable_fast_math: true\nxla_dump_to: "/d"\nxla_gpu_asm_extra_flags: "a b"\n',
            "__compile_options-textproto": COMPILE_OPTIONS,
            "__topology-textproto": 'platform_id: 1\nplatform_name: "cuda"\nplatform_version: "12.9"\n',
            "__module-mlir": "module {}\n",
        },
    )
    settings = read_settings(module)
    assert settings == CompileSettings(
        flags={"xla_cpu_enable_fast_math": "true", "xla_gpu_asm_extra_flags": "a b"},
        process_flags={"xla_cpu_enable_fast_math": "false", "xla_backend_optimization_level": "3"},
        overrides={"xla_cpu_enable_fast_math": "true", "xla_embed_ir_in_executable": "yes"},
        options={
            "num_replicas": "1",
            "num_partitions": "2",
            "memory_fitting_level": "EFFORT_O2",
            "profile_version": "-1",
        },
        options_kind="compile_options",
        devices=(("4",), ("5",)),
        platform="cuda 12.9",
        topology=settings.topology,
    )
    assert [settings.flag(name) for name in ("xla_cpu_enable_fast_math", "xla_backend_optimization_level", "xla_x")] == [
        "true",
        "3",
        None,
    ]
    assert stablehlo_file(module) == tmp_path / "module_0003.jit_f" / "module.mlir"


def test_dots_in_a_name_and_times_before_it_are_no_hindrance(tmp_path: Path) -> None:
    for name in ("module_0001.Graph.12.debug_options", "17.module_0002.jit_f.debug_options"):
        (tmp_path / name).write_text("xla_a: 1\n", encoding="utf-8")
    for name in ("module_0001.Graph.12.sm_9.0a_gpu_after_optimizations.txt", "19.module_0002.jit_f.before_optimizations.txt"):
        assert read_settings(tmp_path / name).flags == {"xla_a": "1"}
    assert read_settings(tmp_path / "module_0001.Graph.1.before_optimizations.txt").flags is None
    assert read_settings(tmp_path / "module_0001.txt").flags is None


def test_settings_without_files_are_unknown(tmp_path: Path) -> None:
    module = tmp_path / "module_0003.jit_f.before_optimizations.txt"
    reason = f"{module.name} has no .debug_options and no compile_options.textproto beside it"
    assert read_settings(module) == CompileSettings(unknown=(reason,))
    write(tmp_path, **{"__compile_options-pb": ""})
    serialized = tmp_path / "module_0003.jit_f" / "compile_options.pb"
    assert read_settings(module).unknown == (f"{serialized}: is not read; dump without --xla_dump_hlo_as_proto",)


def test_flags_of_a_half_written_file_are_known_and_the_others_are_not(tmp_path: Path) -> None:
    module = write(tmp_path, **{"-debug_options": "xla_a: 1\nxla_b: 2", "__compile_options-textproto": COMPILE_OPTIONS[:200]})
    settings = read_settings(module)
    assert (settings.flags, settings.complete, settings.options, settings.devices) == ({"xla_a": "1"}, False, None, None)
    place = tmp_path / "module_0003.jit_f"
    assert settings.unknown == (
        f"{place}.debug_options:2:9: ends inside a line: the file is not complete; flags that it does not name are unknown",
        f"{place}/compile_options.textproto:9:1: ends inside the message of line 1: the file is not complete",
    )


@pytest.mark.parametrize(
    ("name", "relevant"),
    [
        ("xla_cpu_enable_fast_math", True),
        ("xla_gpu_analytical_latency_estimator_options.rtt_us", True),
        ("xla_dump_hlo_pass_re", False),
        ("xla_detailed_logging", False),
        ("xla_force_host_platform_device_count", False),
        ("xla_tpu_sdc_checker_streamz_metric", False),
    ],
)
def test_flags_of_dumps_and_logs_do_not_count(name: str, relevant: bool) -> None:
    assert is_relevant_flag(name) is relevant


def test_gpu_and_tpu_have_files_of_their_own(tmp_path: Path) -> None:
    config = "debug_options {\n  xla_a: 1\n}\nnum_partitions: 2\nlaunch_id: 4\nstatic_device_assignment {\n"
    config += "  computation_devices { replica_device_ids: 0 replica_device_ids: 2 }\n}\n"
    gpu, tpu = "module_0001.jit_f.config.pbtxt", "module_0001.jit_f.cl_9.hlo_module_config.txt"
    for folder, name, text in (("gpu", gpu, "sm_9.0_gpu_after"), ("tpu", tpu, "cl_9.after")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(config, encoding="utf-8")
        if folder == "tpu":
            environment = tmp_path / folder / "module_0001.jit_f.cl_9.tpu_comp_env.txt"
            environment.write_text('xla_tpu_b: AUTO\nxla_jf_c {\n  spec: "false"\n}\n', encoding="utf-8")
        settings = read_settings(tmp_path / folder / f"module_0001.jit_f.{text}_optimizations.txt")
        assert settings == CompileSettings(
            process_flags={"xla_a": "1"},
            tpu_flags={"xla_tpu_b": "AUTO", "xla_jf_c.spec": "false"} if folder == "tpu" else None,
            options={"num_partitions": "2"},
            options_kind="module_config",
            devices=(("0", "2"),),
        )


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the dumps beside the checkout")
def test_directories_of_three_platforms() -> None:
    cpu = read_settings(SHARED / "recompiles/seven/module_0014.jit_step.before_optimizations.txt")
    assert cpu.flags == {"xla_cpu_enable_fast_math": "true", "xla_cpu_enable_fast_min_max": "false"}
    gpu = read_settings(SHARED / "xla_dump_to/gpu_h100_ddp_adam/module_0001.jit_step.before_optimizations.txt")
    tpu = read_settings(SHARED / "xla_dump_to/tpu_v5e_mlp/module_0000.jit_step.cl_933746096.before_optimizations.txt")
    for settings in (gpu, tpu):
        assert settings.options is not None
        assert settings.options["memory_fitting_level"] == "EFFORT_O2"
        assert settings.devices == tuple((str(device),) for device in range(8))
        assert settings.unknown == ()
    assert tpu.tpu_flags is not None
    assert tpu.tpu_flags["xla_jf_naive_bundle_packer.spec"] == "false"
