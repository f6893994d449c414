"""Values of attributes: each kind by hand from XLA's grammar, and as XLA's own printer writes them."""

from __future__ import annotations

import math
from typing import Any, get_args

import pytest

from hlo_inspect.hlo import opcodes, values
from hlo_inspect.hlo.sharding import DeviceGroups, DevicePairs, Sharding
from hlo_inspect.hlo.values import (
    BackendConfig,
    ConvolutionLabels,
    MalformedValue,
    Metadata,
    PaddingDimension,
    SliceDimension,
    ValueTable,
    WindowDimension,
)


def read(name: str, text: str) -> Any:
    return ValueTable().read(name, text)


VALUES: list[tuple[str, str, object]] = [
    ("index", "3", 3),
    ("channel_id", "17", 17),
    ("delta", "-5", -5),
    ("lower", "true", True),
    ("is_stable", "false", False),
    ("epsilon", "1e-05", 1e-05),
    ("kind", "kLoop", "kLoop"),
    ("direction", "LT", "LT"),
    ("algorithm", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x3"),
    ("dimensions", "{0,1}", (0, 1)),
    ("dimensions", "{}", ()),
    ("dimensions", "{ 0 , /*index=1*/ 1 }", (0, 1)),
    ("iota_dimension", "1", 1),
    ("slice_sizes", "{1,128}", (1, 128)),
    ("slice_sizes", "{{1,8},{2,8}}", (1, 8, 2, 8)),  # of a permute in place
    ("custom_call_target", '"a\\"b\\\\c"', 'a"b\\c'),
    ("calls", "%fused.1", ("fused.1",)),
    ("calls", "fused.1", ("fused.1",)),
    ("branch_computations", "{%a, /*index=1*/b.2}", ("a", "b.2")),
    ("to_apply", "{ ROOT x = f32[] negate(y) }", ()),  # written in place, so that it has no name
    ("control-predecessors", "{%a, %b}", ("a", "b")),
    ("slice", "{[0:8:2], [1:3]}", (SliceDimension(0, 8, 2), SliceDimension(1, 3, 1))),
    ("slice", "{}", ()),
    ("padding", "0_0_0x3_-1_1", (PaddingDimension(0, 0, 0), PaddingDimension(3, -1, 1))),
    ("padding", "1_2", (PaddingDimension(1, 2, 0),)),
    ("window", "{size=3}", (WindowDimension(3),)),
    ("window", "{}", ()),
    (
        "window",
        "{size=3x2 stride=2x1 pad=0_1x-1_0 lhs_dilate=1x4 rhs_dilate=5x1 rhs_reversal=0x1}",
        (WindowDimension(3, 2, 0, 1, 5, 1), WindowDimension(2, 1, -1, 0, 1, 4, is_reversed=True)),
    ),
    ("dim_labels", "b01f_01io->b01f", ConvolutionLabels("b01f", "01io", "b01f")),
    ("dim_labels", "bf_io->bf", ConvolutionLabels("bf", "io", "bf")),
    ("metadata", "{}", Metadata()),
    (
        "metadata",
        '{op_type="add" op_name="jit(f)/a\\"b}, metadata={" source_file="/x.py" source_line=12 stack_frame_id=3}',
        Metadata('jit(f)/a"b}, metadata={', "add", "/x.py", 12, 3),
    ),
    ("metadata", '{op_name="a", preserve_layout=true, source_line=4}', Metadata("a", source_line=4)),
    ("frontend_attributes", '{a="b,}",xla.sdy.meshes={mesh = <["x"=2]>},_c="1"}',
     {"a": "b,}", "xla.sdy.meshes": '{mesh = <["x"=2]>}', "_c": "1"}),
    ("operand_precision", "{highest,default}", "{highest,default}"),
    ("literal", "s32[] 1", "s32[] 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "value"), VALUES)
def test_values(name: str, text: str, value: object) -> None:
    found = read(name, text)
    assert found == value
    assert type(found) is type(value)


def test_devices_are_values() -> None:
    assert isinstance(read("replica_groups", "[2,2]<=[4]"), DeviceGroups)
    assert isinstance(read("source_target_pairs", "{{0,1}}"), DevicePairs)
    assert isinstance(read("sharding", "{replicated}"), Sharding)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("nan", math.nan),
        ("-inf", -math.inf),
        (".5", 0.5),
        ("1.", 1.0),
    ],
)
def test_numbers(text: str, value: float) -> None:
    found = read("epsilon", text)
    assert found == value or (math.isnan(found) and math.isnan(value))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("index", "x", "expected an integer"),
        ("index", "1" * 5000, "expected an integer"),
        ("index", "\u0663", "expected an integer"),
        ("channel_id", "_", "expected an integer"),
        ("lower", "yes", "expected true or false"),
        ("dimensions", "{a}", "expected integers in braces"),
        ("dimensions", "{0", "expected integers in braces"),
        ("kind", '"kLoop"', "expected a word"),
        ("custom_call_target", "target", "expected a string"),
        ("calls", "{%a, 1}", "expected names"),
        ("slice", "{[0]}", "expected slices"),
        ("slice", "[0:1]", "expected a list in braces"),
        ("padding", "1x2", "expected padding"),
        ("window", "size=3", "expected a window"),
        ("window", "{size=3 pad=1x1}", "differ in dimensions"),
        ("window", "{size=3 pad=1_1_1}", "expected low and high padding"),
        ("dim_labels", "b01f", "expected labels"),
        ("replica_groups", "{0,1}", "no replica groups"),
        ("sharding", "{something}", "no sharding"),
        ("frontend_attributes", "{a}", "expected attributes"),
    ],
)
def test_what_is_no_value(name: str, text: str, reason: str) -> None:
    found = read(name, text)
    assert isinstance(found, MalformedValue)
    assert found.text == text
    assert reason in found.reason


@pytest.mark.parametrize(
    ("text", "fields", "fault"),
    [
        ('{"known_trip_count":{"n":"5"}}', {"known_trip_count": {"n": "5"}}, ""),
        ('"{\\"a\\": 1}"', {"a": 1}, ""),
        ('""', {}, ""),
        ('"{not json}"', {}, "it is no JSON"),
        ('"\\010\\002"', {}, "it is no JSON"),  # a serialized message
        ('"[1]"', {}, ""),
        ("{" + "[" * 100_000 + "}", {}, "it is no JSON"),
    ],
)
def test_backend_configs(text: str, fields: dict[str, object], fault: str) -> None:
    found = read("backend_config", text)
    assert isinstance(found, BackendConfig)
    assert (found.fields, found.fault) == (fields, fault)


def test_parts_of_a_backend_config() -> None:
    """Parts may be objects or JSON in strings, at any depth."""
    found = read("backend_config", '{"fingerprint":"x","inner":"{\\"flags\\":[{\\"is_sync\\":true}]}","other":{"n":"2"}}')
    assert found.member("other") == {"n": "2"}
    assert found.member("missing", "inner") == {"flags": [{"is_sync": True}]}
    assert found.member("fingerprint") == {}
    assert sum("is_sync" in part for part in found.objects()) == 1


def test_every_attribute_has_one_kind() -> None:
    """The table of opcodes names no attribute that has no kind, and no two kinds share an attribute."""
    kinds = [
        values.BooleanAttribute,
        values.IntegerAttribute,
        values.IntegersAttribute,
        values.WordAttribute,
        values.StringAttribute,
        values.CalleeAttribute,
        values.TextAttribute,
    ]
    names = [name for kind in kinds for name in get_args(kind)]
    assert len(set(names)) == len(names)
    own = {attribute for opcode in opcodes.TABLE.values() for attribute in opcode.attributes}
    known = set(values._READERS)
    assert own | set(opcodes.COMMON_ATTRIBUTES) <= known


def test_a_text_that_stands_often_is_read_once() -> None:
    table = ValueTable()
    assert table.read("sharding", "{devices=[2]<=[2]}") is table.read("sharding", "{devices=[2]<=[2]}")
    assert table.read("sharding", "{replicated}") is not ValueTable().read("sharding", "{replicated}")


def test_what_is_kept_has_a_bound() -> None:
    """Each of these groups has 2**18 devices: a few of them are kept at once, however many a text has."""
    table = ValueTable()
    for size in range(1, 20):
        table.read("replica_groups", f"[{1 << 18},1]<=[{1 << 18}] " + " " * size)
    assert len(table._known) <= 16
