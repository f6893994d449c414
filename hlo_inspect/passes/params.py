"""The entry's parameters and outputs: which is donated to which, which is not and why, which is not used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from os.path import commonprefix
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Quantity, at_least, least, or_unknown
from hlo_inspect.figure import total as sum_of
from hlo_inspect.graph.parameters import FITS, Interface, Output, ParameterLeaf
from hlo_inspect.hlo.values.header import ShapeIndex
from hlo_inspect.hlo.values.shapes import ArrayShape, total
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.optimizer.overview import role_names
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.report.model import Amount, HeadlineRow, Parts, Section, sentence
from hlo_inspect.report.table import Column, Table, TablePlace
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_absent, is_set, is_there

Leaves = Sequence[ParameterLeaf] | Sequence[Output]


class _Arrays(NamedTuple):
    """Arrays of the interface. If there may be more of them, `gap` says why."""

    leaves: Leaves
    gap: str

    @property
    def number(self) -> Quantity:
        return at_least(len(self.leaves), self.gap) if self.gap else len(self.leaves)

    @property
    def bytes(self) -> Quantity:
        size = sum_of(or_unknown(leaf.shape.bytes, _NO_SIZE) for leaf in self.leaves)
        return at_least(least(size), self.gap) if self.gap else size


class _Counted:
    """The parameters and outputs that facts count."""

    def __init__(self, interface: Interface) -> None:
        parameters, outputs = interface.parameters, interface.outputs
        gap = "" if interface.parameters_known else "the text ends before the end of the entry computation"
        no_result = "" if interface.outputs_known else "the text ends before the result of the entry computation"
        no_donation = "" if interface.donation_known else "the text lacks the part of the header that names donated parameters"
        no_uses = "" if interface.uses_known else "the text lacks operand names or a part of the entry"
        aliased = [p for p in parameters if p.alias]
        donors = [p for p in parameters if p.donor and not p.alias]
        self.count = at_least(interface.count, gap) if gap else interface.count
        self.parameters = _Arrays(parameters, gap)
        self.sized = _Arrays(parameters, gap or ("" if interface.complete else _NO_SIZE))
        self.aliased, self.donors, self.donated = (
            _Arrays(leaves, gap or no_donation) for leaves in (aliased, donors, aliased + donors)
        )
        self.unused = _Arrays([p for p in parameters if p.unused], gap or no_uses)
        self.outputs = _Arrays(outputs, no_result)
        self.aliased_outputs = _Arrays([o for o in outputs if o.alias], no_result or no_donation)


_NO_SIZE = "the size of a shape is unknown"


_FACTS = (
    Fact("params.count", "count", "entry parameters", attrgetter("count")),
    Fact("params.leaf_count", "count", "arrays in the entry parameters", attrgetter("parameters.number")),
    Fact("params.bytes", "bytes", "bytes of the entry parameters", attrgetter("sized.bytes")),
    Fact("params.aliased_count", "count", "parameter arrays aliased with an output", attrgetter("aliased.number")),
    Fact("params.aliased_bytes", "bytes", "bytes of these", attrgetter("aliased.bytes")),
    Fact("params.donor_count", "count", "parameter arrays donated by buffer_donor, not aliased", attrgetter("donors.number")),
    Fact("params.donor_bytes", "bytes", "bytes of these", attrgetter("donors.bytes")),
    Fact(
        "params.donated_count", "count", "donated parameter arrays: aliased or in `buffer_donor`", attrgetter("donated.number")
    ),
    Fact("params.donated_bytes", "bytes", "bytes of these", attrgetter("donated.bytes")),
    Fact("params.unused_count", "count", "unused parameter arrays: no instruction reads them", attrgetter("unused.number")),
    Fact("params.unused_bytes", "bytes", "bytes of these", attrgetter("unused.bytes")),
    Fact("outputs.count", "count", "arrays in the entry result", attrgetter("outputs.number")),
    Fact("outputs.bytes", "bytes", "bytes of the entry result", attrgetter("outputs.bytes")),
    Fact("outputs.aliased_count", "count", "outputs that use a parameter's buffer", attrgetter("aliased_outputs.number")),
    Fact("outputs.aliased_bytes", "bytes", "bytes of these", attrgetter("aliased_outputs.bytes")),
)


_ROLES = ("weight", "frozen", "master_weight", "first_moment", "second_moment")
"""The first ones of a page; a role can go on, as `second_moment_of_steps`."""

_NUMBERS = lazy_pattern(r"(?<=\[)\d+(?=\])|(?<=[_.])\d+(?![^\W_])", re.ASCII)
_BRACKETS = lazy_pattern(r"[\[\].'\"/]")


class _Parameter(NamedTuple):
    """An array of a parameter with the results of other analyses.

    `role` is empty if it has none in the optimizer. `kind` is the role, or `input` of a step that updates weights, and empty if
    --quick leaves the optimizer out. `spec` is None if the sharding is unknown.
    """

    leaf: ParameterLeaf
    role: str
    kind: str
    spec: str | None
    copies: int | None

    @property
    def replicated_bytes(self) -> int | None:
        """The bytes that other devices hold too; None if the sharding does not tell."""
        return None if self.copies is None else self.leaf.shape.bytes if self.copies > 1 else 0


def _tables(context: Context, parameters_of: Callable[[], Sequence[_Parameter]]) -> Iterator[Table]:
    """Yield the tables of parameters and outputs; the command's own table comes first."""
    parameters = parameters_of()
    yield _rows(parameters)
    yield _by_role(parameters)
    parts = (
        _PARAMS_NOT_DONATED.of(_groups([p for p in parameters if not p.leaf.donated])),
        _PARAMS_DONATED.of(_groups([p for p in parameters if p.leaf.donated])),
    )
    yield from (table for table in parts if table.rows)
    yield from _outputs(context)


def _parameters(context: Context) -> list[_Parameter]:
    roles = None if context.request.quick else context.optimizer.roles
    return [_parameter(context, leaf, roles) for leaf in context.shardings.interface.parameters]


def _parameter(context: Context, leaf: ParameterLeaf, roles: Mapping[tuple[int, ShapeIndex], str] | None) -> _Parameter:
    role = roles.get((leaf.number, leaf.index), "") if roles is not None else ""
    other = "" if roles is None else "input" if roles else "parameter"
    is_unknown = leaf.sharding is None and context.shardings.unknown
    spec = None if is_unknown else context.partition_specs.text(leaf.sharding, None if leaf.index else leaf.instruction)
    copies = context.sharding_copies.get(leaf.sharding.text) if leaf.sharding is not None else None
    return _Parameter(leaf, role, role or other, spec, copies)


# -- first lines -----------------------------------------------------------------------------------------------------------


_WEIGHTS = frozenset({"weight", "frozen"})
_NO_STATE = frozenset({"input", "parameter", ""})


def _replicated(context: Context, parameters_of: Callable[[], Sequence[_Parameter]]) -> Iterator[HeadlineRow]:
    """Yield the bytes of weights, and of optimizer state, that several devices hold in copies."""
    parameters = parameters_of() if context.sharding_copies else []
    groups = {
        "weights": [p for p in parameters if p.kind in _WEIGHTS],
        "state": [p for p in parameters if p.kind not in _WEIGHTS | _NO_STATE],
        "parameters": [p for p in parameters if p.kind in {"parameter", ""}],
    }
    words: list[str | Amount] = []
    for name, group in groups.items():
        more = list(_replicated_words(name, group))
        words += ["; ", *more] if words and more else more
    if words:
        yield HeadlineRow("replicated", tuple(words))


def _replicated_words(name: str, group: Sequence[_Parameter]) -> Parts:
    """Yield for example `weights: 61.7 MiB of 61.7 MiB (61.5 MiB on 2 devices, 152.0 KiB on 16 devices)`."""
    sizes: Counter[int] = Counter()
    for parameter in group:
        if parameter.copies is not None and parameter.replicated_bytes:
            sizes[parameter.copies] += parameter.replicated_bytes
    if not sizes:
        return
    yield from sentence(f"{name}: {{}} of {{}}", Amount(sizes.total(), "bytes"), Amount(_group_bytes(group), "bytes"))
    if len(sizes) == 1:
        yield f" on {next(iter(sizes)):,} devices"
        return
    for number, (copies, size) in enumerate(sizes.most_common()):
        yield from sentence(f"{', ' if number else ' ('}{{}} on {copies:,} devices", Amount(size, "bytes"))
    yield ")"


# -- one row an array -------------------------------------------------------------------------------------------------------


def memory_space(shape: ArrayShape) -> int:
    """Return the memory space in the layout of a shape, 0 without one."""
    return shape.layout.memory_space if shape.layout is not None else 0


def index_text(index: ShapeIndex) -> str:
    """Format an index as XLA writes it: `{0,1}`."""
    return "{" + ",".join(map(str, index)) + "}"


def _aliased_output(leaf: ParameterLeaf) -> str | None:
    if leaf.alias is not None:
        return index_text(leaf.alias.output_index)
    return None if leaf.donated is None else ""


def _not_donated_reason(leaf: ParameterLeaf) -> str:
    if leaf.donated:
        return ""
    return f"not asked for: {FITS}" if leaf.could_be_donated else leaf.kept_because


_PARAMS = TableSpec(
    "params",
    "Parameters",
    TablePlace("parameters", "Parameters", "single", 1),
    in_store=True,
    assertable=True,
    counts=(
        CountedRows(r"params\.aliased_\w+", (("aliased_output", is_there),), could_be=True, value="bytes"),
        CountedRows(r"params\.donor_\w+", (("donated", is_set), ("aliased_output", is_absent)), could_be=True, value="bytes"),
        CountedRows(r"params\.donated_\w+", (("donated", is_set),), could_be=True, value="bytes"),
        CountedRows(r"params\.unused_\w+", (("unused", is_set),), value="bytes"),
    ),
    page_as="params_by_role",
).with_columns(
    Column("number", "number", get=lambda p: p.leaf.number),
    Column("index", detail=9, get=lambda p: index_text(p.leaf.index)),
    Column("name", detail=4, get=lambda p: p.leaf.name),
    Column("shape", get=lambda p: str(p.leaf.shape)),
    Column("dtype", detail=9, get=lambda p: p.leaf.shape.dtype),
    Column("bytes", "bytes", summed=True, get=lambda p: p.leaf.shape.bytes),
    Column("padded_bytes", "bytes", summed=True, detail=6, get=lambda p: p.leaf.shape.padded_bytes),
    Column("memory_space", "number", detail=9, get=lambda p: memory_space(p.leaf.shape)),
    Column("role", detail=1, width=8, optional=True, get=lambda p: p.role or None),
    Column("sharding", detail=9, get=lambda p: p.leaf.sharding.text if p.leaf.sharding else p.spec and ""),
    Column("partition_spec", detail=3, get=lambda p: p.spec),
    Column("copies", "number", detail=9, optional=True),
    Column("aliased_output", detail=1, width=6, get=lambda p: _aliased_output(p.leaf)),
    Column("donated", "bool", get=lambda p: p.leaf.donated),
    Column("not_donated_because", detail=2, get=lambda p: _not_donated_reason(p.leaf)),
    Column("unused", "bool", detail=1, get=lambda p: p.leaf.unused),
    Column("path", detail=2, get=lambda p: p.leaf.path),
    Column("line", "number", detail=5, optional=True, get=lambda p: p.leaf.line),
)


def _rows(parameters: Sequence[_Parameter]) -> Table:
    roles = role_names() if any(parameter.role for parameter in parameters) else frozenset()
    return _PARAMS.of(parameters, columns=_PARAMS.with_flags({"role": {"members": roles}}))


# -- for pages --------------------------------------------------------------------------------------------------------------


def _rank(kind: str) -> int:
    return next((rank for rank, role in enumerate(_ROLES) if kind.startswith(role)), len(_ROLES) + (kind == "input"))


def _groups(parameters: Sequence[_Parameter]) -> list[list[_Parameter]]:
    """Group arrays by role, shape, division and reason, those of the most bytes first."""
    groups = group_rows(parameters, lambda p: (p.kind, str(p.leaf.shape), p.spec, _not_donated_reason(p.leaf)))
    return sorted(groups, key=lambda group: -(_group_bytes(group) or 0))


def _group_bytes(group: Iterable[_Parameter]) -> int | None:
    return total(p.leaf.shape.bytes for p in group)


def _bytes_donated(group: Sequence[_Parameter], *, donated: bool) -> int | None:
    """Return the bytes that are donated, or not; None if the donation of an array is unknown."""
    is_known = all(p.leaf.donated is not None for p in group)
    return _group_bytes(p for p in group if p.leaf.donated is donated) if is_known else None


def _replicated_bytes(group: Sequence[_Parameter]) -> int | None:
    return total(p.replicated_bytes for p in group)


def _unused(group: Sequence[_Parameter]) -> int | None:
    unused = [p.leaf.unused for p in group]
    return None if None in unused else sum(map(bool, unused))


_PARAMS_BY_ROLE = TableSpec(
    "params_by_role", "Parameters by role", TablePlace("parameters", "Parameters", "by role"), page_rows=0
).with_columns(
    Column("role", width=8, get=lambda group: group[0].kind or None),
    Column("arrays", "count", summed=True, get=len),
    Column("bytes", "bytes", summed=True, get=_group_bytes),
    Column("padded_bytes", "bytes", summed=True, detail=1, get=lambda group: total(p.leaf.shape.padded_bytes for p in group)),
    Column("donated_bytes", "bytes", summed=True, get=partial(_bytes_donated, donated=True)),
    Column("not_donated_bytes", "bytes", summed=True, detail=9, get=partial(_bytes_donated, donated=False)),
    Column("unused", "count", summed=True, detail=1, meaning="parameters that no instruction reads", get=_unused),
    Column("replicated_bytes", "bytes", summed=True, detail=2, optional=True, get=_replicated_bytes),
)


def _by_role(parameters: Sequence[_Parameter]) -> Table:
    is_padded = any(p.leaf.shape.padded_bytes != p.leaf.shape.bytes for p in parameters)
    groups = sorted(group_rows(parameters, lambda p: p.kind), key=lambda group: _rank(group[0].kind))
    return _PARAMS_BY_ROLE.of(groups, without=() if is_padded else ("padded_bytes",))


_GROUP = (
    Column("role", detail=1, width=8, get=lambda group: group[0].kind or None),
    Column("arrays", "count", summed=True, get=len),
    Column("shape", get=lambda group: str(group[0].leaf.shape)),
    Column("partition_spec", detail=3, get=lambda group: group[0].spec),
    Column("bytes", "bytes", summed=True, get=_group_bytes),
    Column("numbers", detail=4, get=lambda group: number_ranges(p.leaf.number for p in group)),
    Column("path", detail=2, get=lambda group: joined_path([p.leaf.path for p in group])),
)
_PARAMS_NOT_DONATED = TableSpec(
    "params_not_donated", "Parameters that are not donated", TablePlace("parameters", "Parameters", "not donated", 2)
).with_columns(*_GROUP, Column("not_donated_because", detail=1, get=lambda group: _not_donated_reason(group[0].leaf)))
_PARAMS_DONATED = TableSpec(
    "params_donated", "Donated parameters", TablePlace("parameters", "Parameters", "donated", 3)
).with_columns(*_GROUP)


def number_ranges(numbers: Iterable[int]) -> str:
    """Format numbers of parameters as `1-3, 7`."""
    runs: list[list[int]] = []
    for number in dict.fromkeys(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)


def joined_path(paths: Sequence[str]) -> str:
    """Return one path for several: with `*` for numbers, else their common start and end, as `params[…]['kernel']`."""
    folded = list(dict.fromkeys(_NUMBERS.sub("*", path) for path in paths)) if len(paths) > 1 else list(paths)
    if len(folded) == 1:
        return folded[0]
    start = _up_to_bracket(commonprefix(folded))  # noqa: RUF071 - these paths are no files
    rest = [path[len(start) :][::-1] for path in folded]
    end = _up_to_bracket(commonprefix(rest))[::-1]  # noqa: RUF071
    return f"{start}…{end}" if start or end else f"{folded[0]}, …"


def _up_to_bracket(text: str) -> str:
    """Return `text` without the part of a name at its end."""
    ends = [match.end() for match in _BRACKETS.finditer(text)]
    return text[: ends[-1]] if ends else ""


# -- outputs ----------------------------------------------------------------------------------------------------------------


class _Output(NamedTuple):
    output: Output
    parameter: str | None
    spec: str


def _outputs(context: Context) -> Iterator[Table]:
    interface, specs = context.interface, context.partition_specs

    def aliased_parameter(output: Output) -> str | None:
        if output.alias is not None:
            return str(output.alias.parameter)
        return "" if interface.donation_known else None

    outputs = [_Output(output, aliased_parameter(output), specs.text(output.sharding)) for output in interface.outputs]
    title = "Outputs" if interface.outputs_known else "Outputs (not in the text)"
    yield _OUTPUTS.of(outputs, title=title)
    groups = group_rows(outputs, lambda o: "" if o.parameter else (o.parameter, str(o.output.shape), o.spec))
    groups.sort(key=lambda group: (not group[0].parameter, -(total(o.output.shape.bytes for o in group) or 0)))
    yield _OUTPUT_GROUPS.of(groups, title=title)


def _common(texts: Iterable[str]) -> str:
    """Return the text that all rows of a group share, else the number of different ones."""
    distinct = set(texts)
    return distinct.pop() if len(distinct) == 1 else f"{len(distinct)} different"


def _taken(group: Sequence[_Output]) -> str | None:
    """Return the parameters whose buffers these outputs take."""
    if group[0].parameter is None:
        return None
    return number_ranges(int(o.parameter) for o in group if o.parameter)


_OUTPUTS = TableSpec(
    "outputs",
    "Outputs",
    TablePlace("parameters", "Outputs", "single", 1),
    in_store=True,
    assertable=True,
    counts=(CountedRows(r"outputs\.aliased_\w+", (("aliased_parameter", is_there),), could_be=True, value="bytes"),),
    page_as="output_groups",
).with_columns(
    Column("index", get=lambda o: index_text(o.output.index)),
    Column("shape", get=lambda o: str(o.output.shape)),
    Column("bytes", "bytes", summed=True, get=lambda o: o.output.shape.bytes),
    Column("aliased_parameter", get=lambda o: o.parameter),
    Column("sharding", detail=9, get=lambda o: o.output.sharding.text if o.output.sharding else ""),
    Column("partition_spec", detail=3, get=lambda o: o.spec),
)
_OUTPUT_GROUPS = TableSpec("output_groups", "Outputs", TablePlace("parameters", "Outputs", "merged")).with_columns(
    Column("shape", get=lambda group: _common(str(o.output.shape) for o in group)),
    Column("arrays", "count", summed=True, get=len),
    Column("bytes", "bytes", summed=True, get=lambda group: total(o.output.shape.bytes for o in group)),
    Column("in_the_buffer_of", get=_taken),
    Column("partition_spec", detail=3, get=lambda group: _common(o.spec for o in group)),
)


class Params(Pass):
    """List entry parameters and outputs: shape, bytes, sharding, role, donated or why not, used or not.

    A page shows totals by role, parameters that are not donated, and the others with equal arrays merged. --sites and other
    formats have one row per array. An array is replicated if several devices hold the same part of it. Bytes are those of the
    printed shapes. Aliases and donors come from the header's `input_output_alias` and `buffer_donor`. A parameter is unused if
    no instruction of the entry reads it. If the text lacks the entry, the header's layout is used. With --quick no parameter
    has a role. A weight that the step does not change is `frozen`, such as a teacher's or one that LoRA adapts.
    """

    name = "params"
    aliases = ("parameters",)
    unless_quick = ("optimizer",)
    wants = Wants(entry=True, unused=True)
    specs = specs_of(_FACTS)
    tables = (_PARAMS, _PARAMS_BY_ROLE, _PARAMS_NOT_DONATED, _PARAMS_DONATED, _OUTPUTS, _OUTPUT_GROUPS)

    def run(self, context: Context) -> Section:
        facts = FactSheet()
        facts.put_all(_FACTS, _Counted(context.interface))
        rows_of = cache(partial(_parameters, context))  # made only when they are shown
        notes = (note for note in (*facts.notes, context.shardings.unknown) if note)
        return Section(facts.values, _tables(context, rows_of), notes, _replicated(context, rows_of))
