"""Shell completion: names of tables, columns, facts, profiles, rules and instructions; elsewhere files.

Tables and columns are those that the command gives for a small module. All is imported when a shell asks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from hlo_inspect.report.model import Report

# a loop, a collective and a fusion, so that tables without rows are listed too
_MODULE = """HloModule m, num_partitions=2

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT z = f32[] add(x, y)
}

fused {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p)
}

body {
  b = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(b), index=0
  v = f32[8] get-tuple-element(b), index=1
  r = f32[8] all-reduce(v), replica_groups={{0,1}}, channel_id=1, to_apply=add
  ROOT t = (s32[], f32[8]) tuple(i, r)
}

condition {
  c = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(c), index=0
  k = s32[] constant(4)
  ROOT l = pred[] compare(j, k), direction=LT
}

ENTRY e {
  a = f32[8] parameter(0)
  f = f32[8] fusion(a), kind=kLoop, calls=fused
  q = f32[8] custom-call(f), custom_call_target="q"
  o = s32[] constant(0)
  u = (s32[], f32[8]) tuple(o, q)
  ROOT w = (s32[], f32[8]) while(u), condition=condition, body=body
}
"""


_WORKLOAD = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 pp_comm: 0
1
layer -1 1 ALLREDUCE 4 1 BROADCAST 4 1 NONE 0 1
"""


def files(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the item that stands for the shell's own completion of paths."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def tables(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return _starting_with(incomplete, _tables(context))


def columns(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete columns of the table of --table, or of the command's own; after a comma or blank, the next column."""
    before = max(incomplete.rfind(","), incomplete.rfind(" ")) + 1
    tables = _tables(context)
    names = tables.get(context.params.get("table") or next(iter(tables), ""), [])
    return _starting_with(incomplete[before:], names, incomplete[:before])


def facts(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlo_inspect.passes import all_specs
    from hlo_inspect.report.facts import fact_names

    return _starting_with(incomplete, fact_names(all_specs()))


def profiles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlo_inspect.configs import shipped_configs

    names = sorted(path.stem for path in shipped_configs("hardware").glob("*.yaml"))
    return _starting_with(incomplete, names) or files(context, parameter, incomplete)


def rules(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from hlo_inspect.findings import rule_pages

    return _starting_with(incomplete, (name for page in rule_pages() for name in (page.code, page.name)))


def _starting_with(incomplete: str, names: Iterable[str], before: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(before + name) for name in names if name.startswith(incomplete)]


def _tables(context: click.Context) -> dict[str, list[str]]:
    """Return the columns of each table of the command; nothing if it is no pass."""
    from hlo_inspect.api import inspect
    from hlo_inspect.errors import UsageError
    from hlo_inspect.passes import WORKLOAD, find_pass

    if context.info_name == WORKLOAD:
        return _columns_of(inspect(_WORKLOAD, WORKLOAD))
    try:
        pass_ = find_pass(context.info_name or "")
    except UsageError:
        return {}
    report = inspect(_MODULE, pass_.name, profile="h100-sxm")
    return _columns_of(report)


def _columns_of(report: Report) -> dict[str, list[str]]:
    return {table.name: [column.name for column in table.columns] for table in report.tables}


def instructions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete names of the input's instructions and its opcodes; with a `*`, all that fit."""
    from hlo_inspect.inspection.source_lines import names_like

    source = context.params.get("source") or _first_file()
    return _starting_with("", names_like(source, incomplete)) if source not in {None, "-"} else []


def _first_file() -> str | None:
    """Return the first word of the line that is a file. An option that still lacks words hides the arguments before it."""
    from click.shell_completion import split_arg_string

    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    return next((word for word in words if Path(word).is_file()), None)
