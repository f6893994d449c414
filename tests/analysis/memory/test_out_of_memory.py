"""XLA's out-of-memory reports with what logs put before their lines, and lines that are none."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, read_reports
from hlo_inspect.hlo.pasted.logs import OUT_OF_MEMORY
from tests.linear_time import assert_linear

TPU = """Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.

Program hbm requirement 41.22G:
    HLO temp         41.19G (24.2% utilization, 0.7% fragmentation (293.84M))

  Largest program allocations in hbm:

  1. Size: 32.00G
     Operator: op_type="FloorMod" op_name="slicewise/FloorMod" source_file="/a/cic.py" source_line=79
     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}
     Extra memory due to padding: 31.00G (32.0x expansion)
     XLA label: %copy.4 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(s32[8388608,8,4]{0,2,1:T(4,128)} %g), metadata={op_type="F"}
     Allocation type: HLO temp
     ==========================
"""
GPU = """Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
     preallocated temp allocation:    3.83GiB
Peak buffers:
\tBuffer 1:
\t\tSize: 6.00MiB
\t\tOperator: op_name="jit(concatenate)/concatenate[dimension=0]" source_file="/m/models.py" source_line=689
\t\tXLA Label: concatenate
\t\tShape: f32[4096,128,3]
\t\t==========================
"""


def reports(text: str) -> list[OutOfMemory]:
    return read_reports(enumerate(text.splitlines(), 1))


@pytest.mark.parametrize("text", [TPU, GPU])
@pytest.mark.parametrize(
    "prefix",
    ["E1111 07:35:00.2 14 error_handling.py:81] ", "\x1b[2m(Worker pid=4)\x1b[0m ", "71\x1b[36m(Host pid=489)\x1b[0m ", "> "],
)
def test_a_prefix_of_each_line_changes_nothing(text: str, prefix: str) -> None:
    (report,) = whole = reports(text)
    assert (len(report.parts), len(report.largest), report.line) == (2 if text == TPU else 1, 1, 1)
    assert reports("".join(f"{prefix}{line}\n" for line in text.splitlines())) == whole


@pytest.mark.parametrize("part", ["a ", "a  ", "a (b) ", "x 1G (", "x 1G [", "x 1G  "])
def test_a_long_line_is_read_in_linear_time(part: str) -> None:
    def read(count: int) -> None:
        (report,) = reports(
            f"Ran out of memory in memory space hbm. Used 2G of 1G hbm. Exceeded hbm capacity by 1G.\n {part * count}."
        )
        assert report.parts == {}

    assert_linear(read, 2_000)


def test_a_line_about_memory_alone_is_no_report() -> None:
    assert OUT_OF_MEMORY.search("the loader ran out of memory") is None
    assert reports("W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 27.93GiB") == []
