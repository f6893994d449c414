"""Which instructions are kept."""

from __future__ import annotations

from hlo_inspect.hlo.heads import Heads
from hlo_inspect.hlo.lines import Lines
from hlo_inspect.hlo.module import Computation, Wants
from hlo_inspect.hlo.rows import find_rows
from hlo_inspect.hlo.selection import Selection

BODY = """
  %p = f32[8] parameter(0)
  %f = f32[8] fusion(%p), kind=kLoop, calls=%holder
  %g = f32[8] fusion(%f), kind=kLoop, calls=%other
  %c = f32[8] custom-call(%g), custom_call_target="wanted"
  %d = f32[8] custom-call(%c), custom_call_target="unwanted!"
  %a = f32[8] all-reduce(%d), to_apply=%add
  ROOT %r = f32[8] negate(%a)
"""


def names(wants: Wants, *, is_entry: bool = False, holders: tuple[str, ...] = ()) -> list[str]:
    heads = Heads(wants.opcodes)
    selection = Selection(wants, heads)
    selection.holders.update(holders)
    found = find_rows(BODY, 1, len(BODY)) or []
    lines = Lines(found, [row[2] for row in found], heads, 2)
    assert lines.opcodes  # the heads have been looked at
    return [found[index][1] for index in selection.rows(Computation("c", 1, is_entry=is_entry), lines)]


def test_opcodes_targets_and_callers() -> None:
    collectives = Wants(opcodes=frozenset({"all-reduce"}), targets=frozenset({'"wanted"'}))
    assert names(collectives) == ["c", "a"]
    assert names(collectives, holders=("holder",)) == ["f", "c", "a"]
    assert names(Wants()) == []


def test_the_edges_of_the_entry() -> None:
    assert names(Wants(entry=True), is_entry=True) == ["p", "r"]
    assert names(Wants(entry=True)) == []


def test_where_something_may_stand() -> None:
    selection = Selection(Wants(opcodes=frozenset({"all-reduce-start"}), targets=frozenset({'"wanted"'})), Heads(frozenset()))
    starts = {line.strip()[1]: BODY.index(line) for line in BODY.splitlines() if line}
    assert selection.lines(BODY, 1, len(BODY)) == [starts["c"], starts["a"]]  # an all-reduce may be one half
    assert selection.lines(BODY, 1, starts["a"]) == []  # a custom call alone is not looked for
    assert selection.clear_end(BODY, 1) == BODY.index(" all-reduce(")
    selection.holders.add("holder")
    assert selection.lines(BODY, 1, starts["a"]) == [starts["f"], starts["c"]]
    assert selection.clear_end(BODY, 1) == BODY.index(", calls=%holder")
    assert Selection(Wants(), Heads(frozenset())).is_empty
