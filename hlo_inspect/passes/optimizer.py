"""The optimizer of this step, with its constants; the parameters that are weights, moments, master weights or counters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.optimizer.overview import HYPERPARAMETERS, Overview, Row, rule_names
from hlo_inspect.passes.base import Pass, unknown, with_lower_bound
from hlo_inspect.passes.params import index_text
from hlo_inspect.report.model import FactSpec, Section
from hlo_inspect.report.table import Column, Table, Value

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
        FactSpec("optimizer.update_count", "count", "weights that the step updates"),
        FactSpec("optimizer.decayed_count", "count", "updated weights with weight decay"),
        FactSpec("optimizer.frozen_count", "count", "weights without a gradient, not counted as updates"),
        *(FactSpec(f"optimizer.{name}", "number", HYPERPARAMETERS[name], absent=_ABSENT) for name in VALUES),
        FactSpec("optimizer.nesterov", "bool", HYPERPARAMETERS["nesterov"], absent=_ABSENT),
        FactSpec("optimizer.clip_norm", "number", "global norm to which the step clips gradients", absent=_ABSENT),
        FactSpec("optimizer.weight_bytes", "bytes", "bytes of the updated weights that the forward pass reads"),
        FactSpec("optimizer.master_bytes", "bytes", "bytes of the master weights (more precise copies)"),
        FactSpec("optimizer.moment1_bytes", "bytes", "bytes of first moments"),
        FactSpec("optimizer.moment2_bytes", "bytes", "bytes of second moments"),
        FactSpec("optimizer.state_bytes", "bytes", "bytes of optimizer state: all but weights and master weights"),
    )

    @classmethod
    def help(cls) -> str:
        return f"{super().help()}\n\nRules: {', '.join(RULE_NAMES)}."

    def run(self, context: Context) -> Section:
        overview = context.optimizer
        nesterov = overview.shared("nesterov")
        facts: dict[str, Value] = {"optimizer.name": overview.name}
        facts |= {f"optimizer.{name}": overview.shared(name) for name in VALUES}
        facts |= {
            "optimizer.nesterov": None if nesterov is None else bool(nesterov),
            "optimizer.clip_norm": overview.clip_norm,
        }
        is_partial = bool(overview.partial_reason)
        rows = [row for row in overview.rows if not is_partial or row.matched.claim is not None]
        totals = {
            "update_count": len(rows),
            "decayed_count": overview.decayed,
            "weight_bytes": overview.bytes_of(row.weight for row in rows),
            "master_bytes": overview.bytes_of(row.master for row in rows),
            "moment1_bytes": overview.bytes_of(overview.moments("first_moment")),
            "moment2_bytes": overview.bytes_of(overview.moments("second_moment")),
        }
        for name, value in totals.items():
            with_lower_bound(facts, f"optimizer.{name}", None if is_partial else value, value or None)
        facts["optimizer.frozen_count"] = None if is_partial else len(overview.frozen)
        facts["optimizer.state_bytes"] = None if is_partial else overview.bytes_of(overview.states)
        return Section(facts, _tables(context), _notes(overview, unknown(facts)))


def _tables(context: Context) -> Iterator[Table]:
    yield _weights(context)
    yield _groups(context.optimizer)


def _notes(overview: Overview, facts: Sequence[str]) -> list[str]:
    reasons = {name: _unknown_reason(overview, name.removeprefix("optimizer.")) for name in facts}
    notes = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
    notes += [_expression(overview, rows) for rows in overview.unknown[:MAX_EXPRESSIONS]]
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


def _unknown_reason(overview: Overview, name: str) -> str:
    """Return why a value is unknown; empty if there is no such value."""
    if not overview.is_complete or name not in HYPERPARAMETERS.keys() | {"clip_norm"}:
        return overview.partial_reason
    if name == "clip_norm":
        limits = {row.clip.limit for row in overview.rows if row.clip is not None and row.clip.kind == "norm"}
        return "the updates have different values" if limits else ""
    states = {row.hyperparameter(name).status for row in overview.rows}
    if states <= {"absent"}:
        return ""
    if states & {"computed"}:
        rates = {overview.rate_of(row) for row in overview.rows if row.hyperparameter(name).status == "computed"}
        rate = rates.pop() if name == "learning_rate" and len(rates) == 1 else ""
        if rate.startswith("parameter "):
            return f"it is {rate} of the step"
        return f"the step computes it{': ' * bool(rate)}{rate.removeprefix('computed ')}"
    return "the updates have different values"


def _weights(context: Context) -> Table:
    overview = context.optimizer
    leaves = {(leaf.number, leaf.index): leaf for leaf in context.interface.parameters}

    def path(row: Row) -> str:
        source = overview.parameters.get(row.weight.source)
        if source is None or source not in leaves:
            return ""
        return leaves[source].path or (f"{source[0]}{index_text(source[1])}" if source[1] else "")

    def number_of(role: str) -> Callable[[Row], int | None]:
        return lambda row: overview.number(next((a for name, a in row.roles.items() if name.startswith(role)), None))

    columns = (
        Column("weight", "number", get=lambda row: overview.number(row.weight)),
        Column("path", detail=1, get=path),
        Column("shape", get=lambda row: str(row.weight.shape)),
        Column("rule", get=lambda row: row.rule),
        Column("first_moment", "number", optional=True, get=number_of("first_moment")),
        Column("second_moment", "number", optional=True, get=number_of("second_moment")),
        Column("master_weight", "number", optional=True, detail=3, get=lambda row: overview.number(row.master)),
        *(Column(name, "number", detail=_DETAILS.get(name, 2), optional=True, get=_value_of(name)) for name in VALUES),
        Column("nesterov", "bool", detail=5, optional=True, get=_nesterov),
        Column("clip_norm", "number", detail=4, optional=True, get=_clip_norm),
        Column("clip", detail=4, optional=True, get=lambda row: row.clip_text),
        Column("rate", detail=2, get=overview.rate_of),
        Column("counter", "number", detail=5, optional=True, get=lambda row: overview.number(next(iter(row.counters), None))),
        Column("bytes", "bytes", summed=True, detail=4, get=lambda row: row.weight.bytes),
        Column("fusion", detail=6, get=lambda row: overview.origin(row).fusion),
        Column("computation", detail=7, get=lambda row: overview.origin(row).computation),
        Column("line", "number", detail=6, get=lambda row: overview.origin(row).line),
    )
    return Table.of("optimizer", "Weights" if overview.frozen else "Updated weights", columns, overview.all_rows)


def _value_of(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.hyperparameter(name).value


def _nesterov(row: Row) -> bool | None:
    value = row.hyperparameter("nesterov").value
    return None if value is None else bool(value)


def _clip_norm(row: Row) -> float | None:
    return row.clip.limit if row.clip is not None and row.clip.kind == "norm" else None


def _groups(overview: Overview) -> Table:
    """Return one row for each set of rule and constants, those with most weights first."""
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in overview.all_rows:
        constants = (*(_value_of(name)(row) for name in VALUES), _nesterov(row), _clip_norm(row))
        groups.setdefault((row.rule, *constants, row.clip_text, overview.rate_of(row)), []).append(row)
    columns = (
        Column("rule", get=lambda group: group[0].rule),
        Column("weights", "count", summed=True, get=len),
        Column("bytes", "bytes", summed=True, get=lambda group: overview.bytes_of(row.weight for row in group)),
        *(
            Column(name, "number", optional=True, detail=_DETAILS.get(name, 2), get=_first_value(_value_of(name)))
            for name in VALUES
        ),
        Column("nesterov", "bool", optional=True, detail=4, get=_first_value(_nesterov)),
        Column("clip_norm", "number", optional=True, detail=9, get=_first_value(_clip_norm)),
        Column("clip", optional=True, detail=1, get=lambda group: group[0].clip_text),
        Column("rate", detail=1, get=lambda group: overview.rate_of(group[0])),
        Column("fusions", "count", detail=3, get=lambda group: len({overview.origin(row).fusion for row in group} - {""})),
    )
    return Table.of("optimizer_groups", "Rules and constants", columns, sorted(groups.values(), key=len, reverse=True))


def _first_value(get: Callable[[Row], Value]) -> Callable[[list[Row]], Value]:
    """Return a getter of the value that all rows of a group share."""
    return lambda group: get(group[0])
