"""The cost of instructions, and the devices of collectives, in a text that was printed without attributes."""

from __future__ import annotations

import pytest

import hlo_inspect

HEADER = "HloModule m, is_scheduled=true, num_partitions=8, entry_computation_layout={()->f32[]}"


def entry(*lines: str) -> str:
    return f"{HEADER}\n\nadd {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}}\n\n" + (
        "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    )


def flops(*lines: str) -> tuple[object, object]:
    facts = hlo_inspect.inspect(entry(*lines), "cost").facts
    return facts["cost.flops"], facts.get("cost.flops.lower_bound")


@pytest.mark.parametrize(
    ("operands", "result", "attributes", "expected"),
    [
        ("f32[4,8] f32[8,16]", "f32[4,16]", ", lhs_contracting_dims={1}, rhs_contracting_dims={0}", 2 * 4 * 8 * 16),
        ("f32[4,8] f32[8,16]", "f32[4,16]", "", None),
        ("f32[8] f32[8]", "f32[]", ", lhs_contracting_dims={0}, rhs_contracting_dims={0}", 2 * 8),
        ("f32[8] f32[8]", "f32[]", "", None),
        ("f32[2,4,8] f32[2,8,16]", "f32[2,4,16]", "", None),
        ("f32[8] f32[16]", "f32[8,16]", "", 2 * 8 * 16),  # no dimension can be contracted
        ("f32[2,8] f32[2,16]", "f32[2,8,16]", "", 2 * 2 * 8 * 16),  # one batch dimension, none contracted
    ],
)
def test_a_dot_that_contracts_something_has_to_say_what(
    operands: str, result: str, attributes: str, expected: int | None
) -> None:
    lhs, rhs = operands.split()
    lines = (f"a = {lhs} parameter(0)", f"b = {rhs} parameter(1)", f"c = {result} dot(a, b){attributes}", "m = f32[5] iota()")
    assert flops(*lines, "ROOT n = f32[5] negate(m)") == ((expected + 5, None) if expected is not None else (None, 5))


@pytest.mark.parametrize(
    ("shapes", "operation", "missing"),
    [
        ("f32[1,8,8,4] f32[3,3,4,16]", "f32[1,6,6,16] convolution(a, b), window={size=3x3}", "dim_labels"),
        ("f32[1,8,8,4] f32[3,3,4,16]", "f32[1,6,6,16] convolution(a, b), dim_labels=b01f_01io->b01f", "window"),
        ("f32[8] f32[]", "f32[6] reduce-window(a, b), to_apply=add", "window"),
        ("f32[8] f32[3]", "f32[8] select-and-scatter(a, b, c), select=add, scatter=add", "window"),
        ("c64[8] f32[]", "c64[8] fft(a)", "fft_length"),
    ],
)
def test_a_missing_attribute_leaves_the_flops_unknown(shapes: str, operation: str, missing: str) -> None:
    first, second = shapes.split()
    lines = (f"a = {first} parameter(0)", f"b = {second} parameter(1)", "c = f32[] constant(0)", f"ROOT r = {operation}")
    report = hlo_inspect.inspect(entry(*lines), "cost")
    assert report.facts["cost.flops"] is None
    assert any(f"r: its {missing} is not in the text" in note for note in report.notes)


def test_bytes_of_a_transpose_depend_on_its_dimensions() -> None:
    lines = ("a = f32[4,8]{1,0} parameter(0)", "ROOT t = f32[8,4]{0,1} transpose(a)")
    assert hlo_inspect.inspect(entry(*lines), "cost").facts["cost.bytes_accessed"] is None
    whole = entry(*lines).replace("transpose(a)", "transpose(a), dimensions={1,0}")
    assert hlo_inspect.inspect(whole, "cost").facts["cost.bytes_accessed"] == 0  # a bitcast


def test_bytes_of_a_fusion_with_a_gather_depend_on_its_kind() -> None:
    """As a kernel of its own it reads the 16 bytes that it gathers and 4 of indices, and writes 16."""
    fused = """f {
  t = f32[64,4] parameter(0)
  i = s32[1,1] parameter(1)
  ROOT g = f32[1,4] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, slice_sizes={1,4}
}

ENTRY"""
    lines = ("a = f32[64,4] parameter(0)", "b = s32[1,1] parameter(1)", "ROOT r = f32[1,4] fusion(a, b), kind=kCustom, calls=f")
    text = entry(*lines).replace("ENTRY", fused)
    assert hlo_inspect.inspect(text, "cost").facts["cost.bytes_accessed"] == 16 + 4 + 16
    assert hlo_inspect.inspect(text.replace(", kind=kCustom", ""), "cost").facts["cost.bytes_accessed"] is None


def test_one_finding_says_that_attributes_are_missing() -> None:
    products = [f'c.{n} = f32[4,4] dot(a, a), metadata={{op_name="c"}}' for n in range(30)]
    report = hlo_inspect.inspect(entry("a = f32[4,4] parameter(0)", *products, "ROOT z = f32[4,4] negate(a)"), "cost")
    (finding,) = [reported for reported in report.findings if reported.rule == "HI001"]
    assert finding.subject == "c.0"
    assert "lhs_contracting_dims" in finding.message
    assert "(30 times, first here)" in finding.message


def test_collectives_without_groups_run_between_unknown_devices() -> None:
    """Printers that write the layout of the entry write groups too, those of all devices as `{}`.

    The tiles of the sharding alone would be a mesh of one axis.
    """
    sharded = "a = f32[4] parameter(0), sharding={devices=[8]<=[8]}"
    bare = "ROOT r = f32[4] all-reduce(a), to_apply=add"
    printed = f"{bare}, channel_id=1, use_global_device_ids=true, replica_groups="
    results = {}
    for line in (bare, printed + "{{0,1},{2,3},{4,5},{6,7}}", printed + "{}"):
        report = hlo_inspect.inspect(entry(sharded, line), "collectives")
        sent = report.facts["collectives.wire_bytes"]
        results[line] = (report.facts["mesh.shape"], sent, [finding.rule for finding in report.findings])
    assert list(results.values()) == [(None, None, ["HI001"]), ("4x2", 16, []), ("8", 28, [])]
