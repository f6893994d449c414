"""The maker of each opcode; and modules that mix them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.analysis.cost import makers, makers_calling, makers_communicating
from tests.analysis.cost.generate import BINARY, INTEGER_BINARY, INTEGER_UNARY, UNARY, Block, Modules
from tests.analysis.cost.makers import Maker, batch_norm, elementwise, nothing_asked
from tests.analysis.cost.makers_calling import called, inputs_of
from tests.analysis.cost.makers_communicating import collective, pair

MAKERS: dict[str, Maker] = (
    {opcode: elementwise(opcode, 1) for opcode in UNARY}
    | {opcode: elementwise(opcode, 2) for opcode in BINARY}
    | {opcode: elementwise(opcode, 1, "s32") for opcode in INTEGER_UNARY}
    | {opcode: elementwise(opcode, 2, "s32") for opcode in INTEGER_BINARY}
    | {
        "bitcast-convert": elementwise("bitcast-convert", 1, result="s32"),
        "clamp": elementwise("clamp", 3),
        "compare": elementwise("compare", 2, result="pred", attributes="direction=LT"),
        "complex": elementwise("complex", 2, result="c64"),
        "convert": elementwise("convert", 1, result="bf16"),
        "imag": elementwise("imag", 1, "c64", "f32"),
        "is-finite": elementwise("is-finite", 1, result="pred"),
        "real": elementwise("real", 1, "c64", "f32"),
        "reduce-precision": elementwise("reduce-precision", 1, attributes="exponent_bits=8, mantissa_bits=7"),
        "select": makers.select,
        "stochastic-convert": makers.stochastic_convert,
        "bitcast": makers.bitcast,
        "broadcast": makers.broadcast,
        "concatenate": makers.concatenate,
        "constant": makers.constant,
        "dynamic-slice": makers.dynamic_slice,
        "dynamic-update-slice": makers.dynamic_update_slice,
        "gather": makers.gather,
        "iota": makers.iota,
        "pad": makers.pad,
        "reshape": makers.reshape,
        "reverse": makers.reverse,
        "scatter": makers.scatter,
        "slice": makers.slice_,
        "transpose": makers.transpose,
        "cholesky": makers.cholesky,
        "convolution": makers.convolution,
        "dot": makers.dot,
        "fft": makers.fft,
        "ragged-dot": makers.ragged_dot,
        "scaled-dot": makers.scaled_dot,
        "triangular-solve": makers.triangular_solve,
        "map": makers.map_,
        "reduce": makers.reduce,
        "reduce-window": makers.reduce_window,
        "scan": makers.scan,
        "select-and-scatter": makers.select_and_scatter,
        "sort": makers.sort,
        "topk": makers.topk,
        "batch-norm-grad": batch_norm("batch-norm-grad"),
        "batch-norm-inference": batch_norm("batch-norm-inference"),
        "batch-norm-training": batch_norm("batch-norm-training"),
        "partition-id": nothing_asked("partition-id"),
        "replica-id": nothing_asked("replica-id"),
        "rng": makers.rng,
        "rng-bit-generator": makers.rng_bit_generator,
        "rng-get-and-update-state": makers.rng_state,
        "async-start": called("async-start", "calls"),
        "call": called("call", "to_apply"),
        "conditional": makers_calling.conditional,
        "fusion": makers_calling.fusion,
        "fusion of a gather": makers_calling.indexed_fusion,
        "while": makers_calling.while_,
        "add-dependency": makers_calling.dependency,
        "domain": makers_calling.domain,
        "infeed": makers_calling.feeds,
        "opt-barrier": makers_calling.barrier,
        "send": makers_communicating.send_and_receive,
        "set-dimension-size": makers_calling.sizes,
        "all-gather": collective("all-gather", grows=2),
        "all-reduce": collective("all-reduce"),
        "all-reduce of two": makers_communicating.all_reduce_of_two,
        "all-to-all": collective("all-to-all", grows=2, shrinks=2),
        "collective-broadcast": collective("collective-broadcast"),
        "collective-permute": collective("collective-permute"),
        "ragged-all-to-all": collective("ragged-all-to-all"),
        "reduce-scatter": collective("reduce-scatter", shrinks=2),
        "reduce-scatter-start": makers_communicating.sugar,
        "all-gather-start": pair("all-gather"),
        "all-reduce-start": pair("all-reduce"),
        "collective-permute-start": pair("collective-permute"),
        "copy-start": pair("copy"),
    }
)


def mixed(m: Modules, b: Block, depth: int = 0) -> None:
    """Several opcodes in one computation, some of them in computations that it calls."""
    for _ in range(m.random.randint(2, 5)):
        if depth < 2 and m.random.random() < 0.3:
            inner = m.block()
            mixed(m, inner, depth + 1)
            inner.op("f32[7]{0}", "negate", inner.input("f32[7]{0}"))
            name = m.close(inner)
            opcode, attribute = m.random.choice([("call", "to_apply"), ("fusion", "kind=kLoop, calls")])
            b.op("f32[7]{0}", opcode, inputs_of(b, inner), f"{attribute}={name}")
        else:
            m.random.choice(list(MAKERS.values()))(m, b)


def generated(seed: int, each: int, mixes: int) -> Iterator[tuple[str, str]]:
    """Yield `each` modules of every opcode, then `mixes` mixed ones: the opcode and the text."""
    modules = Modules(seed)
    for opcode, maker in MAKERS.items():
        for _ in range(each):
            yield opcode, modules.module(maker)
    for _ in range(mixes):
        yield "mixed", modules.module(mixed)
