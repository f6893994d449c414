"""The first line: keys in any order for SimAI, by their places for ASTRA-sim 1.0, and what neither reads."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.workloads.workload_header import parse_header

POLICY = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
KEYS = "model_parallel_NPU_group: 8 ep: 2 pp: 4 vpp: 3 ga: 5 all_gpus: 256 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 9"


def report(header: str) -> Report:
    return hlo_inspect.inspect(f"{header}\n1\nlayer -1 1 ALLREDUCE 64 1 NONE 0 1 NONE 0 1\n", "workload")


def messages(header: str) -> list[str]:
    return [finding.message for finding in report(header).findings]


def test_keys_in_any_order() -> None:
    pairs = [" ".join(pair) for pair in zip(KEYS.split()[::2], KEYS.split()[1::2], strict=True)]
    for header in (f"{POLICY} {KEYS}", " ".join([POLICY, *reversed(pairs)])):
        facts = report(header).facts
        assert (facts["workload.parallelism"], facts["workload.dp_ep.devices"]) == ("8x4x8", 4)
        assert facts["workload.pp_comm"] == 9
        assert messages(header) == []


def test_a_key_without_its_colon_and_a_float() -> None:
    """SimAI takes pp_comm without a colon, and of a float the part before the point, which is how Python divides."""
    assert report(f"{POLICY} {KEYS}".replace("pp_comm:", "pp_comm")).facts["workload.pp_comm"] == 9
    assert report(f"{POLICY} {KEYS}".replace("pp_comm: 9", "pp_comm: 16777216.0")).facts["workload.pp_comm"] == 16777216


def test_lists_of_checkpoints() -> None:
    text = f"{POLICY} model_parallel_NPU_group: 4 checkpoints: 2 2 11 checkpoint_initiates: 2 19 10"
    header = parse_header(1, text)
    assert header.keys["checkpoints"].values == (2, 2, 11)
    assert header.keys["checkpoint_initiates"].written == "2 19 10"
    assert (header.dialect, header.faults) == ("astra-sim", ())
    assert "checkpoints says 2 rows and names 1" in messages(text.replace("2 2 11", "2 2"))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("vpp", "vpp is missing: current SimAI needs it if pp is 4"),
        ("pp", "pp is missing: SimAI divides by it"),
        ("all_gpus", "all_gpus is missing: SimAI warns"),
        ("pp_comm", "pp_comm is missing: SimAI counts no transfers between the 4 pipeline stages"),
    ],
)
def test_a_key_that_is_missing(key: str, message: str) -> None:
    values = dict(zip(KEYS.split()[::2], KEYS.split()[1::2], strict=True))
    del values[f"{key}:"]
    assert [text for text in messages(" ".join((POLICY, *(f"{k} {v}" for k, v in values.items())))) if message in text]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ep: 2", "ep:2", "ep:2 belongs to no key: a blank belongs after ep:"),
        ("ep: 2", "experts: 2 ep: 2", "experts is not a key that a client reads"),
        ("ep: 2", ": ep: 2", ": belongs to no key"),
        ("ep: 2", "ep: two", "ep: two is no integer"),
        ("ep: 2", "ep: 2 ep: 2", "the key ep occurs twice"),
        ("pp_comm: 9", "pp_comm:", "pp_comm has no value"),
        ("pp_comm: 9", "pp_comm: 2147483648", "is too large for clients"),
        ("pp_comm: 9", f"pp_comm: {'9' * 5000}", "is too large"),
        ("ga: 5", "ga: 0", "ga is not positive"),
        ("all_gpus: 256", "all_gpus: 250", "TP 8 x PP 4 = 32 does not divide the 250 devices"),
        ("ep: 2", "ep: 3", "EP 3 does not divide the 8 data parallel devices"),
        ("pp: 4", "pp: 1", "pp_comm is 9 with one pipeline stage"),
        (POLICY, "HYBRID_SOMETHING", "HYBRID_SOMETHING is not a policy that a client knows"),
    ],
)
def test_headers_that_a_client_reads_otherwise_are_findings(old: str, new: str, message: str) -> None:
    assert [text for text in messages(f"{POLICY} {KEYS}".replace(old, new)) if message in text]


def test_places_matter_to_astra_sim() -> None:
    right = f"{POLICY} model_parallel_NPU_group: 4 checkpoints: 0 checkpoint_initiates: 0"
    assert messages(right) == []
    wrong = f"{POLICY} checkpoints: 0 model_parallel_NPU_group: 4 checkpoint_initiates: 0"
    assert [text for text in messages(wrong) if "in this order" in text]
    assert [text for text in messages(f"{POLICY} model_parallel_NPU_group: 4") if "checkpoints is missing" in text]


def test_aicb_writes_a_key_that_simai_does_not_read() -> None:
    text = f"{POLICY}\tmodel_parallel_NPU_group: 8    expert_parallel_npu_group: 1 pp: 1    ga: 1 all_gpus: 8 checkpoints: 0"
    assert report(text).facts["workload.dialect"] == "simai"
    assert any("SimAI does not read expert_parallel_npu_group" in message for message in messages(text))
