from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.memory import FREE
from hlo_inspect.analysis.cost.model import WORK, UnknownCostError, Work
from hlo_inspect.analysis.cost.operation import CALLERS, RUNNERS, Operation
from hlo_inspect.analysis.cost.work import ELEMENTWISE, work_of
from hlo_inspect.hlo.opcodes import OPCODES
from tests.analysis.cost.small import operation

# HloCostAnalysis::HandleElementwiseOp lists these; every other elementwise opcode is a FLOP.
_TRANSCENDENTAL = """
acos acosh asin asinh atan2 atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one logistic power rsqrt
sine sinh sqrt tan tanh
"""
TRANSCENDENTAL = _TRANSCENDENTAL.split()
_WITHOUT_WORK = """
all-gather all-gather-start all-to-all async-done async-update batch-norm-grad batch-norm-inference batch-norm-training
broadcast collective-permute concatenate copy copy-start dynamic-slice dynamic-update-slice gather infeed iota opt-barrier
outfeed pad partition-id recv reduce-scatter reshape reverse rng-get-and-update-state send set-dimension-size slice topk
transpose tuple
"""
WITHOUT_WORK = _WITHOUT_WORK.split()


def applied(op: Operation, attribute: str) -> Work:
    return Work(10)


def work(line: str, *shapes: str) -> Work:
    return work_of(operation(*[f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)], line), applied)


@pytest.mark.parametrize("opcode", TRANSCENDENTAL)
def test_transcendentals(opcode: str) -> None:
    assert work(f"%r = f32[3,4] {opcode}(%p0)", "f32[3,4]") == Work(0, 12)


@pytest.mark.parametrize("opcode", sorted(set(ELEMENTWISE) - set(TRANSCENDENTAL)))
def test_flops_of_the_result(opcode: str) -> None:
    """Whatever the type, and however many operands."""
    assert work(f"%r = pred[3,4] {opcode}(%p0, %p0)", "s8[3,4]") == Work(12)


def test_each_elementwise_opcode_is_one_or_the_other() -> None:
    assert {opcode for opcode, column in ELEMENTWISE.items() if WORK[column] == "transcendentals"} == set(TRANSCENDENTAL)
    assert set(ELEMENTWISE) <= OPCODES
    assert not set(ELEMENTWISE) & (FREE | set(CALLERS) | set(WITHOUT_WORK))


@pytest.mark.parametrize("opcode", WITHOUT_WORK)
def test_what_moves_data_does_no_work(opcode: str) -> None:
    assert work(f"%r = f32[8] {opcode}(%p0)", "f32[8]") == Work()


APPLICATIONS = {
    "map": 2,
    "reduce": 7 - 2,
    "scan": 7,
    "scatter": 7,
    "reduce-window": (7 - 1) * 2,
    "select-and-scatter": 7 * 6 + 7,
}
"""For a result of two elements, operands of seven and a window of seven."""


@pytest.mark.parametrize("opcode", sorted(set(CALLERS) - RUNNERS - {"fusion"}))
def test_what_applies_a_computation_multiplies_its_work(opcode: str) -> None:
    line = f"%r = f32[2] {opcode}(%p0, %p0, %p0), window={{size=7}}, to_apply=%f, select=%f, scatter=%f"
    assert work(line, "f32[7]") == Work(10 * APPLICATIONS[opcode])


def test_an_opcode_that_xla_does_not_have() -> None:
    with pytest.raises(UnknownCostError, match="no rule for the opcode frobnicate"):
        work("%r = f32[8] frobnicate(%p0)", "f32[8]")


def test_a_short_spelling_does_the_work_of_what_it_wraps() -> None:
    assert work("%r = ((f32[8]), f32[8]) add-start(%p0)", "f32[8]") == Work(8)
