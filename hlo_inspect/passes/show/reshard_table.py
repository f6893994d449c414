"""The arrays that a collective moves, with the two shardings between which it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.reshards import Reshard, Reshards, find_reshards
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.report.model import Parts
from hlo_inspect.report.table import Column, Table
from hlo_inspect.report.table_spec import TableSpec

_MOST_SHOWN = 3


class CollectiveReshards(NamedTuple):
    """The arrays that a collective may move, and the notes on what is missing."""

    context: Context
    reshards: Reshards | None

    @classmethod
    def of(cls, context: Context, instruction: Instruction | None) -> CollectiveReshards:
        """Find those of an instruction: the collective itself, or the start that wraps it."""
        if instruction is not None:
            for collective in context.collectives:
                if instruction.line in {collective.start.line, collective.inner.line}:
                    return cls(context, find_reshards(context.module, collective))
        return cls(context, None)

    @property
    def rows(self) -> Sequence[Reshard]:
        return self.reshards.rows if self.reshards is not None else ()

    @property
    def notes(self) -> list[str]:
        reason = self.reshards.reason if self.reshards is not None else ""
        return [f"reshards: {reason}"] if reason else []

    def words(self) -> Parts:
        """Yield each array with its sharding and that of its user, by mesh axes if they tell it."""
        for number, row in enumerate(self.rows[:_MOST_SHOWN]):
            yield f"{'; or ' if number else 'before partitioning '}{row.array.name} {row.array.shape} "
            sharding, needed = self.spec(row.sharding), self.spec(row.user_sharding)
            if row.is_one_array:
                yield f"from {sharding} to {needed}, for {row.user.name}"
            else:
                yield f"is {sharding}; {row.user.opcode} {row.user.name} reads it, whose result is {needed}"
        more = len(self.rows) - _MOST_SHOWN
        if more > 0:
            yield f"; or {more} more"

    def tables(self) -> Iterator[Table]:
        """Yield a row for each array that fits, if there is one."""
        if self.reshards is None or not self.rows:
            return
        rows = [_ReshardRow(self, reshard) for reshard in self.rows]
        yield _RESHARDS.of(rows, title=f"{_RESHARDS.title}, in {self.reshards.file}")

    def spec(self, sharding: Sharding) -> str:
        return self.context.partition_specs.text(sharding)


class _ReshardRow(NamedTuple):
    reshards: CollectiveReshards
    reshard: Reshard


_RESHARDS = TableSpec("reshards", "Shardings before partitioning").with_columns(
    Column("array", get=attrgetter("reshard.array.name")),
    Column("shape", get=lambda row: str(row.reshard.array.shape)),
    Column("spec", get=lambda row: row.reshards.spec(row.reshard.sharding)),
    Column("sharding", detail=2, get=attrgetter("reshard.sharding.text")),
    Column("user", get=attrgetter("reshard.user.name")),
    Column("opcode", detail=1, get=attrgetter("reshard.user.opcode")),
    Column("user_spec", get=lambda row: row.reshards.spec(row.reshard.user_sharding)),
    Column("user_sharding", detail=2, get=attrgetter("reshard.user_sharding.text")),
    Column("one_array", "bool", detail=3, get=attrgetter("reshard.is_one_array")),
    Column("line", "number", get=attrgetter("reshard.user.line")),
)

TABLES = (_RESHARDS,)
