"""Makers of collectives and of other communication."""

from __future__ import annotations

from tests.analysis.cost.generate import Block, Modules, array
from tests.analysis.cost.makers import Maker

GROUPS = "replica_groups={{0,1}}"


def collective(opcode: str, grows: int = 1, shrinks: int = 1) -> Maker:
    def make(m: Modules, b: Block) -> None:
        rows = m.size() * shrinks
        shape, result = array([rows, 3]), array([rows * grows // shrinks, 3])
        extra = {"all-reduce": f", to_apply={m.reducer()}", "all-to-all": ", dimensions={0}"}.get(opcode, "")
        if opcode == "reduce-scatter":
            extra = f", dimensions={{0}}, to_apply={m.reducer()}"
        if opcode == "all-gather":
            extra = ", dimensions={0}"
        if opcode in {"collective-permute"}:
            b.op(result, opcode, b.input(shape), "source_target_pairs={{0,1},{1,0}}")
        elif opcode == "ragged-all-to-all":
            counts = ", ".join(b.input(array([2], "s32")) for _ in range(4))
            b.op(result, opcode, f"{b.input(shape)}, {b.input(shape)}, {counts}", GROUPS)
        else:
            b.op(result, opcode, b.input(shape), GROUPS + extra)

    return make


def all_reduce_of_two(m: Modules, b: Block) -> None:
    first, second = m.shape(), m.shape()
    b.op(f"({first}, {second})", "all-reduce", f"{b.input(first)}, {b.input(second)}", f"{GROUPS}, to_apply={m.reducer()}")


def pair(kind: str) -> Maker:
    """Return a maker of a start and its done."""

    def make(m: Modules, b: Block) -> None:
        shape = array([m.size(), 3])
        result = array([2 * shape.dims[0], 3]) if kind == "all-gather" else shape
        started: object = f"({shape}, {result})"
        attributes = {"all-gather": f"{GROUPS}, dimensions={{0}}", "collective-permute": "source_target_pairs={{0,1},{1,0}}"}
        if kind == "all-reduce":
            started, attributes["all-reduce"] = shape, f"{GROUPS}, to_apply={m.reducer()}"
        if kind == "copy":
            started = f"({shape}, {shape}, u32[])"
        start = b.op(started, f"{kind}-start", b.input(shape), attributes.get(kind, ""))
        b.op(result, f"{kind}-done", start)

    return make


def sugar(m: Modules, b: Block) -> None:
    """Add the short spelling of an asynchronous operation, without its computation."""
    rows = m.size()
    shape, result = array([2 * rows]), array([rows])
    attributes = f"{GROUPS}, dimensions={{0}}, to_apply={m.reducer()}"
    start = b.op(f"(({shape}), {result})", "reduce-scatter-start", b.input(shape), attributes)
    b.op(result, "reduce-scatter-done", start)


def send_and_receive(m: Modules, b: Block) -> None:
    shape = m.shape()
    token = b.op("token[]", "after-all")
    sent = b.op(f"({shape}, u32[], token[])", "send", f"{b.input(shape)}, {token}", "channel_id=1")
    b.op("token[]", "send-done", sent, "channel_id=1")
    received = b.op(f"({shape}, u32[], token[])", "recv", token, "channel_id=2")
    b.op(f"({shape}, token[])", "recv-done", received, "channel_id=2")
