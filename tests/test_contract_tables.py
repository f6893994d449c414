"""The columns that scripts may rely on: each by its name, on two dumps, with a value that follows from the text."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.passes import PASSES
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Plain
from tests.contract import declared
from tests.tables import approximately, column

DATA = Path(__file__).parent / "data"

ADAMW, CPU, GPU, TPU = "cpu/adamw_step.after", "cpu/collectives.after", "gpu/collectives.after", "tpu/gathered_matmul.after"
UNUSED, ALIASES = "cpu/sgd_unused.after", "handmade/aliases"
SCAN, GATHERED = "cpu/scan_forward.after", "gpu/gathered_matmul.after"
MASTER, BF16 = "cpu/bf16_master.after", "tpu/bf16_master.after"
FUSIONS, GROUPS = "handmade/fusions", "handmade/replica_groups"

CALLS, ATTENTION = "handmade/custom_calls", "handmade/attention_in_a_loop"
FMHA, TE = "__cudnn$fmhaSoftmax", "te_fused_attn_forward_ffi"

COMMANDS = {
    "outputs": "params",
    "kernels": "top",
    "custom_calls": "custom-calls",
    "largest_arrays": "memory",
    "live_at_peak": "memory",
}
"""Commands of tables that have another name than their command."""

Cases = tuple[tuple[str, Plain, Plain], tuple[str, Plain, Plain]]

# table -> the column that names a row, and column -> (dump, row, value); other tables stand in the tests of their passes
COLUMNS: dict[str, tuple[str, dict[str, Cases]]] = {
    "collectives": (
        "line",
        {
            "name": ((CPU, 172, "psum.14"), (TPU, 148, "async-collective-start")),
            "kind": ((CPU, 173, "all-reduce"), (TPU, 174, "reduce-scatter")),
            "runs": (("cpu/scan_forward.after", 87, 3), ("cpu/scan_fsdp.after", 221, 3)),
            "executed_operand_bytes": (("cpu/scan_forward.after", 87, 3 * 128), ("cpu/scan_fsdp.after", 226, 3 * 256)),
            "executed_wire_bytes": (("cpu/scan_forward.after", 87, 3 * 128), ("cpu/scan_fsdp.after", 226, 3 * 128)),
            # H100: each of 4 devices sends 450 GB/s on NVLink. The gather sends 3 * 8 MiB; a transpose of 8 MiB hides a part.
            # The scatter sends 3/4 of 16 MiB. NCCL's model adds 18.6 us and has 82.4 % of the links.
            "bound_s": ((GATHERED, 76, 3 * 2**23 / 450e9), (GATHERED, 86, 3 * 2**22 / 450e9)),
            "estimate_s": (
                (GATHERED, 76, 18.6e-6 + 3 * 2**23 / (0.824 * 450e9)),
                (GATHERED, 86, 18.6e-6 + 3 * 2**22 / (0.824 * 450e9)),
            ),
            "window_s": ((GATHERED, 76, 2**24 / 3352e9), (GATHERED, 86, 0.0)),
            "exposed_s": ((GATHERED, 76, 3 * 2**23 / 450e9 - 2**24 / 3352e9), (GATHERED, 86, 3 * 2**22 / 450e9)),
            # XLA's model adds a launch of 1 us to the transpose
            "estimate_window_s": ((GATHERED, 76, 1e-6 + 2**24 / 3352e9), (GATHERED, 86, 0.0)),
            "estimate_exposed_s": (
                (GATHERED, 76, 17.6e-6 + 3 * 2**23 / (0.824 * 450e9) - 2**24 / 3352e9),
                (GATHERED, 86, 18.6e-6 + 3 * 2**22 / (0.824 * 450e9)),
            ),
            "bus_bandwidth": (
                (GATHERED, 76, 3 * 2**23 / (18.6e-6 + 3 * 2**23 / (0.824 * 450e9))),
                (GATHERED, 86, 3 * 2**22 / (18.6e-6 + 3 * 2**22 / (0.824 * 450e9))),
            ),
            "level": ((GATHERED, 76, "nvlink"), (TPU, 148, "ici")),
            "dtype": ((CPU, 172, "f32"), (TPU, 147, "bf16")),
            "shape": ((CPU, 177, "f32[32,16]"), (TPU, 148, "bf16[8192,2048]")),
            "operand_bytes": ((CPU, 187, 1024), (TPU, 174, 17_039_360)),
            "result_bytes": ((CPU, 177, 2048), (TPU, 174, 4_259_840)),
            "wire_bytes": ((CPU, 184, 7), (TPU, 148, 25_165_824)),
            "group_size": ((CPU, 172, 4), (TPU, 174, 4)),
            "replica_groups": ((CPU, 173, "{{0,4},{1,5},{2,6},{3,7}}"), ("tpu/bf16_master.after", 116, "[4,2]<=[2,4]T(1,0)")),
            "source_target_pairs": ((GROUPS, 28, "{{0,1},{1,2},{2,3},{3,0}}"), (CPU, 172, "")),
            "axis": ((CPU, 173, "d0"), (CPU, 184, "d0,d1")),
            "trip_count": (("cpu/scan_forward.after", 87, 3), (CPU, 172, 1)),
            "phase": ((ADAMW, 320, "backward"), (CPU, 172, "unknown")),
            "phase_from": ((ADAMW, 320, "name"), ("phases/scan_hidden.txt.xz", 219, "graph")),
            "also_phase": ((ADAMW, 320, None), ("phases/scan_hidden.txt.xz", 213, "backward")),
            "channel_id": ((ADAMW, 320, 2), (TPU, 174, 2)),
            "reduction": ((CPU, 173, "max"), (TPU, 174, "add")),
            "is_async": ((GPU, 148, True), (GPU, 153, False)),
            "form": ((GPU, 157, "reduce-scatter-start"), (TPU, 148, "fusion")),
            "loop": (("cpu/scan_forward.after", 87, "while.9"), ("cpu/scan_fsdp.after", 226, "while.27")),
            "computation": (("cpu/scan_forward.after", 87, "region_0.1_spmd"), (CPU, 172, "main.0_spmd")),
            "op_name": ((CPU, 173, "jit(step)/shard_map/pmax"), (TPU, 147, "jit(step)/shard_map/all_gather")),
            "source": ((CPU, 172, "/train/programs.py:190"), (GPU, 157, "/train/programs.py:194")),
            "line": ((CPU, 172, 172), (TPU, 174, 174)),
        },
    ),
    "fingerprint": (
        "module",
        {
            "module": ((ADAMW, "jit_step", "jit_step"), ("prints/no_percent", "jit_step", "jit_step")),
            "program": (
                ("prints/no_percent", "jit_step", "e9a4b6d34d18032fe3a73c984bd8b415"),
                ("prints/short_parsable", "jit_step", "e9a4b6d34d18032fe3a73c984bd8b415"),
            ),
            "schedule": (
                ("prints/no_percent", "jit_step", "ae085b4f0a0b1b4ea38ddaf9dbebb79d"),
                ("cpu/adamw_step.before", "jit_step", ""),
            ),
        },
    ),
    "custom_calls": (
        "target",
        {
            "target": ((CALLS, "MoveToHost", "MoveToHost"), (ATTENTION, TE, TE)),
            "count": ((CALLS, FMHA, 1), (ATTENTION, TE, 1)),
            "runs": ((CALLS, FMHA, 1), (ATTENTION, TE, 126)),
            "flops": ((CALLS, FMHA, 1_073_741_824), (ATTENTION, TE, 126 * 4_398_046_511_104)),
            "least_flops": ((CALLS, FMHA, 537_919_488), (ATTENTION, TE, 126 * 2_199_291_691_008)),
            "matmul_flops": ((CALLS, FMHA, 1_073_741_824), (CALLS, "lapack_spotrf_ffi", 0)),
            "transcendentals": ((CALLS, FMHA, 4_194_304), (ATTENTION, TE, 126 * 128 * 8192 * 8192)),
            "bytes": ((CALLS, FMHA, 1 << 22), (ATTENTION, TE, 126 * 574_619_704)),
            "known_by": ((CALLS, "lapack_spotrf_ffi", "shapes"), (ATTENTION, TE, "config")),
        },
    ),
    "largest_arrays": (
        "line",
        {
            "shape": ((SCAN, 126, "f32[3,4,8]"), (TPU, 145, "bf16[8192,512]")),
            "bytes": ((SCAN, 126, 3 * 4 * 8 * 4), ("tpu/bf16_master.after", 107, 16 * 8 * 2)),
            # one tile of 8 x 128 numbers
            "padded_bytes": ((SCAN, 126, 3 * 4 * 8 * 4), ("tpu/bf16_master.after", 107, 8 * 128 * 2)),
            "count": ((SCAN, 126, 1), (TPU, 158, 2)),
            "of_parameter": ((SCAN, 87, "0"), (TPU, 147, "1")),
            "relation": ((SCAN, 87, "slice, gathered"), (TPU, 158, "copy")),
            "op_name": ((SCAN, 126, "stack"), (TPU, 147, "jit(step)/shard_map/all_gather")),
            "source": ((SCAN, 87, "/train/programs.py:154"), (TPU, 147, "/train/programs.py:217")),
            "line": ((SCAN, 126, 126), (TPU, 145, 145)),
        },
    ),
    # live ranges: the schedules have 26 and 21 instructions, those of loops among them
    "live_at_peak": (
        "line",
        {
            "name": ((SCAN, 126, "param.4"), (BF16, 116, "all-reduce")),
            "shape_index": ((SCAN, 87, "{}"), (BF16, 113, "{0}")),
            "shape": ((SCAN, 126, "f32[3,4,8]"), (BF16, 107, "bf16[16,8]")),
            # on TPU, tiles have 8 x 128 numbers
            "bytes": ((SCAN, 126, 3 * 4 * 8 * 4), (BF16, 107, 8 * 128 * 2)),
            "padding_bytes": ((SCAN, 126, 0), (BF16, 107, 8 * 128 * 2 - 16 * 8 * 2)),
            "role": ((SCAN, 128, "constant"), (BF16, 127, "tuple table")),
            "live_from": ((SCAN, 126, 0), (BF16, 107, 0)),
            "live_to": ((SCAN, 126, 26), (BF16, 107, 21)),
            "memory_space": ((SCAN, 126, 0), (BF16, 116, 1)),
            "phase": ((SCAN, 126, "unknown"), (BF16, 116, "backward")),
            "op_name": ((SCAN, 126, "stack"), (BF16, 107, "x")),
            "source": ((SCAN, 87, "/train/programs.py:154"), (BF16, 116, "/train/programs.py:129")),
            "line": ((SCAN, 126, 126), (BF16, 107, 107)),
        },
    ),
    "params": (
        "number",
        {
            "number": ((ADAMW, 8, 8), (ALIASES, 3, 3)),
            "index": ((ADAMW, 8, "{}"), (ALIASES, 3, "{}")),
            "name": ((ADAMW, 7, "param.2"), (ALIASES, 3, "unused")),
            "shape": ((ADAMW, 1, "f32[8,8]"), (ALIASES, 2, "bf16[2]")),
            "dtype": ((ADAMW, 0, "s32"), (ALIASES, 3, "u8")),
            "bytes": ((ADAMW, 1, 256), (ALIASES, 1, 64)),
            "padded_bytes": ((ADAMW, 1, 256), ("tpu/bf16_master.after", 0, 4 * 128 * 4)),
            "role": ((ADAMW, 5, "weight"), (UNUSED, 0, "weight")),
            "memory_space": (("handmade/layouts", 1, 1), ("handmade/layouts", 4, 5)),
            "sharding": ((ADAMW, 7, "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"), (UNUSED, 0, "{replicated}")),
            "partition_spec": ((ADAMW, 7, '("d0", None)'), (UNUSED, 0, "replicated")),
            "copies": ((ADAMW, 0, 8), (ADAMW, 7, 4)),  # each half of the batch is on 4 of 8 devices
            "aliased_output": ((ADAMW, 3, "{3}"), (ALIASES, 2, "{2}")),
            "donated": ((ADAMW, 6, True), (ADAMW, 7, False)),
            "unused": ((UNUSED, 4, True), (UNUSED, 3, False)),
            "path": ((ADAMW, 5, "state['params']['w1']"), (UNUSED, 4, "mask")),
            "line": ((ADAMW, 0, 295), (UNUSED, 4, 123)),
        },
    ),
    "outputs": (
        "index",
        {
            "index": ((ADAMW, "{7}", "{7}"), (ALIASES, "{0,1}", "{0,1}")),
            "shape": ((ADAMW, "{7}", "f32[]"), (ALIASES, "{0,1}", "f32[8]")),
            "bytes": ((ADAMW, "{7}", 4), (ALIASES, "{0,1}", 32)),
            "aliased_parameter": ((ADAMW, "{7}", ""), (ALIASES, "{2}", "2")),
        },
    ),
    "fusions": (
        "line",
        {
            "name": ((ADAMW, 307, "ynn_fusion.2"), (TPU, 174, "fusion")),
            "kind": ((ADAMW, 307, "kCustom"), (TPU, 159, "kOutput")),
            "root": ((TPU, 159, "tuple"), (TPU, 174, "dynamic-slice")),
            "instructions": ((TPU, 174, 12), (FUSIONS, 21, 4)),
            "outputs": ((TPU, 159, 11), (FUSIONS, 21, 2)),
            "operand_bytes": ((ADAMW, 307, 512), (TPU, 174, 4096 * 2048 * 2)),
            "result_bytes": ((ADAMW, 315, 4), (TPU, 174, 1040 * 2048 * 2)),
            "computation": ((ADAMW, 307, "main.0_spmd"), (TPU, 58, "async_collective_fusion.7")),
            "op_name": ((ADAMW, 307, "jit(step)/jvp()/dot_general"), (TPU, 173, "jit(step)/shard_map/dot_general")),
            "source": ((TPU, 173, "/train/programs.py:218"), ("jax_0_5_0/sgd_unused.after", 84, "/train/programs.py:106")),
            "line": ((ADAMW, 307, 307), (TPU, 174, 174)),
        },
    ),
    "cost": (
        "opcode",
        {
            "opcode": ((SCAN, "dot", "dot"), (TPU, "convolution", "convolution")),
            # three products of 2 x 8 and 8 x 8 numbers; two of 4096 x 8192 and 8192 x 2048
            "flops": ((SCAN, "dot", 3 * 256), (TPU, "convolution", 2 * 2 * 4096 * 8192 * 2048)),
            "transcendentals": ((SCAN, "tanh", 3 * 16), (TPU, "tanh", 4096 * 8192)),
            "matmul_flops": ((SCAN, "dot", 3 * 256), (SCAN, "add", 0)),
            "bytes_accessed": ((SCAN, "all-gather", 3 * (128 + 256)), (CPU, "reduce-scatter", 1024 + 256)),
            # on an H100, 3352 GB/s and 66.9 TFLOP/s of f32
            "compute_s": ((CPU, "multiply", 1024 / 66.9e12), (SCAN, "multiply", 16 / 66.9e12)),
            "memory_s": ((CPU, "all-gather", 3072 / 3352e9), (SCAN, "all-gather", 3 * 384 / 3352e9)),
        },
    ),
    "kernels": (
        "line",
        {
            "name": ((GATHERED, 83, "gemm_fusion_dot_general.6"), (SCAN, 87, "all_gather.3")),
            "kind": ((GATHERED, 83, "fusion"), (GATHERED, 76, "all-gather")),
            "computation": ((GATHERED, 83, "main.0_spmd"), (SCAN, 87, "region_0.1_spmd")),
            "runs": ((SCAN, 87, 3), (GATHERED, 83, 1)),
            # products of 4096 x 2048 and 2048 x 8192 numbers (its result is converted twice) and of 4096 x 8192 and 8192 x 2048
            "flops": ((GATHERED, 83, 2 * 4096 * 2048 * 8192 + 2 * 4096 * 8192), (GATHERED, 85, 2 * 4096 * 8192 * 2048)),
            "bytes": ((GATHERED, 74, 2 * 2 * 2048 * 2048), (SCAN, 87, 3 * (128 + 256))),
            "bound_by": ((GATHERED, 83, "compute"), (GATHERED, 86, "collective")),
            # H100: 3352 GB/s, and 450 GB/s over NVLink; each of four devices sends 3/4 of 16 MiB
            "bound_s": ((GATHERED, 74, 2**24 / 3352e9), (GATHERED, 86, 3 / 4 * 2**24 / 450e9)),
            # a launch of 1 us, then compute and memory; 95 % of the shorter of the two overlaps
            "estimate_s": (
                (GATHERED, 74, 1e-6 + 2**24 / 3352e9),
                (
                    GATHERED,
                    85,
                    1e-6 + 2**37 / 989.4e12 + 0.05 * (4096 * 2048 + 2048 * 8192 + 4096 * 8192) * 2 / 3352e9,
                ),
            ),
            # cycles of a TPU v5e at 1.5 GHz: three runs, and one run
            "compiler_s": (
                ("tpu/scan_forward.after", 88, 3 * (2066 / 1.5e9)),
                ("tpu/bf16_master.after", 119, 1837 / 1.5e9),
            ),
            "phase": ((GATHERED, 83, "unknown"), (ADAMW, 307, "forward")),
            "op_name": ((GATHERED, 83, "jit(step)/shard_map/dot_general"), (ADAMW, 307, "jit(step)/jvp()/dot_general")),
            "source": ((GATHERED, 83, "/train/programs.py:217"), (SCAN, 87, "/train/programs.py:154")),
            "line": ((GATHERED, 83, 83), (SCAN, 87, 87)),
        },
    ),
    "optimizer": (
        "weight",
        {
            "weight": ((ADAMW, 5, 5), (UNUSED, 0, 0)),
            "path": ((ADAMW, 5, "state['params']['w1']"), (UNUSED, 1, "params['kernel']")),
            "shape": ((ADAMW, 5, "f32[8,8]"), (UNUSED, 1, "f32[16,8]")),
            "rule": ((ADAMW, 6, "adamw"), (UNUSED, 0, "sgd")),
            "first_moment": ((ADAMW, 5, 1), (UNUSED, 0, None)),
            "second_moment": ((ADAMW, 5, 3), (UNUSED, 0, None)),
            "master_weight": ((MASTER, 2, 0), (ADAMW, 5, None)),
            "learning_rate": ((ADAMW, 5, 0.001), (UNUSED, 0, 0.5)),
            "beta1": ((ADAMW, 5, 0.9), (UNUSED, 0, None)),
            "beta2": ((ADAMW, 5, 0.95), (UNUSED, 0, None)),
            "epsilon": ((ADAMW, 5, 1e-8), (UNUSED, 0, None)),
            "weight_decay": ((ADAMW, 5, 0.1), (UNUSED, 0, None)),
        },
    ),
}

for command, tables in declared("COLUMNS").items():
    COLUMNS |= tables
    COMMANDS |= dict.fromkeys(tables, command)

OWED_COLUMNS: dict[str, tuple[str, ...]] = {}
OWED_TABLES: tuple[str, ...] = ()


@cache
def report(dump: str, command: str) -> Report:
    path = DATA / (dump if dump.endswith(".xz") else f"{dump}.txt")
    return hlo_inspect.inspect(path, (command,), profile="tpu-v5e" if dump.startswith("tpu/") else "h100-sxm")


@pytest.mark.parametrize("table", COLUMNS)
def test_columns(table: str) -> None:
    key, names = COLUMNS[table]
    for name, cases in names.items():
        for dump, row, value in cases:
            result = report(dump, COMMANDS.get(table, table)).table(table)
            rows = dict(zip(column(result, key), column(result, name), strict=True))
            assert (name, dump, type(rows[row])) == (name, dump, type(value))
            assert (name, dump, rows[row]) == (name, dump, approximately(value))


@pytest.mark.parametrize("table", sorted(COLUMNS))
def test_owed_columns_are_absent(table: str) -> None:
    names = {column.name for column in report(ADAMW, COMMANDS.get(table, table)).table(table).columns}
    assert names.isdisjoint(OWED_COLUMNS.get(table, ()))


def test_owed_tables_are_absent() -> None:
    assert {table.name for pass_ in PASSES for table in report(ADAMW, pass_.name).tables}.isdisjoint(OWED_TABLES)
