"""Traces: every event is held to the rules by which Perfetto reads Chrome's JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.errors import UsageError
from hlo_inspect.report.formats import ALL_FORMATS
from hlo_inspect.report.model import Report
from hlo_inspect.report.render_options import RenderOptions

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "dumps"

DUMPS = [
    (DATA / "gpu/gathered_matmul.after.txt", "h100-sxm"),
    (DATA / "cpu/scan_fsdp.after.txt", "h100-sxm"),
    (DATA / "tpu/scan_forward.after.txt", "tpu-v5e"),
    (DATA / "tpu/gathered_matmul.after.txt", "tpu-v5e"),
]
_OF_SHARED = {
    "gpu_h100x8/tf_dptp_scan.opt.hlo.txt.xz": "h100-sxm",
    "tpu_v5e_2x4/tf_fsdp_scan.opt.hlo.txt.xz": "tpu-v5e",
}
DUMPS += [(SHARED / name, profile) for name, profile in _OF_SHARED.items() if SHARED.is_dir()]

_PHASES_OF_EVENTS = {"X", "M"}


def trace(*reports: Report) -> dict[str, Any]:
    stream = StringIO()
    ALL_FORMATS["perfetto"](reports, stream, RenderOptions())
    document: dict[str, Any] = json.loads(stream.getvalue())
    return document


def events_of(path: Path, profile: str) -> Report:
    return hlo_inspect.inspect(path, ("time-events",), profile=profile)


def require_rules(document: dict[str, Any]) -> None:
    """Assert that `traceEvents` have known phases, and that slices of a thread nest or follow each other.

    Each X has numbers that are not negative, integer pid and tid, a name, and arguments that are an object.
    """
    assert set(document) == {"traceEvents", "displayTimeUnit"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    threads: defaultdict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    named = set()
    for event in document["traceEvents"]:
        assert event["ph"] in _PHASES_OF_EVENTS
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        assert isinstance(event["args"], dict)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert event["args"]["name"]
            named.add((event["pid"], event["tid"]) if event["name"] == "thread_name" else event["pid"])
            continue
        assert event["name"]
        assert event["args"]["estimated"] is True
        assert event["ts"] >= 0
        assert event["dur"] >= 0
        for time in (event["ts"], event["dur"]):
            assert time * 1000 == pytest.approx(round(time * 1000), abs=1e-6)  # whole nanoseconds
        threads[event["pid"], event["tid"]].append((round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)))
    assert threads.keys() <= named
    for slices in threads.values():
        open_ends: list[int] = []
        for begin, end in slices:
            while open_ends and open_ends[-1] <= begin:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1], "a slice that overlaps another one in part"
            open_ends.append(end)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "profile"), DUMPS, ids=lambda value: Path(value).name)
def test_every_event_is_as_perfetto_reads_it(path: Path, profile: str) -> None:
    report = events_of(path, profile)
    document = trace(report)
    require_rules(document)
    slices = [event for event in document["traceEvents"] if event["ph"] == "X"]
    names = {event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"}
    step = hlo_inspect.inspect(path, ("cost",), profile=profile).facts["time.estimate_step_s"]
    last = max(event["ts"] + event["dur"] for event in slices if event["tid"] == 1) / 1e6
    assert "compute" in names
    assert step is None or last == pytest.approx(step, abs=2e-9)


def test_arguments_and_names() -> None:
    document = trace(events_of(DATA / "gpu/gathered_matmul.after.txt", "h100-sxm"))
    slices = {event["name"]: event for event in document["traceEvents"] if event["ph"] == "X"}
    gather = slices["all-gather-start"]
    assert gather["args"]["kind"] == "all-gather"
    assert gather["args"]["bytes"] == 3 * 2**23
    assert gather["args"]["op_name"]
    assert gather["tid"] != slices["wrapped_transpose"]["tid"]
    assert slices["wait for all-gather-start"]["tid"] == slices["wrapped_transpose"]["tid"]
    assert (
        slices["gemm_fusion_dot_general.6"]["args"]["flops"] == 2 * 4096 * 2048 * 8192 + 2 * 4096 * 8192
    )  # and two conversions


def test_modules_are_processes_of_one_document() -> None:
    report = events_of(DATA / "gpu/gathered_matmul.after.txt", "h100-sxm")
    document = trace(report, report)
    require_rules(document)
    assert {event["pid"] for event in document["traceEvents"]} == {1, 2}
    assert trace() == {"displayTimeUnit": "ns", "traceEvents": []}


def test_events_of_an_unscheduled_module_are_refused() -> None:
    with pytest.raises(UsageError, match="is not scheduled"):
        events_of(DATA / "cpu/gathered_matmul.before.txt", "h100-sxm")
    with pytest.raises(UsageError, match="--profile"):
        hlo_inspect.inspect(DATA / "cpu/gathered_matmul.after.txt", ("time-events",))
