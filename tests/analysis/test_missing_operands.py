"""Missing operands: every opcode with too few of them, and asynchronous ends without a start."""

from __future__ import annotations

import pytest

from hlo_inspect import inspect_all
from hlo_inspect.graph.frames import Frames
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.opcodes import LITERAL_OPCODES, TABLE
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.passes import PASSES
from tests.calling import call_text
from tests.fuzz.commands import ARGUMENTS, Files

HEADERS = {
    "plain": "HloModule m",
    "aliased": "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }",
    "scheduled": "HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }",
}
OPCODES = sorted(set(TABLE) - LITERAL_OPCODES)
BATCH = 8
"""The number of opcodes that share a module, since each module takes a while."""

VARYING = 3
"""The usual number of operands of an opcode whose number of operands varies."""

MODULE = """{header}

c {{
  a = f32[8,8] parameter(0)
  b = f32[8,8] parameter(1)
  ROOT r = f32[8,8] add(a, b)
}}

fused {{
  p = f32[8,8] parameter(0)
  q = f32[8,8] parameter(1)
  k = s32[] constant(0)
{rows}
}}

ENTRY e {{
  p = f32[8,8] parameter(0)
  q = f32[8,8] parameter(1)
  k = s32[] parameter(2)
  o = f32[8,8] constant({{...}})
  u = (f32[8,8], f32[8,8]) tuple(p, q)
{rows}
  f = f32[8,8] fusion(p, q), kind=kLoop, calls=fused
  w = f32[8,8] dynamic-update-slice({last}, f, k, k)
  ROOT t = f32[8,8] add(w, {last})
}}
"""
STARTS = (
    *(f"{opcode}(p, q)" for opcode in ("multiply", "add", "subtract", "divide", "maximum")),
    *("multiply(p, p)", "select(p, p, q)", "clamp(p, p, q)", "convert(p)", "negate()", "parameter(3)", "constant({...})"),
    *("tuple(p, q)", "copy-start(p)", "fusion(p), kind=kLoop, calls=c", "while(p), condition=c, body=c"),
)
"""Instructions that an asynchronous end can be written after."""

ENDS = (
    *("async-done", "async-update", "copy-done", "send-done", "recv-done", "all-reduce-done", "all-gather-done"),
    *(
        "all-to-all-done",
        "collective-permute-done",
        "dynamic-slice-done",
        "gather-done",
        "pad-done",
        "reverse-done",
        "slice-done",
    ),
)


def _attributes(opcode: str) -> str:
    text = "".join(f", {name}=c" for name in TABLE[opcode].callees if name not in {"branch_computations"})
    text += ", dimensions={0}" if opcode in {"broadcast", "concatenate", "reduce", "reverse", "transpose"} else ""
    text += ", slice={[0:8],[0:8]}" if opcode == "slice" else ""
    text += ", index=1" if opcode == "get-tuple-element" else ""
    text += ", kind=kLoop" if opcode == "fusion" else ""
    text += ', custom_call_target="__cublas$lt$matmul"' if opcode == "custom-call" else ""
    return text + (", replica_groups={{0,1}}" if TABLE[opcode].collective else "")


def _too_few(opcode: str, number: int) -> list[str]:
    """Return instructions of an opcode with too few operands, the `number`-th opcode of a module."""
    operands = TABLE[opcode].operands
    usual = VARYING if operands is None else operands
    counts = sorted({0, max(usual - 1, 0)})
    return [f"x{number}_{count} = f32[8,8] {opcode}({', '.join('pqk'[:count])}){_attributes(opcode)}" for count in counts]


def _module(header: str, rows: list[str]) -> str:
    """Return a module whose entry and whose fusion hold the rows; the result of each depends on all of them."""
    names = [row.split()[0] for row in rows]
    sums = [
        f"y{number} = f32[8,8] subtract({f'y{number - 1}' if number else 'p'}, {name})" for number, name in enumerate(names)
    ]
    return MODULE.format(header=header, rows="\n".join(f"  {row}" for row in (*rows, *sums)), last=f"y{len(rows) - 1}")


def _inspect(text: str) -> None:
    """Run all passes; errors that are not the package's come through."""
    assert list(inspect_all(text, passes=[name for name in PASSES.names if name != "workload"]))


@pytest.mark.parametrize("header", HEADERS)
def test_every_opcode_with_too_few_operands(header: str) -> None:
    for start in range(0, len(OPCODES), BATCH):
        batch = OPCODES[start : start + BATCH]
        _inspect(_module(HEADERS[header], [row for number, opcode in enumerate(batch) for row in _too_few(opcode, number)]))


@pytest.mark.parametrize("header", HEADERS)
def test_asynchronous_ends_of_what_starts_nothing(header: str) -> None:
    for end in ENDS:
        pairs = [
            (f"i{number} = f32[8,8] {start}", f"x{number} = f32[8,8] {end}(i{number})") for number, start in enumerate(STARTS)
        ]
        _inspect(_module(HEADERS[header], [row for pair in pairs for row in pair]))


@pytest.mark.parametrize("command", sorted(set(ARGUMENTS) - {"workload"}))
def test_every_command_answers_of_all_of_them_in_one_module(command: str) -> None:
    rows = [row for number, opcode in enumerate(OPCODES) for row in _too_few(opcode, number)]
    text = _module(HEADERS["aliased"], rows).encode()
    with Files(text, text.replace(b"ROOT t = f32[8,8] add", b"ROOT t = f32[8,8] subtract")) as files:
        files.run(command)


@pytest.mark.parametrize("opcode", ["multiply", "add", "subtract", "divide", "maximum", "select"])
def test_summary_of_the_end_of_an_elementwise_operation(opcode: str) -> None:
    operands = "p, p, p" if opcode == "select" else "p, p"
    text = (
        "HloModule m\n\nENTRY e {\n  p = f32[8,8] parameter(0)\n"
        f"  i = f32[8,8] {opcode}({operands})\n  ROOT t = f32[8,8] collective-permute-done(i)\n}}\n"
    )
    for command in ("summary", "params", "optimizer", "memory"):
        done = call_text(command, "-", given=text)
        assert "internal error" not in done.stderr


def test_an_operand_by_position_is_none_if_it_is_missing() -> None:
    text = "HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n  ROOT t = f32[2] add(p)\n}\n"
    (module,) = read_modules(open_source(text), Wants(graph=True))
    views = Views(module.computations)
    view = views.for_computation("e")
    assert (view.operand_row(1, 0), view.operand_row(1, 1), view.operand_row(1, -1)) == (0, None, None)
    assert view.operand(1, 1) is None
    assert (str(view.operand_shape(1, 0)), view.operand_shape(1, 1)) == ("f32[2]", None)
    frames = Frames(views)
    frame = frames.open("e")
    assert frame is not None
    assert frames.operand((frame, 1, ()), 1) is None
