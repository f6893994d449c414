"""XLA's warnings in a log, in the wordings of its versions."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.module import CompilerWarning
from hlo_inspect.hlo.pasted.compiler_log import COMPILING, FOLDING, MAX_KEPT, RESHARDING, CompilerLog

OLD, NEW = "{devices=[4,1]<=[4]}", "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"
PAD = "%pad = f64[96]{0} pad(%broadcast.690, %constant), padding=8_7, sharding={devices=[4]<=[4]}"


def warnings_of(text: str) -> list[CompilerWarning]:
    log = CompilerLog()
    log.take(text, 1)
    return log.finish()


@pytest.mark.parametrize(
    ("message", "instruction"),
    [
        (
            f"[spmd] Involuntary full rematerialization. The compiled was not able to go from sharding {OLD} to {NEW} without "
            "doing a full rematerialization of the tensor. You probably want to enrich the sharding annotations.",
            "",
        ),
        (
            f"[spmd] Involuntary full rematerialization. The compiler was not able to go from sharding {OLD} to {NEW} without "
            f"doing a full rematerialization of the tensor for HLO operation: {PAD}. You probably want to enrich them.",
            PAD,
        ),
        (
            f"[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {OLD} to {NEW} efficiently for "
            f"HLO operation {PAD}. As the last resort, SPMD will replicate the tensor.",
            PAD,
        ),
    ],
)
def test_three_wordings_of_a_resharding_warning_are_read(message: str, instruction: str) -> None:
    text = f"step 1\nW0101 00:00:00.0 12 spmd_partitioner.cc:656] {message}\n"
    assert warnings_of(text) == [CompilerWarning(2, RESHARDING, instruction, OLD, NEW)]


def test_a_truncated_warning_has_its_printed_part() -> None:
    start = f"[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {OLD} to "
    assert warnings_of(start + NEW[:20]) == [CompilerWarning(1, RESHARDING, "", OLD, "")]


def test_a_slow_compilation_warning_has_context_and_duration() -> None:
    text = """
********************************
[Compiling module jit_step for CPU] Very slow compile? If you want to file a bug, run with envvar XLA_FLAGS=--xla_dump_to=/tmp
********************************
E0101 00:00:00.0 12 slow_operation_alarm.cc:144] [Compiling module jit_step for CPU] The operation took 2m3.5s
"""
    context = "Compiling module jit_step for CPU"
    assert warnings_of(text) == [
        CompilerWarning(3, COMPILING, context=context),
        CompilerWarning(5, COMPILING, context=context, seconds=123.5),
    ]


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
