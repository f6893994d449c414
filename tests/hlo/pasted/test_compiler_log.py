"""Warnings of XLA in a log in pieces, and their limit. Their wordings are in tests/cases/hlo/pasted/compiler_log.hlo."""

from __future__ import annotations

from hlo_inspect.hlo.module import CompilerWarning
from hlo_inspect.hlo.pasted.compiler_log import FOLDING, MAX_KEPT, CompilerLog


def test_a_slow_folding_warning_has_the_instruction_below_it() -> None:
    log = CompilerLog()
    log.take("E0101 slow_operation_alarm.cc:140] The operation took 1.5s\nConstant folding an instruction is taking > 1s:\n", 1)
    log.take("\n  %reduce.1 = f32[] reduce(%iota, %zero), dimensions={0}, to_apply=%add\n\nThis isn't necessarily a bug\n", 3)
    reduce = "%reduce.1 = f32[] reduce(%iota, %zero), dimensions={0}, to_apply=%add"
    assert log.finish() == [CompilerWarning(2, FOLDING, reduce, seconds=1.5)]
    assert log.quoted == {4}


def test_warnings_above_the_limit_are_counted() -> None:
    log = CompilerLog()
    log.take("[spmd] Involuntary full rematerialization.\n" * (MAX_KEPT + 2), 1)
    assert (len(log.finish()), log.left_out) == (MAX_KEPT, 2)
