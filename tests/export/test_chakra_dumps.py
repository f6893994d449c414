"""Exports of compilers' dumps: the files and the list of what they lack add up to the dump's facts, and ranks agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.export.step_export import step_export
from hlo_inspect.export.written.chakra_export import ChakraExport
from hlo_inspect.figure import least
from hlo_inspect.hlo.opcodes import COLLECTIVE_KINDS
from tests.export.exporting import left_out, reported
from tests.export.traces import check, load, play

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "dumps"
DUMPS = [
    *(DATA / f"{target}/{program}.after.txt" for target in ("cpu", "gpu", "tpu") for program in ("collectives", "scan_fsdp")),
    DATA / "gpu/gathered_matmul.after.txt",
    DATA / "tpu/gathered_matmul.after.txt",
]
REAL = [
    path
    for name in (
        "seeds/001_f260b7b1b8c886c1.txt",
        "gpu_h100x8/tf_dptp_scan.opt.hlo.txt.xz",
        "gpu_h100x8/moe_ep_alltoall.opt.hlo.txt.xz",
        "tpu_v5e_2x4/tf_fsdp_scan.opt.hlo.txt.xz",
        "tpu_v5e_2x4/pipeline_ppermute.opt.hlo.txt.xz",
        "cpu/ring_attention_ppermute.opt.hlo.txt.xz",
    )
    if (path := SHARED / name).exists()
]


@pytest.mark.parametrize(
    "path", [path for path in DUMPS if path.exists()] + REAL, ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_files_and_what_they_lack_add_up_to_the_facts(path: Path, tmp_path: Path) -> None:
    report, context = reported(path, also=("collectives",), quick=False)
    export = context.once(step_export)
    export.write(str(tmp_path / "out"))
    traces = load(tmp_path / "out")
    check(traces)
    play(traces)
    facts, (runs, sizes) = report.facts, left_out(report)
    in_files, sizes_in_files = traces.moved(0)
    messages = traces.messages_sent()
    in_files["collective-permute"], sizes_in_files["collective-permute"] = len(messages), sum(messages.values())
    for kind in COLLECTIVE_KINDS:
        name = f"{kind}.executed"
        assert facts[f"export.{name}_count"] == in_files[kind]
        assert facts[f"export.{name}_operand_bytes"] == sizes_in_files[kind]
        assert in_files[kind] + runs[kind] == facts[f"collectives.{name}_count"], kind
        assert sizes_in_files[kind] + sizes[kind] == facts[f"collectives.{name}_operand_bytes"], kind
    axes = {row["axis"] for row in report.table("export").records() if row["axis"]}
    for axis in axes:
        rows = [row for row in report.table("export").records() if row["axis"] == axis]
        rows += [row for row in report.table("not_expressed").records() if row["axis"] == axis]
        assert sum(int(row["runs"] or 0) for row in rows) == facts[f"collectives.axis.{axis}.executed_count"]


def test_kernels_of_a_dump_keep_their_work() -> None:
    """FLOPs are XLA's own count of the step; bytes are those of the cost model."""
    _, context = reported(DATA / "gpu/gathered_matmul.after.txt")
    export = context.once(step_export)
    assert isinstance(export, ChakraExport)
    nodes = export.nodes
    flops = sum(getattr(node, "flops", 0) for node in nodes)
    own = sum(least(kernel.of_step("flops")) for kernel in context.own_kernels)
    assert own <= flops <= own + len(nodes)
