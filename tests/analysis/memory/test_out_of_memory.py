"""XLA's reports of only XLA's out-of-memory report, with what logs put before their lines."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.memory.out_of_memory import OutOfMemory, read_reports
from hlo_inspect.hlo.pasted.logs import OUT_OF_MEMORY
from tests.linear_time import assert_linear

GIB, MIB = 1 << 30, 1 << 20

TPU = """Compilation failure: Ran out of memory in memory space hbm. Used 41.74G of 16.00G hbm. Exceeded hbm capacity by 25.74G.

Total hbm usage >= 41.74G:
    reserved        528.00M
    program          41.22G
    arguments       unknown size

Output size unknown.

Program hbm requirement 41.22G:
    reserved           4.0K
    HLO temp         41.19G (24.2% utilization, 0.7% fragmentation (293.84M))

  Largest program allocations in hbm:

  1. Size: 32.00G
     Operator: op_type="FloorMod" op_name="slicewise/FloorMod" source_file="/a/cic.py" source_line=79
     Shape: s32[8388608,8,4]{2,1,0:T(8,128)}
     Unpadded size: 1.00G
     Extra memory due to padding: 31.00G (32.0x expansion)
     XLA label: %copy.4 = s32[8388608,8,4]{2,1,0:T(8,128)} copy(s32[8388608,8,4]{0,2,1:T(4,128)} %g), metadata={op_type="F"}
     Allocation type: HLO temp
     ==========================

  2. Size: 512.00M
     Shape: bf16[16,4096,4096]{1,2,0:T(8,128)(2,1)}
     Unpadded size: 512.00M
     XLA label: fusion.7689 = fusion(bitcast.3446, bitcast.3450), kind=kOutput, calls=fused_computation.5004
     Allocation type: HLO temp
     ==========================
"""

GPU = """XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00MiB
              constant allocation:         0B
        maybe_live_out allocation:    6.00MiB
     preallocated temp allocation:    3.83GiB
  preallocated temp fragmentation:         0B (0.00%)
                 total allocation:   12.00MiB
              total fragmentation:         0B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 6.00MiB
\t\tOperator: op_name="jit(concatenate)/concatenate[dimension=0]" source_file="/m/models.py" source_line=689
\t\tXLA Label: concatenate
\t\tShape: f32[4096,128,3]
\t\t==========================

\tBuffer 2:
\t\tSize: 384.0KiB
\t\tEntry Parameter Subshape: f32[256,128,3]
\t\t==========================
"""

RUNTIME = """Error: Attempting to reserve 3.95G at the bottom of memory. That was not possible. There are 1.92G free.;
HBM capacity 8.00G:
          Currently allocated:    6.08G (   6,532,939,776 bytes)
      Available after request:   -2.55G (  -2,735,391,744 bytes)

Total hbm usage >= 10.94G:
    reserved(Infeed/Outfeed/Continuations) 529.00M
    heap allocations (without fragmentation)   6.08G
    program                    4.34G

Persistent allocations include some or all of:
    output                     5.06G (71.6% utilization) [may share some memory with arguments]

Program hbm requirement 4.34G:
    scoped           17.43M
"""


def reports(text: str) -> list[OutOfMemory]:
    return read_reports(enumerate(text.splitlines(), 1))


def prefixed(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", ["", "E1111 07:35:00.2 14 error_handling.py:81] ", "\x1b[2m(Worker pid=4)\x1b[0m ", "> "])
def test_a_report_of_the_tpu_compiler_is_read(prefix: str) -> None:
    (report,) = reports(prefixed(TPU, prefix))
    assert (report.space, report.line) == ("hbm", 1)
    assert (report.used, report.capacity) == (round(41.74 * GIB), 16 * GIB)
    assert report.parts["reserved"] == 528 * MIB
    assert report.parts["program HLO temp"] == round(41.19 * GIB)
    first, second = report.largest
    assert (first.name, first.op_name, first.source, first.kind) == ("copy.4", "slicewise/FloorMod", "/a/cic.py:79", "HLO temp")
    # a minor dimension of 4 under tiles of 8 x 128
    assert (first.size, first.padding) == (32 * GIB, 31 * GIB)
    assert (second.name, second.size, second.padding, second.source) == ("fusion.7689", 512 * MIB, 0, "")


@pytest.mark.parametrize("prefix", ["", "71\x1b[36m(MeshHostWorker pid=489)\x1b[0m "])
def test_a_report_of_the_gpu_allocator_is_read(prefix: str) -> None:
    (report,) = reports(prefixed(GPU, prefix))
    assert report.wanted == 6_291_456
    assert report.parts["preallocated temp"] == round(3.83 * GIB)
    first, second = report.largest
    assert (first.name, first.shape_text, first.size) == ("concatenate", "f32[4096,128,3]", 4096 * 128 * 3 * 4)
    assert (first.source, first.padding) == ("/m/models.py:689", 0)
    assert (second.kind, second.size) == ("parameter", 256 * 128 * 3 * 4)


def test_a_report_of_the_tpu_runtime_is_read() -> None:
    (report,) = reports(RUNTIME)
    assert (report.space, report.wanted, report.free) == ("hbm", round(3.95 * GIB), round(1.92 * GIB))
    sizes = {"Total hbm usage": 10.94, "heap allocations": 6.08, "program": 4.34, "output": 5.06}
    parts = {"reserved": 529 * MIB, "program scoped": round(17.43 * MIB), "Program hbm requirement": round(4.34 * GIB)}
    assert report.parts == parts | {part: round(size * GIB) for part, size in sizes.items()}
    (report,) = reports("Error: Attempting to allocate 256.00M. That was not possible. There are 103.5M free.; (0x0x0_HBM0)")
    assert (report.wanted, report.free) == (256 * MIB, round(103.5 * MIB))


@pytest.mark.parametrize("part", ["a ", "a  ", "a (b) ", "x 1G (", "x 1G [", "x 1G  "])
def test_a_long_line_is_read_in_linear_time(part: str) -> None:
    def read(count: int) -> None:
        (report,) = reports(
            f"Ran out of memory in memory space hbm. Used 2G of 1G hbm. Exceeded hbm capacity by 1G.\n {part * count}."
        )
        assert report.parts == {}

    assert_linear(read, 2_000)


def test_a_report_without_its_first_line() -> None:
    (whole,), (quoted,) = reports(TPU), reports(TPU.partition("\n\n")[2])
    assert (quoted.space, quoted.line, quoted.says_failure) == ("hbm", 1, False)
    assert (quoted.parts, quoted.largest) == (whole.parts, whole.largest)


def test_a_report_printed_twice_counts_once() -> None:
    assert len(reports(TPU + "\nTraceback:\n" + TPU)) == 1
    assert len(reports(TPU + GPU)) == 2


def test_one_line() -> None:
    (report,) = reports(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 49.34G of 32.00G hbm. Exceeded hbm capacity by "
        "17.34G. Total hbm usage >= 49.34G: reserved 3.12M program unknown size arguments 49.34G"
    )
    assert (report.used, report.capacity, report.largest) == (round(49.34 * GIB), 32 * GIB, [])


def test_the_stack_of_a_kernel() -> None:
    (report,) = reports(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %gather.18 = "
        "bf16[2048,4096]{1,0} custom-call(%a)"
    )
    assert (report.space, report.wanted_for) == ("vmem", "gather.18")


def test_a_size_that_the_shape_contradicts_stands_as_printed() -> None:
    (report,) = reports(TPU.replace("1. Size: 32.00G", "1. Size: 3.00G"))
    assert report.largest[0].size == 3 * GIB


def test_a_line_about_memory_alone_is_no_report() -> None:
    assert OUT_OF_MEMORY.search("the loader ran out of memory") is None
    assert reports("W bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory trying to allocate 27.93GiB") == []


def test_the_excess_is_that_which_xla_states() -> None:
    """The sizes are rounded: their difference is 317.4 KiB."""
    (report,) = reports("Ran out of memory in memory space vmem. Used 16.31M of 16.00M vmem. Exceeded vmem capacity by 320.0K.")
    assert (report.space, report.exceeded) == ("vmem", 320 << 10)


REMATERIALIZATION = (
    "W external/xla/xla/hlo/transforms/simplifiers/hlo_rematerialization.cc:3183] Can't reduce memory use below 3.00GiB "
    "(3221225472 bytes) by rematerialization; only reduced to 5.00GiB (5368709120 bytes), "
    "down from 6.50GiB (6979321856 bytes) originally"
)


def test_a_warning_of_rematerialization_has_exact_bytes() -> None:
    (report,) = reports(f"{REMATERIALIZATION}\nstep 1 took 3.00G\n")
    assert (report.used, report.capacity, report.exceeded, report.before) == (5 * GIB, 3 * GIB, 2 * GIB, 13 * GIB // 2)
    assert report.parts == {}


def test_a_warning_ends_no_report_around_it() -> None:
    whole, warning = reports(TPU.replace("Program hbm", f"{REMATERIALIZATION}\nProgram hbm"))
    assert (whole.parts["Program hbm requirement"], len(whole.largest), warning.used) == (round(41.22 * GIB), 2, 5 * GIB)
