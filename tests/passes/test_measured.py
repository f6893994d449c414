"""The command `measured`: a recorded profile joined with the modules of its programs."""

from __future__ import annotations

import io
import json
import lzma
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.analysis.hardware import load_profile
from hlo_inspect.cli.main import run
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.measured.measured_events import in_lanes
from hlo_inspect.profiler.measurements import ExecutedInstruction
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request
from tests.profiler.spaces import Event, metadata_plane, plane, space
from tests.profiler.test_modules import EXPECTED, TEXT

FACTS = (
    "devices",
    "runs",
    "samples",
    "events",
    "joined_events",
    "unattributed_events",
    "step_s",
    "step_p90_s",
    "busy_s",
    "period_s",
)


def reports(recorded: Path, dump: Path | None = None, **options: Any) -> list[Report]:
    request = Request("measured", recorded=None if dump is None else str(recorded), **options)
    with Inspection(request) as inspection:
        return list(inspection.reports(recorded if dump is None else dump))


def close(value: object) -> object:
    return pytest.approx(value, rel=1e-9, abs=1e-13) if isinstance(value, float) else value


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.parent.name)
def test_every_expected_figure_holds(path: Path, tmp_path: Path) -> None:
    expected = json.loads(path.read_text(encoding="utf-8"))
    for label, figures in expected["modules"].items():
        dump = tmp_path / "dump.hlo.txt"
        dump.write_bytes(lzma.decompress((path.parent / figures["text"]).read_bytes()))
        (report,) = reports(path.parent / expected["file"], dump)
        assert report.facts["measured.program_id"] == label.rpartition("(")[2].removesuffix(")")
        assert {name: report.facts[f"measured.{name}"] for name in FACTS} == {name: close(figures[name]) for name in FACTS}
        assert report.facts["measured.kernels_s"] == close(figures["kernels_s"])
        rows = {row["name"]: row for row in report.table("measured_kernels").records()}
        rows_of_collectives = (
            {row["name"]: row for row in report.table("measured_collectives").records()}
            if any("wait_s" in row for row in figures["kernels"].values())
            else {}
        )
        assert rows.keys() == figures["kernels"].keys()
        for name, row in figures["kernels"].items():
            wanted = {key: close(value) for key, value in row.items() if key not in {"opcode", "event_s", "wait_s"}}
            assert {key: rows[name][key] for key in wanted} == wanted
            if "wait_s" in row:
                assert rows_of_collectives[name]["wait_s"] == close(row["wait_s"])
        if "per_run" in figures:
            runs = Counter(
                (row["run"], row["events"], round(float(str(row["step_s"])) * 1e9))
                for row in report.table("measured_runs").records()
            )
            assert runs == Counter((row[2], row[3], row[5]) for row in figures["per_run"])
        if not expected["kind"].startswith("synthetic"):
            (own,) = reports(path.parent / expected["file"], module=label)
            names = [name for name in own.facts if name.startswith("measured.")]
            assert {name: own.facts[name] for name in names} == {name: report.facts[name] for name in names}


def test_mfu_is_the_bound_of_mfu_by_measured_time() -> None:
    path = next((path.parent for path in EXPECTED if path.parent.name == "tpu_v5e_mlp"), None)
    if path is None:
        pytest.skip("the profiles are not beside the checkout")
    (report,) = reports(path / "host0.xplane.pb.gz", path / "jit_step.hlo.txt.xz", profile="tpu-v5e")
    (times,) = hlo_inspect.inspect_all(path / "jit_step.hlo.txt.xz", "time", profile="tpu-v5e")
    assert report.facts["measured.mfu"] == pytest.approx(0.031576, rel=1e-4)
    assert report.facts["measured.mfu"] * report.facts["measured.step_s"] == pytest.approx(  # type: ignore[operator]
        times.facts["time.mfu_bound"] * (times.facts["time.step_s"] or times.facts["time.step_s.lower_bound"])  # type: ignore[operator]
    )


def cpu(names: list[str], devices: int = 2) -> str:
    events: list[Event] = []
    for device in range(devices):
        for index, name in enumerate(names):
            stats: dict[str, int | str] = {"hlo_op": name, "program_id": 3, "run_id": 1, "device_ordinal": device}
            events.append((name, 2000 + 100 * index + 10 * device, 50, stats))
    return plane("/host:CPU", {"a": events})


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "step.hlo"
    path.write_text(TEXT % ", num_partitions=2", encoding="utf-8")
    return path


@pytest.mark.parametrize("has_modules", [True, False])
def test_the_module_of_a_dump_is_the_one_with_the_same_program(dump: Path, tmp_path: Path, has_modules: bool) -> None:
    profile = tmp_path / "host.xplane.pb"
    modules = [metadata_plane({"jit_step(3)": dump.read_text(encoding="utf-8")})] if has_modules else []
    profile.write_bytes(space(*modules, cpu(["double", "all-reduce"])))
    other = tmp_path / "other.hlo"
    other.write_text(dump.read_text(encoding="utf-8").replace("[8]", "[16]").replace("double", "twice"), encoding="utf-8")
    (report,) = reports(profile, dump)
    assert report.facts["measured.samples"] == 2
    assert report.facts["measured.wait_s"] == pytest.approx(10e-9 / 2)
    (row,) = report.table("measured_collectives").records()
    assert row["executed_wire_bytes"] == 32
    assert row["bus_bytes_per_s"] == pytest.approx(32 / 45e-9)
    assert run(["measured", str(profile), str(other)]) == 3


def test_a_dump_that_fits_no_program_says_what_differs(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": dump.read_text(encoding="utf-8")}), cpu(["double"])))
    dump.write_text(dump.read_text(encoding="utf-8").replace("[8]", "[16]"), encoding="utf-8")
    assert run(["measured", str(profile), str(dump)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "jit_step is no program of the profile; jit_step(3): 3 instructions differ: p is [16], not [8]" in err
    assert err.count("\n") == 1
    assert run(["measured", str(dump), str(dump)]) == 3
    assert "is no recorded profile" in capsys.readouterr().err


def test_a_damaged_module_in_a_profile_is_told(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "host.xplane.pb"
    data = space(metadata_plane({"jit_step(3)": dump.read_text(encoding="utf-8")}), cpu(["double"]))
    start = data.index(b"double")
    profile.write_bytes(data[: start - 1] + b"\x7f" + data[start:])  # the name's length is more than there is
    assert run(["measured", str(profile), str(dump)]) == 3
    assert "jit_step is no program of the profile; jit_step(3): its module in the profile is damaged" in capsys.readouterr().err


def test_instructions_without_module_and_modules_without_events_are_told(dump: Path, tmp_path: Path) -> None:
    profile = tmp_path / "host.xplane.pb"
    text = dump.read_text(encoding="utf-8")
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text, "jit_other(4)": text}), cpu(["double", "stranger"])))
    (report,) = reports(profile)
    assert (report.facts["measured.events"], report.facts["measured.joined_events"]) == (4, 2)
    notes = "\n".join(report.notes)
    (stranger,) = report.findings
    assert (stranger.rule, stranger.message) == (
        "HI702",
        "2 events, 0.05 µs a step, of instructions that the module lacks: stranger",
    )
    assert "1 of the module have no events, such as all-reduce" in notes
    assert "programs: 1 of the profile have no events" in notes


PROGRAM = """
import glob, sys
import jax, jax.numpy as jnp
from jax.profiler import ProfileData, ProfileOptions
step = jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda _, y: jnp.tanh(y @ x), x).sum())
x = jnp.ones((64, 64))
for _ in range(2):
    step(x).block_until_ready()
options = ProfileOptions()
options.python_tracer_level, options.host_tracer_level = 0, 2
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for _ in range(3):
        step(x).block_until_ready()
events, time = {}, {}
for plane in ProfileData.from_file(glob.glob(sys.argv[1] + "/plugins/profile/*/*.xplane.pb")[0]).planes:
    for line in plane.lines:
        for event in line.events:
            stats = dict(event.stats)
            if "hlo_op" in stats:
                events[stats["hlo_op"]] = events.get(stats["hlo_op"], 0) + 1
                time[stats["hlo_op"]] = time.get(stats["hlo_op"], 0) + event.duration_ns
import json
print(json.dumps([events, time]))
"""


def test_a_profile_of_jax_is_counted_as_jaxlib_counts_it(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    result = subprocess.run([sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=True)
    events, spent = json.loads(result.stdout.splitlines()[-1])
    (report,) = reports(tmp_path)
    assert report.facts["measured.runs"] == 3
    assert report.facts["measured.joined_events"] == sum(events.values())
    rows = report.table("measured_kernels").records()
    assert {row["name"]: row["events"] for row in rows} == events
    assert all(float(str(row["time_s"])) * 3e9 >= spent[row["name"]] - 1 for row in rows)  # until the end of the work
    loops = [row for row in rows if row["kind"] == "while"]
    assert loops
    assert all(float(str(row["self_s"])) < float(str(row["time_s"])) for row in loops)


def test_facts_can_be_checked(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": dump.read_text(encoding="utf-8")}), cpu(["double"])))
    assert run(["check", str(profile), "--assert", "measured.step_s <= 0.001", "--assert", "params.count == 1"]) == 0
    assert run(["check", str(profile), "--assert", "measured.mfu >= 0.4"]) == 1
    assert run(["check", str(dump), "--assert", "measured.runs >= 1"]) == 1
    assert "only a recorded profile has measured times" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"text\n", space(metadata_plane({"jit_step(3)": TEXT % ""}), plane("/host:CPU", {}))])
def test_bad_profiles_are_one_line_and_status_3(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(content)
    for arguments in ([str(profile)], [str(profile), str(dump)]):
        assert run(["measured", *arguments]) == 3
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "None" not in err


def test_kernels_faster_than_their_bound_and_events_of_no_instruction_are_findings(dump: Path, tmp_path: Path) -> None:
    text = dump.read_text(encoding="utf-8").replace("[8]", "[1000000]")
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text}), cpu(["double", "all-reduce"])))
    (report,) = reports(profile, profile="h100-sxm")
    (faster,) = report.findings
    assert faster.rule == "HI701"
    # two operands and a result of 4 MB at 3.35 TB/s take 3.58 µs, and the event has 0.05 µs
    assert "double (0.01 × its bound)" in faster.message
    kernel: Event = ("kernel", 2000, 50, {"hlo_op": "double", "program_id": 3})
    other: Event = ("graph node", 2100, 10, {"context_id": 1})
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text}), plane("/device:GPU:0", {"Stream #1": [kernel, other]})))
    (report,) = reports(profile)
    (unattributed,) = report.findings
    assert unattributed.rule == "HI703"
    assert "1 event, 0.01 µs a step, of no instruction: graph node; record with XLA_FLAGS" in unattributed.message


def gpu_profile(kernels: Mapping[str, list[tuple[str, int, int]]], **chip: int | str) -> bytes:
    """Return a profile of a GPU. A kernel is its instruction, start and duration in nanoseconds; lines are streams."""
    streams: dict[str, list[Event]] = {
        f"Stream #{number}({line})": [(op, start, length, {"hlo_op": op, "program_id": 3}) for op, start, length in events]
        for number, (line, events) in enumerate(kernels.items())
    }
    return space(plane("/device:GPU:0", streams, own_stats=chip))


def test_parts_of_a_step_add_up_to_its_mean_although_kernels_overlap(dump: Path, tmp_path: Path) -> None:
    profile = tmp_path / "host.xplane.pb"
    runs = range(0, 3000, 1000)
    compute = [("double", 2000 + run, 100 + run // 10) for run in runs]
    compute += [("last", 2400 + run, 10) for run in runs]
    profile.write_bytes(gpu_profile({"a": compute, "b": [("all-reduce", 2050 + run, 150) for run in runs]}))
    dump.write_text(
        dump.read_text(encoding="utf-8").replace("  ROOT all", "  last = f32[8]{0} negate(p)\n  ROOT all"), encoding="utf-8"
    )
    (report,) = reports(profile, dump)
    # double lasts 100, 200 and 300 ns and the all-reduce 150 ns from 50 ns on, so a step of 410 ns is busy for 210, 210 and 310
    assert report.facts["measured.kernels_s"] == pytest.approx(360e-9)  # 200 + 10 + 150, two at a time
    parts = {row["part"]: row["time_s"] for row in report.table("measured_parts").records()}
    busy = 730e-9 / 3
    assert parts == {
        "kernels": pytest.approx(busy - 150e-9),
        "collectives, d0": pytest.approx(150e-9),
        "idle": pytest.approx(410e-9 - busy),
    }
    rows = report.table("measured_by_device")
    assert rows.title == "Devices: mean step and busy time"  # of two devices one is in the profile: no waiting
    (device,) = rows.records()
    assert device["step_s"] == pytest.approx(410e-9)
    assert device["busy_s"] == pytest.approx(busy)


def test_a_bound_below_a_nanosecond_gives_no_ratio_but_the_lost_time(dump: Path, tmp_path: Path) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(gpu_profile({"a": [("double", 2000, 50), ("all-reduce", 2100, 50)]}))
    for elements, has_ratio in ((8, False), (1_000_000, True)):
        dump.write_text(dump.read_text(encoding="utf-8").replace("[8]", f"[{elements}]"), encoding="utf-8")
        (report,) = reports(profile, dump, profile="h100-sxm")
        row = next(row for row in report.table("measured_kernels").records() if row["name"] == "double")
        bound = 12 * elements / 3.352e12  # two operands and a result of 4 bytes an element: 0.03 ns, and 3.58 us
        assert row["bound_s"] == pytest.approx(bound)
        assert row["lost_s"] == pytest.approx(50e-9 - bound)
        assert row["ratio"] == (pytest.approx(50e-9 / bound, rel=1e-3) if has_ratio else None)


@pytest.mark.parametrize(
    ("chip", "name"),
    [
        ({"device_vendor": "Nvidia", "compute_cap_major": 9, "core_count": 132, "memory_size": 85_520_809_984}, "h100-sxm"),
        ({"device_vendor": "Nvidia", "compute_cap_major": 9, "core_count": 132, "memory_size": 150_754_820_096}, "h200"),
        ({"device_vendor": "AMD", "compute_cap_major": 9, "compute_cap_minor": 4, "core_count": 304, "memory_size": 192 << 30},
         "mi300x"),
        ({"device_type_string": "TPU v6 lite"}, "tpu-v6e"),
        ({"device_vendor": "Nvidia", "compute_cap_major": 9}, None),  # several have this compute capability
        ({"device_vendor": "Nvidia", "compute_cap_major": 9, "core_count": 132, "memory_size": 10**11}, None),  # H100 NVL
        ({"device_type_string": "TPU v99"}, None),
    ],
)  # fmt: skip
def test_the_chip_of_a_profile_chooses_the_hardware_profile(
    chip: dict[str, int | str], name: str | None, dump: Path, tmp_path: Path
) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(gpu_profile({"a": [("double", 2000, 50)]}, **chip))
    (report,) = reports(profile, dump)
    stated = None if name is None else load_profile(name).name
    assert report.profile == stated
    (named,) = reports(profile, dump, profile="a100-sxm-80gb")
    assert named.profile == "a100-sxm-80gb"


def test_without_jaxlib_the_module_comes_from_a_dump(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": dump.read_text(encoding="utf-8")}), cpu(["double"])))
    monkeypatch.setattr("importlib.util.find_spec", lambda *_: None)
    assert run(["measured", str(profile), str(dump)]) == 0
    capsys.readouterr()
    assert run(["measured", str(profile)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "measured PROFILE DUMP" in err
    assert "the extra [xla]: pip install jaxlib" in err


def test_time_has_measured_times_beside_bound_and_estimate(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dump.read_text(encoding="utf-8").replace("[8]", "[1000000]")
    dump.write_text(text, encoding="utf-8")
    profile = tmp_path / "host.xplane.pb"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text}), cpu(["double", "all-reduce"])))
    for arguments in ([], [str(dump)], [str(profile)]):
        command = ["time", *arguments, "--measured", str(profile), "--profile", "h100-sxm"]
        assert run([*command, "--format", "json"]) == 0
        report = json.loads(capsys.readouterr().out)
        tables = {table["name"]: table for table in report["tables"]}
        names = [column["name"] for column in tables["kernels"]["columns"]]
        times = {row[0]: row[names.index("measured_s")] for row in tables["kernels"]["rows"]}
        assert times == {"double": pytest.approx(50e-9), "all-reduce": pytest.approx(50e-9)}
        step, kernels, collectives, idle = tables["measured_step"]["rows"]
        # the second event begins 100 ns after the first; both take 50 ns
        assert [row[-3] for row in (step, kernels, collectives, idle)] == [
            pytest.approx(seconds) for seconds in (150e-9, 50e-9, 50e-9, 50e-9)
        ]
        assert kernels[-2] == pytest.approx(50e-9 / (12e6 / 3.352e12), rel=1e-3)  # two operands and a result
        assert report["facts"]["measured.step_s"] == pytest.approx(150e-9)
    assert run([*command, "--format", "perfetto"]) == 0
    events = json.loads(capsys.readouterr().out)["traceEvents"]
    processes = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert processes == {1: "jit_step on h100-sxm, estimate", 2: "jit_step, measured on device 0, run 1"}
    measured = [event for event in events if event["pid"] == 2 and event["ph"] == "X"]
    assert [(event["name"], event["ts"], event["dur"]) for event in measured] == [
        ("double", 0, 0.05),
        ("all-reduce", 0.1, 0.05),
    ]
    assert not measured[0]["args"]["estimated"]
    assert run(["time"]) == 2
    assert "Missing argument 'INPUT...'" in capsys.readouterr().err


def test_executions_that_overlap_are_in_lanes_of_their_own() -> None:
    executions = [
        ExecutedInstruction("loop", 0, 100),
        ExecutedInstruction("inside", 10, 20),
        ExecutedInstruction("across", 25, 90),
        ExecutedInstruction("after", 120, 5),
        ExecutedInstruction("copy", 0, 50, is_transfer=True),
    ]
    lanes = [(lane, execution.name) for lane, execution in in_lanes(executions)]
    assert lanes == [
        ("device", "loop"),
        ("device", "inside"),
        ("device 2", "across"),
        ("device", "after"),
        ("transfers", "copy"),
    ]


def test_a_profile_can_come_from_standard_input(
    dump: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dump.read_text(encoding="utf-8")
    data = space(metadata_plane({"jit_step(3)": text}), cpu(["double"]))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert run(["measured", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["measured.samples"] == 2


def test_the_rates_of_the_best_kernels_are_a_hardware_profile(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = dump.read_text(encoding="utf-8").replace("[8]", "[1000000]")
    profile, fitted = tmp_path / "host.xplane.pb", tmp_path / "fitted.yaml"
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text}), cpu(["double", "all-reduce"])))
    command = ["measured", str(profile), "--fit", str(fitted)]
    assert run(command) == 2
    assert "--fit needs --profile NAME" in capsys.readouterr().err
    assert run([*command, "--profile", "h100-sxm"]) == 0
    assert "fitted.yaml: 2 rates of the best kernels" in capsys.readouterr().err
    loaded, base = load_profile(fitted), load_profile("h100-sxm")
    # two operands and a result of 4 MB in 50 ns; the collective sends 4 MB, and waits 5 of its 50 ns
    assert loaded.memory_bandwidth == pytest.approx(12e6 / 50e-9)
    assert loaded.links["nvlink"].send_bandwidth == pytest.approx(4e6 / 45e-9)
    assert loaded.links["nvlink"].efficiency == 1
    assert (loaded.value("matmul.bf16"), loaded.memory_capacity) == (base.value("matmul.bf16"), base.memory_capacity)
    (report,) = reports(profile, profile=str(fitted))
    assert "HI701" not in [finding.rule for finding in report.findings]
    ratios = {row["name"]: row["ratio"] for row in report.table("measured_kernels").records()}
    assert ratios["double"] == 1
    before = fitted.read_bytes()
    profile.write_bytes(space(metadata_plane({"jit_step(3)": text}), cpu(["stranger"])))
    assert run([*command, "--profile", "h100-sxm"]) == 3
    assert "so there is nothing to fit" in capsys.readouterr().err
    assert fitted.read_bytes() == before
