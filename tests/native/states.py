"""All that two readings of a text must agree on, and readings with the native reader or without."""

from __future__ import annotations

from typing import Any

import pytest

from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.malformed_rows import malformed_rows
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.hlo.reading import modules


def state_of(module: Module) -> list[Any]:
    """Return all content of a module, as plain values."""
    return [
        (module.name, module.first_line, module.lines, module.bytes, module.entry_signature, module.unparsed_lines),
        (module.computation_count, module.entry and module.entry.name, module.root_opcodes, module.noted),
        (list(module.problems), module.problems.left_out, module.heads.unknown_opcodes, vars(module.device_marks)),
        list(malformed_rows(module)),
        [_computation(name, computation, has_rows=module.wants.graph) for name, computation in module.computations.items()],
    ]


def _computation(name: str, computation: Computation, *, has_rows: bool) -> tuple[Any, ...]:
    reads = vars(computation.reads) if computation.reads is not None else None
    kept = [
        (i.name, i.opcode, i.line, str(i.shape), i.is_root, tuple(map(str, i.operand_shapes or ())), i.tail)
        for i in (*computation.instructions, *computation.scalars.values())
    ]
    about = (computation.name, computation.line, computation.is_entry, computation.root_opcode, computation.is_truncated)
    return name, about, list(computation.opcodes), reads, kept, _rows(computation) if has_rows else ()


def _rows(computation: Computation) -> tuple[Any, ...]:
    rows, view = computation.rows, View(computation)
    metadata = list(map(view.metadata, range(len(rows))))
    users = (view.root, view.operands_of_rows, view.ambiguous, view.printed_fusions, view.users, metadata)
    return list(rows), list(rows.names), list(rows.lines), list(rows.opcodes), rows.column.marked, users


def read(text: bytes | str, wants: Wants, *, native: bool) -> list[list[Any]] | str:
    """Return the states of the modules of a text, or the error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(library.VARIABLE, str(int(native)))
        library.load.cache_clear()
        try:
            return [state_of(module) for module in modules(text, wants)]
        except HloInspectError as error:
            return str(error)
        finally:
            library.load.cache_clear()
