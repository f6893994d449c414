"""Random HLO text as printers write it: shapes, attributes, instructions, whole modules. One seed, one text."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

DTYPES = ["f32", "bf16", "s32", "pred", "u8", "s4", "f8e4m3fn", "c64"]
ORDINARY = ["add", "negate", "get-tuple-element", "custom-call", "tuple", "dynamic-update-slice", "iota", "copy-start"]
AWKWARD = [
    *("(", ")", "{", "}", "[", "]", "//", "/*", "*/", "'", '\\"', "\\\\", " = ", ", calls=%x", "%a = f32[] add("),
    *("\u00e9", "=", "ROOT ", "ENTRY e {", " all-reduce(", "plain", "\\n}"),
]
GROUPS = [
    "{}",
    "{{0,1},{2,3}}",
    "[2,4]<=[8]",
    "[2,4]<=[4,2]T(1,0)",
    "mesh['a'=2,'b'=4] {'b'}",
    "mesh['a'=8], device_ids=([8]) {'a':(1)2}",
]
SHARDINGS = [
    "{replicated}",
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    "{{maximal device=3}, {manual}}",
    "{mesh['a'=2], [{'a'}, {?}]}",
]
WINDOWS = ["{[0:8:4], [2:5]}", "1_2x-1_-1_2", "{size=2x1 pad=0_1x1_0}", "b01f_01io->b01f", "{0,1}", "{}", "7", "kLoop", "true"]
SCALARS = ["1", "-2.5e-3", "inf", "-nan(0x1f)", "true", "(1, 2)", "{...}", "{}", "/*i0=0*/ 3"]

CALLERS = {
    "fusion": ", kind=kLoop, calls=%{}",
    "async-start": ", calls={}",
    "while": ", condition=%{0}, body=%{0}",
    "call": ", to_apply=%{}",
    "conditional": ", branch_computations={{%{0}, %{0}}}",
    "all-reduce": ", to_apply=%{}",
}
"""The attributes by which an opcode calls a computation."""


class Writer:
    """Writer of random HLO text. `plain` keeps quotes, brackets and comments out of strings."""

    def __init__(self, seed: int, *, plain: bool = False) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - texts, not secrets
        self.plain = plain

    def name(self) -> str:
        return "".join(self.chance.choices("abcdxyzXYZ_", k=self.chance.randint(1, 3))) + self.chance.choice(
            ["", ".1", "-b", "_9.clone"]
        )

    def array(self) -> str:
        if self.chance.random() < 0.1:
            return self.chance.choice(["token[]", "opaque[]"])
        sizes = self.chance.choices(["0", "1", "2", "128", "<=8", "?"], k=self.chance.randint(0, 4))
        text = f"{self.chance.choice(DTYPES)}[{','.join(sizes)}]"
        order = ",".join(map(str, self.chance.sample(range(len(sizes)), len(sizes))))
        fields = "".join(self.chance.sample(["T(8,128)(2,1)", "T(*,128)", "S(1)", "E(4)", "L(16)"], self.chance.randint(0, 2)))
        layout = order + (f":{fields}" if fields else "")
        return f"{text}{{{layout}}}" if layout and self.chance.random() < 0.7 else text

    def shape(self, depth: int = 2) -> str:
        if depth == 0 or self.chance.random() < 0.75:
            return self.array()
        parts = [self.shape(depth - 1) for _ in range(self.chance.randint(0, 7))]
        return f"({', '.join(f'/*index={n}*/{part}' if n == 5 else part for n, part in enumerate(parts))})"

    def string(self) -> str:
        words = ["a", "b.c"] if self.plain else AWKWARD
        return f'"{"".join(self.chance.choices(words, k=self.chance.randint(0, 4)))}"'

    def json(self, depth: int = 2) -> str:
        kind = self.chance.randint(0, 3) if depth else 0
        if kind == 0:
            return self.chance.choice([self.string(), "3", "true", "null"])
        if kind == 1:
            return f"[{','.join(self.json(depth - 1) for _ in range(self.chance.randint(0, 3)))}]"
        return f"{{{','.join(f'{self.string()}:{self.json(depth - 1)}' for _ in range(self.chance.randint(0, 3)))}}}"

    def attribute(self) -> str:
        choices = {
            "index": "1",
            "dimensions": "{0, 1}",
            "replica_groups": self.chance.choice(GROUPS),
            "sharding": self.chance.choice(SHARDINGS),
            "window": self.chance.choice(WINDOWS),
            "custom_call_target": self.string(),
            "metadata": f"{{op_name={self.string()} source_line=3}}",
            "backend_config": self.chance.choice([self.string(), f"{{{self.string()}:{self.json()}}}"]),
            "frontend_attributes": f"{{x.y-z={self.string()},w={{}}}}",
            "origin": '{(({"a"}, {"b" {0,1}}), {})}',
            "literal": "f32[2]{0} {1, 2}",
        }
        name = self.chance.choice(list(choices))
        return f", {name}={choices[name]}"

    def literal(self, depth: int = 2) -> str:
        if depth == 0 or self.chance.random() < 0.5:
            return self.chance.choice(SCALARS)
        return f"{{ {', '.join(self.literal(depth - 1) for _ in range(self.chance.randint(1, 3)))} }}"

    def operands(self, names: list[str]) -> str:
        printed = self.chance.random() < 0.4
        parts = []
        for number in range(self.chance.randint(0, 7)):
            comment = f"/*index={number}*/" if number == 5 else ""
            shape = f"{self.array()} " if printed else ""
            path = self.chance.choice(["", "", "", "#0", "#1#10"])
            parts.append(f"{comment}{shape}%{self.chance.choice(names) if names else self.name()}{path}")
        return ", ".join(parts)

    def instruction(self, name: str, opcode: str, *, names: list[str], extra: str = "") -> str:
        """Return a line without its indentation; `extra` attributes stand among the random ones."""
        if opcode == "constant":
            inside = self.literal()
        else:
            inside = str(self.chance.randint(0, 12)) if opcode == "parameter" else self.operands(names)
        attributes = [self.attribute() for _ in range(self.chance.randint(0, 3))]
        attributes.insert(self.chance.randint(0, len(attributes)), extra)
        return f"{self.chance.choice(['%', ''])}{name} = {self.shape()} {opcode}({inside}){''.join(attributes)}"

    def line(self) -> str:
        """Write an instruction of any kind."""
        return self.instruction(self.name(), self.chance.choice(["constant", "parameter", *ORDINARY]), names=[])

    def computation(
        self, number: int, opcodes: list[str], before: list[WrittenComputation], *, is_entry: bool
    ) -> WrittenComputation:
        """Write a computation, which may call those `before` it."""
        written = WrittenComputation(f"comp.{number}", is_entry)
        size = self.chance.randint(1, 8)
        for index in range(size):
            opcode = self.chance.choice(opcodes)
            callee = self.chance.choice(before).name if before and opcode in CALLERS else None
            extra = CALLERS[opcode].format(callee) if callee else ""
            names = [name for name, _, _ in written.rows]
            line = self.instruction(f"i.{number}.{index}", opcode, names=names, extra=extra)
            written.lines.append(f"ROOT {line}" if index == size - 1 else line)
            written.rows.append((f"i.{number}.{index}", opcode, callee if "calls=" in extra else None))
        return written

    def module(self, opcodes: list[str]) -> tuple[str, list[WrittenComputation]]:
        """Return the text of a module, and its computations."""
        made: list[WrittenComputation] = []
        count = self.chance.randint(1, 9)
        for number in range(count):
            made.append(self.computation(number, opcodes, made, is_entry=number == count - 1))
        signature = self.chance.choice(["", "(p: f32[2], q: (s32[], f32[])) -> (f32[2], s32[]) "])
        header = self.chance.choice(
            ["", ", is_scheduled=true", ", num_partitions=8, input_output_alias={ {}: (0, {}, may-alias) }"]
        )
        blank = self.chance.choice(["\n", "", "\n\n"])
        return f"HloModule m{header}\n\n" + blank.join(computation.text(signature) for computation in made), made


@dataclass
class WrittenComputation:
    """Computation with its expected reading: name, opcode and `calls=` of each instruction."""

    name: str
    is_entry: bool
    lines: list[str] = field(default_factory=list)
    rows: list[tuple[str, str, str | None]] = field(default_factory=list)

    def text(self, signature: str) -> str:
        body = "".join(f"  {line}\n" for line in self.lines)
        return f"{'ENTRY ' if self.is_entry else ''}%{self.name} {signature}{{\n{body}}}\n"
