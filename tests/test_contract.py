"""Contract with users and scripts: every fact by its name, on two dumps, with a number from another source.

The numbers are XLA's (`expected.json`), the header's, or worked out from the shapes and groups that the text prints; none was
taken from hlo-inspect. The columns are in `test_contract_tables.py`.
"""

from __future__ import annotations

import inspect
import json
from functools import cache
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.optimizer.rules import RULES
from hlo_inspect.passes import MODULE_FACTS, PASSES, all_specs, find_pass
from hlo_inspect.report.facts import find_spec
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Plain
from tests.contract import declared
from tests.tables import approximately

DATA = Path(__file__).parent / "data"

ADAMW, ADAMW_BEFORE = "cpu/adamw_step.after", "cpu/adamw_step.before"
CPU, GPU, TPU = "cpu/collectives.after", "gpu/collectives.after", "tpu/gathered_matmul.after"
DONORS, UNUSED, ALIASES = "cpu/bf16_master.before", "cpu/sgd_unused.after", "handmade/aliases"
GATHERED = "gpu/gathered_matmul.after"
SCAN, FSDP = "cpu/scan_forward.after", "cpu/scan_fsdp.after"
ATTENTION = "handmade/attention_in_a_loop"
MASTER, SPACES = "cpu/bf16_master.after", "handmade/memory_spaces"
FUSIONS, ASYNC, GROUPS = "handmade/fusions", "handmade/native_async", "handmade/replica_groups"

LAUNCH = 1e-6

GATHERED_ON_CPU = "cpu/gathered_matmul.after"
PRODUCTS = 2 * 2 * 4096 * 2048 * 8192
EXPOSED = (3 * 2**23 + 3 * 2**22) / 450e9 - 2**24 / 3352e9
SCANNED = (3872 - 3 * (128 + 256) - 8 - 4 * 3 * 8) / 3352e9 + (3 * 128 + 4) / 450e9
LIKELY_EXPOSED = 2 * 18.6e-6 + (3 * 2**23 + 3 * 2**22) / (0.824 * 450e9) - LAUNCH - 2**24 / 3352e9
LIKELY_KERNELS = (
    4 * LAUNCH
    + (2 * 2**24) / 3352e9
    + (2 * 2 * 4096 * 2048 * 8192) / 989.4e12
    + 4096 * 8192 * (1 / 66.9e12 + 1 / 133.8e12)
    + 0.05 * 2 * (4096 * 2048 + 2048 * 8192 + 4096 * 8192) * 2 / 3352e9
)
LIKELY_ATTENTION = (
    (126 + 126 + 127) * LAUNCH
    + 126 * (2_199_291_691_008 / 989.4e12 + 0.05 * 574_619_704 / 3352e9)
    + (126 * 12 + 127 * 9) / 3352e9
    + 0.05 * (126 + 127) / 33.5e12
)

Case = tuple[str, str, Plain]

# Promised fact -> (dump, fact, number); other facts of passes stand in their tests
FACTS: dict[str, tuple[Case, Case]] = {
    "module.name": ((ADAMW, "module.name", "jit_step"), ("gpu/scan_forward.after", "module.name", "jit_loss_of_layers")),
    "module.is_scheduled": ((CPU, "module.is_scheduled", True), ("cpu/collectives.before", "module.is_scheduled", False)),
    "module.num_partitions": ((TPU, "module.num_partitions", 8), ("handmade/async_generic", "module.num_partitions", 4)),
    "module.replica_count": ((ASYNC, "module.replica_count", 2), (CPU, "module.replica_count", 1)),
    "module.shapes": (("cpu/scan_fsdp.before", "module.shapes", "mixed"), (TPU, "module.shapes", "per_device")),
    "module.devices": (("jax_0_4_13/sgd_unused.after", "module.devices", 8), (ASYNC, "module.devices", 2)),
    "module.slices": (("tpu/between_slices.after", "module.slices", 2), (CPU, "module.slices", 1)),
    "module.unparsed_lines": (
        ("handmade/unreadable_lines", "module.unparsed_lines", 2),
        (ADAMW, "module.unparsed_lines", 0),
    ),
    "module.computations": ((ADAMW, "module.computations", 21), (GPU, "module.computations", 13)),
    "module.instructions": ((ADAMW, "module.instructions", 200), (GPU, "module.instructions", 72)),
    "module.entry_instructions": ((ADAMW, "module.entry_instructions", 37), (GPU, "module.entry_instructions", 28)),
    "opcode.<opcode>": ((ADAMW, "opcode.multiply", 20), (TPU, "opcode.get-tuple-element", 19)),
    "params.count": ((ADAMW, "params.count", 9), (ALIASES, "params.count", 4)),
    "params.leaf_count": ((ADAMW, "params.leaf_count", 9), (ALIASES, "params.leaf_count", 6)),
    "params.bytes": ((ADAMW, "params.bytes", 2052), (ALIASES, "params.bytes", 123)),
    "params.aliased_count": ((ADAMW, "params.aliased_count", 7), (ALIASES, "params.aliased_count", 3)),
    "params.aliased_bytes": (
        (ADAMW, "params.aliased_bytes", 4 + 6 * 8 * 8 * 4),
        (ALIASES, "params.aliased_bytes", 16 + 32 + 4),
    ),
    "params.donor_count": ((DONORS, "params.donor_count", 3), (ALIASES, "params.donor_count", 2)),
    "params.donor_bytes": ((DONORS, "params.donor_bytes", 512 + 512 + 256), (ALIASES, "params.donor_bytes", 4 + 64)),
    "params.donated_count": ((DONORS, "params.donated_count", 3), (ALIASES, "params.donated_count", 5)),
    "params.donated_bytes": ((ADAMW, "params.donated_bytes", 1540), (ALIASES, "params.donated_bytes", 120)),
    "params.unused_count": ((UNUSED, "params.unused_count", 1), ("handmade/element_types", "params.unused_count", 18)),
    "params.unused_bytes": ((UNUSED, "params.unused_bytes", 16), ("cpu/sgd_unused.before", "params.unused_bytes", 32)),
    "outputs.count": ((ADAMW, "outputs.count", 8), (ALIASES, "outputs.count", 4)),
    "outputs.bytes": ((ADAMW, "outputs.bytes", 1544), (ALIASES, "outputs.bytes", 56)),
    "outputs.aliased_count": ((ADAMW, "outputs.aliased_count", 7), (ALIASES, "outputs.aliased_count", 3)),
    "outputs.aliased_bytes": ((ADAMW, "outputs.aliased_bytes", 1540), (ALIASES, "outputs.aliased_bytes", 52)),
    "fusions.count": ((ADAMW, "fusions.count", 17), (FUSIONS, "fusions.count", 4)),
    "fusions.kind.<kind>": ((ADAMW, "fusions.kind.kLoop", 14), ("gpu/gathered_matmul.after", "fusions.kind.kCustom", 2)),
    "fusions.multi_output_count": (
        ("gpu/bf16_master.after", "fusions.multi_output_count", 1),
        (TPU, "fusions.multi_output_count", 1),
    ),
    # another print of the same program, tests/data/prints/long.txt, has these hashes too; tests/passes/test_fingerprint.py
    # works one out by hand
    "fingerprint.program": (
        ("prints/no_percent", "fingerprint.program", "e9a4b6d34d18032fe3a73c984bd8b415"),
        ("prints/short_parsable", "fingerprint.program", "e9a4b6d34d18032fe3a73c984bd8b415"),
    ),
    "fingerprint.schedule": (
        ("prints/no_percent", "fingerprint.schedule", "ae085b4f0a0b1b4ea38ddaf9dbebb79d"),
        (ADAMW_BEFORE, "fingerprint.schedule", None),
    ),
    "custom_calls.count": ((ADAMW_BEFORE, "custom_calls.count", 7), (FUSIONS, "custom_calls.count", 2)),
    # seven are FuncResultSharding; the other dump has a Sharding and a cuBLAS call
    "custom_calls.marker_count": ((ADAMW_BEFORE, "custom_calls.marker_count", 7), (FUSIONS, "custom_calls.marker_count", 1)),
    "custom_calls.target.<target>": (
        (ADAMW_BEFORE, "custom_calls.target.xla.sdy.FuncResultSharding", 7),
        (FUSIONS, "custom_calls.target.__cublas$lt$matmul", 1),
    ),
    # the loop of scan_forward gathers 4 x 8 floats in each of 3 iterations; after it one float is reduced
    "collectives.executed_count": (
        ("cpu/scan_forward.after", "collectives.executed_count", 3 + 1),
        ("tpu/scan_forward.after", "collectives.executed_count", 3 + 1),
    ),
    "collectives.executed_operand_bytes": (
        ("cpu/scan_forward.after", "collectives.executed_operand_bytes", 3 * 4 * 8 * 4 + 4),
        ("gpu/scan_forward.after", "collectives.executed_operand_bytes", 3 * 4 * 8 * 4 + 4),
    ),
    # one gather of a layer's weights in each direction of the rematerialised scan; adamw_step reduces its gradients once
    "collectives.phase.<phase>.count": (
        ("cpu/scan_fsdp.after", "collectives.phase.recompute.count", 1),
        (ADAMW, "collectives.phase.backward.count", 1),
    ),
    "collectives.phase.<phase>.operand_bytes": (
        ("cpu/scan_fsdp.after", "collectives.phase.recompute.operand_bytes", 128),
        (ADAMW, "collectives.phase.forward.operand_bytes", 256),
    ),
    # the programs are written for a mesh of data=2, model=4
    "mesh.shape": ((ADAMW, "mesh.shape", "2x4"), (TPU, "mesh.shape", "2x4")),
    "mesh.order": ((ADAMW, "mesh.order", "iota"), (CPU, "mesh.order", "iota")),
    "collectives.count": ((CPU, "collectives.count", 7), (TPU, "collectives.count", 4)),
    "collectives.operand_bytes": (
        (CPU, "collectives.operand_bytes", 2 * 256 + 4 * 1024 + 4),
        (TPU, "collectives.operand_bytes", 2 * 8_388_608 + 17_039_360 + 196_608),
    ),
    "collectives.result_bytes": (
        (CPU, "collectives.result_bytes", 256 + 256 + 1024 + 2048 + 256 + 4 + 1024),
        (TPU, "collectives.result_bytes", 2 * 33_554_432 + 4_259_840 + 196_608),
    ),
    "collectives.wire_bytes": (
        (CPU, "collectives.wire_bytes", 384 + 256 + 1024 + 1024 + 768 + 7 + 768),
        (TPU, "collectives.wire_bytes", 2 * 25_165_824 + 12_779_520 + 196_608),
    ),
    "collectives.async_count": ((GPU, "collectives.async_count", 4), (TPU, "collectives.async_count", 2)),
    "collectives.<kind>.count": ((CPU, "collectives.all-reduce.count", 3), (ASYNC, "collectives.send.count", 1)),
    "collectives.<kind>.operand_bytes": (
        (CPU, "collectives.all-reduce.operand_bytes", 256 + 256 + 4),
        (TPU, "collectives.reduce-scatter.operand_bytes", 4160 * 2048 * 2),
    ),
    "collectives.group_size.<n>.count": (
        (CPU, "collectives.group_size.4.count", 3),
        (GROUPS, "collectives.group_size.2.count", 6),
    ),
    "collectives.group_size.<n>.operand_bytes": (
        (CPU, "collectives.group_size.4.operand_bytes", 256 + 1024 + 1024),
        (GROUPS, "collectives.group_size.2.operand_bytes", 448),
    ),
    # scan_fsdp: two loops of three runs gather 4 x 8 floats over 2 devices, and the second one scatters 8 x 8 over 2; then 96
    # floats are reduced over 4 devices and one over 8. scan_forward: the gather, and one float reduced over 8
    "collectives.executed_wire_bytes": (
        (FSDP, "collectives.executed_wire_bytes", 6 * 128 + 3 * 128 + 384 * 6 // 4 + 4 * 14 // 8),
        ("tpu/scan_forward.after", "collectives.executed_wire_bytes", 3 * 128 + 7),
    ),
    "collectives.<kind>.executed_count": (
        (FSDP, "collectives.all-gather.executed_count", 2 * 3),
        ("gpu/scan_forward.after", "collectives.all-gather.executed_count", 3),
    ),
    "collectives.<kind>.executed_operand_bytes": (
        (FSDP, "collectives.reduce-scatter.executed_operand_bytes", 3 * 256),
        ("tpu/scan_forward.after", "collectives.all-gather.executed_operand_bytes", 3 * 128),
    ),
    "collectives.expected_reduce_scatter_count": (  # of optimized texts what they have
        (FSDP, "collectives.expected_reduce_scatter_count", 3),
        ("tpu/scan_forward.after", "collectives.expected_reduce_scatter_count", 0),
    ),
    "collectives.expected_wire_bytes": (
        (FSDP, "collectives.expected_wire_bytes", 6 * 128 + 3 * 128 + 384 * 6 // 4 + 4 * 14 // 8),
        ("tpu/scan_forward.after", "collectives.expected_wire_bytes", 3 * 128 + 7),
    ),
    "collectives.<kind>.executed_wire_bytes": (
        (FSDP, "collectives.all-reduce.executed_wire_bytes", 576 + 7),
        ("gpu/scan_forward.after", "collectives.all-reduce.executed_wire_bytes", 7),
    ),
    "collectives.axis.<axis>.executed_count": (
        (FSDP, "collectives.axis.d0.executed_count", 6 + 3),
        ("tpu/scan_forward.after", "collectives.axis.d0.executed_count", 3),
    ),
    "collectives.axis.<axis>.executed_operand_bytes": (
        (FSDP, "collectives.axis.d1.executed_operand_bytes", 384),
        ("tpu/scan_forward.after", "collectives.axis.d0,d1.executed_operand_bytes", 4),
    ),
    "collectives.axis.<axis>.executed_wire_bytes": (
        (FSDP, "collectives.axis.d1.executed_wire_bytes", 576),
        ("gpu/scan_forward.after", "collectives.axis.d0,d1.executed_wire_bytes", 7),
    ),
    "collectives.phase.<phase>.executed_count": (
        (FSDP, "collectives.phase.recompute.executed_count", 3),
        ("jax_0_5_0/scan_fsdp.after", "collectives.phase.forward.executed_count", 3),
    ),
    "collectives.phase.<phase>.executed_operand_bytes": (
        (FSDP, "collectives.phase.forward.executed_operand_bytes", 3 * 128),
        ("jax_0_5_0/scan_fsdp.after", "collectives.phase.forward.executed_operand_bytes", 3 * 128),
    ),
    "collectives.phase.<phase>.executed_wire_bytes": (
        (FSDP, "collectives.phase.recompute.executed_wire_bytes", 3 * 128),
        ("jax_0_5_0/scan_fsdp.after", "collectives.phase.forward.executed_wire_bytes", 3 * 128),
    ),
    "cost.flops": ((ADAMW, "cost.flops", 8074), (GPU, "cost.flops", 1792)),
    "cost.transcendentals": ((ADAMW, "cost.transcendentals", 130), (SCAN, "cost.transcendentals", 16)),
    # as jaxlib counts since 0.11; the last number is a tuple of three pointers
    "cost.bytes_accessed": (
        ("jax_0_12/adamw_step.after", "cost.bytes_accessed", 13180),
        (FUSIONS, "cost.bytes_accessed", 64 + 16 + 32 + 3 * 4),
    ),
    # each device runs two products of 4096 x 2048 x 8192 numbers
    "cost.matmul_flops": (
        ("gpu/gathered_matmul.after", "cost.matmul_flops", 2 * 2 * 4096 * 2048 * 8192),
        (TPU, "cost.matmul_flops", 2 * 2 * 4096 * 2048 * 8192),
    ),
    # 3 iterations: a product of 2 x 8 and 8 x 8 numbers and a counter step. 4 comparisons, 16 squares, and their sum
    "cost.executed_flops": (
        (SCAN, "cost.executed_flops", 3 * (256 + 1) + 4 + 16 + 15 + 1),
        ("gpu/scan_forward.after", "cost.executed_flops", 3 * (256 + 1) + 4 + 16 + 15 + 1),
    ),
    "cost.executed_matmul_flops": (
        (SCAN, "cost.executed_matmul_flops", 3 * 256),
        ("tpu/scan_forward.after", "cost.executed_matmul_flops", 3 * 256),
    ),
    # XLA's 1445 - 6 * 4 bytes count each computation once (two tuples of three elements, 4 bytes each since jaxlib 0.11); the
    # body runs two times more, the condition three times more
    "cost.executed_bytes_accessed": (
        (SCAN, "cost.executed_bytes_accessed", 1445 - 6 * 4 + 2 * (8 + 260 + 12 + 384 + 384 + 128 + 12) + 3 * 9),
        (FUSIONS, "cost.executed_bytes_accessed", 64 + 16 + 32 + 3 * 4 + 48),
    ),
    # 126 runs of 4 · 128 · 8192² · 128 FLOPs; the mask keeps 33,558,528 of 8192² pairs
    "custom_calls.flops": (
        (ATTENTION, "custom_calls.flops", 126 * 4_398_046_511_104),
        (ADAMW_BEFORE, "custom_calls.flops", 0),
    ),
    "custom_calls.least_flops": (
        (ATTENTION, "custom_calls.least_flops", 126 * 2_199_291_691_008),
        (ADAMW_BEFORE, "custom_calls.least_flops", 0),
    ),
    "custom_calls.matmul_flops": (
        (ATTENTION, "custom_calls.matmul_flops", 126 * 4_398_046_511_104),
        (ADAMW_BEFORE, "custom_calls.matmul_flops", 0),
    ),
    "custom_calls.transcendentals": (
        (ATTENTION, "custom_calls.transcendentals", 126 * 128 * 8192 * 8192),
        (ADAMW_BEFORE, "custom_calls.transcendentals", 0),
    ),
    "custom_calls.bytes": (
        (ATTENTION, "custom_calls.bytes", 126 * 574_619_704),
        (ADAMW_BEFORE, "custom_calls.bytes", 0),
    ),
    "custom_calls.host_callback_count": (
        ("handmade/host_callbacks", "custom_calls.host_callback_count", 2),
        (ADAMW, "custom_calls.host_callback_count", 0),
    ),
    "custom_calls.host_callback_bytes": (
        ("handmade/host_callbacks", "custom_calls.host_callback_bytes", 4 + 2 * 512),
        (ADAMW, "custom_calls.host_callback_bytes", 0),
    ),
    "custom_calls.unknown_count": ((FUSIONS, "custom_calls.unknown_count", 1), (ADAMW, "custom_calls.unknown_count", 0)),
    "cost.attention_flops": (
        (ATTENTION, "cost.attention_flops", 126 * 4_398_046_511_104),
        (ADAMW_BEFORE, "cost.attention_flops", 0),
    ),
    "cost.unknown_custom_calls": ((FUSIONS, "cost.unknown_custom_calls", 1), (ADAMW, "cost.unknown_custom_calls", 0)),
    # an H100: 66.9 TFLOP/s of f32 on its vector unit, 3352 GB/s
    "time.compute_s": ((CPU, "time.compute_s", 1792 / 66.9e12), (GPU, "time.compute_s", 1792 / 66.9e12)),
    # jaxlib 0.10 counts 22076 and 30596 bytes, 8 for each of 6 and 14 elements of tuples
    "time.memory_s": (
        (CPU, "time.memory_s", (22076 - 6 * 8) / 3352e9),
        # without tables of pointers, results of starts, operands of dones, and dones of whole computations
        (GPU, "time.memory_s", (30596 - 14 * 8 - (2048 + 3072 + 2 * 256 + 4) - (2 * 256 + 4) - (256 + 1024)) / 3352e9),
    ),
    # SCAN: memory bounds each kernel. The bytes exclude collectives (3 gathers of 32 floats to 64, a sum of one number) and
    # four tables of 3 pointers. GATHERED: two transposes of 8 MiB, and two products of bf16 at
    # 989.4 TFLOP/s. The vector unit converts a result to f32 and back at the same time.
    "time.kernels_s": (
        (SCAN, "time.kernels_s", (3872 - 3 * (128 + 256) - 8 - 4 * 3 * 8) / 3352e9),
        (
            GATHERED,
            "time.kernels_s",
            (2 * 2**24) / 3352e9 + (2 * 2 * 4096 * 2048 * 8192) / 989.4e12,
        ),
    ),
    # XLA's model of GPUs: a launch, then compute and memory; 95 % of the shorter of the two overlaps.
    "time.estimate_kernels_s": (
        (
            GATHERED,
            "time.estimate_kernels_s",
            LIKELY_KERNELS,
        ),
        # 126 runs of attention with 574,619,704 bytes and half of the scores masked; each with a 4-byte counter and a test
        (
            ATTENTION,
            "time.estimate_kernels_s",
            LIKELY_ATTENTION,
        ),
    ),
    # GATHERED: four devices run two gathers of 8 MiB and a scatter of 16 MiB. A transpose of 8 MiB hides a part of one gather.
    # GATHERED_ON_CPU: the same in f32, and nothing is hidden. A device sends 450 GB/s.
    "time.expected_collective_s": (  # of optimized texts that of `time.collective_s`
        (GATHERED, "time.expected_collective_s", (2 * 3 * 2**23 + 3 * 2**22) / 450e9),
        (GATHERED_ON_CPU, "time.expected_collective_s", 2 * (2 * 3 * 2**23 + 3 * 2**22) / 450e9),
    ),
    "time.collective_s": (
        (GATHERED, "time.collective_s", (2 * 3 * 2**23 + 3 * 2**22) / 450e9),
        (GATHERED_ON_CPU, "time.collective_s", 2 * (2 * 3 * 2**23 + 3 * 2**22) / 450e9),
    ),
    "time.exposed_collective_s": (
        (GATHERED, "time.exposed_collective_s", EXPOSED),
        (GATHERED_ON_CPU, "time.exposed_collective_s", 2 * (2 * 3 * 2**23 + 3 * 2**22) / 450e9),
    ),
    # SCAN: two devices run three gathers of 32 floats, and one number is summed
    "time.step_s": (
        (GATHERED, "time.step_s", 2 * 2**24 / 3352e9 + PRODUCTS / 989.4e12 + EXPOSED),
        (SCAN, "time.step_s", SCANNED),
    ),
    # NCCL's model: 8.4 us, 3.4 us for each of 3 steps, and 82.4 % of the links. The hiding transpose has a launch.
    "time.estimate_exposed_collective_s": (
        (GATHERED, "time.estimate_exposed_collective_s", LIKELY_EXPOSED),
        (
            GATHERED_ON_CPU,
            "time.estimate_exposed_collective_s",
            3 * 18.6e-6 + 2 * (2 * 3 * 2**23 + 3 * 2**22) / (0.824 * 450e9),
        ),
    ),
    "time.estimate_step_s": (
        (GATHERED, "time.estimate_step_s", LIKELY_KERNELS + LIKELY_EXPOSED),
        (ATTENTION, "time.estimate_step_s", LIKELY_ATTENTION),
    ),
    "time.mfu_bound": (
        (GATHERED, "time.mfu_bound", PRODUCTS / 989.4e12 / (2 * 2**24 / 3352e9 + PRODUCTS / 989.4e12 + EXPOSED)),
        (SCAN, "time.mfu_bound", 768 / 494.7e12 / SCANNED),
    ),
    # estimates of two kernels; three kernels in a body of three runs and one after it
    "time.compiler_cycles": (
        ("tpu/bf16_master.after", "time.compiler_cycles", 4157 + 1837),
        ("tpu/scan_forward.after", "time.compiler_cycles", 3 * (1824 + 1828 + 2066) + 1826),
    ),
    # scan_forward: six kernels in the body of three runs, a comparison before each and after the last, four in the entry;
    # gathered_matmul: two products, two transposes, three collectives
    "kernels.count": ((SCAN, "kernels.count", 6 + 1 + 4), (GATHERED, "kernels.count", 7)),
    "kernels.executed_count": ((SCAN, "kernels.executed_count", 3 * 6 + 4 + 4), (GATHERED, "kernels.executed_count", 7)),
    # adamw_step: two weights of 8 * 32 floats, the second dimension over four devices; each has two moments, and there is a
    # counter; sgd_unused: a bias of 8 floats and a matrix of 16 * 8; those of optimizers: a bias of 4 and a matrix of 8 * 4
    "optimizer.name": ((ADAMW, "optimizer.name", "adamw"), (UNUSED, "optimizer.name", "sgd")),
    "optimizer.update_count": ((ADAMW, "optimizer.update_count", 2), (DONORS, "optimizer.update_count", 1)),
    "optimizer.decayed_count": ((ADAMW, "optimizer.decayed_count", 2), (UNUSED, "optimizer.decayed_count", 0)),
    "optimizer.frozen_count": (
        ("optimizers/adamw_frozen.after", "optimizer.frozen_count", 2),
        (ADAMW, "optimizer.frozen_count", 0),
    ),
    "optimizer.learning_rate": ((ADAMW, "optimizer.learning_rate", 0.001), (DONORS, "optimizer.learning_rate", 0.01)),
    "optimizer.beta1": ((ADAMW, "optimizer.beta1", 0.9), (ADAMW_BEFORE, "optimizer.beta1", 0.9)),
    "optimizer.beta2": ((ADAMW, "optimizer.beta2", 0.95), (ADAMW_BEFORE, "optimizer.beta2", 0.95)),
    "optimizer.beta3": (("optimizers/ademamix.after", "optimizer.beta3", 0.995), (ADAMW, "optimizer.beta3", None)),
    "optimizer.alpha": (("optimizers/ademamix.after", "optimizer.alpha", 4.0), (ADAMW, "optimizer.alpha", None)),
    "optimizer.epsilon": ((ADAMW, "optimizer.epsilon", 1e-8), (ADAMW_BEFORE, "optimizer.epsilon", 1e-8)),
    "optimizer.weight_decay": ((ADAMW, "optimizer.weight_decay", 0.1), (UNUSED, "optimizer.weight_decay", None)),
    "optimizer.l2": (("optimizers/adam_l2.after", "optimizer.l2", 1e-4), (ADAMW, "optimizer.l2", None)),
    "optimizer.momentum": ((DONORS, "optimizer.momentum", 0.9), (UNUSED, "optimizer.momentum", None)),
    "optimizer.nesterov": (
        (DONORS, "optimizer.nesterov", False),
        ("optimizers/sgd_nesterov.after", "optimizer.nesterov", True),
    ),
    "optimizer.clip_norm": (("optimizers/adamw_clip.after", "optimizer.clip_norm", 0.5), (ADAMW, "optimizer.clip_norm", None)),
    "optimizer.weight_bytes": (
        (ADAMW, "optimizer.weight_bytes", 2 * 8 * 8 * 4),
        (UNUSED, "optimizer.weight_bytes", (8 + 16 * 8) * 4),
    ),
    "optimizer.master_bytes": (
        ("optimizers/adamw_bf16_master.after", "optimizer.master_bytes", (8 * 4 + 4) * 4),
        (ADAMW, "optimizer.master_bytes", 0),
    ),
    "optimizer.moment1_bytes": (
        (ADAMW, "optimizer.moment1_bytes", 2 * 8 * 8 * 4),
        (UNUSED, "optimizer.moment1_bytes", 0),
    ),
    "optimizer.moment2_bytes": (
        (ADAMW, "optimizer.moment2_bytes", 2 * 8 * 8 * 4),
        ("optimizers/adamw_bf16_moment.after", "optimizer.moment2_bytes", (8 * 4 + 4) * 4),
    ),
    # arguments, results, aliased bytes, temporaries and the peak without them are those of memory_analysis(); constants are
    # the rest of that peak, and the heap of bf16_master is the allocation of its buffer assignment
    "memory.argument_bytes": ((ADAMW, "memory.argument_bytes", 2052), (SPACES, "memory.argument_bytes", 256 * 128 * 4)),
    "memory.output_bytes": ((ADAMW, "memory.output_bytes", 1608), (SPACES, "memory.output_bytes", 256 * 128 * 4 + 512)),
    "memory.alias_bytes": ((ADAMW, "memory.alias_bytes", 1540), (MASTER, "memory.alias_bytes", 320)),
    "memory.constant_bytes": (
        ("cpu/constants.after", "memory.constant_bytes", 468 - 48 - 222),
        (ADAMW, "memory.constant_bytes", 2128 - (2052 + 1608 - 1540)),
    ),
    "memory.temp_bytes": ((ADAMW, "memory.temp_bytes", 1432), (SPACES, "memory.temp_bytes", 256 * 128 * 4)),
    "memory.needed_bytes": (
        (ADAMW, "memory.needed_bytes", 2128 + 1432),
        (SPACES, "memory.needed_bytes", 3 * 256 * 128 * 4 + 512),
    ),
    "memory.peak_bytes": (
        (MASTER, "memory.peak_bytes", 600 + 896),
        (SPACES, "memory.peak_bytes", 3 * 256 * 128 * 4 + 512),
    ),
    "memory.xla_peak_bytes": (
        (ADAMW, "memory.xla_peak_bytes", 2128),
        (SPACES, "memory.xla_peak_bytes", 3 * 256 * 128 * 4 + 512 + 2 * 4096),  # two arrays of the host count there
    ),
    "memory.xla_temp_bytes": (  # `allocation 8: size 896, page 0, preallocated-temp` of both buffer assignments
        ("xla_dump_to/module_0000.jit_step.cpu_after_optimizations", "memory.xla_temp_bytes", 896),
        ("dump_jax_0_12/module_0000.jit_step.cpu_after_optimizations", "memory.xla_temp_bytes", 896),
    ),
    "memory.capacity_bytes": (  # the total that the driver of an H100 reports
        (ADAMW, "memory.capacity_bytes", 81_559 * 2**20),
        (SPACES, "memory.capacity_bytes", 81_559 * 2**20),
    ),
    "memory.left_bytes": (
        (ADAMW, "memory.left_bytes", 81_559 * 2**20 - (2128 + 1432)),
        (SPACES, "memory.left_bytes", 81_559 * 2**20 - (3 * 256 * 128 * 4 + 512)),
    ),
    "memory.live_peak_bytes": ((MASTER, "memory.live_peak_bytes", 896), (SPACES, "memory.live_peak_bytes", 131072)),
    "memory.heap_bytes": ((MASTER, "memory.heap_bytes", 896), (SPACES, "memory.heap_bytes", 131072)),
    "memory.host_bytes": ((SPACES, "memory.host_bytes", 2 * 8 * 128 * 4), (ADAMW, "memory.host_bytes", 0)),
    "memory.padding_bytes": ((SPACES, "memory.padding_bytes", 256 * 126 * 4), (ADAMW, "memory.padding_bytes", 0)),
    "memory.space.<n>.peak_bytes": (
        (SPACES, "memory.space.1.peak_bytes", 256 * 128 * 4),
        (MASTER, "memory.space.0.peak_bytes", 600 + 896),
    ),
    "optimizer.state_bytes": (
        (ADAMW, "optimizer.state_bytes", 4 * 8 * 8 * 4 + 4),
        ("optimizers/sgd.after", "optimizer.state_bytes", 0),
    ),
}

FACTS |= {fact: cases for facts in declared("FACTS").values() for fact, cases in facts.items()}

# All-reduces of f32[8,8] and of a tuple that begins with one; of f32[4,8]: two for each element. The mesh is 2x4, its first
# axis has alpha 1 and beta 1, the second 1 and 0.1. scan_forward gathers, and reduces one number
ALPA_FACTS: dict[str, tuple[Case, Case]] = {
    "alpa.search_cost": (
        (ADAMW, "alpa.search_cost", 2.0 * 64 + 2.0 * 64),
        ("cpu/bf16_master.after", "alpa.search_cost", 2.0 * 32),
    ),
    "alpa.mesh_cost.<axis>": (
        (ADAMW, "alpa.mesh_cost.d1", 1 + 0.1 * 2 * 3 / 4 * 256 + 0.01),
        ("cpu/bf16_master.after", "alpa.mesh_cost.d0", 1 + 1 * 2 * 1 / 2 * 128 + 0.01),
    ),
    "alpa.collectives.<kind>": ((TPU, "alpa.collectives.all_gather", 4), (ADAMW, "alpa.collectives.total", 2)),
    "alpa.nonscalar_collectives.<kind>": (
        ("cpu/scan_forward.after", "alpa.nonscalar_collectives.total", 2 - 1),
        (ADAMW, "alpa.nonscalar_collectives.all_reduce", 2),
    ),
}

SIMAI, ASTRA_SIM = "workloads/simai", "workloads/astra_sim"
WORKLOAD_FACTS: dict[str, tuple[Case, Case]] = {
    "workload.dialect": ((SIMAI, "workload.dialect", "simai"), (ASTRA_SIM, "workload.dialect", "astra-sim")),
    "workload.policy": (
        (SIMAI, "workload.policy", "HYBRID_TRANSFORMER_FWD_IN_BCKWD"),
        (ASTRA_SIM, "workload.policy", "HYBRID_DLRM"),
    ),
    "workload.time_unit": ((SIMAI, "workload.time_unit", "ns"), (ASTRA_SIM, "workload.time_unit", "cycles")),
    "workload.rows": ((SIMAI, "workload.rows", 8), (ASTRA_SIM, "workload.rows", 4)),
    "workload.stated_rows": ((SIMAI, "workload.stated_rows", 8), (ASTRA_SIM, "workload.stated_rows", 4)),
    "workload.distinct_rows": ((SIMAI, "workload.distinct_rows", 7), (ASTRA_SIM, "workload.distinct_rows", 4)),
    "workload.parallelism": ((SIMAI, "workload.parallelism", "2x2x4"), (ASTRA_SIM, "workload.parallelism", None)),
    "workload.devices": ((SIMAI, "workload.devices", 16), (ASTRA_SIM, "workload.devices", None)),
    "workload.<group>.devices": ((SIMAI, "workload.dp_ep.devices", 4 // 2), (ASTRA_SIM, "workload.tp.devices", None)),
    "workload.pp_comm": ((SIMAI, "workload.pp_comm", 4096), (ASTRA_SIM, "workload.pp_comm", None)),
    "workload.bytes": (
        (SIMAI, "workload.bytes", 1000 + 2000 + 3 * 2 * 64 + 2 * 32),
        (ASTRA_SIM, "workload.bytes", 2 * 96 + 2 * 50 + 7 + 60),
    ),
    "workload.unknown_bytes": ((SIMAI, "workload.unknown_bytes", 16), (ASTRA_SIM, "workload.unknown_bytes", 0)),
    "workload.<kind>.count": (
        (SIMAI, "workload.allgather.count", 1 + 1),
        (ASTRA_SIM, "workload.allreducealltoall.count", 1),
    ),
    "workload.<kind>.bytes": ((SIMAI, "workload.allreduce.bytes", 3 * 2 * 64), (ASTRA_SIM, "workload.alltoall.bytes", 2 * 96)),
    "workload.<pass>.compute": (
        (SIMAI, "workload.forward.compute", 3 * 1 + 3 * 500 + 40 + 5),
        (ASTRA_SIM, "workload.weight_gradient.compute", 300 + 3 * 30),
    ),
    "workload.<pass>.bytes": (
        (SIMAI, "workload.weight_gradient.bytes", 1000 + 2000),
        (ASTRA_SIM, "workload.forward.bytes", 96 + 7),
    ),
    "workload.update.compute": (
        (SIMAI, "workload.update.compute", 8 * 100),
        (ASTRA_SIM, "workload.update.compute", 98 + 3 * 5),
    ),
    "workload.<group>.bytes": ((SIMAI, "workload.ep.bytes", 2 * 32), (ASTRA_SIM, "workload.dp.bytes", None)),
}
"""Facts of workload files of network simulators: sums over the rows of two small files."""

OWED = """
"""
"""Facts that are promised and not built yet."""
OPTIMIZERS = """
    sgd adam adamw nadam nadamw amsgrad adamax adagrad adadelta rmsprop adabelief radam yogi novograd lamb lars lion adafactor
    muon sm3 sophia shampoo schedule-free ademamix prodigy dadapt_adamw soap mars adopt rprop asgd ftrl adabound
    sign_sgd signum
"""
"""Values of `optimizer.name` besides `mixed`, `unknown` and `none`: existing rules, and names kept for later rules."""

KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
    "collective-reduce",
    "ragged-all-to-all",
)


@cache
def report(dump: str, command: str = "summary") -> Report:
    path = DATA / f"{dump}.txt"
    profile = "h100-sxm" if command in {"cost", "memory"} else None
    return hlo_inspect.inspect(path if path.exists() else path.with_name(f"{path.stem}.hlo"), (command,), profile=profile)


@pytest.mark.parametrize("group", FACTS)
def test_facts(group: str) -> None:
    for dump, fact, number in FACTS[group]:
        command = next((pass_.name for pass_ in PASSES if find_spec(fact, pass_.specs)), "summary")
        check_fact(dump, command, fact, number)


@pytest.mark.parametrize("command", ["workload", "summary"])
def test_facts_of_workloads(command: str) -> None:
    for cases in WORKLOAD_FACTS.values():
        for dump, fact, number in cases:
            check_fact(dump, command, fact, number)


def test_facts_of_alpa() -> None:
    for cases in ALPA_FACTS.values():
        for dump, fact, number in cases:
            check_fact(dump, "alpa", fact, number)


def check_fact(dump: str, command: str, fact: str, number: Plain) -> None:
    """Check the type and the value of a fact."""
    value = report(dump, command).facts[fact]
    assert (dump, fact, type(value)) == (dump, fact, type(number))
    assert (dump, fact, value) == (dump, fact, approximately(number))


MEASURED_FACTS = {
    f"measured.{name}"
    for name in (
        *("program_id", "platform", "hosts", "devices", "runs", "samples", "cut_samples", "runs_from", "events"),
        *("joined_events", "unattributed_events", "unattributed_s", "step_s", "step_p90_s", "busy_s", "idle_s", "period_s"),
        *("kernels_s", "exposed_collective_s", "wait_s", "mfu", "hfu", "step_over_bound"),
    )
}
"""The facts of recorded profiles; their numbers are in `tests/passes/test_measured.py`."""


EXPORT_FACTS = {
    f"export.{name}"
    for name in (
        *("ranks", "files", "nodes", "not_expressed_count"),
        *("<kind>.executed_count", "<kind>.executed_operand_bytes"),
    )
}
"""The facts of exports; their numbers are in `tests/passes/test_export.py`."""


def test_each_fact_of_the_program_is_in_the_contract() -> None:
    assert {spec.name for spec in all_specs()} == {*FACTS, *WORKLOAD_FACTS, *ALPA_FACTS, *MEASURED_FACTS, *EXPORT_FACTS}


def test_promised_facts_are_not_built_yet() -> None:
    """Once a fact is built, it belongs in `FACTS` with its numbers."""
    assert {spec.name for spec in all_specs()} & set(OWED.split()) == set()


def test_each_fact_has_two_dumps_and_a_compiler_wrote_one_of_them() -> None:
    for name, (first, second) in FACTS.items():
        assert first[0] != second[0], name
        assert not (first[0].startswith("handmade/") and second[0].startswith("handmade/")), name
        assert first[2] or second[2], name


def test_numbers_agree_with_those_of_xla_s_parser() -> None:
    """Only the facts in `expected.json` are compared."""
    figures = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))["dumps"]
    checked = 0
    for cases in FACTS.values():
        for dump, fact, number in cases:
            theirs = figures.get(f"{dump}.txt", {"facts": {}})["facts"]
            if fact in theirs:
                assert (dump, fact, number) == (dump, fact, theirs[fact])
                checked += 1
    assert checked > 15


def test_each_optimizer_rule_has_a_listed_name() -> None:
    assert {name for rule in RULES for name in rule.names} <= set(OPTIMIZERS.split())
    (names,) = [spec.members for spec in all_specs() if spec.name == "optimizer.name"]
    assert names == frozenset({*OPTIMIZERS.split(), "mixed", "unknown", "none"})


def test_families_list_their_members() -> None:
    members = {spec.name: spec.members for spec in all_specs()}
    assert members["collectives.<kind>.count"] == frozenset({*KINDS, "send", "recv"})
    assert members["collectives.<kind>.operand_bytes"] == frozenset(KINDS)
    assert {"kLoop", "kInput", "kOutput", "kCustom"} <= (members["fusions.kind.<kind>"] or set())
    assert {"reduce-scatter-start", "all-to-all-done", "get-tuple-element"} <= (members["opcode.<opcode>"] or set())


def test_an_absent_member_of_a_closed_family_is_0() -> None:
    facts = report(ADAMW).facts
    names = [f"collectives.{kind}.count" for kind in (*KINDS, "send", "recv")]
    names += [f"collectives.{kind}.operand_bytes" for kind in KINDS] + ["fusions.kind.kInput", "fusions.kind.kOutput"]
    assert {name: facts[name] for name in names if facts.get(name) != 0} == {
        "collectives.all-reduce.count": 2,
        "collectives.all-reduce.operand_bytes": 256 + 2 * 256 + 4,
    }


def test_every_command_gives_the_facts_of_the_module() -> None:
    for pass_ in PASSES:
        assert {spec.name for spec in find_pass(MODULE_FACTS).specs} <= report(CPU, pass_.name).facts.keys()


def test_the_signature_of_the_python_call() -> None:
    names = list(inspect.signature(hlo_inspect.inspect).parameters)
    assert names[:2] == ["source", "passes"]
    assert {"profile", "module"} <= set(names)
    assert {"source", "passes", "profile", "module"} <= set(inspect.signature(hlo_inspect.inspect_all).parameters)
    assert inspect.signature(hlo_inspect.inspect).parameters["passes"].default == ("summary",)
