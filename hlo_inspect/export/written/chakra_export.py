"""An export to Chakra: the plan of a step, the classes of ranks, and the files of a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from hlo_inspect.analysis.context import Context
from hlo_inspect.atomic_files import require_own, write_folder
from hlo_inspect.errors import InputError, Location, UsageError
from hlo_inspect.export.plan.kernel_work import named_times
from hlo_inspect.export.plan.not_expressed import NotExpressed, find_not_expressed
from hlo_inspect.export.plan.plan_nodes import NodeList, PlanNode
from hlo_inspect.export.plan.row_actions import awaited_rows
from hlo_inspect.export.plan.step_plan import StepPlan, StepProgram, find_program, make_plan
from hlo_inspect.export.written.rank_traces import RankTraces
from hlo_inspect.graph.view import View
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.request import RankFiles

GROUPS_FILE, CLASSES_FILE = "comm_groups.json", "rank_classes.json"
MAX_GROUPS = 2147
"""The largest number of a group: the client multiplies it by 1,000,000 in 32 bits."""
MAX_FILES = 1 << 16
_NO_GROUPS_FILE = "empty"
"""A path with this word means no file of groups to the client."""
_LONGEST_PREFIX = 200
_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_.\-]", re.ASCII)


@dataclass(frozen=True)
class ChakraExport:
    """A step for ASTRA-sim 2."""

    plan: StepPlan
    nodes: Sequence[PlanNode]
    not_expressed: list[NotExpressed]
    prefix: str
    rank_files: RankFiles

    @property
    def ranks(self) -> int:
        return self.plan.program.communications.ranks

    @cached_property
    def traces(self) -> RankTraces:
        return RankTraces(self.nodes, self.ranks)

    @cached_property
    def groups(self) -> dict[int, tuple[int, ...]]:
        """The members of each group that a node names."""
        named = {number for number, runs in self.plan.runs.items() if runs}
        listed = self.plan.program.communications.listed
        used = {group for number in named for group in listed[number].groups.values()}
        return {number: members for number, members in self.plan.program.communications.groups.items() if number in used}

    def write(self, folder: str) -> None:
        """Write the files of a folder. Raise UsageError if it holds other files or cannot be written."""
        path, ranks = Path(folder), self.rank_files
        if self.groups and _NO_GROUPS_FILE in str(path):
            message = f"has '{_NO_GROUPS_FILE}' in its name: the client then reads no groups; name another folder"
            raise UsageError(message, Location(folder))
        if ranks == "all" and self.ranks > MAX_FILES:
            message = f"{self.ranks:,} ranks are more than {MAX_FILES:,} files; use --ranks classes"
            raise UsageError(message, Location(folder))
        require_own(path, self._is_own)
        write_folder(path, self._files())

    def _is_own(self, name: str) -> bool:
        rank = name.removeprefix(f"{self.prefix}.").removesuffix(".et")
        return name in (GROUPS_FILE, CLASSES_FILE) or (name == f"{self.prefix}.{rank}.et" and rank.isdigit())

    def _files(self) -> Iterator[tuple[str, bytes, tuple[str, ...]]]:
        for rank_class in self.traces.classes:
            first, *others = (f"{self.prefix}.{rank}.et" for rank in rank_class.ranks)
            yield first, self.traces.trace(rank_class), tuple(others) if self.rank_files == "all" else ()
        yield GROUPS_FILE, _json({str(number): list(members) for number, members in self.groups.items()}), ()
        if self.rank_files == "classes":
            classes = {str(rank_class.ranks[0]): list(rank_class.ranks) for rank_class in self.traces.classes}
            yield CLASSES_FILE, _json(classes), ()


def _json(lists: dict[str, list[int]]) -> bytes:
    """Return a JSON object of lists, one a line."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(members)}" for key, members in lists.items())
    return f"{{\n{lines}\n}}\n".encode() if lines else b"{}\n"


def chakra_export(context: Context) -> ChakraExport:
    """Plan the export. Raise InputError if the step of the module is unknown, UsageError if it has too many nodes or groups."""
    program = find_program(context)
    if not context.module.header.is_scheduled:
        _require_order(context, program)
    nodes = NodeList(times=named_times(context) is not None)
    plan = make_plan(context, program, nodes)
    prefix, missing = prefix_of(context.module.name), find_not_expressed(context, plan)
    export = ChakraExport(plan, nodes.nodes, missing, prefix, context.request.rank_files)
    if export.groups and max(export.groups) > MAX_GROUPS:
        message = f"the step has more than {MAX_GROUPS:,} groups, and the client's numbers of groups overflow"
        raise UsageError(message, Location(context.module.path))
    return export


def prefix_of(module: str) -> str:
    """Return the name of a module as the prefix of file names."""
    return _UNSAFE.sub("_", module)[:_LONGEST_PREFIX].lstrip(".-") or "module"


def _require_order(context: Context, program: StepProgram) -> None:
    """Raise InputError if two communications of a computation do not depend on each other.

    In a text without a schedule only the flow of values and control predecessors fix their order.
    """
    graph = context.call_graph
    holders = {position[0] for position, own in program.at.items() if any(not part.reason for part in own)}
    communicating: set[str] = set()
    for name in reversed(graph.order):  # callees before their callers
        if name in holders or any(call.callee in communicating for call in graph.calls[name]):
            communicating.add(name)
    for name in graph.order:
        view = context.views.for_computation(name) if name in context.views.computations else None
        if view is None or name not in communicating:
            continue
        rows = [row for row in range(len(view.names)) if _communicates(view, row, program, communicating)]
        for earlier, later in pairwise(rows):
            if not _depends(view, later, earlier):
                first, second = view.names[earlier], view.names[later]
                message = f"the text is no schedule, and the order of {first} and {second} is open; export a scheduled text"
                raise InputError(message, Location(context.module.path, view.lines[later]))


def _communicates(view: View, row: int, program: StepProgram, communicating: set[str]) -> bool:
    """Return True if a row starts a communication, or runs a computation that does."""
    own = program.at.get((view.computation.name, view.lines[row], view.names[row]), ())
    return any(not part.reason for part in own) or any(callee.name in communicating for callee in view.called_at(row))


def _depends(view: View, row: int, on: int) -> bool:
    """Return True if a row waits for another row, through any others."""
    waiting, seen = [row], {row}
    while waiting:
        for operand in awaited_rows(view, waiting.pop()):
            if operand == on:
                return True
            if operand > on and operand not in seen:
                seen.add(operand)
                waiting.append(operand)
    return False
