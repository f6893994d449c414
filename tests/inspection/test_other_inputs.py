"""Inputs of `memory` without a module: XLA's files about memory, and out-of-memory logs."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

DUMP = Path(__file__).parents[1] / "data/xla_dump_to/module_0000.jit_step.cpu_after_optimizations"
GIB = 1 << 30

LOG = """I0000 00:00:1718031415.1 12345 compiler.cc:1] compiling
Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.

Total hbm usage >= 41.74G:
    reserved        528.00M
  Largest program allocations in hbm:

  1. Size: 32.00G
     Operator: op_name="slicewise/FloorMod" source_file="/a/cic.py" source_line=79
     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}
     XLA label: %copy.4 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(s32[8388608,8,4]{0,2,1:T(4,128)} %g), metadata={op_name="F"}
     Allocation type: HLO temp
     ==========================
"""
GPU_LOG = """XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00MiB
Peak buffers:
\tBuffer 1:
\t\tSize: 6.00MiB
\t\tXLA Label: concatenate
\t\tShape: f32[4096,128,3]
\t\t==========================
"""
MODULE = """HloModule m, is_scheduled=true

ENTRY %e (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %copy.4 = f32[4]{0} copy(%p)
}

"""


def columns(report: Report, table: str, *names: str) -> list[tuple[Value, ...]]:
    return [tuple(record[name] for name in names) for record in report.table(table).records()]


def file(end: str) -> Report:
    return hlo_inspect.inspect(DUMP.with_name(f"{DUMP.name}-{end}.txt"), "memory")


def test_memory_reads_a_buffer_assignment_without_a_module() -> None:
    report = file("buffer-assignment")
    facts = {name: report.facts[f"memory.{name}_bytes"] for name in ("argument", "output", "alias", "temp", "needed")}
    assert facts == {"argument": 576, "output": 344, "alias": 320, "temp": 896, "needed": 576 + 344 - 320 + 896}
    assert report.facts["memory.peak_bytes"] is None
    assert any(note.startswith("memory.peak_bytes: a buffer assignment has no live ranges") for note in report.notes)
    assert columns(report, "live_at_peak", "kind", "bytes")[0] == ("temporaries", 896)


def test_memory_reads_live_ranges_without_a_module() -> None:
    report = file("live-range")
    live = report.table("live_at_peak")
    assert live.total is not None
    assert live.total[2] == 1536


def test_memory_reads_a_usage_report_without_a_module() -> None:
    assert columns(file("memory-usage-report"), "live_at_peak", "memory", "bytes") == [("default", 1508)]


def test_other_commands_name_the_kind_of_a_memory_file() -> None:
    with pytest.raises(hlo_inspect.InputError, match="buffer assignment"):
        hlo_inspect.inspect(DUMP.with_name(f"{DUMP.name}-buffer-assignment.txt"), "params")


def test_memory_reads_an_out_of_memory_log_of_a_tpu() -> None:
    report = hlo_inspect.inspect(LOG, "memory")
    assert any(row.parts[0] == "line 2: ran out of hbm" for row in report.headline)
    table = next(candidate for candidate in report.tables if "role" in [column.name for column in candidate.columns])
    (row,) = table.records()
    assert (row["name"], row["bytes"], row["padding_bytes"]) == ("copy.4", 32 * GIB, 31 * GIB)
    assert row["source"] == "/a/cic.py:79"


def test_memory_reads_an_out_of_memory_log_of_a_gpu() -> None:
    report = hlo_inspect.inspect(GPU_LOG, "memory")
    assert columns(report, "live_at_peak", "name", "bytes") == [("concatenate", 4096 * 128 * 3 * 4)]
    with pytest.raises(hlo_inspect.InputError, match="only XLA's out-of-memory report"):
        hlo_inspect.inspect(GPU_LOG, "params")
    assert hlo_inspect.inspect(GPU_LOG, "summary") == report


ASSIGNMENT = """BufferAssignment:
allocation 0: size 256, parameter 1, shape |f32[64]| at ShapeIndex {}:
 value: <3 p.1 @0> (size=256,offset=0): f32[64]{0}
allocation 1: size 512, maybe-live-out:
 value: <5 out @0> (size=512,offset=0): f32[128]{0}
allocation 2: size 1024, preallocated-temp:
 value: <6 a @0> (size=768,offset=0): f32[192]{0}
 value: <7 b @0> (size=256,offset=768): f32[64]{0}

Total bytes used: 1792 (1.8KiB)

Used values:
<3 p.1 @0>
"""


@pytest.mark.parametrize("prefix", ["", "> ", "I0610 12:00:01.123456 12345 buffer_assignment.cc:1234] "])
def test_memory_reads_a_quoted_buffer_assignment(prefix: str) -> None:
    text = "We saw this:\n" + "".join(f"{prefix}{line}\n" for line in ASSIGNMENT.splitlines())
    report = hlo_inspect.inspect(text, "memory")
    sizes = [report.facts[f"memory.{name}_bytes"] for name in ("argument", "output", "temp", "needed")]
    assert sizes == [256, 512, 1024, 256 + 512 + 1024]
    assert report.input.first_line == 2
    with pytest.raises(hlo_inspect.InputError, match="holds no HLO module"):
        hlo_inspect.inspect(text, "params")


def test_figures_of_a_part_of_a_buffer_assignment_are_lower_bounds() -> None:
    report = hlo_inspect.inspect("...\n" + ASSIGNMENT.replace("allocation 1:", "some lines"), "memory")
    facts = report.facts
    assert (facts["memory.needed_bytes"], facts["memory.needed_bytes.lower_bound"]) == (None, 256 + 1024)


def test_an_out_of_memory_report_is_joined_with_its_module() -> None:
    report = hlo_inspect.inspect(MODULE + LOG, "memory", module="^m$")
    assert columns(report, "out_of_memory", "name", "bytes", "line") == [("copy.4", 32 * GIB, 5)]
    assert report.facts["memory.argument_bytes"] == 16
