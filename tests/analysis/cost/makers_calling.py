"""Makers of instructions that call computations, or hold tuples and tokens."""

from __future__ import annotations

from tests.analysis.cost.generate import BINARY, UNARY, Block, Modules, Shape, array
from tests.analysis.cost.makers import Maker, gather, scatter

TRUE = "pred[]"


def some(m: Modules, b: Block, shape: Shape) -> str:
    """Add a few elementwise instructions over inputs of a shape."""
    value = b.input(shape)
    for _ in range(m.random.randint(1, 3)):
        other = b.input(shape) if m.random.random() < 0.3 else value
        value = (
            b.op(shape, m.random.choice(UNARY), value)
            if m.random.random() < 0.5
            else b.op(shape, m.random.choice(BINARY), f"{value}, {other}")
        )
    return value


def inputs_of(b: Block, called: Block) -> str:
    return ", ".join(b.input(shape) for shape in called.inputs)


def called(opcode: str, attribute: str) -> Maker:
    def make(m: Modules, b: Block) -> None:
        block, shape = m.block(), m.shape()
        some(m, block, shape)
        name = m.close(block)
        operands = inputs_of(b, block)
        if opcode != "async-start":
            b.op(shape, opcode, operands, f"{attribute}={name}")
            return
        inside = f"(({', '.join(map(str, block.inputs))}), {shape})"
        started = b.op(inside, "async-start", operands, f"calls={name}")
        if m.random.random() < 0.5:
            started = b.op(inside, "async-update", started)
        b.op(shape, "async-done", started)

    return make


def while_(m: Modules, b: Block) -> None:
    shape = m.shape()
    state = f"(s32[], {shape})"
    body = m.block()
    loop = body.input(state)
    count = body.op(array([], "s32"), "get-tuple-element", loop, "index=0")
    value = body.op(shape, "get-tuple-element", loop, "index=1")
    value = body.op(shape, m.random.choice(UNARY), value)
    body.op(state, "tuple", f"{body.op(array([], 's32'), 'add', f'{count}, {count}')}, {value}")
    body_name = m.close(body)
    condition = m.block()
    count = condition.op(array([], "s32"), "get-tuple-element", condition.input(state), "index=0")
    condition.op(TRUE, "compare", f"{count}, {count}", "direction=LT")
    b.op(state, "while", b.input(state), f"condition={m.close(condition)}, body={body_name}")


def conditional(m: Modules, b: Block) -> None:
    shape, branches = m.shape(), []
    for _ in range(m.random.randint(2, 3)):
        block = m.block()
        value = block.input(shape)
        for _ in range(m.random.randint(1, 3)):
            value = block.op(shape, m.random.choice(UNARY), value)
        branches.append(m.close(block))
    operands = ", ".join(b.input(shape) for _ in branches)
    if len(branches) == 2:
        attributes = f"true_computation={branches[0]}, false_computation={branches[1]}"
        b.op(shape, "conditional", f"{b.input(TRUE)}, {operands}", attributes)
    else:
        b.op(shape, "conditional", f"{b.input('s32[]')}, {operands}", f"branch_computations={{{', '.join(branches)}}}")


def fusion(m: Modules, b: Block) -> None:
    """Parameters read whole, in slices, broadcast or not at all; constants; updates in place; several outputs."""
    block = m.block()
    fused = FusedBuilder(m, block)
    for _ in range(m.random.randint(1, 6)):
        m.random.choice(STEPS)(fused)
    fused.close()
    shape = block.lines[-1].partition(" = ")[2].rpartition("(")[0].rpartition(" ")[0]
    if block.lines[-1].split(" = ")[1].startswith("("):
        shape = block.lines[-1].partition(" = ")[2].partition(" tuple(")[0]
    kind = m.random.choice(["kLoop", "kInput", "kCustom"])
    name = m.close(block)
    b.op(shape, "fusion", inputs_of(b, block), f"kind={kind}, calls={name}")


class FusedBuilder:
    """A fused computation over rows of one size, while it is written. Each method of `STEPS` adds a few instructions."""

    def __init__(self, m: Modules, block: Block) -> None:
        size = m.size()
        self.m, self.block, self.size = m, block, size
        self.row, self.rows, self.index = array([size]), array([size + 2, size]), array([], "s32")
        self.values = [block.input(self.row)]
        self.results: list[tuple[object, str]] = []

    def any(self) -> str:
        return self.m.random.choice(self.values)

    def unary(self) -> None:
        self.values.append(self.block.op(self.row, self.m.random.choice(UNARY), self.any()))

    def binary(self) -> None:
        self.values.append(self.block.op(self.row, self.m.random.choice(BINARY), f"{self.any()}, {self.any()}"))

    def unread(self) -> None:
        self.block.input(self.rows)

    def slice(self) -> None:
        big = self.block.input(array([self.size + 3]))
        self.values.append(self.block.op(self.row, "slice", big, f"slice={{[1:{self.size + 1}]}}"))
        if self.m.random.random() < 0.4:
            self.block.op(array([self.size + 3]), "negate", big)

    def broadcast(self) -> None:
        self.block.op(self.rows, "broadcast", self.any(), "dimensions={1}")

    def dynamic_slice(self) -> None:
        offset = self.block.input(self.index)
        operands = f"{self.block.input(self.rows)}, {offset}, {offset}"
        part = self.block.op(array([1, self.size]), "dynamic-slice", operands, f"dynamic_slice_sizes={{1,{self.size}}}")
        self.values.append(self.block.op(self.row, "reshape", part))

    def constant(self) -> None:
        self.block.op(self.row, "constant", "{" + ", ".join(["1"] * self.size) + "}")

    def update(self) -> None:
        offset = self.block.input(self.index)
        part = self.block.op(array([1, self.size]), "reshape", self.any())
        operands = f"{self.block.input(self.rows)}, {part}, {offset}, {offset}"
        self.results.append((self.rows, self.block.op(self.rows, "dynamic-update-slice", operands)))

    def pair(self) -> None:
        both = self.block.input(f"({self.row}, {self.rows})")
        self.values.append(self.block.op(self.row, "get-tuple-element", both, "index=0"))
        if self.m.random.random() < 0.5:
            self.block.op(self.rows, "get-tuple-element", both, "index=1")

    def fusion(self) -> None:
        self.values.append(nested(self.m, self.block, self.row, self.any()))

    def close(self) -> None:
        """Add the root: a tuple of all results, or a single result, as it is or negated."""
        results, random = self.results, self.m.random
        results.append((self.row, self.block.op(self.row, "add", f"{self.values[-1]}, {self.values[0]}")))
        random.shuffle(results)
        if len(results) > 1 and random.random() < 0.7:
            shapes = ", ".join(str(shape) for shape, _ in results)
            self.block.op(f"({shapes})", "tuple", ", ".join(name for _, name in results))
        elif random.random() < 0.5:
            self.block.op(results[0][0], "negate", results[0][1])
        else:
            self.block.root(results[0][1])


STEPS = (
    FusedBuilder.unary,
    FusedBuilder.binary,
    FusedBuilder.unread,
    FusedBuilder.slice,
    FusedBuilder.broadcast,
    FusedBuilder.dynamic_slice,
    FusedBuilder.constant,
    FusedBuilder.update,
    FusedBuilder.pair,
    FusedBuilder.fusion,
)


def nested(m: Modules, block: Block, row: Shape, value: str) -> str:
    """Add a fusion in a fusion, used by slices, updates or others, or by nothing."""
    inner = m.block()
    a, c = inner.input(row), inner.input(row)
    inner.op(row, m.random.choice(BINARY), f"{a}, {c}" if m.random.random() < 0.5 else f"{a}, {a}")
    other = block.input(row)
    fused = block.op(row, "fusion", f"{value}, {other}", f"kind=kLoop, calls={m.close(inner)}")
    offset = block.input(array([], "s32"))
    for _ in range(m.random.randint(0, 2)):
        use = m.random.randint(0, 3)
        if use == 0:
            block.op(array([1]), "slice", fused, "slice={[0:1]}")
        elif use == 1:
            block.op(array([1]), "dynamic-slice", f"{fused}, {offset}", "dynamic_slice_sizes={1}")
        elif use == 2:
            update = block.op(array([1]), "constant", "{1}")
            block.op(row, "dynamic-update-slice", f"{fused}, {update}, {offset}")
        else:
            block.op(row, "negate", fused)
    return fused if m.random.random() < 0.5 else value


def indexed_fusion(m: Modules, b: Block) -> None:
    """Add a custom fusion around a gather or scatter, by whose rules it counts."""
    block = m.block()
    block.op(array([9]), "negate", block.input(array([9])))
    m.random.choice([gather, scatter])(m, block)
    shape = block.lines[-1].partition(" = ")[2]
    shape = shape.partition(" gather(")[0].partition(" scatter(")[0]
    name = m.close(block)
    b.op(shape, "fusion", inputs_of(b, block), f"kind={m.random.choice(['kCustom', 'kLoop'])}, calls={name}")


def feeds(m: Modules, b: Block) -> None:
    first, second = m.shape(), m.shape()
    token = b.op("token[]", "after-all")
    b.op(f"(({first}, {second}), token[])", "infeed", token)
    pair_ = b.op(f"({first}, {second})", "tuple", f"{b.input(first)}, {b.input(second)}")
    b.op("token[]", "outfeed", f"{pair_}, {token}", f"outfeed_shape=({first}, {second})")


def dependency(m: Modules, b: Block) -> None:
    shape = m.shape()
    token = b.op("token[]", "after-all")
    b.op(shape, "add-dependency", f"{b.input(shape)}, {token}")


def barrier(m: Modules, b: Block) -> None:
    first, second = m.shape(), m.shape()
    whole = f"({first}, {second})"
    b.op(whole, "opt-barrier", b.op(whole, "tuple", f"{b.input(first)}, {b.input(second)}"))


def sizes(m: Modules, b: Block) -> None:
    size = m.size()
    value = b.input(array([size]))
    length = b.op(array([], "s32"), "get-dimension-size", value, "dimensions={0}")
    dynamic = b.op(f"f32[<={size}]", "set-dimension-size", f"{value}, {length}", "dimensions={0}")
    b.op(f"f32[<={size}]", "negate", dynamic)
    b.op(f"f32[<={size}]", "dynamic-reshape", f"{dynamic}, {length}")


def domain(m: Modules, b: Block) -> None:
    shape = m.shape()
    b.op(shape, "domain", b.input(shape), 'domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}')
