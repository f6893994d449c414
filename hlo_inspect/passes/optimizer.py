"""The optimizer of this step, with its constants; the parameters that are weights, moments, master weights or counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.figure import Quantity, at_least
from hlo_inspect.graph.frames import DefinedAt
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer.overview import HYPERPARAMETERS, Overview, Row, rule_names
from hlo_inspect.passes.base import Fact, FactSheet, Pass, specs_of
from hlo_inspect.passes.instruction_rows import group_rows
from hlo_inspect.passes.params import index_text
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table, TablePlace, Value
from hlo_inspect.report.table_spec import CountedRows, TableSpec, is_set

RULE_NAMES = rule_names()
WITHOUT_RULE = ["shampoo", "soap"]
"""Names that a policy may ask for, of optimizers that no rule recognises."""

VALUES = tuple(name for name in HYPERPARAMETERS if name != "nesterov")
_DETAILS = {"learning_rate": 1, "momentum": 3, "l2": 6, "beta3": 8, "alpha": 8}
"""Order in which a narrow page drops hyper-parameters (default 2): those of few rules go before those of most."""
NAMES = frozenset({*RULE_NAMES, *WITHOUT_RULE, "mixed", "unknown", "none"})
MAX_EXPRESSIONS = 3
MAX_NUMBERS = 8  # of parameters with expressions of one form

_ABSENT = "no update has this constant"


# -- facts --------------------------------------------------------------------------------------------------------------------


def _figure(get: Callable[[Overview], int]) -> Callable[[Overview], Quantity]:
    """Return a getter of an amount of all updates; it is a lower bound if there may be more of them."""
    return lambda overview: at_least(get(overview), overview.partial_reason) if overview.partial_reason else get(overview)


def _certain_rows(overview: Overview) -> list[Row]:
    """Return the updates; if there may be more, those that a rule explains."""
    return [row for row in overview.rows if not overview.partial_reason or row.matched.claim is not None]


def _row_bytes(array: str) -> Callable[[Overview], Quantity]:
    return _figure(lambda overview: overview.bytes_of(map(attrgetter(array), _certain_rows(overview))))


def _moment_bytes(role: str) -> Callable[[Overview], Quantity]:
    return _figure(lambda overview: overview.bytes_of(overview.moments(role)))


_COUNTS = (
    Fact("optimizer.update_count", "count", "weights that the step updates", _figure(lambda o: len(_certain_rows(o)))),
    Fact("optimizer.decayed_count", "count", "updated weights with weight decay", _figure(attrgetter("decayed"))),
)
_SIZES = (
    Fact("optimizer.weight_bytes", "bytes", "bytes of the updated weights that the forward pass reads", _row_bytes("weight")),
    Fact("optimizer.master_bytes", "bytes", "bytes of the master weights (more precise copies)", _row_bytes("master")),
    Fact("optimizer.moment1_bytes", "bytes", "bytes of first moments", _moment_bytes("first_moment")),
    Fact("optimizer.moment2_bytes", "bytes", "bytes of second moments", _moment_bytes("second_moment")),
)


def _facts(overview: Overview) -> FactSheet:
    facts, partial = FactSheet(), overview.partial_reason
    facts.put("optimizer.name", overview.name, partial)
    for name in (*VALUES, "nesterov"):
        value = overview.shared(name)
        reason = _no_value_reason(overview, name) if value is None else ""
        facts.put(f"optimizer.{name}", bool(value) if name == "nesterov" and value is not None else value, reason)
    limits = {row.clip.limit for row in overview.rows if row.clip is not None and row.clip.kind == "norm"}
    reason = partial if not overview.is_complete else _DIFFERENT if limits else ""
    facts.put("optimizer.clip_norm", overview.clip_norm, reason)
    facts.put_all((*_COUNTS, *_SIZES), overview)
    facts.put("optimizer.frozen_count", None if partial else len(overview.frozen), partial)
    facts.put("optimizer.state_bytes", None if partial else overview.bytes_of(overview.states), partial)
    return facts


_DIFFERENT = "the updates have different values"


def _no_value_reason(overview: Overview, name: str) -> str:
    """Return why a hyper-parameter is unknown; empty if no update has it."""
    if not overview.is_complete:
        return overview.partial_reason
    states = {row.hyperparameter(name).status for row in overview.rows}
    if states <= {"absent"}:
        return ""
    if "computed" not in states:
        return _DIFFERENT
    rates = {overview.rate_of(row) for row in overview.rows if row.hyperparameter(name).status == "computed"}
    rate = rates.pop() if name == "learning_rate" and len(rates) == 1 else ""
    if rate.startswith("parameter "):
        return f"it is {rate} of the step"
    return f"the step computes it{': ' * bool(rate)}{rate.removeprefix('computed ')}"


# -- notes --------------------------------------------------------------------------------------------------------------------


def _notes(overview: Overview) -> list[str]:
    notes = [_expression(overview, rows) for rows in overview.unknown[:MAX_EXPRESSIONS]]
    bounded = [row for row in overview.rows if row.clip is None and row.has_unknown_clip]
    if bounded:
        notes.append(f"optimizer.clip_norm: the gradient of {_arrays(overview, bounded)} has a bound that is no known clip")
    if overview.doubtful_scalars:
        named = _parameters(overview.doubtful_scalars)
        notes.append(f"optimizer.update_count: {named} may be a weight: a scalar without a visible gradient has no row")
    return notes


def _expression(overview: Overview, rows: Sequence[Row]) -> str:
    """Return the new value of weights that no rule explains and whose expressions have the same form."""
    if not overview.is_training_step:
        return (
            f"optimizer.name: nothing shows a training step: {_arrays(overview, rows)} is not donated, "
            "no loss is returned, and no other array is updated"
        )
    numbers = _numbers(overview, rows)
    what = _arrays(overview, rows)
    example = f", of which {numbers[0]}" if len(numbers) > 1 else ""
    return f"optimizer.name: no rule explains {what}{example} becomes {rows[0].expression}"


def _numbers(overview: Overview, rows: Sequence[Row]) -> list[int]:
    return [number for row in rows if (number := overview.number(row.matched.array)) is not None]


def _arrays(overview: Overview, rows: Sequence[Row]) -> str:
    """Return the updated arrays: `parameters 1, 2 and 3 more`, or the shape of an array of a loop."""
    numbers = _numbers(overview, rows)
    return _parameters(numbers) if numbers else f"an array {rows[0].weight.shape} of a loop"


def _parameters(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - MAX_NUMBERS} more" * (len(numbers) > MAX_NUMBERS)
    return f"parameter{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers[:MAX_NUMBERS]))}{more}"


# -- tables -------------------------------------------------------------------------------------------------------------------


class _WeightRow(NamedTuple):
    """An updated or frozen weight with its path in the caller's arguments."""

    row: Row
    path: str
    overview: Overview

    @property
    def rate(self) -> str:
        return self.overview.rate_of(self.row)

    @property
    def nesterov(self) -> bool | None:
        value = self.row.hyperparameter("nesterov").value
        return None if value is None else bool(value)

    @property
    def clip_norm(self) -> float | None:
        clip = self.row.clip
        return clip.limit if clip is not None and clip.kind == "norm" else None

    @property
    def origin(self) -> DefinedAt:
        return self.overview.origin(self.row)

    @property
    def constants(self) -> tuple[Value, ...]:
        """The rule and the constants that the updates of a group share."""
        values = (self.row.hyperparameter(name).value for name in VALUES)
        return (self.row.rule, *values, self.nesterov, self.clip_norm, self.row.clip_text, self.rate)


class _RuleRow(NamedTuple):
    """The updates of one rule with equal constants, of which the first stands for all."""

    first: _WeightRow
    updates: Sequence[_WeightRow]

    @property
    def row(self) -> Row:
        return self.first.row

    @property
    def bytes(self) -> int | None:
        return self.first.overview.bytes_of(update.row.weight for update in self.updates)

    @property
    def fusions(self) -> int:
        return len({update.origin.fusion for update in self.updates} - {""})


def _value_of(name: str) -> Callable[[_WeightRow | _RuleRow], float | None]:
    return lambda update: update.row.hyperparameter(name).value


def _number_of(role: str) -> Callable[[_WeightRow], int | None]:
    """Return a getter of the parameter that holds the state of a role."""

    def number(update: _WeightRow) -> int | None:
        states = (array for name, array in update.row.roles.items() if name.startswith(role))
        return update.overview.number(next(states, None))

    return number


def _parameter(
    name: str, what: str, number: Callable[[_WeightRow], int | None], detail: int = 0, *, optional: bool = True
) -> Column:
    """Return the column of the number of a parameter that takes part in the update."""
    return Column(name, "number", detail=detail, optional=optional, meaning=f"number of the {what}", get=number)


def _first_counter(update: _WeightRow) -> int | None:
    return update.overview.number(next(iter(update.row.counters), None))


_RULE = Column("rule", get=attrgetter("row.rule"))
_VALUES = tuple(
    Column(name, "number", detail=_DETAILS.get(name, 2), optional=True, real=True, get=_value_of(name)) for name in VALUES
)
_WEIGHTS = TableSpec(
    "optimizer",
    "Updated weights",
    TablePlace("optimizer", "Updates", "by weight", 1),
    in_store=True,
    assertable=True,
    counts=(CountedRows(r"optimizer\.decayed_count", (("weight_decay", is_set),), could_be=True),),
).with_columns(
    _parameter("weight", "weight's parameter", lambda update: update.overview.number(update.row.weight), optional=False),
    Column("path", width=24),
    Column("shape", get=lambda update: str(update.row.weight.shape)),
    _RULE,
    _parameter("first_moment", "parameter with the first moment", _number_of("first_moment"), 4),
    _parameter("second_moment", "parameter with the second moment", _number_of("second_moment"), 4),
    _parameter("master_weight", "parameter with the weight in higher precision", lambda u: u.overview.number(u.row.master), 3),
    *_VALUES,
    Column("nesterov", "bool", detail=5, optional=True),
    Column("clip_norm", "number", detail=4, optional=True, real=True),
    Column("clip", detail=4, optional=True, get=attrgetter("row.clip_text")),
    Column("rate", detail=2),
    _parameter("counter", "parameter that counts steps", _first_counter, 5),
    Column("bytes", "bytes", summed=True, detail=4, meaning="bytes of the weight", get=attrgetter("row.weight.bytes")),
    Column("fusion", detail=6, meaning="fusion that computes the update", get=attrgetter("origin.fusion")),
    Column("computation", detail=7, get=attrgetter("origin.computation")),
    Column("line", "number", detail=6, get=attrgetter("origin.line")),
)
_GROUPS = TableSpec(
    "optimizer_groups",
    "Rules and constants",
    TablePlace("optimizer", "Updates", "by rule"),
    in_store=True,
    counts=(
        CountedRows(r"optimizer\.name", value="rule", is_sum=False),
        CountedRows(r"optimizer\.(\w+)", is_sum=False),
    ),
).with_columns(
    _RULE,
    Column("weights", "count", summed=True, get=lambda group: len(group.updates)),
    Column("bytes", "bytes", summed=True, meaning="bytes of the weights"),
    *_VALUES,
    Column("nesterov", "bool", optional=True, detail=4, get=attrgetter("first.nesterov")),
    Column("clip_norm", "number", optional=True, detail=9, real=True, get=attrgetter("first.clip_norm")),
    Column("clip", optional=True, detail=1, get=attrgetter("row.clip_text")),
    Column("rate", detail=1, get=attrgetter("first.rate")),
    Column("fusions", "count", detail=3, meaning="number of fusions"),
)


def _tables(context: Context) -> Iterator[Table]:
    """Yield the weights; then a row for each set of rule and constants, those with most weights first."""
    updates = _updates(context)
    yield _WEIGHTS.of(updates, title="Weights" if context.optimizer.frozen else "")
    groups = sorted(group_rows(updates, attrgetter("constants")), key=len, reverse=True)
    yield _GROUPS.of([_RuleRow(group[0], group) for group in groups])


def _updates(context: Context) -> list[_WeightRow]:
    overview = context.optimizer
    paths = {(leaf.number, leaf.index): leaf.path for leaf in context.interface.parameters}

    def path(row: Row) -> str:
        source = overview.parameters.get(row.weight.source)
        if source is None or source not in paths:
            return ""
        return paths[source] or (f"{source[0]}{index_text(source[1])}" if source[1] else "")

    return [_WeightRow(row, path(row), overview) for row in overview.all_rows]


class Optimizer(Pass):
    """Recognize the optimizer update: rule and constants; which parameters are weights, moments or counters.

    Only data flow counts; names of instructions and op_names are ignored. A rule must explain the whole expression of the new
    weight, with every state and factor; otherwise the update is `unknown`. A weight is `frozen` if the forward pass reads it
    and it has no gradient: it is returned unchanged, or only decayed. A single array that becomes `w - c * g` is a weight if it
    is donated, or if the program returns a loss; a solver's step has the same form.

    If the module holds the update alone, gradients are parameters. Then only rules with two states are tried, because rules
    with fewer would match any step along a parameter. Constants are read from their place in the rule. A value is null if it
    is absent or computed, or if updates differ in it.
    """

    name = "optimizer"
    wants = Wants(graph=True, entry=True, checked=True)
    specs = (
        FactSpec("optimizer.name", "text", "rule of all updates; else `mixed`, `unknown` or `none`", NAMES),
        *specs_of(_COUNTS),
        FactSpec("optimizer.frozen_count", "count", "weights without a gradient, not counted as updates"),
        *(FactSpec(f"optimizer.{name}", "number", HYPERPARAMETERS[name], absent=_ABSENT) for name in VALUES),
        FactSpec("optimizer.nesterov", "bool", HYPERPARAMETERS["nesterov"], absent=_ABSENT),
        FactSpec("optimizer.clip_norm", "number", "global norm to which the step clips gradients", absent=_ABSENT),
        *specs_of(_SIZES),
        FactSpec("optimizer.state_bytes", "bytes", "bytes of optimizer state: all but weights and master weights"),
    )
    tables = (_WEIGHTS, _GROUPS)

    @classmethod
    def help(cls) -> str:
        return f"{super().help()}\n\nRules: {', '.join(RULE_NAMES)}."

    def run(self, context: Context) -> Section:
        overview = context.optimizer
        facts = _facts(overview)
        return Section(facts.values, _tables(context), [*facts.notes, *_notes(overview)])
