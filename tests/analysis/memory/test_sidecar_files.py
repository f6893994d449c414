"""XLA's files about memory: buffer assignment, live ranges, usage report, in the forms of several dates."""

from __future__ import annotations

from pathlib import Path

from hlo_inspect.analysis.memory.sidecars import (
    peak_bytes,
    read_buffer_assignment,
    read_live_range,
    read_usage_report,
)

DUMP = Path(__file__).parents[2] / "data/xla_dump_to/module_0000.jit_step.cpu_after_optimizations"

ASSIGNMENT = """BufferAssignment:
allocation 0: size 4096, parameter 0, shape |f32[32,32]| at ShapeIndex {}, maybe-live-out:
 value: <7 Arg_0.1 @0> (size=4096,offset=0): f32[32,32]{1,0}
allocation 1: size 64, parameter 1, shape |(f32[16], constant)| at ShapeIndex {0}:
 value: <8 pair{0} @0> (size=64,offset=0): f32[16]{0}
allocation 2: size 16, output shape is |(f32[32,32], f32[])|, maybe-live-out:
 value: <9 out{} @0> (size=16,offset=0): (f32[32,32]{1,0}, f32[])
allocation 3: size 8, constant:
 value: <10 eight @0> (size=8,offset=0): f32[2]{0}
allocation 4: size 12, thread-local:
 value: <1 add @0> (size=4,offset=0): f32[]
allocation 5: size 6144, preallocated-temp:
 value: <11 a @0> (size=4096,offset=0): f32[1024]{0}
 value: <12 b (phi) @0> (size=2048,offset=4096): f32[512]{0}
 value: <13 c{1} @0> (size=4096,offset=0): f32[1024]{0}
 value: <14 d @0> (size=1024,offset=0): f32[256]{0}
allocation 6: size 100, color 1, page 3, preallocated-temp:
 value: <15 on_chip @1> (size=100,offset=0): f32[25]{0:S(1)}

Total bytes used: 10440 (10.2KiB)

Used values:
<7 Arg_0.1 @0>
 positions:
  Arg_0.1
"""

RANGES = """HloLiveRange (max 9):
  InstructionSequence:
    0:Arg_0.1
    1:a
  BufferLiveRange:
    Arg_0.1{}:0-9
    a{}:1-3
    b{}:3-5
    c{1}:3-4
    d{}:5-6
  Live ranges at 3 (peak):
    Arg_0.1{}: 4096 bytes (cumulative: 4096 bytes)
    a{}: 4096 bytes
  Stack trace breakdown for peak usage: 8 192 bytes
"""


def test_allocations_by_what_they_hold() -> None:
    read = read_buffer_assignment(ASSIGNMENT.splitlines())
    assert (read.argument_bytes, read.output_bytes, read.alias_bytes, read.constant_bytes) == (4160, 4112, 4096, 8)
    assert read.temp_bytes == {0: 6144, 1: 100}
    assert read.allocations[1].parameter == (1, (0,)), "a shape is no list of words"
    assert [value.name for value in read.allocations[5].values] == ["a", "b", "c", "d"]
    assert (read.allocations[5].values[2].element, read.allocations[6].color) == ((1,), 1)


def test_the_peak_of_the_heap() -> None:
    """`a` and `c` share a buffer at time 3, `b` is beside them: 4096 + 2048; parameters, outputs and constants always are."""
    peak = peak_bytes(read_buffer_assignment(ASSIGNMENT.splitlines()), read_live_range(RANGES.splitlines()))
    assert peak == (4096 + 64 + 16 + 8) + 4096 + 2048


def test_live_ranges() -> None:
    ranges = read_live_range(RANGES.splitlines())
    assert ranges.schedule == ("Arg_0.1", "a")
    assert (ranges.ranges["c", (1,)], ranges.peak) == ((3, 4), 3)
    assert ranges.at_peak == ((("Arg_0.1", ()), 4096), (("a", ()), 4096))


def test_usage_reports_of_both_dates() -> None:
    old = "\nTotal bytes used: 3470 (3.39KiB)\n\nAllocations sorted by size:\n\n"
    new = "Memory Space: default (color=0)\nTotal bytes: 34 (34B)\n\nMemory Space: vmem (color=1)\nTotal bytes: 5 (5B)\n"
    assert read_usage_report(old.splitlines()).totals == {0: 3470}
    assert read_usage_report(new.splitlines()).totals == {0: 34, 1: 5}
    assert read_usage_report(new.splitlines()).names == {0: "default", 1: "vmem"}


def test_files_of_one_compilation_agree() -> None:
    """The usage report sums up the buffer assignment; XLA's list at its peak adds up to the stated peak."""
    assignment, ranges, usage = (
        DUMP.with_name(f"{DUMP.name}-{end}.txt").read_text(encoding="utf-8").splitlines()
        for end in ("buffer-assignment", "live-range", "memory-usage-report")
    )
    read = read_buffer_assignment(assignment)
    assert read_usage_report(usage).totals == {0: sum(allocation.size for allocation in read.allocations)}
    live = read_live_range(ranges)
    assert sum(size for _, size in live.at_peak) == 1536
    named = {
        (value.name, value.element)
        for allocation in read.allocations
        if not allocation.is_thread_local
        for value in allocation.values
    }
    assert set(live.ranges) <= named


def test_other_lines_are_passed_over() -> None:
    assert read_buffer_assignment(["HloModule m", "allocation x: size", "value: <"]).allocations == ()
    assert read_live_range(["nothing", "  a{}:1"]).peak is None
    assert read_usage_report([]).totals == {}
