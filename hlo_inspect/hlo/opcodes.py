"""The opcodes of HLO text, from `HLO_OPCODE_LIST` and from its older versions."""

from __future__ import annotations

from collections.abc import Iterable

_CURRENT = """
abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
all-reduce-start all-to-all and asin asinh async-done async-start async-update atan2 atanh batch-norm-grad
batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp
collective-broadcast collective-permute collective-permute-done collective-permute-start compare complex concatenate
conditional constant convert convolution copy copy-done copy-start cosine cosh count-leading-zeros custom-call divide
domain dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor fusion gather
get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic map maximum minimum mulhi
multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power ragged-all-to-all ragged-dot real recv
recv-done reduce reduce-precision reduce-scatter reduce-window remainder replica-id reshape reverse rng rng-bit-generator
rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter send
send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice sort sqrt
stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor
"""
_REMOVED = "cross-replica-sum trace tuple-select bitcast-move"  # older than 2019, and what old dumps still hold
_WITH_CALLEES = """
all-reduce async call conditional cross-replica-sum custom-call fusion map reduce reduce-scatter reduce-window scan scatter
select-and-scatter sort while
"""

OPCODES = frozenset(_CURRENT.split()) | frozenset(_REMOVED.split())

_ASYNC_SUFFIXES = ("-start", "-update", "-done")
_CALLING = frozenset(_WITH_CALLEES.split())
_NATIVE_PAIRS = frozenset({"all-gather", "all-reduce", "collective-permute", "copy", "recv", "send"})


PRINTED_OPCODES = OPCODES | {
    f"{opcode}{suffix}"
    for opcode in OPCODES - _NATIVE_PAIRS
    if not opcode.endswith(_ASYNC_SUFFIXES)
    for suffix in _ASYNC_SUFFIXES
}
"""What can stand in a text: the opcodes, and the short spellings of asynchronous ones."""


def is_known(opcode: str) -> bool:
    """Whether XLA's parser has this opcode, the short spellings of asynchronous ones (`reduce-scatter-start`) included.

    What has a start and a done of its own has no short spelling besides.
    """
    if opcode in OPCODES:
        return True
    base = base_opcode(opcode)
    return base != opcode and base in OPCODES and base not in _NATIVE_PAIRS


def base_opcode(opcode: str) -> str:
    """The opcode without an asynchronous suffix: `all-gather-start` is an `all-gather`."""
    for suffix in _ASYNC_SUFFIXES:
        if opcode.endswith(suffix):
            return opcode.removesuffix(suffix)
    return opcode


def calling_opcodes(opcodes: Iterable[str]) -> set[str]:
    """Those of the opcodes that can run or apply a computation; unknown ones may, and asynchronous halves."""
    return {o for o in set(opcodes) if o not in OPCODES or base_opcode(o) in _CALLING}
