"""The arrays that a collective moves, with the two shardings between which it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.reshards import Reshard, Reshards, find_reshards
from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.report.model import Parts
from hlo_inspect.report.table import Column, Table

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
            sharding, needed = self._spec(row.sharding), self._spec(row.user_sharding)
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
        columns = (
            Column("array", get=lambda row: row.array.name),
            Column("shape", get=lambda row: str(row.array.shape)),
            Column("spec", get=lambda row: self._spec(row.sharding)),
            Column("sharding", detail=2, get=lambda row: row.sharding.text),
            Column("user", get=lambda row: row.user.name),
            Column("opcode", detail=1, get=lambda row: row.user.opcode),
            Column("user_spec", get=lambda row: self._spec(row.user_sharding)),
            Column("user_sharding", detail=2, get=lambda row: row.user_sharding.text),
            Column("one_array", "bool", detail=3, get=lambda row: row.is_one_array),
            Column("line", "number", get=lambda row: row.user.line),
        )
        yield Table.of("reshards", f"Shardings before partitioning, in {self.reshards.file}", columns, self.rows)

    def _spec(self, sharding: Sharding) -> str:
        return self.context.partition_specs.text(sharding)
