"""Computations written in place: `to_apply={ ROOT … }`, and the bodies that canonical text repeats at every caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hlo_inspect.hlo import grammar, scan
from hlo_inspect.hlo.collect import Collector
from hlo_inspect.hlo.opcodes import CALLEE_ATTRIBUTES
from hlo_inspect.hlo.operands import operands_end
from hlo_inspect.hlo.rows import Row

_BODY = re.compile(rf",\s*+(?:{'|'.join(CALLEE_ATTRIBUTES)})=\s*+\{{", re.ASCII)


class Body(NamedTuple):
    """The text between the braces of a computation in place, and the line where it starts."""

    name: str
    text: str
    line: int


def bodies(row: Row, line: int) -> Iterator[Body]:
    """The computations in place among the attributes of an instruction at `line`."""
    tail = row[3]
    if _BODY.search(tail) is None:
        return
    start = operands_end(tail) + 1
    for name, value in scan.attributes(tail, start):
        if name in CALLEE_ATTRIBUTES and value.startswith("{") and "=" in scan.without_comments(value):
            at = line + tail.count("\n", 0, tail.index(value, start))
            inside = value[1:-1]
            if not inside.lstrip().startswith("{"):
                yield Body(f"{row[1]}.{name}", inside, at)
                continue
            for number, (begin, end) in enumerate(scan.split_items(inside)):
                text = inside[begin:end].strip()
                yield Body(f"{row[1]}.{name}.{number}", text[1:-1], at + inside.count("\n", 0, begin))


def read_bodies(waiting: list[Body], collector: Collector) -> None:
    """Hands the computations to the collector, those inside of them too."""
    while waiting:
        name, text, line = waiting.pop(0)
        if name in collector.module.computations:  # instructions of two computations may have one name
            name = f"{name} (line {line})"
        with collector.aside():
            computation = collector.begin(name, line, is_entry=False)
            position = scan.skip_space(text, 0)
            while position < len(text):
                at = line + text.count("\n", 0, position)
                try:
                    row, end = grammar.scan_instruction(text, position)
                except scan.ScanError as error:
                    collector.unreadable(error.message, collector.module.location(at), text.count("\n", position) + 1)
                    break
                if collector.row(computation, row, at):
                    waiting += bodies(row, at)
                position = scan.skip_space(text, end)
            collector.end(computation)
