"""Text of a training step as most programs are: unfused, without metadata, a collective for each 2 KB, and no part repeats.

The model is a chain of layers `h = tanh(h @ w)` with weights sharded over 8 devices (FSDP). Each layer gathers its weight for
the forward pass and again for the backward pass, and scatters the sum of its gradient. The update is Adam. Layers differ in
width, so that no two have an array of the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator

DEVICES, BATCH, NARROWEST, STEP = 8, 64, 1024, 16
"""Devices; rows of activations on each; width of the first layer, and the growth of each next one (elements)."""

FORWARD_COLLECTIVES, BACKWARD_COLLECTIVES = 1, 2
"""Collectives of a layer by phase. The first layer needs no cotangent of its input and does not gather again."""

_SUM = """%{name} (a: {dtype}[], b: {dtype}[]) -> {dtype}[] {{
  %a.{name} = {dtype}[] parameter(0)
  %b.{name} = {dtype}[] parameter(1)
  ROOT %r.{name} = {dtype}[] add(%a.{name}, %b.{name})
}}
"""


def training_step(layers: int) -> str:
    """Write a step with this number of layers, about 4.5 KB each."""
    step = _Step(layers)
    lines = [*step.constants(), *step.parameters(), *step.forward(), *step.backward(), *step.updates(), step.root()]
    aliases = ", ".join(f"{{{number}}}: ({number}, {{}}, may-alias)" for number in range(3 * layers + 1))
    header = f"HloModule jit_step, input_output_alias={{ {aliases} }}, num_partitions={DEVICES}\n\n"
    sums = _SUM.format(name="sum", dtype="f32") + "\n" + _SUM.format(name="sum_bf16", dtype="bf16") + "\n"
    return header + sums + "ENTRY %main {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


class _Step:
    """Writer of the parts of a step. Arrays of layer i end in `.i`."""

    def __init__(self, layers: int) -> None:
        self._layers = range(layers)
        self._widths = [NARROWEST + STEP * number for number in range(layers + 1)]
        self._channel = 0

    def _shard(self, layer: int) -> str:
        return f"f32[{self._widths[layer] // DEVICES},{self._widths[layer + 1]}]"

    def _whole(self, layer: int) -> str:
        return f"bf16[{self._widths[layer]},{self._widths[layer + 1]}]"

    def _activation(self, layer: int, dtype: str = "bf16") -> str:
        return f"{dtype}[{BATCH},{self._widths[layer]}]"

    def _groups(self) -> str:
        self._channel += 1
        return f"channel_id={self._channel}, replica_groups=[1,{DEVICES}]<=[{DEVICES}], use_global_device_ids=true"

    @staticmethod
    def constants() -> Iterator[str]:
        numbers = {"rate": 0.001, "b1": 0.9, "not_b1": 0.1, "b2": 0.99, "not_b2": 0.01, "epsilon": 1e-8, "one": 1, "zero": 0}
        for name, number in numbers.items():
            yield f"%{name} = f32[] constant({number:g})"
        yield "%one_bf16 = bf16[] constant(1)"
        yield "%two_bf16 = bf16[] constant(2)"
        yield "%one_s32 = s32[] constant(1)"

    def parameters(self) -> Iterator[str]:
        count = len(self._layers)
        for first, name in enumerate("wmv"):
            for layer in self._layers:
                yield f"%{name}.{layer} = {self._shard(layer)} parameter({first * count + layer})"
        yield f"%count = s32[] parameter({3 * count})"
        yield f"%h.0 = {self._activation(0)} parameter({3 * count + 1})"

    def _gather(self, layer: int, name: str) -> Iterator[str]:
        shard = self._shard(layer).replace("f32", "bf16")
        yield f"%{name}.part.{layer} = {shard} convert(%w.{layer})"
        yield f"%{name}.{layer} = {self._whole(layer)} all-gather(%{name}.part.{layer}), {self._groups()}, dimensions={{0}}"

    def forward(self) -> Iterator[str]:
        for layer in self._layers:
            shape = self._activation(layer + 1)
            yield from self._gather(layer, "gathered")
            yield (
                f"%product.{layer} = {shape} dot(%h.{layer}, %gathered.{layer}), lhs_contracting_dims={{1}}, "
                "rhs_contracting_dims={0}"
            )
            yield f"%h.{layer + 1} = {shape} tanh(%product.{layer})"
        last = len(self._layers)
        shape = self._activation(last, "f32")
        yield f"%wide = {shape} convert(%h.{last})"
        yield f"%squares = {shape} multiply(%wide, %wide)"
        yield "%loss.part = f32[] reduce(%squares, %zero), dimensions={0,1}, to_apply=%sum"
        yield f"%loss = f32[] all-reduce(%loss.part), {self._groups()}, to_apply=%sum"

    def backward(self) -> Iterator[str]:
        last = len(self._layers)
        yield f"%twos = {self._activation(last)} broadcast(%two_bf16), dimensions={{}}"
        yield f"%ct.{last} = {self._activation(last)} multiply(%h.{last}, %twos)"
        for layer in reversed(self._layers):
            shape, shard = self._activation(layer + 1), self._shard(layer)
            yield f"%square.{layer} = {shape} multiply(%h.{layer + 1}, %h.{layer + 1})"
            yield f"%ones.{layer} = {shape} broadcast(%one_bf16), dimensions={{}}"
            yield f"%slope.{layer} = {shape} subtract(%ones.{layer}, %square.{layer})"
            yield f"%inner.{layer} = {shape} multiply(%ct.{layer + 1}, %slope.{layer})"
            yield (
                f"%partial.{layer} = {self._whole(layer)} dot(%h.{layer}, %inner.{layer}), lhs_contracting_dims={{0}}, "
                "rhs_contracting_dims={0}"
            )
            yield (
                f"%scattered.{layer} = {shard.replace('f32', 'bf16')} reduce-scatter(%partial.{layer}), {self._groups()}, "
                "dimensions={0}, to_apply=%sum_bf16"
            )
            yield f"%g.{layer} = {shard} convert(%scattered.{layer})"
            if layer:
                yield from self._gather(layer, "again")
                yield (
                    f"%ct.{layer} = {self._activation(layer)} dot(%inner.{layer}, %again.{layer}), lhs_contracting_dims={{1}}, "
                    "rhs_contracting_dims={1}"
                )

    def updates(self) -> Iterator[str]:
        yield "%count.new = s32[] add(%count, %one_s32)"
        yield "%count.f32 = f32[] convert(%count.new)"
        for beta in ("b1", "b2"):
            yield f"%power.{beta} = f32[] power(%{beta}, %count.f32)"
            yield f"%correction.{beta} = f32[] subtract(%one, %power.{beta})"
        for layer in self._layers:
            yield from self._update(layer, self._shard(layer))

    @staticmethod
    def _update(layer: int, shape: str) -> Iterator[str]:
        for name in ("b1", "not_b1", "b2", "not_b2", "epsilon", "rate", "correction.b1", "correction.b2"):
            yield f"%{name}.{layer} = {shape} broadcast(%{name}), dimensions={{}}"
        operations = (
            ("m.old", "multiply", "m", "b1"),
            ("m.add", "multiply", "g", "not_b1"),
            ("m.new", "add", "m.old", "m.add"),
            ("g.square", "multiply", "g", "g"),
            ("v.old", "multiply", "v", "b2"),
            ("v.add", "multiply", "g.square", "not_b2"),
            ("v.new", "add", "v.old", "v.add"),
            ("m.hat", "divide", "m.new", "correction.b1"),
            ("v.hat", "divide", "v.new", "correction.b2"),
            ("root", "sqrt", "v.hat"),
            ("divisor", "add", "root", "epsilon"),
            ("direction", "divide", "m.hat", "divisor"),
            ("change", "multiply", "direction", "rate"),
            ("w.new", "subtract", "w", "change"),
        )
        for name, opcode, *operands in operations:
            yield f"%{name}.{layer} = {shape} {opcode}({', '.join(f'%{operand}.{layer}' for operand in operands)})"

    def root(self) -> str:
        names = [f"%{name}.new.{layer}" for name in "wmv" for layer in self._layers]
        shapes = [self._shard(layer) for _ in "wmv" for layer in self._layers]
        return f"ROOT %result = ({', '.join([*shapes, 's32[]', 'f32[]'])}) tuple({', '.join([*names, '%count.new', '%loss'])})"
