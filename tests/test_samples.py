"""Dumps of real training programs beside the checkout. Their figures come from the text by other means.

pytest collects nothing here if the folder is missing.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.inspection.other_inputs import rewritten_workload
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Plain

SEEDS = Path(__file__).parents[2] / "shared/dumps/seeds"

__test__ = SEEDS.is_dir()

PIPESHARD, GPT, TPU, WORKLOAD, ALL_TO_ALL = (
    "000_0dd7b20a7ec1e4a1",
    "001_f260b7b1b8c886c1",
    "002_496ac125c3946675",
    "003_ec526f178b8c47e2",
    "004_b1cf5d3eba6d7049",
)

FACTS: dict[str, dict[str, Plain]] = {
    PIPESHARD: {
        "module.name": "train_step_pipeshard_parallel_mesh_1",
        "module.is_scheduled": False,
        "module.unparsed_lines": 0,
        "module.computations": 35,
        "module.instructions": 1021,
        "module.entry_instructions": 606,
        "params.count": 25,
        "params.bytes": 3_294_166_544,
        "params.aliased_count": 20,
        "params.aliased_bytes": 3_097_550_864,
        "params.donated_count": 20,
        "outputs.count": 50,
        "outputs.bytes": 5_680_803_876,
        "outputs.aliased_count": 20,
        "fusions.count": 0,
        "custom_calls.count": 8,
        "custom_calls.target.pipeline_marker": 6,
        "custom_calls.target.__builtin$CrossMeshAllReduce": 2,
        "collectives.count": 0,
    },
    GPT: {
        "module.name": "train_step_shard_parallel.6",
        "module.unparsed_lines": 0,
        "module.shapes": "per_device",
        "module.devices": 16,
        "module.computations": 481,
        "module.instructions": 9679,
        "module.entry_instructions": 1656,
        "params.count": 239,
        "params.bytes": 194_152_460,
        "params.aliased_count": 233,
        "params.aliased_bytes": 194_070_536,
        "params.unused_count": 2,
        "params.unused_bytes": 16_384 + 4,
        "outputs.count": 233,
        "outputs.bytes": 194_070_536,
        "outputs.aliased_count": 233,
        "fusions.count": 282,
        "fusions.kind.kLoop": 178,
        "fusions.kind.kInput": 104,
        "fusions.multi_output_count": 89,
        "custom_calls.count": 151,
        "custom_calls.target.__cublas$gemm": 151,
        "collectives.count": 43,
        "collectives.all-reduce.count": 43,
        "collectives.async_count": 0,
        "collectives.operand_bytes": 364_305_412,
        "collectives.wire_bytes": 557_899_776 + 45_505_540,
        "collectives.group_size.8.count": 40,
        "collectives.group_size.8.operand_bytes": 318_799_872,
        "collectives.group_size.2.count": 3,
        "collectives.group_size.2.operand_bytes": 45_505_540,
    },
    TPU: {
        "module.name": "jit_forward",
        "module.is_scheduled": True,
        "module.num_partitions": 8,
        "module.devices": 8,
        "module.shapes": "per_device",
        "module.computations": 15,
        "module.instructions": 118,
        "opcode.convolution": 2,
        "params.count": 4,
        "params.aliased_count": 0,
        "fusions.count": 9,
        "collectives.count": 3,
        "collectives.all-gather.count": 2,
        "collectives.all-gather.operand_bytes": 2 * 512 * 1024 * 2,
        "collectives.all-reduce.operand_bytes": 8_388_608,
        "collectives.group_size.2.count": 2,
        "collectives.group_size.4.count": 1,
        "collectives.wire_bytes": 2 * 1_048_576 + 12_582_912,
    },
    ALL_TO_ALL: {
        "module.num_partitions": 1,
        "module.devices": 4,
        "module.computations": 6,
        "module.instructions": 48,
        "module.entry_instructions": 22,
        "params.count": 5,
        "params.bytes": 268_435_460,
        "params.aliased_count": 0,
        "outputs.count": 3,
        "outputs.bytes": 134_217_732,
        "fusions.count": 4,
        "fusions.kind.kLoop": 4,
        "custom_calls.target.__cublas$gemm": 5,
        "collectives.count": 2,
        "collectives.all-reduce.operand_bytes": 67_108_864,
        "collectives.all-to-all.operand_bytes": 67_108_864,
        "collectives.group_size.4.count": 2,
        "collectives.wire_bytes": 100_663_296 + 50_331_648,
    },
}

CENSUS = """
parameter 285 get-tuple-element 218 broadcast 102 constant 68 multiply 64 add 53 divide 36 select 32 convert 23 reduce 18
reshape 15 call 14 tuple 13 and 10 dot 9 subtract 9 custom-call 8 compare 8 sqrt 5 is-finite 4 gather 3 transpose 3 power 3
maximum 2 negate 2 exponential 2 iota 2 scatter 2 minimum 2 rsqrt 1 log 1 concatenate 1 not 1 or 1 cosine 1
"""
"""Every instruction of the pipeshard module by its opcode."""


@cache
def report(sample: str, command: str = "summary") -> Report:
    """Return the report of a sample, with phases by names."""
    return hlo_inspect.inspect(SEEDS / f"{sample}.txt", (command,), phases="names")


def columns(sample: str, table: str, *names: str, command: str | None = None) -> list[tuple[Plain, ...]]:
    records = report(sample, command or table).table(table).records()
    return [tuple(record[name] for name in names) for record in records]


@pytest.mark.parametrize("sample", FACTS)
def test_facts(sample: str) -> None:
    assert {fact: report(sample).facts[fact] for fact in FACTS[sample]} == FACTS[sample]


@pytest.mark.parametrize("sample", FACTS)
def test_commands_have_the_facts_of_the_summary(sample: str) -> None:
    for command in ("params", "fusions", "collectives"):
        facts = report(sample, command).facts
        own = {fact: value for fact, value in facts.items() if not fact.startswith("module.")}
        assert own == {fact: report(sample).facts[fact] for fact in own}


def test_opcode_counts_cover_all_instructions() -> None:
    words = CENSUS.split()
    census = {f"opcode.{name}": int(count) for name, count in zip(words[::2], words[1::2], strict=True)}
    assert sum(census.values()) == 1021
    assert {fact: value for fact, value in report(PIPESHARD).facts.items() if fact.startswith("opcode.")} == census


@pytest.mark.parametrize(
    ("sample", "not_donated", "size"),
    [(PIPESHARD, range(20, 25), 196_615_680), (GPT, range(233, 239), 81_924)],
)
def test_parameters_that_are_not_donated(sample: str, not_donated: range, size: int) -> None:
    rows = [(number, size) for number, size, donated in columns(sample, "params", "number", "bytes", "donated") if not donated]
    assert [number for number, _ in rows] == list(not_donated)
    assert sum(int(size or 0) for _, size in rows) == size


@pytest.mark.parametrize(("sample", "last"), [(PIPESHARD, 19), (GPT, 232)])
def test_each_aliased_output_uses_the_parameter_of_its_number(sample: str, last: int) -> None:
    aliases = [
        (index, parameter) for index, parameter in columns(sample, "outputs", "index", "aliased_parameter", command="params")
    ]
    assert [pair for pair in aliases if pair[1] != ""] == [(f"{{{number}}}", str(number)) for number in range(last + 1)]


def test_parameters_that_no_instruction_reads() -> None:
    unused = [row[:3] for row in columns(GPT, "params", "number", "name", "line", "unused") if row[3]]
    assert unused == [(237, "param", 9467), (238, "param.1", 9468)]


def test_parameter_numbers_differ_from_the_numbers_in_their_names() -> None:
    rows = columns(ALL_TO_ALL, "params", "number", "name", "shape")
    assert [(number, name) for number, name, _ in rows if number in {2, 3}] == [(2, "param.3"), (3, "param.2")]
    assert [shape for _, _, shape in rows][:3] == ["s32[]", "f32[8192,2048]", "f32[2048,8192]"]


def test_roots_of_fusions() -> None:
    rows = columns(GPT, "fusions_by_root", "kind", "root", "count", command="fusions")
    loops = {"bitcast": 52, "tuple": 32, "add": 25, "convert": 18, "transpose": 12, "divide": 12, "copy": 12, "multiply": 7}
    loops |= {"broadcast": 6, "dynamic-slice": 2}
    assert {root: count for kind, root, count in rows if kind == "kLoop"} == loops
    assert {root: count for kind, root, count in rows if kind == "kInput"} == {"tuple": 57, "reduce": 47}


def test_all_reduces_of_gpt() -> None:
    rows = columns(GPT, "collectives", "line", "operand_bytes", "group_size", "reduction", "channel_id", "is_async")
    assert Counter(size for _, operand, size, *_ in rows if operand == 8_388_608) == {8: 37}
    others = {line: (operand, size) for line, operand, size, *_ in rows if operand != 8_388_608}
    assert others == {
        9480: (4, 2),
        9497: (8_396_800, 8),
        9794: (8_192, 8),
        9796: (16_384, 8),
        10577: (45_399_040, 2),
        10623: (106_496, 2),
    }
    assert Counter(row[3] for row in rows) == {"add": 42, "max": 1}
    assert [row[0] for row in rows if row[3] == "max"] == [9794]
    assert sorted(int(row[4] or 0) for row in rows) == [1, 2, *range(5, 46)]


def test_all_gathers_of_the_tpu_sample() -> None:
    names = ("name", "line", "shape", "operand_bytes", "result_bytes", "group_size")
    gathers = sorted(row[1:] for row in columns(TPU, "collectives", "kind", *names) if row[0] == "all-gather")
    assert [row[0] for row in gathers] == ["all-gather", "all-gather.1"]
    assert sorted(int(row[1] or 0) for row in gathers) == [274, 276]
    assert {row[2:] for row in gathers} == {("bf16[1024,1024]", 1_048_576, 2_097_152, 2)}
    assert report(TPU).input.first_line > 1


def test_a_group_of_one_replica_has_all_of_its_partitions() -> None:
    """`replica_groups={{0}}` has a channel. Only the all-to-all and the shardings show its four partitions."""
    rows = columns(ALL_TO_ALL, "collectives", "kind", "replica_groups", "channel_id", "group_size", "wire_bytes")
    assert ("all-reduce", "{{0}}", 1, 4, 100_663_296) in rows
    assert [row[3:] for row in rows if row[0] == "all-to-all"] == [(4, 50_331_648)]


WORKLOAD_FACTS: dict[str, Plain] = {
    "workload.dialect": "simai",
    "workload.rows": 557,
    "workload.stated_rows": 557,
    "workload.distinct_rows": 20,
    "workload.parallelism": "8x16x8",
    "workload.devices": 1024,
    "workload.bytes": 126_711_545_872,
    "workload.unknown_bytes": 0,
    "workload.allgather.count": 529 + 1,  # the last one, ALLGATHER_DP_EP, has size 0
    "workload.allgather.bytes": 77_267_992_576,
    "workload.reducescatter.count": 529 + 1,
    "workload.reducescatter.bytes": 47_161_802_752,
    "workload.allreduce.count": 24,
    "workload.allreduce.bytes": 2_281_750_544,
    "workload.alltoall.count": 0,
    "workload.forward.bytes": 36_507_222_016 + 34_359_738_368 + 2_147_532_816,
    "workload.input_gradient.bytes": 34_359_738_368 + 134_217_728,
    "workload.weight_gradient.bytes": 6_401_032_192 + 12_802_064_384,
    "workload.forward.compute": 2_903_350_534,
    "workload.input_gradient.compute": 2_134_392_277,
    "workload.weight_gradient.compute": 2_175_489_194,
    "workload.update.compute": 55_700,
    "workload.tp.bytes": 107_508_449_296,
    "workload.dp.bytes": 19_203_096_576,
    "workload.ep.bytes": 0,
    "workload.dp_ep.bytes": 0,
}


def test_facts_of_a_workload_file() -> None:
    report = hlo_inspect.inspect(SEEDS / f"{WORKLOAD}.txt", "summary")
    assert {name: report.facts[name] for name in WORKLOAD_FACTS} == WORKLOAD_FACTS
    assert report.facts["collectives.all-gather.executed_count"] == 530
    assert report.facts["collectives.reduce-scatter.executed_operand_bytes"] == 47_161_802_752
    (finding,) = report.findings
    assert finding.rule == "HI605"
    assert finding.message.startswith("vpp and pp_comm are missing")


@pytest.mark.parametrize("to", ["simai", "aicb"])
def test_a_rewritten_workload_has_the_same_bytes(to: str) -> None:
    path = SEEDS / f"{WORKLOAD}.txt"
    assert rewritten_workload(path, to) == path.read_bytes()


def test_entries_that_another_dialect_lacks_are_named() -> None:
    with pytest.raises(hlo_inspect.HloInspectError, match=r"pp: 16 .* has no place in the header"):
        rewritten_workload(SEEDS / f"{WORKLOAD}.txt", "astra-sim")


def test_a_command_for_modules_refuses_a_workload_file() -> None:
    with pytest.raises(hlo_inspect.InputError, match="workload file of a network simulator") as raised:
        hlo_inspect.inspect(SEEDS / f"{WORKLOAD}.txt", "fusions")
    assert raised.value.path == str(SEEDS / f"{WORKLOAD}.txt")


def test_alpa_s_search_cost_is_that_of_the_log() -> None:
    facts = report(ALL_TO_ALL, "alpa").facts
    assert facts["alpa.search_cost"] == 222130339.84
    assert "cost : 222130339.84" in (SEEDS / f"{ALL_TO_ALL}.txt").read_text()
    assert [facts[f"alpa.collectives.{name}"] for name in _TUPLE] == [2, 1, 0, 0, 1]


def test_alpa_s_collective_counts_and_mesh_costs() -> None:
    facts = report(GPT, "alpa").facts
    assert [facts[f"alpa.collectives.{name}"] for name in _TUPLE] == [43, 43, 0, 0, 0]
    assert [facts[f"alpa.nonscalar_collectives.{name}"] for name in _TUPLE] == [42, 42, 0, 0, 0]
    assert facts["alpa.mesh_cost.d0"] == pytest.approx(45_505_543.03, abs=0.001)
    assert facts["alpa.mesh_cost.d1"] == pytest.approx(55_790_018.00, abs=0.001)
    assert [report(PIPESHARD, "alpa").facts[f"alpa.collectives.{name}"] for name in _TUPLE] == [0, 0, 0, 0, 0]


_TUPLE = ("total", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
