"""What is wrong with a module, noted while it is read."""

from __future__ import annotations

from hlo_inspect.errors import Location
from hlo_inspect.hlo.faults import FaultLog
from hlo_inspect.hlo.header import Header
from hlo_inspect.hlo.module import Module, Wants


def log() -> FaultLog:
    return FaultLog(Module(Header("m"), "dump.txt", 1, Wants()))


def test_problems_have_their_place_and_a_cut_is_remembered() -> None:
    faults = log()
    faults.problem("HI007", "a is defined twice", 4, "a")
    assert not faults.is_cut_off
    faults.problem("HI002", "the text ends", 9)
    assert faults.is_cut_off
    assert [(p.code, p.location.line, p.subject) for p in faults.module.problems] == [("HI007", 4, "a"), ("HI002", 9, None)]


def test_unreadable_lines_are_counted_and_can_be_dropped() -> None:
    faults = log()
    faults.unreadable("expected '='", Location("dump.txt", 5, 3), 2)
    assert faults.module.unparsed_lines == 2
    faults.drop_unreadable(5)
    assert list(faults.module.problems) == []
