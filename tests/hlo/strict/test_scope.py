"""What is known where an instruction stands."""

from __future__ import annotations

from hlo_inspect.hlo.strict.instructions import take_instruction
from hlo_inspect.hlo.strict.scope import Scope
from hlo_inspect.hlo.strict.tokens import Tokens


def scope_of(*lines: str) -> Scope:
    scope = Scope({"f": 1, "g": 2}, set(), [])
    for line in lines:
        take_instruction(Tokens(line, 0, len(line)), scope)
    return scope


def test_instructions_become_known_in_their_order() -> None:
    scope = scope_of("p = f32[2] parameter(0)", "ROOT n = negate(f32[2] %p)", "c = s32[] constant(1)")
    assert {name: (one.opcode, str(one.shape)) for name, one in scope.instructions.items()} == {
        "p": ("parameter", "f32[2]"),
        "n": ("negate", "None"),
        "c": ("constant", "s32[]"),
    }
    assert scope.root == "n"
    assert scope.last == scope.instructions["c"]
    assert list(scope.parameters) == [0]


def test_an_update_goes_back_to_its_start() -> None:
    shape = "((f32[2]), f32[2])"
    scope = scope_of(
        "p = f32[2] parameter(0)",
        f'a = {shape} async-start(p), calls=%f, async_execution_thread="host"',
        f"u = {shape} async-update(a)",
    )
    start = scope.instructions["a"]
    assert start.attributes == {"calls": "f", "async_execution_thread": '"host"'}
    assert scope.instructions["u"].start == start
    assert scope.wrapped == {"f"}


def test_computations_in_place_wait() -> None:
    line = "m = f32[2] map(p), to_apply={ ROOT q = f32[] parameter(0) }"
    scope = scope_of("p = f32[2] parameter(0)", line)
    assert [line[start:end].strip() for start, end in scope.bodies] == ["ROOT q = f32[] parameter(0)"]
