"""Tables of each command with the meanings of their columns, from runs on files of the repository."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from docs.pages.reports import reports_of
from hlo_inspect.report.table import Column, Table

_DATA = "tests/data"
_STEP = (f"{_DATA}/cpu/scan_fsdp.after.txt", "--profile", "h100-sxm")
_LOOP = (f"{_DATA}/memory/gpu_scan.hlo", "--profile", "h100-sxm")
_UNUSED = f"{_DATA}/cpu/sgd_unused.after.txt"

RUNS: dict[str, tuple[tuple[str, ...], ...]] = {
    "summary": (_STEP, (f"{_DATA}/cpu/adamw_step.after.txt",), (f"{_DATA}/handmade/custom_calls.txt",)),
    "params": ((_UNUSED,),),
    "fusions": ((f"{_DATA}/gpu/collectives.after.txt",),),
    "collectives": (_STEP,),
    "optimizer": ((f"{_DATA}/cpu/adamw_step.after.txt",),),
    "cost": (_STEP,),
    "top": (_STEP,),
    "time": ((f"{_DATA}/tpu/gathered_matmul.after.txt", "--profile", "tpu-v5e", "--profile", "tpu-v6e"),),
    "memory": (_LOOP, (_LOOP[0], "gemm_fusion_dot.4")),
    "custom-calls": ((f"{_DATA}/handmade/custom_calls.txt",),),
    "fingerprint": ((_UNUSED,),),
    "workload": ((f"{_DATA}/workloads/simai.txt",),),
    "list": ((_UNUSED,),),
    "check": ((_UNUSED, "--assert", "params.unused_count == 0"),),
    "lint": ((_UNUSED,), (f"{_DATA}/stablehlo/step.mlir", "--prove")),
    "diff": ((_LOOP[0], f"{_DATA}/memory/gpu_scan_remat.hlo", "--fail-if", "memory.peak_bytes > +5%"),),
    "show": ((f"{_DATA}/gpu/bf16_master.after.txt", "all-reduce-start"), (_UNUSED, "programs.py:106")),
    "history": ((f"{_DATA}/xla_dump_to",), (f"{_DATA}/xla_dump_to", "all-reduce")),
    "ranks": ((f"{_DATA}/ranks/dumps/{{rank}}",),),
    "recompiles": ((f"{_DATA}/recompiles/server",),),
    "bisect": ((f"{_DATA}/stablehlo/sines.mlir", "--over", "passes", "--if", "opcode.sine == 2", "-q"),),
    "remesh": ((f"{_DATA}/stablehlo/step.mlir", "--mesh", "all", "--profile", "h100-sxm"),),
    "profiles": ((), ("tpu-v5e",)),
    "rules": ((),),
    "query": (("--list",),),
    "measured": ((f"{_DATA}/profile/mlp.xplane.pb", f"{_DATA}/profile/mlp.hlo.xz", "--profile", "h100-sxm"),),
}
"""Command lines whose reports together have the tables of a command."""

_OF_OTHERS = frozenset({"call_stacks", "graph_nodes", "graph_edges", "live_bytes", "cache_parts"})
"""Tables that describe or draw others. They are in JSON only."""


class DescribedTable(NamedTuple):
    """A table of a command: the columns of its pages with their meanings."""

    name: str
    columns: tuple[tuple[Column, str], ...]


@cache
def meanings() -> dict[str, str]:
    """Return the meanings by `column` or `table.column`."""
    text = (Path(__file__).parent / "columns.yaml").read_text(encoding="utf-8")
    return {str(name): str(meaning) for name, meaning in yaml.safe_load(text).items()}


def meaning_key(table: str, column: str) -> str:
    """Return the key of a column's meaning: that of its table, else that of all tables."""
    own = f"{table}.{column}"
    return own if own in meanings() else column


def tables_of(command: str) -> Iterator[Table]:
    """Yield the tables that the command's runs have, each name once."""
    names: set[str] = set()
    for arguments in RUNS.get(command, ()):
        for report in reports_of(command, *arguments):
            for table in report.tables:
                if table.name not in names | _OF_OTHERS and not table.name.startswith("rows_"):
                    names.add(table.name)
                    yield table


@cache
def described_tables(command: str) -> tuple[DescribedTable, ...]:
    """Return the tables of a command. Raise KeyError if a column has no meaning."""
    described = []
    for table in tables_of(command):
        columns = [column for column in table.columns if column.name not in _PROFILES]
        meant = tuple((column, column.meaning or meanings()[meaning_key(table.name, column.name)]) for column in columns)
        described.append(DescribedTable(table.name, meant))
    return tuple(described)


_PROFILES = frozenset({"tpu-v5e", "tpu-v6e"})
"""Columns of `compared` that are called by a hardware profile."""
