"""Bytes of instructions and of fusions, each computed by hand from the rules of `HloCostAnalysis`."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.bytes_accessed import FREE, accessed_bytes
from hlo_inspect.analysis.cost.figures import NOT_MOVED, UnknownCostError
from hlo_inspect.figure import Number, exact
from tests.analysis.cost.small import as_xla, cost_of, operation

ARRAY, INDEX = "f32[8,4]{1,0}", "s32[]"
"""128 and 4 bytes."""


def read_and_written(line: str, *shapes: str) -> int:
    return accessed_bytes(operation(*[f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)], line)).bytes


@pytest.mark.parametrize(
    ("line", "shapes", "size"),
    [
        (f"%r = {ARRAY} add(%p0, %p1)", (ARRAY, ARRAY), 3 * 128),
        (f"%r = {ARRAY} add(%p0, %p0)", (ARRAY,), 3 * 128),  # read twice
        (f"%r = {ARRAY} broadcast(%p0), dimensions={{}}", ("f32[]",), 128 + 4),
        ("%r = f32[32]{0} reshape(%p0)", (ARRAY,), 2 * 128),
        (f"%r = {ARRAY} iota(), iota_dimension=0", (), 128),
        (
            f"%r = ({ARRAY}, token[]) recv-done(%p0)",
            (f"({ARRAY}, u32[], token[])",),
            128 + 3 * 4,
        ),  # only the pointers of a tuple count
        ("%r = f32[2,4] slice(%p0), slice={[0:2], [0:4]}", (ARRAY,), 2 * 32),
        ("%r = f32[2,4] dynamic-slice(%p0, %p1, %p2)", (ARRAY, INDEX, INDEX), 2 * 32 + 4),  # the first index only
        (f"%r = {ARRAY} dynamic-update-slice(%p0, %p1, %p2, %p3)", (ARRAY, "f32[2,4]", INDEX, INDEX), 2 * 32 + 4),
        ("%r = f32[3,4] gather(%p0, %p1)", (ARRAY, "s32[3,1]"), 2 * 48 + 12),
        (f"%r = {ARRAY} scatter(%p0, %p1, %p2)", (ARRAY, "s32[3,1]", "f32[3,4]"), 3 * 48 + 12),
        (f"%r = ({ARRAY}, {ARRAY}) scatter(%p0, %p0, %p1, %p2, %p2)", (ARRAY, "s32[3,1]", "f32[3,4]"), 3 * 96 + 12),
        (f"%r = ({ARRAY}, {ARRAY}) tuple(%p0, %p0)", (ARRAY,), 2 * 4),
        (f"%r = (({ARRAY}, {INDEX}), token[]) infeed(%p0)", ("token[]",), 128 + 4),
        ("%r = (f32[100], (f32[100], token[]), bf16[<=3]) infeed(%p0)", ("token[]",), 400 + 400 + 6 + 4),
        ("%r = token[] outfeed(%p0, %p1)", (f"({ARRAY}, {INDEX})", "token[]"), 128 + 4),
        ("%r = f32[4,2] triangular-solve(%p0, %p1)", ("f32[4,4]", "f32[4,2]"), 32 + 32 + 32),
        ("%r = f32[4,4] cholesky(%p0)", ("f32[4,4]",), 64),
        (f"%r = ({ARRAY}, {INDEX}) all-reduce(%p0, %p1)", (ARRAY, INDEX), 132 + 132),
        (f"%r = {ARRAY} all-reduce-start(%p0)", (ARRAY,), 256),
        (f"%r = {ARRAY} all-reduce-done(%p0)", (ARRAY,), 256),
        ("%r = (f32[8,4], f32[16,4]) all-gather-start(%p0)", (ARRAY,), 128 + 256 + 128),
        ("%r = f32[16,4] all-gather-done(%p0)", ("(f32[8,4], f32[16,4])",), 256 + 2 * 4),
        ("%r = ((f32[8,4]), f32[4,4]) reduce-scatter-start(%p0)", (ARRAY,), 64 + 128),
    ],
)
def test_bytes(line: str, shapes: tuple[str, ...], size: int) -> None:
    assert read_and_written(line, *shapes) == size


@pytest.mark.parametrize(
    ("sent", "ended", "received", "done"),
    [
        ("(f32[8,4], u32[], token[])", "token[]", "(f32[8,4], u32[], token[])", "(f32[8,4], token[])"),
        ("f32[8,4]", "token[]", "(f32[8,4], token[])", "f32[8,4]"),
        ("(f32[8,4], f32[8,4], token[])", "(f32[8,4], token[])", "(f32[8,4], f32[8,4], token[])", "token[]"),
    ],
)
def test_transfers_have_the_bytes_of_the_shapes_that_xla_makes(sent: str, ended: str, received: str, done: str) -> None:
    """The start has the array and 4 bytes of context. Its end reads a table of 3 pointers, and a recv-done writes the array."""
    lines = (
        "%a = f32[8,4] parameter(0)",
        "%t = token[] after-all()",
        f"%s = {sent} send(%a, %t), channel_id=1",
        f"%e = {ended} send-done(%s), channel_id=1",
        f"%r = {received} recv(%t), channel_id=2",
        f"ROOT %d = {done} recv-done(%r), channel_id=2",
    )
    assert as_xla(*lines)[3] == (2 * 128 + 4) + 12 + (128 + 4) + (128 + 12)


def test_transfers_of_texts_without_tokens_have_the_printed_shapes() -> None:
    lines = (
        "%a = f32[8,4] parameter(0)",
        "%s = (f32[8,4], u32[]) send(%a), channel_id=1",
        "%e = () send-done(%s), channel_id=1",
    )
    assert as_xla(*lines)[3] == (2 * 128 + 4) + 8


def test_a_packed_constant_has_the_bytes_of_the_compiled_program() -> None:
    """4 bits an element, as `compiled.cost_analysis()` counts; XLA's parser drops the packing of constants."""
    assert as_xla("%c = s4[8]{0:E(4)} constant({...})", "ROOT %n = s4[8]{0:E(4)} copy(%c)")[3] == 2 * 4


HERE = "f32[8,4]{1,0:S(1)}"
"""The same array in memory space 1."""


@pytest.mark.parametrize(
    ("line", "shapes", "size"),
    [
        (f"%r = {ARRAY} add(%p0, %p1)", (HERE, ARRAY), 128),
        (f"%r = {HERE} add(%p0, %p1)", (HERE, ARRAY), 256),
        ("%r = f32[2,4]{1,0:S(1)} slice(%p0), slice={[0:2], [0:4]}", (ARRAY,), 32),
        ("%r = f32[2,4]{1,0} dynamic-slice(%p0, %p1, %p2)", (HERE, INDEX, INDEX), 32),
        (f"%r = {HERE} dynamic-update-slice(%p0, %p1, %p2, %p3)", (HERE, "f32[2,4]", INDEX, INDEX), 32),
        (f"%r = {HERE} scatter(%p0, %p1, %p2)", (HERE, "s32[3,1]", "f32[3,4]"), 2 * 48),
        (f"%r = ({HERE}, {ARRAY}) tuple(%p0, %p1)", (HERE, ARRAY), 0),  # pointers
        (f"%r = ({HERE}, {ARRAY}, u32[]) copy-start(%p0)", (ARRAY,), 0),  # its done writes there
        (f"%r = ({ARRAY}, {HERE}, u32[]) copy-start(%p0)", (HERE,), 128),
        (f"%r = {HERE} copy-done(%p0)", (f"({HERE}, {ARRAY}, u32[])",), 128),
    ],
)
def test_bytes_in_another_memory_space(line: str, shapes: tuple[str, ...], size: int) -> None:
    parameters = [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    assert accessed_bytes(operation(*parameters, line)).spaces.get(1, 0) == size


@pytest.mark.parametrize(
    ("line", "shapes", "size"),
    [
        (f"%r = ({ARRAY}, {ARRAY}) tuple(%p0, %p0)", (ARRAY,), 8),
        (f"%r = ({ARRAY}, {ARRAY}, u32[]) copy-start(%p0)", (ARRAY,), 2 * 128 + 4),  # it reads 128 bytes
        (f"%r = {ARRAY} copy-done(%p0)", (f"({ARRAY}, {ARRAY}, u32[])",), 12),  # and writes 128
        (f"%r = {ARRAY} all-reduce-done(%p0)", (ARRAY,), 128),
        ("%r = f32[2,4] slice-done(%p0)", ("((f32[8,4]), f32[2,4], u32[])",), 32 + 12),  # what it starts writes them
        (f"%r = ({ARRAY}) opt-barrier(%p0)", (f"({ARRAY})",), 128 + 4),
    ],
)
def test_bytes_that_xla_counts_and_no_memory_moves(line: str, shapes: tuple[str, ...], size: int) -> None:
    parameters = [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    assert accessed_bytes(operation(*parameters, line)).spaces.get(NOT_MOVED, 0) == size


def test_a_fusion_that_works_in_another_memory_space() -> None:
    """It reads a slice of 32 bytes there, 16 bytes of the default memory, and writes 32 bytes there in place."""
    before = f"""%f {{
  %x = {HERE} parameter(0)
  %u = bf16[2,4] parameter(1)
  %i = s32[] constant(0)
  %s = f32[2,4] dynamic-slice(%x, %i, %i), dynamic_slice_sizes={{2,4}}
  %c = f32[2,4] convert(%u)
  %a = f32[2,4] add(%s, %c)
  ROOT %r = {HERE} dynamic-update-slice(%x, %a, %i, %i)
}}
"""
    lines = (f"%x = {HERE} parameter(0)", "%u = bf16[2,4] parameter(1)", f"%f = {HERE} fusion(%x, %u), kind=kLoop, calls=%f")
    cost = cost_of(*lines, before=before).running["main"].costs[0]
    assert (cost.amounts[-1], dict(cost.spaces)) == (32 + 16 + 32, {1: 64})


@pytest.mark.parametrize("opcode", sorted(FREE))
def test_some_opcodes_access_no_bytes(opcode: str) -> None:
    assert read_and_written(f"%r = {ARRAY} {opcode}(%p0)", ARRAY) == 0


@pytest.mark.parametrize(
    ("result", "size"),
    [
        ("f32[4,8]{0,1}", 0),  # the rows stay in their places
        ("f32[4,8]{1,0}", 256),
        ("f32[4,8]", 256),  # the usual layout
        ("s32[4,8]{0,1}", 256),  # another type is no bitcast
    ],
)
def test_a_transpose_that_moves_nothing(result: str, size: int) -> None:
    assert read_and_written(f"%r = {result} transpose(%p0), dimensions={{1,0}}", ARRAY) == size


def test_a_transpose_of_three_dimensions() -> None:
    """Result dimension i is operand dimension p(i): the memory order of the operand has to be p of the result's."""
    line = "%r = f32[4,2,3]{{{}}} transpose(%p0), dimensions={{2,0,1}}"
    assert read_and_written(line.format("0,2,1"), "f32[2,3,4]{2,1,0}") == 0
    assert read_and_written(line.format("2,1,0"), "f32[2,3,4]{2,1,0}") == 192
    with pytest.raises(UnknownCostError, match="its dimensions is not in the text"):
        read_and_written("%r = f32[4,2,3] transpose(%p0)", "f32[2,3,4]")


@pytest.mark.parametrize("line", ["%r = f32[?] negate(%p0)", f"%r = {ARRAY} negate(%gone)", "%r = f32[2] dynamic-slice(%p0)"])
def test_unreadable_instructions_have_an_unknown_cost(line: str) -> None:
    with pytest.raises(UnknownCostError):
        read_and_written(line, ARRAY)


# -- fusions, by HandleFusion --------------------------------------------------------------------------------------------------


ROW, ROWS = "f32[8]{0}", "f32[5,8]{1,0}"
"""32 and 160 bytes."""


def moved(inner: list[str], *shapes: str, result: str = ROW, kind: str = "kLoop", before: str = "") -> Number | None:
    """Return the bytes of a fusion of these instructions, with parameters %p0, %p1 and so on."""
    parameters = [f"%p{i} = {shape} parameter({i})" for i, shape in enumerate(shapes)]
    body = "".join(f"  {line}\n" for line in [*parameters, *inner])
    names = ", ".join(f"%p{i}" for i in range(len(shapes)))
    fused = f"{before}\n%fused {{\n{body}}}\n"
    return as_xla(*parameters, f"ROOT %f = {result} fusion({names}), kind={kind}, calls=%fused", before=fused)[3]


def test_inputs_and_output_once() -> None:
    inner = [f"%a = {ROW} add(%p0, %p1)", f"%b = {ROW} multiply(%a, %p0)", f"%c = {ROW} tanh(%b)"]
    assert moved(inner, ROW, ROW) == 3 * 32


def test_a_parameter_that_nothing_reads() -> None:
    assert moved([f"%a = {ROW} negate(%p0)"], ROW, ROWS) == 2 * 32


def test_each_broadcast_reads_its_operand() -> None:
    inner = [
        f"%a = {ROWS} broadcast(%p0), dimensions={{1}}",
        f"%b = {ROWS} broadcast(%p0), dimensions={{1}}",
        "%c = f32[8,1] reshape(%p0)",
        f"%d = {ROW} negate(%p0)",
        f"%e = {ROWS} add(%a, %b)",
    ]
    assert moved(inner, ROW, result=ROWS) == 4 * 32 + 160


def test_slices_read_what_they_take() -> None:
    inner = ["%a = f32[2] slice(%p0), slice={[0:2]}", "%b = f32[3] slice(%p0), slice={[0:3]}", "%c = f32[2] negate(%a)"]
    assert moved(inner, ROW, result="f32[2]") == 8 + 12 + 8


def test_a_dynamic_slice_reads_its_part_and_its_indices() -> None:
    inner = ["%a = f32[1,8] dynamic-slice(%p0, %p1, %p1), dynamic_slice_sizes={1,8}"]
    assert moved(inner, ROWS, "s32[]", result="f32[1,8]") == 32 + 4 + 32


def test_an_update_in_place_writes_the_update() -> None:
    """The updated array is not read, the fusion's result is not written but for the update."""
    inner = [f"%a = {ROWS} dynamic-update-slice(%p0, %p1, %p2, %p2)"]
    assert moved(inner, ROWS, "f32[1,8]", "s32[]", result=ROWS) == 32 + 4 + 32


def test_updates_among_several_outputs() -> None:
    inner = [
        f"%a = {ROWS} dynamic-update-slice(%p0, %p1, %p2, %p2)",
        "%b = f32[1,8] negate(%p1)",
        f"ROOT %c = ({ROWS}, f32[1,8], {ROWS}) tuple(%a, %b, %p0)",
    ]
    outputs = 32 + 32 + 160
    assert moved(inner, ROWS, "f32[1,8]", "s32[]", result=f"({ROWS}, f32[1,8], {ROWS})") == outputs + 160 + 32 + 4


def test_an_update_that_is_not_the_output_is_an_ordinary_value() -> None:
    inner = [f"%a = {ROWS} dynamic-update-slice(%p0, %p1, %p2, %p2)", f"%b = {ROWS} negate(%a)"]
    assert moved(inner, ROWS, "f32[1,8]", "s32[]", result=ROWS) == 0 + 32 + 4 + 160


def test_constants_of_more_than_one_element_are_read() -> None:
    inner = ["%k = f32[] constant(2)", "%c = f32[8] constant({...})", f"%a = {ROW} add(%p0, %c)"]
    assert moved(inner, ROW) == 32 + 32 + 32


def test_a_tuple_is_read_by_the_elements_that_are_taken_out() -> None:
    inner = [f"%a = {ROW} get-tuple-element(%p0), index=0", f"%b = {ROW} negate(%a)"]
    assert moved(inner, f"({ROW}, {ROWS})") == 32 + 8 + 32  # an element that nobody takes out counts as the tuple's pointers
    both = [*inner[:1], f"%c = {ROWS} get-tuple-element(%p0), index=1", "%d = f32[1,8] slice(%c), slice={[0:1], [0:8]}"]
    assert moved(both, f"({ROW}, {ROWS})", result="f32[1,8]") == 0 + 32 + 32


def test_elements_of_tuples_in_the_compact_spelling() -> None:
    assert moved([f"%b = {ROW} add(%p0#0, %p0#1#0)"], f"({ROW}, ({ROW}))") == 3 * 32


INNER = f"""%inner {{
  %q0 = {ROW} parameter(0)
  %q1 = {ROW} parameter(1)
  ROOT %s = {ROW} add(%q0, %q1)
}}
"""
NESTED = f"%n = {ROW} fusion(%p0, %p1), kind=kLoop, calls=%inner"


@pytest.mark.parametrize(
    ("users", "read"),
    [
        ([], 0),  # a fusion without users is not counted
        ([f"%u = {ROW} negate(%n)"], 32 + 32),
        ([f"%u = {ROW} negate(%n)", f"%v = {ROW} abs(%n)"], 32 + 32),  # read once for both
        (["%u = f32[2] slice(%n), slice={[0:2]}"], 8 + 32),  # the first operand of the root goes straight through
        (["%u = f32[2] dynamic-slice(%n, %p2)"], 8 + 32 + 4),
        ([f"%u = {ROW} dynamic-update-slice(%n, %p3, %p2)"], 0 + 32 + 4 + 8),
        (["%w = f32[16] dynamic-update-slice(%p4, %n, %p2)"], 32 + 32 + 4),
    ],
)
def test_a_fusion_in_the_fusion_reads_for_its_users(users: list[str], read: int) -> None:
    inner = [NESTED, *users, "ROOT %k = f32[] constant(0)"]
    assert moved(inner, ROW, ROW, "s32[]", "f32[2]", "f32[16]", result="f32[]", before=INNER) == read + 4


def test_a_custom_fusion_of_a_gather_costs_what_the_gather_does() -> None:
    """Twice the gathered bytes and the indices, whatever else is in it."""
    inner = ["%g = f32[3,8] gather(%p0, %p1)", "%n = f32[3,8] negate(%g)"]
    assert moved(inner, ROWS, "s32[3,1]", result="f32[3,8]", kind="kCustom") == 2 * 96 + 12
    assert moved(inner, ROWS, "s32[3,1]", result="f32[3,8]") == 160 + 12 + 96


@pytest.mark.parametrize(
    "inner",
    [
        ["%a = f32[8]{0} negate(f32[8])"],
        ["%p0 = f32[8]{0} negate(%p0)"],
        ["%n = f32[8]{0} fusion(%p0), kind=kLoop, calls=%gone", "%u = f32[8]{0} negate(%n)"],
        ["%p = f32[8]{0} parameter(x)"],
        ["%a = q9[8] negate(%p0)", "%b = f32[8] constant({...})", "%c = q9[8] add(%a, %b)"],
    ],
)
def test_fusions_whose_bytes_are_not_known(inner: list[str]) -> None:
    assert moved(inner, ROW) is None


def test_equal_kernels_are_counted_once_and_cost_the_same() -> None:
    """Other names and metadata; of two with another wiring each counts for itself."""
    bodies = {
        "f1": (f"%a = {ROWS} broadcast(%p), dimensions={{1}}", f"%b = {ROWS} broadcast(%q), dimensions={{1}}"),
        "f2": (f"%c = {ROWS} broadcast(%p), dimensions={{1}}", f"%d = {ROWS} broadcast(%q), dimensions={{1}}"),
        "f3": (f"%a = {ROWS} broadcast(%p), dimensions={{1}}", f"%b = {ROWS} broadcast(%p), dimensions={{1}}"),
    }
    head = f"  %p = {ROW} parameter(0)\n  %q = {ROW} parameter(1)\n"
    before = "".join(f"%{name} {{\n{head}  {first}\n  {second}\n}}\n" for name, (first, second) in bodies.items())
    before = before.replace("  %d = ", "  ROOT %d = ")
    calls = [f"%x{i} = {ROWS} fusion(%p, %p), kind=kLoop, calls=%{name}" for i, name in enumerate(bodies)]
    each = [exact(cost_of(f"%p = {ROW} parameter(0)", call, before=before).as_xla.bounds("bytes")) for call in calls]
    together = cost_of(f"%p = {ROW} parameter(0)", *calls, before=before)
    assert each == [32 + 32 + 160, 32 + 32 + 160, 64 + 160]
    assert exact(together.as_xla.bounds("bytes")) == sum(size or 0 for size in each)
