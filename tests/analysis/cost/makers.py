"""A maker for each opcode: it adds such an instruction to a block, valid and otherwise at random."""

from __future__ import annotations

import math
from collections.abc import Callable

from tests.analysis.cost.generate import BINARY, Block, Modules, array, listed, windowed

Maker = Callable[[Modules, Block], None]


def elementwise(opcode: str, operands: int, dtype: str = "f32", result: str | None = None, attributes: str = "") -> Maker:
    def make(m: Modules, b: Block) -> None:
        shape = m.shape(dtype=dtype)
        b.op(shape.with_dtype(result or dtype), opcode, ", ".join(b.input(shape) for _ in range(operands)), attributes)

    return make


def select(m: Modules, b: Block) -> None:
    shape = m.shape()
    b.op(shape, "select", f"{b.input(shape.with_dtype('pred'))}, {b.input(shape)}, {b.input(shape)}")


def transpose(m: Modules, b: Block) -> None:
    shape = m.shape(1, 4)
    permutation = m.shuffled(len(shape.dims))
    order = m.shuffled(len(shape.dims))
    if m.random.random() < 0.5:  # the layout that makes it a bitcast
        order = [permutation.index(d) for d in shape.order]
    result = array([shape.dims[i] for i in permutation])._replace(order=tuple(order))
    b.op(result, "transpose", b.input(shape), f"dimensions={listed(permutation)}")


def reshape(m: Modules, b: Block) -> None:
    shape = m.shape(1, 3)
    b.op(array([math.prod(shape.dims)]), "reshape", b.input(shape))


def bitcast(m: Modules, b: Block) -> None:
    shape = m.shape(1, 3)
    b.op(array([math.prod(shape.dims)]), "bitcast", b.input(shape))


def broadcast(m: Modules, b: Block) -> None:
    shape = m.shape(0, 2)
    dims = [*shape.dims, m.size(), m.size()]
    b.op(array(dims), "broadcast", b.input(shape), f"dimensions={listed(range(len(shape.dims)))}")


def iota(m: Modules, b: Block) -> None:
    b.op(m.shape(1), "iota", "", "iota_dimension=0")


def constant(m: Modules, b: Block) -> None:
    b.op(array([3]), "constant", "{1, 2, 3}")


def reverse(m: Modules, b: Block) -> None:
    shape = m.shape(1)
    b.op(shape, "reverse", b.input(shape), "dimensions={0}")


def pad(m: Modules, b: Block) -> None:
    shape = m.shape(1, 1)
    low, high, inner = m.random.randint(0, 3), m.random.randint(0, 3), m.random.randint(0, 2)
    size = low + high + shape.dims[0] + inner * (shape.dims[0] - 1)
    b.op(array([size]), "pad", f"{b.input(shape)}, {b.input(array([]))}", f"padding={low}_{high}_{inner}")


def concatenate(m: Modules, b: Block) -> None:
    sizes = [m.size() for _ in range(m.random.randint(1, 4))]
    names = [b.input(array([size, 3])) for size in sizes]
    b.op(array([sum(sizes), 3]), "concatenate", ", ".join(names), "dimensions={0}")


def slice_(m: Modules, b: Block) -> None:
    size = m.size()
    b.op(array([size]), "slice", b.input(array([size + 3])), f"slice={{[1:{size + 1}]}}")


def dynamic_slice(m: Modules, b: Block) -> None:
    part = m.shape(1)
    whole = array([size + 2 for size in part.dims])
    indices = [b.input(array([], "s32")) for _ in part.dims]
    b.op(part, "dynamic-slice", ", ".join([b.input(whole), *indices]), f"dynamic_slice_sizes={listed(part.dims)}")


def dynamic_update_slice(m: Modules, b: Block) -> None:
    part = m.shape(1)
    whole = array([size + 2 for size in part.dims])
    indices = [b.input(array([], "s32")) for _ in part.dims]
    b.op(whole, "dynamic-update-slice", ", ".join([b.input(whole), b.input(part), *indices]))


def gather(m: Modules, b: Block) -> None:
    rows, width, count = m.size(), m.size(), m.size()
    attributes = (
        f"offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}"
    )
    b.op(array([count, width]), "gather", f"{b.input(array([rows, width]))}, {b.input(array([count, 1], 's32'))}", attributes)


def scatter(m: Modules, b: Block) -> None:
    rows, width, count, arrays = m.size(), m.size(), m.size(), m.random.randint(1, 2)
    operands = [b.input(array([rows, width])) for _ in range(arrays)]
    indices = b.input(array([count, 1], "s32"))
    updates = [b.input(array([count, width])) for _ in range(arrays)]
    result = array([rows, width])
    attributes = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    shape: object = result if arrays == 1 else f"({result}, {result})"
    b.op(shape, "scatter", ", ".join([*operands, indices, *updates]), f"{attributes}, to_apply={m.reducer(arrays)}")


def dot(m: Modules, b: Block) -> None:
    batch, rows, columns = ([m.size() for _ in range(m.random.randint(0, 1 + (i > 0)))] for i in range(3))
    inner = [m.size() for _ in range(m.random.randint(0, 2))]
    lhs, rhs = array([*batch, *inner, *rows]), array([*batch, *inner, *columns])
    count, depth = len(batch), len(inner)
    sides = [f"{side}_batch_dims={listed(range(count))}" for side in ("lhs", "rhs")] if batch else []
    sides += [f"{side}_contracting_dims={listed(range(count, count + depth))}" for side in ("lhs", "rhs")] if inner else []
    b.op(array([*batch, *rows, *columns]), "dot", f"{b.input(lhs)}, {b.input(rhs)}", ", ".join(sides))


def scaled_dot(m: Modules, b: Block) -> None:
    rows, columns = m.size(), m.size()
    shapes = [
        array([rows, 64], "f8e4m3fn"),
        array([64, columns], "f8e4m3fn"),
        array([rows, 2], "f8e8m0fnu"),
        array([2, columns], "f8e8m0fnu"),
    ]
    attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    b.op(array([rows, columns]), "scaled-dot", ", ".join(b.input(shape) for shape in shapes), attributes)


def ragged_dot(m: Modules, b: Block) -> None:
    rows, inner, columns, groups = (m.size() for _ in range(4))
    shapes = [array([rows, inner]), array([groups, inner, columns]), array([groups], "s32")]
    attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"
    result = array([rows, columns])
    if m.random.random() < 0.5:  # ragged in the contracted dimension: one result for each group
        shapes[1] = array([inner, columns])
        attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}, rhs_group_dims={}"
        result = array([groups, rows, columns])
    b.op(result, "ragged-dot", ", ".join(b.input(shape) for shape in shapes), attributes)


def convolution(m: Modules, b: Block) -> None:
    rank = m.random.randint(0, 2)
    groups = m.random.choice([1, 1, 2])
    batch_groups = m.random.choice([1, 2]) if groups == 1 else 1
    steps, window = m.window(rank)
    inputs = [m.size() for _ in range(rank)]
    outputs = [windowed(size, step) for size, step in zip(inputs, steps, strict=True)]
    batch, features, results = m.size() * batch_groups, m.size(), m.size() * groups * batch_groups
    spatial = "".join(map(str, range(rank)))
    lhs = array([batch, *inputs, features * groups])
    rhs = array([*[step[0] for step in steps], features, results])
    attributes = [f"dim_labels=b{spatial}f_{spatial}io->b{spatial}f"]
    attributes += [window] if window else []
    attributes += [f"feature_group_count={groups}"] if groups > 1 else []
    attributes += [f"batch_group_count={batch_groups}"] if batch_groups > 1 else []
    result = array([batch // batch_groups, *outputs, results])
    b.op(result, "convolution", f"{b.input(lhs)}, {b.input(rhs)}", ", ".join(attributes))


def reduce(m: Modules, b: Block) -> None:
    shape, count = m.shape(1, 3), m.random.randint(1, 3)
    names = [b.input(shape) for _ in range(count)] + [b.input(array([])) for _ in range(count)]
    result = array(shape.dims[1:])
    kind: object = result if count == 1 else f"({', '.join([str(result)] * count)})"
    b.op(kind, "reduce", ", ".join(names), f"dimensions={{0}}, to_apply={m.reducer(count)}")


def reduce_window(m: Modules, b: Block) -> None:
    shape = m.shape(1, 2)
    steps, window = m.window(len(shape.dims))
    result = array([windowed(size, step) for size, step in zip(shape.dims, steps, strict=True)])
    if m.random.random() < 0.4:  # a window that spans a whole dimension from everywhere
        reach = shape.dims[0] - 1
        sizes = [2 * reach + 1] + [1] * (len(shape.dims) - 1)
        pads = [f"{reach}_{reach}"] + ["0_0"] * (len(shape.dims) - 1)
        window, result = f"window={{size={'x'.join(map(str, sizes))} pad={'x'.join(pads)}}}", array(shape.dims)
    b.op(result, "reduce-window", f"{b.input(shape)}, {b.input(array([]))}", f"{window}, to_apply={m.reducer()}")


def select_and_scatter(m: Modules, b: Block) -> None:
    size, window = m.size(), m.random.randint(1, 4)
    whole, parts = array([size * window]), array([size])
    select_, scatter_ = m.comparison(), m.reducer()
    attributes = f"window={{size={window} stride={window}}}, select={select_}, scatter={scatter_}"
    b.op(whole, "select-and-scatter", f"{b.input(whole)}, {b.input(parts)}, {b.input(array([]))}", attributes)


def map_(m: Modules, b: Block) -> None:
    shape = m.shape(1)
    b.op(
        shape,
        "map",
        f"{b.input(shape)}, {b.input(shape)}",
        f"dimensions={listed(range(len(shape.dims)))}, to_apply={m.reducer()}",
    )


def sort(m: Modules, b: Block) -> None:
    shape = m.shape(1)
    b.op(shape, "sort", b.input(shape), f"dimensions={{0}}, to_apply={m.comparison()}")


def topk(m: Modules, b: Block) -> None:
    rows, size = m.size(), m.size() + 2
    b.op(f"({array([rows, 2])}, {array([rows, 2], 's32')})", "topk", b.input(array([rows, size])), "k=2, largest=true")


def fft(m: Modules, b: Block) -> None:
    shape = m.shape(2, 3, dtype="c64")
    lengths = shape.dims[-m.random.randint(1, 2) :]
    b.op(shape, "fft", b.input(shape), f"fft_type=FFT, fft_length={listed(lengths)}")


def triangular_solve(m: Modules, b: Block) -> None:
    size, columns = m.size(), m.size()
    attributes = "left_side=true, lower=true, transpose_a=NO_TRANSPOSE"
    b.op(
        array([size, columns]),
        "triangular-solve",
        f"{b.input(array([size, size]))}, {b.input(array([size, columns]))}",
        attributes,
    )


def cholesky(m: Modules, b: Block) -> None:
    shape = array([m.size(), *[m.size()] * 2])
    b.op(shape, "cholesky", b.input(shape), "lower=true")


def rng(m: Modules, b: Block) -> None:
    b.op(m.shape(), "rng", f"{b.input(array([]))}, {b.input(array([]))}", "distribution=rng_uniform")


def rng_bit_generator(m: Modules, b: Block) -> None:
    state = array([2], "u64")
    b.op(f"({state}, {m.shape(dtype='u32')})", "rng-bit-generator", b.input(state), "algorithm=rng_three_fry")


def rng_state(m: Modules, b: Block) -> None:
    b.op(array([2], "u64"), "rng-get-and-update-state", "", "delta=4")


def scan(m: Modules, b: Block) -> None:
    """Add a scan of a carry and an array: the carry comes last among the operands, the array first."""
    block = m.block()
    x, carry = block.input(array([])), block.input(array([]))
    total = block.op(array([]), m.random.choice(BINARY), f"{x}, {carry}")
    block.op("(f32[], f32[])", "tuple", f"{total}, {total}")
    shape = array([m.size()])
    attributes = f"dimensions={{0}}, num_carries=1, to_apply={m.close(block)}"
    b.op(f"({shape}, f32[])", "scan", f"{b.input(shape)}, {b.input(array([]))}", attributes)


def nothing_asked(opcode: str, dtype: str = "u32") -> Maker:
    def make(m: Modules, b: Block) -> None:
        b.op(array([], dtype), opcode)

    return make


def batch_norm(opcode: str) -> Maker:
    def make(m: Modules, b: Block) -> None:
        data, features = array([m.size(), 3]), array([3])
        extra = {"batch-norm-training": 2, "batch-norm-inference": 4, "batch-norm-grad": 3}[opcode]
        names = [b.input(data), *[b.input(features) for _ in range(extra)]]
        names += [b.input(data)] if opcode == "batch-norm-grad" else []
        result: object = data if opcode == "batch-norm-inference" else f"({data}, {features}, {features})"
        b.op(result, opcode, ", ".join(names), "epsilon=0.001, feature_index=1")

    return make


def stochastic_convert(m: Modules, b: Block) -> None:
    shape = m.shape()
    b.op(shape.with_dtype("bf16"), "stochastic-convert", f"{b.input(shape)}, {b.input(shape.with_dtype('u32'))}")
