"""Workloads in another dialect: equal bytes in their own, equal rows if it can express them, else a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.inspection.other_inputs import rewritten_workload

DATA = Path(__file__).parents[1] / "data/workloads"
POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
ONE_STAGE = f"{POLICY} model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 4 ga: 3 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0"
ROWS = (
    "2\n"
    "a\t-1\t5\tALLGATHER\t64\t6\tREDUCESCATTER\t64\t7\tALLGATHER\t80\t8\n"
    "b\t-1\t5\tALLREDUCE\t64\t6\tNONE\t0\t7\tNONE\t0\t8\n"
)


def write(text: str, to: str) -> str:
    return rewritten_workload(text.encode(), to).decode()


@pytest.mark.parametrize(("name", "to"), [("simai.txt", "simai"), ("simai.txt", "aicb"), ("astra_sim.txt", "astra-sim")])
def test_the_same_dialect_gives_the_same_bytes(name: str, to: str) -> None:
    path = DATA / name
    assert rewritten_workload(path, to) == path.read_bytes()


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_line_ends_stay_as_they_are(end: str) -> None:
    data = f"{ONE_STAGE}\n1\na -1  1 NONE 0 1 NONE 0\t1 NONE 0 1{end}".encode()
    assert rewritten_workload(data, "simai") == data


def test_sizes_of_gathers_change_with_the_convention() -> None:
    """With TP 2 and DP 4, a device gives 64 / 2 and 80 / 4 bytes."""
    text = write(f"{ONE_STAGE}\n{ROWS}", "astra-sim")
    assert text == (
        f"{POLICY} model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0\n"
        + ROWS.replace("ALLGATHER\t64", "ALLGATHER\t32").replace("ALLGATHER\t80", "ALLGATHER\t20")
    )


def test_a_file_converts_back_to_the_first_dialect() -> None:
    """The devices of the job are not in the file: without a gather over data parallel devices none are needed."""
    rows = ROWS.replace("ALLGATHER\t80", "ALLREDUCE\t80")
    astra_sim = write(f"{ONE_STAGE}\n{rows}", "astra-sim")
    back = write(astra_sim, "aicb")
    header = f"{POLICY} model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0"
    assert back == f"{header}\n{rows}"
    assert write(back, "astra-sim") == astra_sim


def test_aicb_s_spelling() -> None:
    text = f"{ONE_STAGE} pp_comm 0\n1\na -1  1 NONE 0 1 NONE 0\t1 NONE 0 1\n"
    assert write(text, "aicb") == f"{ONE_STAGE} pp_comm: 0\n1\na\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tNONE\t0\t1\n"


@pytest.mark.parametrize(
    ("text", "to", "lost"),
    [
        ((DATA / "simai.txt").read_text(), "astra-sim", "pp: 2 (pipeline stages (PP)) has no place in the header"),
        ((DATA / "simai.txt").read_text(), "astra-sim", "moelayer1 on line 7: ALLTOALL_EP names a group"),
        ((DATA / "astra_sim.txt").read_text(), "simai", "and this is HYBRID_DLRM"),
        (f"{ONE_STAGE}\n{ROWS}".replace("\t80\t", "\t81\t"), "astra-sim", "81 bytes of ALLGATHER are no whole number"),
        (f"{ONE_STAGE}\n{ROWS}".replace(" all_gpus: 8", ""), "astra-sim", "all_gpus lacks their number"),
        (f"{ONE_STAGE}\n{ROWS}".replace("\t5\t", "\t5.5\t"), "astra-sim", "line 3 cannot be read"),
        (
            f"{POLICY} model_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0\n{ROWS}",
            "simai",
            "the size of ALLGATHER changes with the devices of its group",
        ),
    ],
)
def test_a_conversion_that_loses_something_names_it(text: str, to: str, lost: str) -> None:
    with pytest.raises(hlo_inspect.HloInspectError) as raised:
        write(text, to)
    assert f"cannot be written as {to}: " in raised.value.message
    assert lost in raised.value.message


def test_only_workload_files_are_written() -> None:
    with pytest.raises(hlo_inspect.InputError, match="is not a workload file"):
        write("HloModule m\n", "simai")
