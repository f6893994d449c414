"""Fusions of one text: the third and later ones are not read, and come out the same."""

from __future__ import annotations

from tests.analysis.optimizer.reading import changed, entry_of, flow_of, written

BODY = """%f{n} (a{n}: f32[8], b{n}: f32[8]) -> f32[8] {{
  %a{n} = f32[8]{{0}} parameter(0)
  %b{n} = f32[8]{{0}} parameter(1)
  %c{n} = f32[8]{{0}} subtract(%{x}{n}, %{y}{n})
  ROOT %d{n} = f32[8]{{0}} multiply(%c{n}, %c{n})
}}
"""


def several(*operands: str) -> str:
    before = "".join(BODY.format(n=n, x=pair[0], y=pair[1]) for n, pair in enumerate(operands))
    parameters = [f"%p{n} = f32[8]{{0}} parameter({n})" for n in range(len(operands) + 1)]
    fusions = [f"%r{n} = f32[8]{{0}} fusion(%p{n}, %p{n + 1}), kind=kLoop, calls=%f{n}" for n in range(len(operands))]
    names = ", ".join(f"%r{n}" for n in range(len(operands)))
    shapes = ", ".join("f32[8]{0}" for _ in operands)
    return entry_of(*parameters, *fusions, f"ROOT %t = ({shapes}) tuple({names})", before=before)


def test_each_gets_its_own_arguments() -> None:
    flow, frame = flow_of(several("ab", "ab", "ab", "ab", "ba", "ab"))
    found = [written(flow, flow.node(flow.root(frame, (n,)))) for n in range(6)]
    square = "multiply(subtract({0}, {1}), subtract({0}, {1}))"
    pairs = [(n, n + 1) if n != 4 else (n + 1, n) for n in range(6)]
    assert found == [square.format(f"p{left}", f"p{right}") for left, right in pairs]
    assert len(flow.frames) < 6


def test_what_is_opaque_is_each_computation_s_own() -> None:
    text = changed(several("ab", "ab", "ab", "ab"), r"multiply\(", "rng-bit-generator(")
    flow, frame = flow_of(text)
    assert len({flow.node(flow.root(frame, (n,))) for n in range(4)}) == 4
