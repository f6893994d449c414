"""Copies between host and device: slices of stacks in host memory, and offloads that XLA ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

STACK, LAYER = "bf16[4,2048,1024]{2,1,0:T(8,128)(2,1)S(5)}", "bf16[1,2048,1024]{2,1,0:T(8,128)(2,1)}"
INDEX = "s32[]{:T(128)}"

OFFLOAD = """HloModule step, is_scheduled=true

CALLEES
%forward (s: (INDEX, STACK)) -> (INDEX, STACK) {
  %s = (INDEX, STACK) parameter(0)
  %i = INDEX get-tuple-element(%s), index=0
  %stack = STACK get-tuple-element(%s), index=1
  %zero = INDEX constant(0)
  %x = LAYER custom-call(), custom_call_target="makes"
  WRITE
  %one = INDEX constant(1)
  %next = INDEX add(%i, %one)
  ROOT %t = (INDEX, STACK) tuple(%next, %written)
}

%backward (s.1: (INDEX, STACK)) -> (INDEX, STACK) {
  %s.1 = (INDEX, STACK) parameter(0)
  %i.1 = INDEX get-tuple-element(%s.1), index=0
  %stack.1 = STACK get-tuple-element(%s.1), index=1
  %zero.1 = INDEX constant(0)
  READ
  %next.1 = INDEX custom-call(%i.1, %layer), custom_call_target="reads"
  ROOT %t.1 = (INDEX, STACK) tuple(%next.1, %stack.1)
}

%condition (s.2: (INDEX, STACK)) -> pred[] {
  %s.2 = (INDEX, STACK) parameter(0)
  %i.2 = INDEX get-tuple-element(%s.2), index=0
  %three = INDEX constant(3)
  ROOT %less = pred[] compare(%i.2, %three), direction=LT
}

ENTRY %main (p: INDEX) -> INDEX {
  %p = INDEX parameter(0)
  %start = INDEX constant(0)
  %buffer = STACK custom-call(), custom_call_target="AllocateBuffer"
  %init = (INDEX, STACK) tuple(%start, %buffer)
  %loop = (INDEX, STACK) while(%init), condition=%condition, body=%forward, TRIPS
  %saved = STACK get-tuple-element(%loop), index=1
  %init.1 = (INDEX, STACK) tuple(%start, %saved)
  %loop.1 = (INDEX, STACK) while(%init.1), condition=%condition, body=%backward, TRIPS
  ROOT %r = INDEX get-tuple-element(%loop.1), index=0
}
"""

WRITTEN = "%written = STACK dynamic-update-slice(%stack, %x, %i, %zero, %zero)"
STARTED = (
    "%put = ((STACK, LAYER, INDEX, INDEX, INDEX), STACK, u32[]{:S(2)}) "
    "dynamic-update-slice-start(%stack, %x, %i, %zero, %zero)\n"
    "  %written = STACK dynamic-update-slice-done(%put)"
)
WRAPPED = (
    "%put = ((STACK, LAYER, INDEX, INDEX), STACK, u32[]{:S(2)}) async-start(%stack, %x, %i, %zero), calls=%writing\n"
    "  %written = STACK async-done(%put), calls=%writing"
)
WRITING = """%writing (a: STACK, b: LAYER, j: INDEX, z: INDEX) -> STACK {
  %a = STACK parameter(0)
  %b = LAYER parameter(1)
  %j = INDEX parameter(2)
  %z = INDEX parameter(3)
  ROOT %u = STACK dynamic-update-slice(%a, %b, %j, %z, %z)
}
"""
SLICED = "%layer = LAYER dynamic-slice(%stack.1, %i.1, %zero.1, %zero.1), dynamic_slice_sizes={1,2048,1024}"
FETCHED = (
    "%get = ((STACK, INDEX, INDEX, INDEX), LAYER, u32[]{:S(2)}) dynamic-slice-start(%stack.1, %i.1, %zero.1, %zero.1), "
    "dynamic_slice_sizes={1,2048,1024}\n  %layer = LAYER dynamic-slice-done(%get)"
)


def offload(write: str = STARTED, read: str = FETCHED, callees: str = "") -> str:
    text = OFFLOAD.replace("WRITE", write).replace("READ", read).replace("CALLEES", callees)
    text = text.replace("TRIPS", 'backend_config={"known_trip_count":{"n":"3"}}')
    return text.replace("STACK", STACK).replace("LAYER", LAYER).replace("INDEX", INDEX)


def copies(report: Report) -> list[tuple[Value, ...]]:
    names = ("direction", "sites", "runs", "bytes")
    tables = [table for table in report.tables if table.name == "host_copies"]
    return [tuple(record[name] for name in names) for table in tables for record in table.records()]


@pytest.mark.parametrize(
    ("write", "read", "callees"),
    [(WRITTEN, SLICED, ""), (STARTED, FETCHED, ""), (WRAPPED, FETCHED, WRITING)],
    ids=["in one step", "start and done", "wrapped computation"],
)
def test_the_slices_of_a_stack_on_the_host_are_counted_once_per_iteration(write: str, read: str, callees: str) -> None:
    """A layer of 2048 x 1024 bf16 is 4,194,304 bytes, as libtpu's statistics of transfers say; each loop has three runs."""
    report = hlo_inspect.inspect(offload(write, read, callees), "memory")
    assert copies(report) == [("to host", 1, 3, 3 * 4_194_304), ("to device", 1, 3, 3 * 4_194_304)]


def test_the_link_to_the_host_has_two_directions() -> None:
    """Writes into a stack on the host and reads from it do not share a direction of the link."""
    from hlo_inspect.analysis.context import Context
    from hlo_inspect.analysis.time.program_steps import issued_work
    from hlo_inspect.hlo.input.source import open_source
    from hlo_inspect.hlo.read.reader import read_modules
    from hlo_inspect.passes.time import Time

    for callees, write in (("", STARTED), (WRITING, WRAPPED)):
        (module,) = read_modules(open_source(offload(write, FETCHED, callees)), Time.wants)
        context = Context(module)
        work = issued_work(module, context.views, context.call_graph, context.kernels, [], in_order=True)
        assert {name: stream for (_, _, name), stream in work.streams.items()} == {"put": ("to host",), "get": ("from host",)}


BEFORE = """HloModule step

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  %h = bf16[8,1024]{1,0} custom-call(%x), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="pinned_host"}
  ROOT %d = bf16[8,1024]{1,0} custom-call(%h), custom_call_target="annotate_device_placement", frontend_attributes={_xla_buffer_placement="device"}
}
"""  # noqa: E501 - as XLA prints them
AFTER = """HloModule step, is_scheduled=true

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  ROOT %c = bf16[8,1024]{1,0} copy(%x)
}
"""
HONORED = """HloModule step, is_scheduled=true

ENTRY %main (x: bf16[8,1024]) -> bf16[8,1024] {
  %x = bf16[8,1024]{1,0} parameter(0)
  %h = bf16[8,1024]{1,0:S(5)} copy(%x)
  ROOT %c = bf16[8,1024]{1,0} copy(%h)
}
"""


def test_placements_before_optimization_are_copies() -> None:
    assert copies(hlo_inspect.inspect(BEFORE, "memory")) == [("to host", 1, 1, 16384), ("to device", 1, 1, 16384)]


def ignored(report: Report) -> list[str]:
    return [note for note in report.notes if "host memory" in note]


@pytest.mark.parametrize("platform", ["", "cpu_", "sm_9.0_gpu_", "cl_1014260217."])
def test_a_note_names_an_offload_that_xla_ignored(tmp_path: Path, platform: str) -> None:
    """The build of TPU's compiler stands before both stages, the platform before the second one only."""
    build = platform if platform.endswith(".") else ""
    (tmp_path / f"module_0003.step.{build}before_optimizations.txt").write_text(BEFORE, encoding="utf-8")
    (tmp_path / f"module_0003.step.{platform}after_optimizations.txt").write_text(AFTER, encoding="utf-8")
    (note,) = ignored(hlo_inspect.inspect(tmp_path, "memory"))
    assert note.startswith(
        f"module_0003.step.{build}before_optimizations.txt asks for host memory in 1 custom call (first: line 5)"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (BEFORE, HONORED),
        (BEFORE.replace("pinned_host", "device"), AFTER),
        (BEFORE.replace("HloModule step", "HloModule other"), AFTER),
        ("no module", AFTER),
        (None, AFTER),
    ],
    ids=["honored", "not asked for", "another module", "unreadable", "no text before"],
)
def test_nothing_is_said_otherwise(tmp_path: Path, before: str | None, after: str) -> None:
    if before is not None:
        (tmp_path / "module_0003.step.before_optimizations.txt").write_text(before, encoding="utf-8")
    path = tmp_path / "module_0003.step.after_optimizations.txt"
    path.write_text(after, encoding="utf-8")
    assert ignored(hlo_inspect.inspect(path, "memory")) == []


def test_requests_that_remain_in_an_optimized_text() -> None:
    kept = BEFORE.replace("HloModule step", "HloModule step, is_scheduled=true")
    assert len(ignored(hlo_inspect.inspect(kept, "memory"))) == 1
    assert ignored(hlo_inspect.inspect(kept.replace("ROOT %d", "%k = bf16[8]{0:S(5)} copy(%x)\n  ROOT %d"), "memory")) == []


def test_the_stake_of_a_missing_offload_is_what_the_optimized_text_does_not_move(tmp_path: Path) -> None:
    """HI311: the requests are for two arrays of 16 KiB, and the program moves none or one of them."""
    placement = next(line for line in BEFORE.splitlines() if "pinned_host" in line).partition("custom-call(%x), ")[2]
    second = f"%second = bf16[8,1024]{{1,0}} custom-call(%h), {placement}\n  ROOT %d"
    (tmp_path / "module_0003.step.before_optimizations.txt").write_text(BEFORE.replace("ROOT %d", second), encoding="utf-8")
    path = tmp_path / "module_0003.step.after_optimizations.txt"
    for after, stake in ((AFTER, 2 * 16384), (HONORED, 16384)):
        path.write_text(after, encoding="utf-8")
        findings = hlo_inspect.inspect(path, "findings", thresholds=["missing-offload=1"]).findings
        assert [finding.stake for finding in findings if finding.name == "missing-offload"] == [stake]
