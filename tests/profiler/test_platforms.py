"""Executions on CPU, TPU and GPU, in profiles written by jaxlib, with times worked out by hand."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hlo_inspect.profiler.device_events import ABSURD, OUTSIDE
from hlo_inspect.profiler.measurements import DeviceKey, ProgramMeasurements, SampleTimes
from hlo_inspect.profiler.outline import ProgramOutline
from hlo_inspect.profiler.profile import ProfileFile, measure
from tests.profiler.spaces import Event, measured, plane, self_times, space, steps
from tests.profiler.test_modules import EXPECTED

OUTLINE = ProgramOutline(
    {"while.1": 0, "add": 0, "body.1": 1, "call.2": 1, "inner": 2, "all-reduce": 0, "start": 0, "done": 0},
    0,
    {"while.1": frozenset({1, 2}), "call.2": frozenset({2})},
    {"done": "start"},
    frozenset({"all-reduce"}),
)


def cpu_event(name: str, start: int, duration: int, run: int | None = 1, device: int = 0, **more: int) -> Event:
    stats: dict[str, int | str] = {"hlo_op": name, "hlo_module": "jit_step", "program_id": 7, **more}
    if run is not None:
        stats |= {"run_id": run, "device_ordinal": device}
    return name, start, duration, stats


def test_children_on_other_threads_take_time_from_their_loop() -> None:
    first = [cpu_event("while.1", 2000, 100), cpu_event("call.2", 2010, 30), cpu_event("add", 2110, 5)]
    second = [cpu_event("inner", 2015, 10), cpu_event("body.1", 2030, 40), ("python", 2000, 500, {})]
    result = measured(space(plane("/host:CPU", {"a": first, "b": second})), OUTLINE)
    # the loop has 100, and its children 2010-2040, 2015-2025 and 2030-2070, which are 60 together
    assert self_times(result) == {"while.1": 40, "call.2": 20, "inner": 10, "body.1": 40, "add": 5}
    assert steps(result) == [115]
    assert result.samples[0].busy == 55_000  # inner, body.1 and add


def test_an_execution_lasts_until_the_end_of_its_producer() -> None:
    calls = [cpu_event("add", 2000, 10, _p=5), cpu_event("body.1", 2010, 10, _p=6)]
    ends: list[Event] = [("end: add", 2500, 0, {"_c": 5}), ("end: body.1", 2015, 0, {"_c": 6}), ("other", 3000, 1, {"_c": 5})]
    for lines in ({"a": calls, "b": ends}, {"b": ends, "a": calls}):
        result = measured(space(plane("/host:CPU", lines)), OUTLINE)
        assert self_times(result) == {"add": 500, "body.1": 10}


def test_runs_without_numbers_begin_when_an_entry_instruction_repeats() -> None:
    events = [cpu_event(name, 2000 + 10 * index, 5, run=None) for index, name in enumerate(["add", "body.1", "body.1"] * 3)]
    result = measured(space(plane("/host:CPU", {"a": events})), OUTLINE)
    assert (result.runs_from, result.runs, steps(result)) == ("order", 3, [25, 25, 25])
    assert result.period_s is not None
    assert round(result.period_s * 1e9) == 30


def test_cut_samples_and_first_runs_are_left_out() -> None:
    events = [cpu_event(name, 2000 + 100 * run, 10 + run, run) for run in range(4) for name in ("add", "all-reduce")]
    result = measured(space(plane("/host:CPU", {"a": events[:-1]})), OUTLINE)
    assert (result.cut_samples, steps(result)) == (1, [10, 11, 12])
    result = measured(space(plane("/host:CPU", {"a": events})), OUTLINE, skip=3)
    assert (result.skipped_samples, steps(result)) == (3, [13])


def test_devices_wait_for_the_last_of_their_group() -> None:
    starts = {0: 2000, 1: 2030, 2: 2010, 3: 2015}
    events = [cpu_event("all-reduce", start, 2050 - start, -3, device) for device, start in starts.items()]
    result = measured(space(plane("/host:CPU", {"a": events})), OUTLINE)
    waits = result.waits("all-reduce", [[0, 1, 2, 3]])
    assert waits is not None
    assert {device.ordinal: tuple(of_device) for device, of_device in waits.items()} == {
        0: (30_000, 0, 0, 1),
        1: (0, 65_000, 1, 1),  # all others wait for it
        2: (20_000, 0, 0, 1),
        3: (15_000, 0, 0, 1),
    }
    pairs = result.waits("all-reduce", [[0, 1], [2, 3]])
    assert pairs is not None
    assert sum(of_device.waited for of_device in pairs.values()) == (30 + 5) * 1000
    assert result.waits("all-reduce", [[0, 4], [2, 3]]) is None


def test_devices_of_two_hosts_wait_by_their_durations() -> None:
    """The clocks of hosts differ by a second. All devices end together, so the one of the shortest execution began last."""
    durations = {(0, 0): 50, (0, 1): 20, (1, 0): 40, (1, 1): 35}
    result = ProgramMeasurements(hosts=2)
    for (host, ordinal), duration in durations.items():
        key, start = DeviceKey(host, 0, ordinal), 10**6 * host + 100 - duration
        result.samples.append(SampleTimes(key, 1, 0, 1, start, 200, 100))
        executions = np.array([start]), np.array([start + duration])
        result.collectives.setdefault("all-reduce", {})[0, key] = executions
    waits = result.waits("all-reduce", [[0, 1, 2, 3]])
    assert waits is not None
    assert {(key.host, key.ordinal): tuple(of_device) for key, of_device in waits.items()} == {
        (0, 0): (30, 0, 0, 1),
        (0, 1): (0, 30 + 20 + 15, 1, 1),  # all others wait for it
        (1, 0): (20, 0, 0, 1),
        (1, 1): (15, 0, 0, 1),
    }
    assert result.waits("all-reduce", [[0, 1], [2, 3]]) is None  # which host has device 2 is not said


def tpu(ops: list[Event], asynchronous: list[Event] | None = None) -> bytes:
    lines: dict[str, list[Event]] = {
        "XLA Modules": [("jit_step(7)", 2000, 100, {"run_id": 8}), ("jit_step(7)", 3000, 120, {"run_id": 9})]
    }
    lines["XLA Ops"], lines["Steps"] = ops, [("0", 2000, 9000, {})]
    if asynchronous:
        lines["Async XLA Ops"] = asynchronous
    names = {name for name, *_ in [*ops, *(asynchronous or [])]}
    metadata: dict[str, dict[str, int | str]] = {
        name: {"display_name": name.partition(" ")[0].removeprefix("%"), "program_id": 7} for name in names
    }
    other = plane("/device:TPU:0 SparseCore 1", {"XLA Ops": ops})
    return space(plane("/device:TPU:3", lines, metadata), other)


def test_a_tpu_has_runs_nested_loops_and_transfers() -> None:
    loop: list[Event] = [("%while.1 = () while(%x)", 2000, 90, {}), ("%body.1 = f32[] add(%x)", 2010, 50, {})]
    outside: Event = ("%add = f32[] add(%x)", 2500, 5, {})
    pairs: list[Event] = [("%start = () copy-start(%x)", 3000, 1, {}), ("%done = f32[] copy-done(%start)", 3080, 20, {})]
    transfer: Event = ("%done = f32[] copy-done(%start)", 3000, 70, {"hlo_op": "done"})
    result = measured(tpu([*loop, outside, *pairs], [transfer]), OUTLINE)
    assert result.runs_from == "modules"
    assert result.faults == {OUTSIDE: 1}
    assert result.cut_samples == 1  # the run without copies has one entry instruction of two
    assert steps(result) == [120]
    assert result.instructions["done"].transfer == 70_000
    without_line = measured(tpu([*loop, *pairs]), OUTLINE)
    assert without_line.instructions["done"].transfer == 100_000
    assert self_times(measured(tpu([*loop, ("%done = f32[]", 2095, 1, {}), *pairs]), OUTLINE))["while.1"] == 40


def gpu_event(op: str, start: int, duration: int) -> Event:
    stats: dict[str, int | str] = {"hlo_op": op, "hlo_module": "jit_step", "program_id": 7} if op else {}
    return f"kernel of {op}", start, duration, stats


def test_two_kernels_of_a_gpu_are_one_execution_if_none_begins_between() -> None:
    compute = [gpu_event("add", 2000, 10), gpu_event("a::add", 2012, 5), gpu_event("inner", 2020, 5), gpu_event("", 2030, 4)]
    again = [gpu_event("add", 2100, 10), gpu_event("add", 2112, 5), gpu_event("while.1", 2120, 6)]
    events = {"Stream #1(Compute)": [*compute, *again], "Stream #2(Compute)": [gpu_event("all-reduce", 2011, 30)]}
    result = measured(space(plane("/device:GPU:0", events)), OUTLINE)
    # in the first run the all-reduce begins between the kernels of add, so the second run begins at 2012
    assert {name: times.count for name, times in result.instructions.items()} == {"add": 1, "all-reduce": 1}
    events["Stream #2(Compute)"] = [gpu_event("all-reduce", 2018, 30), gpu_event("all-reduce", 2118, 30)]
    result = measured(space(plane("/device:GPU:0", events)), OUTLINE)
    assert result.runs == 2
    assert (result.instructions["add"].count, result.instructions["add"].events) == (2, 4)
    assert self_times(result)["add"] == 34
    assert (result.unattributed.events, result.unattributed.duration) == (2, 10_000)
    assert result.unattributed.names == ("kernel of ", "while.1")


def test_two_kernels_of_a_stream_of_its_own_are_two_executions() -> None:
    events = {
        "Stream #1(Compute)": [gpu_event("inner", start, 5) for start in (2000, 2020, 2040)],
        "Stream #2(Compute)": [gpu_event("body.1", start, 5) for start in (2010, 2030)],
        "XLA Ops": [gpu_event("inner", 2000, 5)],
    }
    result = measured(space(plane("/device:GPU:0", events)), OUTLINE)
    assert {name: times.count for name, times in result.instructions.items()} == {"inner": 3, "body.1": 2}


def test_threads_that_launch_kernels_are_no_devices() -> None:
    kernels = [gpu_event(op, 2000 + 500 * run + wait, 60) for run in range(3) for op, wait in (("add", 0), ("body.1", 100))]
    device = plane("/device:GPU:0", {"Stream #1(Kernel)": kernels})
    launches = [cpu_event("add", 1900 + 500 * run, 8, run=None, correlation_id=run) for run in range(3)]
    without_id = [cpu_event("add", 1900 + 500 * run, 8, run=None) for run in range(3)]
    for host in (launches, without_id):
        threads = plane("/host:CPU", {"Host Threads/583": host})
        for planes in ((device, threads), (threads, device)):
            result = measured(space(*planes), OUTLINE)
            assert (result.platform, len(result.devices), result.runs) == ("gpu", 1, 3)
            assert self_times(result) == {"add": 180, "body.1": 180}  # 3 runs of 60 ns


def test_a_program_of_the_host_runs_beside_one_of_a_gpu() -> None:
    own = [cpu_event("add", 2000, 10)]
    other: Event = ("kernel", 2000, 60, {"hlo_op": "add", "hlo_module": "jit_other", "program_id": 8})
    data = space(plane("/device:GPU:0", {"Stream #1(Kernel)": [other]}), plane("/host:CPU", {"a": own}))
    programs = measure([ProfileFile("profile", io.BytesIO(data))], {"jit_step(7)": OUTLINE, "jit_other(8)": OUTLINE})
    assert {label: (times.platform, self_times(times)["add"]) for label, times in programs.items()} == {
        "jit_step(7)": ("cpu", 10),
        "jit_other(8)": ("gpu", 60),
    }


def test_absurd_and_aggregated_events_are_counted() -> None:
    text = plane("/host:CPU", {"a": [cpu_event("add", 2000, 10)]})
    event = "events { metadata_id: 1 %s stats { metadata_id: 1 str_value: 'add' } }"
    added = event % "duration_ps: -5" + event % "num_occurrences: 3" + "events"
    assert measured(space(text.replace("events", added, 1)), OUTLINE).faults == {ABSURD: 2}


CPU_PROFILES = [path for path in EXPECTED if "late_ends" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", CPU_PROFILES, ids=lambda path: path.parent.name)
def test_calls_last_until_their_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's own durations, and the calls that end later than them, are those that jaxlib's reader counts."""
    expected = json.loads(path.read_text(encoding="utf-8"))
    source = path.parent / expected["file"]
    name = next(iter([source] if source.is_file() else source.rglob("*.xplane.pb")))
    with name.open("rb") as stream:
        file = ProfileFile("profile", stream)
        ((_, ended),) = file.device_planes()
        monkeypatch.setattr("hlo_inspect.profiler.cpu._CpuEvents.finish", lambda _: None)
        ((_, called),) = file.device_planes()
    late: Counter[str] = Counter()
    spent: Counter[tuple[str, str]] = Counter()
    columns = (called.executions.names, called.executions.samples, called.executions.durations, ended.executions.durations)
    for instruction, sample, own, until_end in zip(*columns, strict=True):
        program = called.samples[sample].program
        late[program] += own != until_end
        spent[program, called.names[instruction]] += own
    for label, figures in expected["modules"].items():
        assert late[label] == figures["late_ends"]
        for instruction_name, row in figures["kernels"].items():
            step = spent[label, instruction_name] * 1e-12 / figures["samples"]
            assert step == pytest.approx(row["event_s"], rel=1e-9)
