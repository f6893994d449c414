"""Which optimizer this step runs, with its constants; which parameter is a weight, moment, master weight or counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.optimizer.graph import Index
from hlo_inspect.analysis.optimizer.hyperparameter import HYPERPARAMETERS
from hlo_inspect.analysis.optimizer.normal_form import describe
from hlo_inspect.analysis.optimizer.overview import Overview, Row
from hlo_inspect.analysis.optimizer.rules import RULES
from hlo_inspect.analysis.optimizer.state_arrays import StateArray
from hlo_inspect.analysis.parameters import ParameterLeaf
from hlo_inspect.hlo.module import Wants
from hlo_inspect.passes.base import Pass, unknown
from hlo_inspect.report import model
from hlo_inspect.report.model import Column, FactSpec, Section, Table, Value

RULE_NAMES = tuple(name for rule in RULES for name in rule.names)
WITHOUT_RULE = ["adabound", "adopt", "asgd", "dadapt_adamw", "ftrl", "mars", "prodigy", "rprop", "shampoo", "soap", "sophia"]
"""Names that a policy may ask for, of optimizers that no rule recognises."""

VALUES = tuple(name for name in HYPERPARAMETERS if name != "nesterov")
NAMES = frozenset({*RULE_NAMES, *WITHOUT_RULE, "mixed", "unknown", "none"})
MAX_EXPRESSIONS = 20


class Optimizer(Pass):
    """The optimizer update: rule and constants; which parameter is a weight, moment, master weight or counter.

    Data flow alone decides: names of instructions and op_names are not looked at. An update is recognised when a rule explains
    the whole expression of the new weight, with every state and factor in it; otherwise it is `unknown`. Constants are
    recovered from the places that the rule gives them. A value is null where it is computed, absent, or not the same in all
    updates that have it.
    """

    name = "optimizer"
    wants = Wants(graph=True, entry=True, checked=True)
    specs = (
        FactSpec("optimizer.name", "text", "the rule of all updates, or mixed, unknown, none", NAMES),
        FactSpec("optimizer.update_count", "count", "weights that are updated"),
        FactSpec("optimizer.decayed_count", "count", "those with weight decay"),
        *(FactSpec(f"optimizer.{name}", "number", HYPERPARAMETERS[name]) for name in VALUES),
        FactSpec("optimizer.nesterov", "bool", HYPERPARAMETERS["nesterov"]),
        FactSpec("optimizer.clip_norm", "number", "the global norm to which gradients are clipped"),
        FactSpec("optimizer.weight_bytes", "bytes", "updated weights that the forward pass reads"),
        FactSpec("optimizer.master_bytes", "bytes", "more precise weights beside them"),
        FactSpec("optimizer.moment1_bytes", "bytes", "first moments"),
        FactSpec("optimizer.moment2_bytes", "bytes", "second moments"),
        FactSpec("optimizer.state_bytes", "bytes", "everything kept beside weights and masters"),
    )

    @classmethod
    def help(cls) -> str:
        return f"{super().help()}\n\nRules: {', '.join(RULE_NAMES)}."

    def run(self, context: Context) -> Section:
        overview = context.optimizer
        rows = overview.rows
        nesterov = overview.shared("nesterov")
        facts: dict[str, Value] = {
            "optimizer.name": overview.name if overview.is_complete else None,
            "optimizer.update_count": len(rows) if overview.is_complete else None,
            "optimizer.decayed_count": overview.decayed if overview.is_complete else None,
        }
        facts |= {f"optimizer.{name}": overview.shared(name) for name in VALUES}
        facts |= {
            "optimizer.nesterov": None if nesterov is None else bool(nesterov),
            "optimizer.clip_norm": overview.clip_norm,
            "optimizer.weight_bytes": overview.bytes_of(row.weight for row in rows),
            "optimizer.master_bytes": overview.bytes_of(row.master for row in rows),
            "optimizer.moment1_bytes": overview.bytes_of(overview.moments("first_moment")),
            "optimizer.moment2_bytes": overview.bytes_of(overview.moments("second_moment")),
            "optimizer.state_bytes": overview.bytes_of(overview.states),
        }
        return Section(facts, [_weights(context), _groups(overview)], _notes(overview, unknown(facts)))


def _notes(overview: Overview, facts: Sequence[str]) -> list[str]:
    notes = [f"{name}: {_why_unknown(overview, name.removeprefix('optimizer.'))}" for name in facts]
    for row in [row for row in overview.rows if row.rule == "unknown"][:MAX_EXPRESSIONS]:
        update = row.matched.update
        number = _number(overview, row.matched.array)
        notes.append(f"optimizer.name: parameter {number} becomes {describe(update.forms, update.form)}")
    return notes


def _why_unknown(overview: Overview, name: str) -> str:
    if not overview.is_complete:
        return "the expressions are too large to compare all of them"
    if name == "clip_norm":
        limits = {row.clip.limit for row in overview.rows if row.clip is not None and row.clip.kind == "norm"}
        return "the updates differ in it" if limits else "no update clips its gradient by a norm"
    states = {row.hyperparameter(name).known for row in overview.rows}
    if states <= {"absent"}:
        return "no update has it" if overview.rows else "there are no updates"
    if states & {"computed"}:
        rates = {overview.rates.text(row.matched) for row in overview.rows if row.hyperparameter(name).known == "computed"}
        how = f": {rates.pop().removeprefix('computed ')}" if name == "learning_rate" and len(rates) == 1 else ""
        return f"it is computed in the step{how}"
    return "the updates differ in it"


def _number(overview: Overview, array: StateArray | None) -> int | None:
    """The number of the parameter that a array's input comes from."""
    found = overview.updates.parameters.get(array.source) if array is not None else None
    return found[0] if found is not None else None


def _weights(context: Context) -> Table:
    overview = context.optimizer
    columns = (
        Column("weight", "number"),
        Column("path", detail=1),
        Column("shape"),
        Column("rule"),
        Column("first_moment", "number", optional=True),
        Column("second_moment", "number", optional=True),
        Column("master_weight", "number", optional=True, detail=1),
        *(Column(name, "number", detail=2, optional=True) for name in VALUES),
        Column("nesterov", "bool", detail=5, optional=True),
        Column("clip_norm", "number", detail=4, optional=True),
        Column("rate", detail=3),
        Column("counter", "number", detail=5, optional=True),
        Column("bytes", "bytes", summed=True, detail=4),
        Column("fusion", detail=6),
        Column("computation", detail=7),
        Column("line", "number", detail=6),
    )
    leaves = {(leaf.number, leaf.index): leaf for leaf in context.interface.parameters}
    rows = tuple(_weight_row(overview, row, leaves) for row in overview.rows)
    return Table("optimizer", "Updated weights", columns, rows)


def _weight_row(overview: Overview, row: Row, leaves: dict[tuple[int, Index], ParameterLeaf]) -> model.Row:
    source = overview.updates.parameters.get(row.weight.source)
    nesterov = row.hyperparameter("nesterov").value
    place = overview.updates.flow.frames.origin(row.matched.array.place)
    return (
        source[0] if source is not None else None,
        leaves[source].path if source in leaves else "",
        str(row.weight.shape),
        row.rule,
        _number(overview, _first(row, "first_moment")),
        _number(overview, _first(row, "second_moment")),
        _number(overview, row.master),
        *(row.hyperparameter(name).value for name in VALUES),
        None if nesterov is None else bool(nesterov),
        row.clip.limit if row.clip is not None and row.clip.kind == "norm" else None,
        overview.rates.text(row.matched),
        _number(overview, row.counters[0] if row.counters else None),
        row.weight.bytes,
        place.fusion,
        place.computation,
        place.line,
    )


def _first(row: Row, role: str) -> StateArray | None:
    return next((array for name, array in row.roles.items() if name.startswith(role)), None)


def in_one_line(context: Context) -> Table:
    """One row for all updates, none where nothing is updated."""
    overview = context.optimizer
    columns = (
        Column("rule"),
        Column("weights", "count"),
        Column("decayed", "count", detail=1),
        *(Column(name, "number", optional=True, detail=2) for name in (*VALUES, "clip_norm")),
        Column("rate", optional=True, detail=1),
        Column("weight_bytes", "bytes", detail=3),
        Column("state_bytes", "bytes"),
    )
    rates = {overview.rates.text(row.matched) for row in overview.rows} - {"constant", "absent"}
    row = (
        overview.name if overview.is_complete else None,
        len(overview.rows),
        overview.decayed,
        *(overview.shared(name) for name in VALUES),
        overview.clip_norm,
        rates.pop() if len(rates) == 1 else None,
        overview.bytes_of(row.weight for row in overview.rows),
        overview.bytes_of(overview.states),
    )
    return Table("optimizer_update", "Optimizer", columns, (row,) if overview.rows else ())


def _groups(overview: Overview) -> Table:
    columns = (
        Column("rule"),
        Column("weights", "count", summed=True),
        Column("bytes", "bytes", summed=True),
        Column("learning_rate", "number", optional=True),
        *(Column(name, "number", optional=True, detail=1) for name in VALUES[1:]),
        Column("nesterov", "bool", optional=True, detail=3),
        Column("clip_norm", "number", optional=True, detail=2),
        Column("rate", detail=2),
        Column("fusions", "count", detail=3),
    )
    keys = [_key(overview, row) for row in overview.rows]
    rows = []
    for key, count in Counter(keys).most_common():
        members = [row for row, other in zip(overview.rows, keys, strict=True) if other == key]
        fusions = _fusions(overview, members)
        rows.append((key[0], count, overview.bytes_of(row.weight for row in members), *key[1:], fusions))
    return Table("optimizer_groups", "Rules and their constants", columns, tuple(rows))


def _fusions(overview: Overview, rows: Iterable[Row]) -> int:
    """The fusions that the new weights come from."""
    return len({place.fusion for row in rows if (place := overview.updates.flow.frames.origin(row.matched.array.place)).fusion})


def _key(overview: Overview, row: Row) -> model.Row:
    nesterov = row.hyperparameter("nesterov").value
    return (
        row.rule,
        *(row.hyperparameter(name).value for name in VALUES),
        None if nesterov is None else bool(nesterov),
        row.clip.limit if row.clip is not None and row.clip.kind == "norm" else None,
        overview.rates.text(row.matched),
    )
