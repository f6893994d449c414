"""A small report, made by hand, that the tests of the checks share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hlo_inspect import configs
from hlo_inspect.checks.policy import Policy, policy_of
from hlo_inspect.errors import Location
from hlo_inspect.report.model import FactSpec, Finding, Input, Report
from hlo_inspect.report.table import Column, Plain, Table

KINDS = frozenset({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "send", "recv"})
OPCODES = frozenset({"add", "dot", "fusion", "all-to-all", "get-tuple-element"})

SPECS = (
    FactSpec("module.name", "text", "name in the header"),
    FactSpec("collectives.count", "count", "collectives without send and recv"),
    FactSpec("collectives.operand_bytes", "bytes", "their operands"),
    FactSpec("collectives.<kind>.count", "count", "collectives of a kind", KINDS),
    FactSpec("collectives.<kind>.operand_bytes", "bytes", "their operands", KINDS),
    FactSpec("collectives.group_size.<n>.count", "count", "collectives over groups of n devices"),
    FactSpec("collectives.phase.<phase>.count", "count", "collectives of a phase", frozenset({"forward", "backward"})),
    FactSpec("collectives.async_count", "count", "asynchronous ones"),
    FactSpec("collectives.executed_count", "count", "times the runs of their computation"),
    FactSpec("mesh.shape", "text", "devices by axis"),
    FactSpec("mesh.order", "text", "order of the devices"),
    FactSpec("params.aliased_bytes", "bytes", "aliased with an output"),
    FactSpec("params.unused_count", "count", "no instruction reads them"),
    FactSpec("fusions.kind.<kind>", "count", "fusions of a kind", frozenset({"kLoop", "kInput", "kOutput", "kCustom"})),
    FactSpec("custom_calls.target.<target>", "count", "custom calls of a target"),
    FactSpec("opcode.<opcode>", "count", "instructions of an opcode", OPCODES),
    FactSpec("optimizer.name", "text", "the update rule"),
    FactSpec("optimizer.nesterov", "bool", "Nesterov momentum"),
    FactSpec("optimizer.weight_decay", "number", "factor of the decay"),
    FactSpec("cost.flops", "flops", "as XLA counts"),
    FactSpec("time.step_s", "seconds", "a step"),
)

FACTS: dict[str, Plain] = {
    "module.name": "jit_step",
    "collectives.count": 4,
    "collectives.operand_bytes": 5_245_952,
    "collectives.all-gather.count": 1,
    "collectives.all-reduce.count": 2,
    "collectives.all-to-all.count": 1,
    "collectives.group_size.8.count": 3,
    "collectives.group_size.2.count": 1,
    "collectives.async_count": 2,
    "collectives.executed_count": None,
    "mesh.shape": "2x8",
    "params.aliased_bytes": 188_743_680,  # 180 MiB
    "params.unused_count": 1,
    "fusions.kind.kLoop": 2,
    "custom_calls.target.__cublas$gemm": 2,
    "custom_calls.target.xla.sdy.FuncResultSharding": 1,
    "opcode.dot": 3,
    "optimizer.name": "adamw",
    "optimizer.nesterov": False,
    "optimizer.weight_decay": 0.1,
    "cost.flops": 2_500_000_000,
    "time.step_s": 0.003,
}

COLLECTIVES = Table(
    "collectives",
    "Collectives",
    (
        Column("name"),
        Column("kind"),
        Column("operand_bytes", "bytes", summed=True),
        Column("group_size", "count"),
        Column("is_async", "bool"),
        Column("phase"),
    ),
    (
        ("all-reduce.1", "all-reduce", 4_194_304, 8, False, "backward"),
        ("all-gather.1", "all-gather", 1_048_576, 8, True, "forward"),
        ("all-to-all.1", "all-to-all", 2_048, 8, True, "forward"),
        ("all-reduce.2", "all-reduce", 1_024, 2, False, "backward"),
        ("send.1", "send", 64, None, True, "forward"),
    ),
)
PARAMS = Table(
    "params",
    "Parameters",
    (
        Column("number", "number"),
        Column("bytes", "bytes", summed=True),
        Column("aliased_output"),
        Column("donated", "bool"),
        Column("unused", "bool"),
    ),
    (
        (0, 188_743_680, "{0}", True, False),
        (1, 4_096, None, True, False),
        (2, 16, None, False, True),
    ),
)
FUSIONS = Table(
    "fusions",
    "Fusions",
    (Column("name"), Column("kind"), Column("outputs", "count")),
    (("fusion.1", "kLoop", 1), ("fusion.2", "kInput", 2), ("fusion.3", "kLoop", 3)),
)
CUSTOM_CALLS = Table(
    "custom_calls_by_target",
    "Custom calls",
    (Column("name"), Column("target")),
    (("cc.1", "__cublas$gemm"), ("cc.2", "xla.sdy.FuncResultSharding"), ("cc.3", "__cublas$gemm")),
)

FINDINGS = (
    Finding("HI101", "warning", "no instruction reads it", Location("step.txt", 7, 3), subject="embed.2"),
    Finding("HI102", "info", "is replicated", Location("step.txt", 9), subject="embed.table"),
    Finding("HI001", "error", "a line that cannot be read", Location("step.txt", 20)),
)
NOTES = (
    "collectives.executed_count: the trip count of while.7 (line 812) depends on a parameter",
    "time.step_s leaves out the host",
)


def sample_report(**changes: Any) -> Report:
    """Return the report with the fields of `changes` replaced."""
    report = Report(
        command="summary",
        input=Input("step.txt", first_line=1, lines=100, bytes=5_000),
        facts=FACTS,
        tables=(COLLECTIVES, PARAMS, FUSIONS, CUSTOM_CALLS),
        findings=FINDINGS,
        notes=NOTES,
        specs=SPECS,
    )
    return replace(report, **changes)


def parse_policy(text: str, path: str) -> Policy:
    """Parse a policy in YAML text; `path` names it in errors."""
    return policy_of(configs.parse(text, path))
