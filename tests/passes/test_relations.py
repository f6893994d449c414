"""The columns of instructions, operands, computations, calls and buffers, on every dump; tests/fleet asks them with SQL."""

from __future__ import annotations

from contextlib import suppress

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.relations import RELATIONS
from hlo_inspect.request import Request
from tests.passes.test_base import DATA, MODULES


def contexts_of(dump: str) -> list[Context]:
    contexts: list[Context] = []
    with Inspection(Request("relations")) as inspection:
        inspection.set_report_sink(lambda _, context: contexts.append(context))
        with suppress(hlo_inspect.InputError):
            list(inspection.reports(DATA / dump))
    return contexts


@pytest.mark.parametrize("dump", MODULES)
def test_rows_of_each_table_belong_to_the_module(dump: str) -> None:
    """Truncated and partial ones too: an instruction is a row, an operand of another computation does not exist."""
    for context in contexts_of(dump):
        tables = {}
        for table in RELATIONS:
            columns = table.columns(context)
            assert len({len(column) for column in columns}) == 1, table.spec.name
            tables[table.spec.name] = dict(zip((column.name for column in table.spec.columns), columns, strict=True))
        instructions, operands = tables["instructions"], tables["operands"]
        assert len(instructions["id"]) == sum(context.module.opcode_counts.values())
        assert list(instructions["id"]) == list(range(len(instructions["id"])))
        by_id = list(zip(instructions["computation"], instructions["name"], strict=True))
        keys = zip(operands["computation"], operands["operand"], operands["operand_id"], strict=True)
        assert all(by_id[int(str(id_))] == (computation, name) for computation, name, id_ in keys if id_ is not None)
        assert set(tables["calls"]["computation"]) <= set(tables["computations"]["name"])
        buffers, device = tables["buffers"], context.memory.device
        assert len(buffers["id"]) == (len(device.sizes) if device is not None else 0)
