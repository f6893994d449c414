"""The kind of program of a module. Names of the dumps and programs say what was compiled."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.program import Program
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes import PASSES
from hlo_inspect.request import Request

DATA = Path(__file__).parents[1] / "data"
WANTS = next(iter(PASSES)).wants
for pass_ in PASSES:
    WANTS |= pass_.wants

SUM = "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def program(text: str | Path, *, quick: bool = False) -> Program:
    (module,) = read_modules(open_source(text), WANTS)
    return Context(module, Request(quick=quick)).program


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cpu/adamw_step.after.txt", "training step"),
        ("gpu/bf16_master.after.txt", "training step"),
        ("cpu/sgd_unused.after.txt", "training step"),
        ("optimizers/lion.after.hlo", "training step"),
        ("optimizers/lion.before.hlo", "training step"),
        ("cpu/collectives.after.txt", "program"),  # collectives of every kind and no matrix multiplication
    ],
)
def test_dumps(name: str, kind: str) -> None:
    assert program(DATA / name).kind == kind


def test_a_forward_pass_multiplies_matrices_and_updates_nothing() -> None:
    text = """HloModule jit_f

ENTRY e {
  x = f32[8,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  d = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/dot_general"}
  ROOT t = f32[8,4]{1,0} tanh(d)
}
"""
    assert program(text) == Program("forward pass", has_matmuls=True)
    assert program(text.replace(', metadata={op_name="jit(f)/dot_general"}', "")).kind == "program"  # nothing has a name
    assert program(text.replace("jit_f", "SyncTensorsGraph")).kind == "program"  # its names show no backward pass
    assert program(text, quick=True).kind == "program"  # updates were not searched for


def test_a_text_that_is_cut_off_is_no_forward_pass() -> None:
    """The missing part may be the backward pass, or the updates."""
    text = """HloModule jit_f

ENTRY e {
  x = f32[8,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  d = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
"""
    assert program(text) == Program("program", has_matmuls=True)
    whole = CACHE.format(new=1)
    assert program(whole[: whole.index("  ROOT")]).kind == "program"


def test_names_tell_a_backward_pass() -> None:
    text = """HloModule jit_f

ENTRY e {
  x = f32[8,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  d = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/jvp()/dot"}
  g = f32[4,4]{1,0} dot(x, d), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/BACKWARD/dot"}
  ROOT t = (f32[8,4]{1,0}, f32[4,4]{1,0}) tuple(d, g)
}
"""
    assert program(text.replace("BACKWARD", "transpose(jvp())")).kind == "forward and backward pass"
    assert program(text.replace("BACKWARD", "jvp()")).kind == "forward pass"
    cut = text.replace("BACKWARD", "transpose(jvp())")
    assert program(cut[: cut.index("  ROOT")]).kind == "program"  # the updates of weights may be missing


@pytest.mark.parametrize(
    ("line", "kind", "opcode"),
    [
        ("ROOT r = f32[8]{0} all-reduce(p), replica_groups={{0,1}}, to_apply=sum", "reduction", "all-reduce"),
        ("z = f32[] constant(0)\n  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum", "reduction", "reduce"),
        ("ROOT r = f32[8]{0} cross-replica-sum(p), to_apply=sum", "reduction", "cross-replica-sum"),  # as all-reduce was called
        ("ROOT r = bf16[8]{0} convert(p)", "operation", "convert"),
        ("s = f32[8]{0} negate(p)\n  ROOT r = bf16[8]{0} convert(s)", "program", ""),
        ("ROOT r = (f32[8]{0}) tuple(p)", "program", ""),
    ],
)
def test_a_program_of_one_operation(line: str, kind: str, opcode: str) -> None:
    text = f"""HloModule jit_f

{SUM}
ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  {line}
}}
"""
    operation = program(text)
    assert (operation.kind, operation.opcode) == (kind, opcode)


def test_an_asynchronous_collective_has_its_kind() -> None:
    text = """HloModule jit_f, num_partitions=2

run {
  a = f32[8] parameter(0)
  ROOT x = f32[8] all-to-all(a), replica_groups={{0,1}}, dimensions={0}
}

ENTRY e {
  p = f32[8] parameter(0)
  s = ((f32[8]), f32[8]) async-start(p), calls=run
  ROOT d = f32[8] async-done(s)
}
"""
    assert program(text) == Program("operation", opcode="all-to-all")


@pytest.mark.parametrize(
    ("lines", "result", "expected"),
    [
        ("ROOT c = bf16[8]{0} convert(a)", "bf16[8]{0}", Program("operation", opcode="convert")),
        ("n = f32[8]{0} negate(a)\n  ROOT c = bf16[8]{0} convert(n)", "bf16[8]{0}", Program("operation", opcode="fusion")),
        (
            "n = f32[8]{0} negate(a)\n  z = f32[] constant(0)\n  ROOT c = f32[] reduce(n, z), dimensions={0}, to_apply=sum",
            "f32[]",
            Program("reduction", opcode="reduce"),
        ),
    ],
)
def test_a_fusion_of_one_instruction_is_that_operation(lines: str, result: str, expected: Program) -> None:
    """A fusion of several instructions is a fusion, or a reduction if its root is one."""
    text = f"""HloModule jit_f

{SUM}
fused {{
  a = f32[8]{{0}} parameter(0)
  {lines}
}}

ENTRY e {{
  p = f32[8]{{0}} parameter(0)
  ROOT r = {result} fusion(p), kind=kLoop, calls=fused
}}
"""
    assert program(text) == expected


def test_a_fusion_that_ends_with_something_else_than_its_multiplication_is_no_operation() -> None:
    text = """HloModule jit_f

fused {
  x = f32[8,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  s = f32[8,4]{1,0} parameter(2)
  d = f32[8,4]{1,0} convolution(x, w), dim_labels=bf_io->bf
  ROOT m = f32[8,4]{1,0} multiply(d, s)
}

ENTRY e {
  x = f32[8,4]{1,0} parameter(0)
  w = f32[4,4]{1,0} parameter(1)
  s = f32[8,4]{1,0} parameter(2)
  ROOT r = f32[8,4]{1,0} fusion(x, w, s), kind=kOutput, calls=fused
}
"""
    assert program(text) == Program("program", has_matmuls=True)
    alone = text.replace("ROOT m = f32[8,4]{1,0} multiply(d, s)", "").replace("  d = ", "  ROOT d = ")
    assert program(alone) == Program("operation", opcode="convolution")


def test_a_loop_is_no_operation() -> None:
    """Fifty steps of a sampler run a network in each."""
    text = """HloModule jit_sample

body {
  s = (s32[], f32[8,4]{1,0}, f32[4,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,4]{1,0} get-tuple-element(s), index=1
  w = f32[4,4]{1,0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  d = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,4]{1,0}, f32[4,4]{1,0}) tuple(next, d, w)
}

condition {
  s.1 = (s32[], f32[8,4]{1,0}, f32[4,4]{1,0}) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  limit = s32[] constant(50)
  ROOT less = pred[] compare(i.1, limit), direction=LT
}

ENTRY e {
  x.2 = f32[8,4]{1,0} parameter(0)
  w.2 = f32[4,4]{1,0} parameter(1)
  zero = s32[] constant(0)
  t.2 = (s32[], f32[8,4]{1,0}, f32[4,4]{1,0}) tuple(zero, x.2, w.2)
  loop = (s32[], f32[8,4]{1,0}, f32[4,4]{1,0}) while(t.2), condition=condition, body=body
  ROOT r = f32[8,4]{1,0} get-tuple-element(loop), index=1
}
"""
    assert program(text) == Program("program", has_matmuls=True)


CACHE = """HloModule jit_decode, input_output_alias={{ {{0}}: (1, {{}}, may-alias) }}

ENTRY e {{
  x = f32[4,{new},8]{{2,1,0}} parameter(0)
  cache = f32[4,256,8]{{2,1,0}} parameter(1)
  position = s32[] parameter(2)
  w = f32[8,8]{{1,0}} parameter(3)
  zero = s32[] constant(0)
  new = f32[4,256,8]{{2,1,0}} dynamic-update-slice(cache, x, zero, position, zero)
  d = f32[4,256,8]{{2,1,0}} dot(new, w), lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}
  ROOT t = (f32[4,256,8]{{2,1,0}}, f32[4,256,8]{{2,1,0}}) tuple(new, d)
}}
"""


@pytest.mark.parametrize(("new", "kind"), [(1, "decode step"), (32, "inference step")])
def test_a_cache_is_a_donated_array_of_which_a_part_is_written(new: int, kind: str) -> None:
    """A step that writes a single position is a decode step; many are not."""
    step = program(CACHE.format(new=new))
    assert (step.kind, [leaf.number for leaf in step.cache]) == (kind, [1])
    undonated = CACHE.format(new=new).replace(", input_output_alias={ {0}: (1, {}, may-alias) }", "")
    assert program(undonated).kind == "program"


def test_a_cache_may_be_written_in_another_order_of_its_dimensions() -> None:
    """XLA's GPU compiler transposes the caches before a loop over the layers, and back behind it."""
    text = CACHE.format(new=1).replace(
        "  new = f32[4,256,8]{2,1,0} dynamic-update-slice(cache, x, zero, position, zero)",
        """
  across = f32[4,8,256]{2,1,0} transpose(cache), dimensions={0,2,1}
  one = f32[4,8,1]{2,1,0} transpose(x), dimensions={0,2,1}
  written = f32[4,8,256]{2,1,0} dynamic-update-slice(across, one, zero, zero, position)
  new = f32[4,256,8]{2,1,0} transpose(written), dimensions={0,2,1}""",
    )
    step = program(text)
    assert (step.kind, [leaf.number for leaf in step.cache]) == ("decode step", [1])


def test_a_write_to_an_array_of_other_dimensions_makes_no_cache() -> None:
    """The array does not come from the donated one, although its dimensions have equal sizes in another order."""
    text = """HloModule jit_f, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY e {
  a = f32[8,16]{1,0} parameter(0)
  b = f32[16,8]{1,0} parameter(1)
  x = f32[16,1]{1,0} parameter(2)
  position = s32[] parameter(3)
  zero = s32[] constant(0)
  n = f32[8,16]{1,0} negate(a)
  new = f32[16,8]{1,0} dynamic-update-slice(b, x, zero, position)
  d = f32[16,16]{1,0} dot(new, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[8,16]{1,0}, f32[16,16]{1,0}) tuple(n, d)
}
"""
    assert program(text) == Program("program", has_matmuls=True)


GRADIENTS = """HloModule jit_loss

ENTRY main {
  a = f32[64,128]{1,0} parameter(0)
  c = f32[128,16]{1,0} parameter(1)
  x = f32[32,64]{1,0} parameter(2)
  f = f32[32,128]{1,0} dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = f32[32,128]{1,0} tanh(f)
  o = f32[32,16]{1,0} dot(h, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dc = f32[128,16]{1,0} dot(h, o), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dh = f32[32,128]{1,0} dot(o, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  df = f32[32,128]{1,0} multiply(dh, h)
  da = f32[64,128]{1,0} dot(x, df), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT r = (f32[64,128]{1,0}, f32[128,16]{1,0}) tuple(da, dc)
}
"""
"""The gradients of a network of two layers, as `jax.grad` returns them, without op_names."""


def test_gradients_among_the_outputs_show_a_backward_pass() -> None:
    assert program(GRADIENTS) == Program("forward and backward pass", has_matmuls=True)
    single = GRADIENTS.replace("(f32[64,128]{1,0}, f32[128,16]{1,0}) tuple(da, dc)", "f32[64,128]{1,0} negate(da)")
    assert program(single).kind == "program"  # k-means has such a product too
    other = "  z = f32[32,128]{1,0} parameter(3)\n  dc = f32[128,16]{1,0} dot(z, o)"  # no factor of a product with `c`
    no_way_back = GRADIENTS.replace("  dc = f32[128,16]{1,0} dot(h, o)", other)
    assert program(no_way_back).kind == "program"


SHARED = Path(__file__).parents[3] / "shared" / "dumps"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the dumps are not there")
@pytest.mark.parametrize(
    ("name", "kind", "caches"),
    [
        ("cpu/decode_tp.opt", "decode step", 8),  # keys and values of 4 layers
        ("cpu/decode_tp.pre", "decode step", 8),
        ("tpu_v5e_2x4/decode_tp.opt", "decode step", 8),
        ("cpu/fwd_mlp_inference.opt", "forward pass", 0),
        ("gpu_h100x8/tf_fsdp_unroll.opt", "training step", 0),
        ("cpu/ring_attention_ppermute.opt", "forward and backward pass", 0),
    ],
)
def test_dumps_of_compilers(name: str, kind: str, caches: int) -> None:
    step = program(lzma.decompress((SHARED / f"{name}.hlo.txt.xz").read_bytes()).decode())
    assert (step.kind, len(step.cache)) == (kind, caches)
