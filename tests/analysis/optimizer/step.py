"""Training steps written by hand: a gradient that depends on the weight, and whatever a test does with it."""

from __future__ import annotations

from tests.analysis.optimizer.reading import entry_of

SCALARS = {"half": 0.5, "tenth": 0.1, "nine": 0.9, "rate": -0.01, "one": 1.0, "zero": 0.0, "tiny": 1e-8, "two": 2.0}


def step_of(*lines: str, outputs: str = "new", states: int = 0, donated: bool = True) -> str:
    """A module with the weight `w` (parameter 0), `states` moments `m1`, `m2`, ... of its shape, a counter `t`, a batch `x`;
    `g` is the gradient, and each of `SCALARS` stands there as an array of the weight's shape, and as a scalar with `_s` behind
    its name.

    `outputs` are names: the first succeeds `w`, those behind it the moments.
    """
    parameters = ["%w = f32[4,4]{1,0} parameter(0)"]
    parameters += [f"%m{n} = f32[4,4]{{1,0}} parameter({n})" for n in range(1, states + 1)]
    parameters += [f"%t = s32[] parameter({states + 1})", f"%x = f32[9,4]{{1,0}} parameter({states + 2})"]
    for name, value in SCALARS.items():
        parameters.append(f"%{name}_s = f32[] constant({value})")
        parameters.append(f"%{name} = f32[4,4]{{1,0}} broadcast(%{name}_s), dimensions={{}}")
    parameters.append("%h = f32[9,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}")
    parameters.append("%g = f32[4,4]{1,0} dot(%x, %h), lhs_contracting_dims={0}, rhs_contracting_dims={0}")
    names = outputs.split()
    shapes = ", ".join("f32[4,4]{1,0}" for _ in names)
    root = f"ROOT %results = ({shapes}) tuple({', '.join(f'%{name}' for name in names)})"
    aliases = ", ".join(f"{{{n}}}: ({n}, {{}}, may-alias)" for n in range(len(names)))
    header = f", input_output_alias={{ {aliases} }}" if donated else ""
    return entry_of(*parameters, *(_written(line) for line in lines), root, header=header)


def _written(line: str) -> str:
    """`name = opcode operands` as HLO; what has a shape stays as it is."""
    name, _, rest = line.partition(" = ")
    opcode, *operands = rest.split()
    if "[" in rest:
        return f"%{name} = {rest}"
    return f"%{name} = f32[4,4]{{1,0}} {opcode}({', '.join(f'%{operand}' for operand in operands)})"


DESCENT = ("u = multiply g rate", "new = add w u")
ADAM = (
    "a = multiply m1 nine",
    "b = multiply g tenth",
    "m = add a b",
    "c = multiply m2 half",
    "d = multiply g g",
    "e = multiply d half",
    "v = add c e",
    "s = sqrt v",
    "k = add s tiny",
    "q = divide m k",
    "u = multiply q rate",
    "new = add w u",
)
"""Adam without bias correction: b1 0.9, b2 0.5, rate 0.01, epsilon 1e-8."""
