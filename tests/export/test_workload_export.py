"""Exports to the text dialects: cells and sizes worked out by hand, and files that `workload` reads without a finding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.export.plan.kernel_work import PICOSECONDS
from hlo_inspect.export.step_export import step_export
from hlo_inspect.export.written import workload_export
from hlo_inspect.export.written.layer_rows import LayerRow
from hlo_inspect.export.written.workload_export import WorkloadExport
from hlo_inspect.report.model import Report
from hlo_inspect.workloads.row import HLO_KINDS, PASSES
from tests.export.exporting import left_out, module, reported
from tests.export.test_chakra_plan import PERMUTE, P

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[3] / "shared" / "dumps"


def exported(source: str | Path, *axes: str, to: str = "simai", **options: Any) -> tuple[Report, WorkloadExport]:
    report, context = reported(source, simulator=to, profile=options.pop("profile", "h100-sxm"), axis_words=axes, **options)
    export = context.once(step_export)
    assert isinstance(export, WorkloadExport)
    return report, export


def cells(export: WorkloadExport) -> list[tuple[str, str, str | None, int | None]]:
    """Return name, pass, word and size of the cells with a collective, in the order of the file."""
    return [(row.name, name, word, size) for row in export.rows for name, _, word, size in row.cells if word != "NONE"]


SCOPE = ', metadata={{op_name="jit(f)/{}/op"}}'
FORWARD, BACKWARD = "jvp(net)/layers_{}", "transpose(jvp(net))/layers_{}"
GATHER = (
    "%{} = f32[131072] all-gather(%{}), channel_id={}, replica_groups={}, dimensions={{0}}, use_global_device_ids=true" + SCOPE
)
REDUCE = "%{} = f32[65536] all-reduce(%{}), channel_id={}, replica_groups={}, use_global_device_ids=true, to_apply=%add" + SCOPE
KERNEL = "%{} = f32[65536] add(%{}, %{})" + SCOPE
OUTER, INNER = "{{0,2},{1,3}}", "{{0,1},{2,3}}"
STEP = module(
    P,
    GATHER.format("weights", "p", 1, OUTER, FORWARD.format(0)),
    "%w = f32[65536] slice(%weights), slice={[0:65536]}" + SCOPE.format(FORWARD.format(0)),
    KERNEL.format("k0", "w", "p", FORWARD.format(0)),
    REDUCE.format("activations", "k0", 2, INNER, FORWARD.format(0)),
    KERNEL.format("k1", "activations", "p", FORWARD.format(1)),
    KERNEL.format("b1", "k1", "p", BACKWARD.format(1)),
    REDUCE.format("inputs", "b1", 3, INNER, BACKWARD.format(1)),
    KERNEL.format("b0", "inputs", "p", BACKWARD.format(0)),
    REDUCE.format("first", "b0", 4, OUTER, BACKWARD.format(0)),
    REDUCE.format("second", "b1", 5, OUTER, BACKWARD.format(0)),
    REDUCE.format("norm", "first", 6, "{}", BACKWARD.format(0)),
    "ROOT " + KERNEL.format("last", "norm", "second", BACKWARD.format(0)),
    ranks=4,
)
WORDS = "d0=DP", "d1=TP"


def test_collectives_stand_in_the_cells_that_they_block() -> None:
    """TP stands before its first user, DP in its own layer's cells of the weight gradient.

    The backward pass runs from the last row to the first, so the first gradient of a layer stands in its last row.
    """
    report, export = exported(STEP, *WORDS)
    assert cells(export) == [
        ("layers_0", "weight_gradient", "ALLREDUCE", 262_144),
        ("layers_0#2", "weight_gradient", "ALLREDUCE", 262_144),
        ("layers_0#3", "input_gradient", "ALLREDUCE", 262_144),
        ("layers_0#3", "weight_gradient", "ALLGATHER", 524_288),
        ("layers_1", "forward", "ALLREDUCE", 262_144),
    ]
    (row,) = report.table("not_expressed").records()
    assert (row["name"], row["reason"]) == ("norm", "the axes d0,d1 have the words DP and TP, and no group has both")


def test_sizes_are_those_of_the_client() -> None:
    """SimAI counts the gathered array, ASTRA-sim 1.0 the part of one device."""
    sizes = [
        [size for _, _, word, size in cells(exported(STEP, *WORDS, to=to)[1]) if word == "ALLGATHER"]
        for to in ("simai", "astra-sim")
    ]
    assert sizes == [[524_288], [262_144]]


def test_the_header_has_the_groups() -> None:
    simai, astra_sim = (exported(STEP, *WORDS, to=to)[1].content.decode().splitlines()[0] for to in ("simai", "astra-sim"))
    assert simai == (
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 "
        "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0"
    )
    assert astra_sim == "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0"


GROUPS = {
    "a": "{{0,4},{1,5},{2,6},{3,7}}",
    "b": "{{0,2},{1,3},{4,6},{5,7}}",
    "c": "{{0,1},{2,3},{4,5},{6,7}}",
    "ab": "{{0,2,4,6},{1,3,5,7}}",
}


def words_of(*axes: str, to: str) -> dict[str, str]:
    """Return the word of each collective of a step over a mesh of 2 x 2 x 2, or the reason why it has none."""
    pairs = enumerate(zip(["p", *GROUPS], GROUPS, strict=False))
    lines = [REDUCE.format(name, before, number + 1, GROUPS[name], "net") for number, (before, name) in pairs]
    step = module(P, *lines, "ROOT " + KERNEL.format("last", "ab", "p", "net"), ranks=8)
    report, export = exported(step, *axes, to=to, mesh="a=2,b=2,c=2")
    reasons = {str(row["name"]): str(row["reason"]) for row in report.table("not_expressed").records()}
    placed = [(cell.communication, cell.word) for layer in export.layers for own in layer.cells.values() for cell in own]
    return reasons | {own.collective.start.name: word for own, word in placed if own is not None}


PART, WORDLESS = "{} is a part of DP, which is a,b", "the axis b has no word; name it with --axis"
NO_WORD = "ASTRA-sim 1.0 has no word for {} beside the other data parallel devices"


@pytest.mark.parametrize(
    ("axes", "to", "words"),
    [
        (("a=DP", "b=DP", "c=TP"), "simai", {"a": PART.format("a"), "b": PART.format("b"), "c": "TP", "ab": "DP"}),
        (("a=DP", "b=EP", "c=TP"), "simai", {"a": "DP_EP", "b": "EP", "c": "TP", "ab": "DP"}),
        (("a=DP", "b=EP", "c=TP"), "astra-sim", {"a": NO_WORD.format("DP"), "b": NO_WORD.format("EP"), "c": "TP", "ab": "DP"}),
        (("a=EP", "c=TP"), "simai", {"a": "EP", "b": WORDLESS, "c": "TP", "ab": WORDLESS}),
        (("a=EP", "c=TP"), "astra-sim", {"a": "DP", "b": WORDLESS, "c": "TP", "ab": WORDLESS}),
        (("a=DP", "c=TP"), "simai", {"a": "DP", "b": WORDLESS, "c": "TP", "ab": WORDLESS}),
    ],
)
def test_words_by_axis(axes: tuple[str, ...], to: str, words: dict[str, str]) -> None:
    assert words_of(*axes, to=to) == words


def test_groups_that_are_no_axes_are_named() -> None:
    report, _ = exported(STEP.replace(OUTER, "{{0,2},{3}}"), *WORDS)
    reasons = {row["name"]: row["reason"] for row in report.table("not_expressed").records()}
    assert {reasons[name] for name in ("weights", "first", "second")} == {"its groups are no whole mesh axes"}


def test_without_a_mesh_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(STEP.replace(OUTER, "{{0,1,2},{3}}"))
    options = ["--to", "simai", "--profile", "h100-sxm", "--axis", "d0=DP", "-o", str(tmp_path / "out")]
    assert run(["export", str(dump), *options]) == 2
    assert "the mesh of the program is unknown" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_has_no_word_is_named() -> None:
    step = module(P, PERMUTE.format("ring", "p", "{{0,1},{1,0}}"), "ROOT " + KERNEL.format("last", "ring", "p", "net"))
    report, _ = exported(step, "d0=DP")
    (row,) = report.table("not_expressed").records()
    assert (row["kind"], row["runs"], row["executed_operand_bytes"]) == ("collective-permute", 1, 262_144)
    assert row["reason"] == "the text dialects have no word for messages from rank to rank"


DUMPS = [
    *[(DATA / "cpu/collectives.after.txt", ("d0=DP", "d1=TP"), to) for to in ("simai", "astra-sim")],
    *[(DATA / "gpu/scan_forward.after.txt", ("d0=DP",), to) for to in ("simai", "astra-sim")],
    (DATA / "cpu/scan_fsdp.after.txt", ("d0=DP",), "simai"),
    *[
        (SHARED / name, axes, to)
        for name, axes, to in (
            ("seeds/001_f260b7b1b8c886c1.txt", ("d0=DP", "d1=TP"), "simai"),
            ("gpu_h100x8/tf_dptp_scan.opt.hlo.txt.xz", ("d0=DP", "d1=TP"), "astra-sim"),
            ("tpu_v5e_2x4/pipeline_ppermute.opt.hlo.txt.xz", ("d0=DP",), "simai"),
            ("cpu/moe_ep_alltoall.opt.hlo.txt.xz", ("d0=EP",), "simai"),
        )
        if (SHARED / name).exists()
    ],
]


@pytest.mark.parametrize(("path", "axes", "to"), DUMPS, ids=lambda value: value.stem if isinstance(value, Path) else "")
def test_a_round_trip_adds_up_and_has_no_finding(path: Path, axes: tuple[str, ...], to: str, tmp_path: Path) -> None:
    report, export = exported(path, *axes, to=to, also=("collectives", "time"))
    export.write(str(tmp_path / "step.txt"))
    read = hlo_inspect.inspect(tmp_path / "step.txt", "workload")
    assert read.findings == ()
    facts, (runs, sizes) = report.facts, left_out(report)
    for word, kind in HLO_KINDS.items():
        name = f"{kind}.executed"
        assert read.facts[f"workload.{word}.count"] == facts[f"export.{name}_count"]
        if to == "astra-sim" or kind != "all-gather":
            assert read.facts[f"workload.{word}.bytes"] == facts[f"export.{name}_operand_bytes"]
    for kind in (*HLO_KINDS.values(), "collective-permute"):
        counted = facts[f"export.{kind}.executed_count"], facts[f"export.{kind}.executed_operand_bytes"]
        assert (counted[0] + runs[kind], counted[1] + sizes[kind]) == (  # type: ignore[operator]  # integers
            facts[f"collectives.{kind}.executed_count"],
            facts[f"collectives.{kind}.executed_operand_bytes"],
        )
    times = sum(work.time for name, work in export.plan.program.work.items() for _ in range(runs_of(export, name)))
    compute = sum(int(read.facts[f"workload.{name}.compute"] or 0) for name in PASSES)
    assert compute == pytest.approx(times / (PICOSECONDS // 10**9), abs=3), "at most a nanosecond of each pass is lost"


def runs_of(export: WorkloadExport, place: tuple[str, int, str]) -> int:
    kernel = export.plan.program.work[place].kernel
    runs = kernel.runs
    assert isinstance(runs, int)
    in_step = place in export.plan.program.issued.kernels and any(
        step.place == place and type(step).__name__ == "ComputeStep"
        for step in export.plan.program.issued.program.steps.get(place[0], ())
    )
    return runs if in_step else 0


def test_a_cell_is_shorter_than_the_client_can_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """SimAI writes no times near 2^31 ns: longer compute is split into rows."""
    assert workload_export.MAX_CELL < 2_147_482_000
    layer = LayerRow("long")
    layer.time["forward"] = 5 * 10**9 * 1000 + 300
    layer.close("forward")
    rows = list(workload_export._RowMaker("simai").rows(layer))
    assert [(row.name, row.forward_time) for row in rows] == [
        ("long", 2 * 10**9),
        ("long#2", 2 * 10**9),
        ("long#3", 10**9),
    ]


def test_names_have_no_blanks_and_occur_once() -> None:
    maker = workload_export._RowMaker("simai")
    names = [row.name for _ in range(2) for row in maker.rows(LayerRow("a b\tc\x1b"))]
    assert names == ["a_b_c_", "a_b_c_#2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--to simai needs a --profile: its rows have compute times"),
        (["--profile", "h100-sxm"], "name the mesh axes d0 (2), d1 (2) by --axis, for example --axis d0=DP"),
        (["--profile", "h100-sxm", "--axis", "d7=DP"], "--axis d7=DP: the mesh has no axis d7; it has d0 (2), d1 (2)"),
        (["--profile", "h100-sxm", "--axis", "d0=PP"], "--axis d0=PP: write AXIS=WORD with a word of TP, DP, EP"),
        (["--profile", "h100-sxm", "--axis", "d0=DP,d1"], "--axis d1: write AXIS=WORD with a word of TP, DP, EP"),
        (["--profile", "h100-sxm", "--axis", "d0=DP", "--axis", "d0=TP"], "--axis d0=TP: the axis d0 has a word already"),
    ],
)
def test_wrong_options_are_one_line(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dump = tmp_path / "dump.txt"
    dump.write_text(STEP)
    assert run(["export", str(dump), "--to", "simai", "-o", str(tmp_path / "out.txt"), *options]) == 2
    output = capsys.readouterr()
    assert message in output.err
    assert (output.out, output.err.count("\n")) == ("", 1)
    assert not (tmp_path / "out.txt").exists()


def test_a_file_is_written_as_a_whole_and_reproducible(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump, out = tmp_path / "dump.txt", tmp_path / "out.txt"
    dump.write_text(STEP)
    command = ["export", str(dump), "--to", "simai", "--profile", "h100-sxm", "--axis", "d0=DP", "--axis", "d1=TP", "-o"]
    assert run([*command, str(out)]) == 0
    first = out.read_bytes()
    assert run([*command, str(out)]) == 0
    assert out.read_bytes() == first
    listed = [word for word in command if word not in {"--axis", "d0=DP", "d1=TP"}]
    assert run([*listed[:-1], "--axis", "d0=DP,d1=TP", "-o", str(out)]) == 0  # as --mesh takes its list
    assert out.read_bytes() == first
    assert run([*command, str(tmp_path)]) == 2
    assert "is a folder; the text dialects need a file" in capsys.readouterr().err
