"""Values of attributes: each kind by hand from XLA's grammar, and as XLA's own printer writes them."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any, get_args

import pytest

from hlo_inspect.hlo import opcodes
from hlo_inspect.hlo.values import attributes as values
from hlo_inspect.hlo.values.attributes import (
    BackendConfig,
    ConvolutionLabels,
    MalformedValue,
    Metadata,
    PaddingDimension,
    SliceDimension,
    ValueTable,
    WindowDimension,
)
from hlo_inspect.hlo.values.device_groups import DeviceGroups, DevicePairs
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import body, module


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
    ("slice_sizes", "{{1,8},{2,8}}", (1, 8, 2, 8)),  # in-place collective-permute
    ("custom_call_target", '"a\\"b\\\\c"', 'a"b\\c'),
    ("calls", "%fused.1", ("fused.1",)),
    ("calls", "fused.1", ("fused.1",)),
    ("branch_computations", "{%a, /*index=1*/b.2}", ("a", "b.2")),
    ("to_apply", "{ ROOT x = f32[] negate(y) }", ()),  # inline, so it has no name
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
def test_values_of_each_kind_of_attribute(name: str, text: str, value: object) -> None:
    result = read(name, text)
    assert result == value
    assert type(result) is type(value)


def test_device_lists_and_shardings_are_values() -> None:
    assert isinstance(read("replica_groups", "[2,2]<=[4]"), DeviceGroups)
    assert read("replica_groups", "{{0,1},/*index=1*/{2,3}}").groups == ((0, 1), (2, 3))
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
def test_special_numbers(text: str, value: float) -> None:
    result = read("epsilon", text)
    assert result == value or (math.isnan(result) and math.isnan(value))


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
        ("slice", "[0:1]", "expected slices"),
        ("padding", "1x2", "expected padding"),
        ("window", "size=3", "expected a window"),
        ("window", "{size=3 pad=1_1x1_1}", "differ in their number of dimensions"),
        ("window", "{size=3 pad=1_1_1}", "expected a window"),
        ("dim_labels", "b01f", "expected labels"),
        ("replica_groups", "{0,1}", "not replica groups"),
        ("sharding", "{something}", "not a sharding"),
        ("frontend_attributes", "{a}", "expected attributes"),
    ],
)
def test_an_unreadable_value_has_a_reason(name: str, text: str, reason: str) -> None:
    value = read(name, text)
    assert isinstance(value, MalformedValue)
    assert value.text == text
    assert reason in value.reason


@pytest.mark.parametrize(
    ("text", "fields", "fault"),
    [
        ('{"known_trip_count":{"n":"5"}}', {"known_trip_count": {"n": "5"}}, ""),
        ('"{\\"a\\": 1}"', {"a": 1}, ""),
        ('""', {}, ""),
        ('"{not json}"', {}, "it is not JSON"),
        ('"\\010\\002"', {}, "it is not JSON"),  # a serialized message
        ('"[1]"', {}, ""),
        ("{" + "[" * 100_000 + "}", {}, "it is not JSON"),
    ],
)
def test_backend_configs(text: str, fields: dict[str, object], fault: str) -> None:
    value = read("backend_config", text)
    assert isinstance(value, BackendConfig)
    assert (value.fields, value.fault) == (fields, fault)


def test_parts_of_a_backend_config() -> None:
    """Parts may be objects or JSON in strings, at any depth."""
    value = read("backend_config", '{"fingerprint":"x","inner":"{\\"flags\\":[{\\"is_sync\\":true}]}","other":{"n":"2"}}')
    assert value.member("other") == {"n": "2"}
    assert value.member("missing", "inner") == {"flags": [{"is_sync": True}]}
    assert value.member("fingerprint") == {}
    assert sum("is_sync" in part for part in value.objects()) == 1


OF_INSTRUCTIONS = """
    algorithm api_version async_execution_thread backend_config batch_group_count body branch_computations
    called_computations calls channel_id collapsed_slice_dims condition constrain_layout control-predecessors
    convolution_kind cross_program_prefetch_index custom_call_has_side_effect custom_call_target delta dim_labels
    dimensions direction distribution domain dynamic_slice_sizes epsilon exponent_bits false_computation
    feature_group_count feature_index fft_length fft_type frontend_attributes index index_vector_dim indices_are_sorted
    infeed_config inferred_dimension input_batching_dims inserted_window_dims iota_dimension is_associative is_composite
    is_host_transfer is_reverse is_stable k kind largest lhs_batch_dims lhs_contracting_dims lhs_ragged_dims literal
    mantissa_bits metadata mode num_carries offset_dims operand_batching_dims operand_layout_constraints
    operand_precision origin outfeed_config outfeed_shape output_to_operand_aliasing padding padding_type
    parameter_replication replica_groups result_accuracy rhs_batch_dims rhs_contracting_dims rhs_group_dims scatter
    scatter_dims_to_operand_dims scatter_indices_batching_dims schedule select sharding slice slice_sizes
    source_target_pairs sparsity_config start_index_map start_indices_batching_dims statistics to_apply true_computation
    type unique_indices update_window_dims use_global_device_ids window
"""
"""The attributes of instructions in `HloParserImpl` (xla/hlo/parser/hlo_parser.cc)."""


def test_every_attribute_has_one_kind() -> None:
    """The list holds all attributes of instructions that XLA's parser reads."""
    kinds = [
        values.BooleanAttribute,
        values.IntegerAttribute,
        values.IntegersAttribute,
        values.WordAttribute,
        values.StringAttribute,
        opcodes.CalleeAttribute,
        values.TextAttribute,
    ]
    names = [name for kind in kinds for name in get_args(kind)]
    assert len(set(names)) == len(names)
    assert set(OF_INSTRUCTIONS.split()) <= set(values._KINDS)


def test_a_repeated_text_is_read_once() -> None:
    table = ValueTable()
    assert table.read("sharding", "{devices=[2]<=[2]}") is table.read("sharding", "{devices=[2]<=[2]}")
    assert table.read("sharding", "{replicated}") is not ValueTable().read("sharding", "{replicated}")


def test_kept_groups_are_limited() -> None:
    """Each of these lists has 2**18 devices, so only a few are kept at once."""
    table = ValueTable()
    for size in range(1, 20):
        table.read("replica_groups", f"[{1 << 18},1]<=[{1 << 18}] " + " " * size)
    assert len(table._known) <= 16


# -- as XLA's printer writes them -------------------------------------------------------------------------------------------

MODULE = """HloModule values, num_partitions=4

%sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }

%half { a = f32[4,8]{1,0} parameter(0)
  ROOT c = f32[4,8]{1,0} negate(a) }

%go { s = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT l = pred[] compare(i, n), direction=LT }

%step { s = (s32[], f32[4,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[4,8]) tuple(next, x) }

ENTRY %main {
  p = f32[4,8]{1,0} parameter(0), sharding={devices=[2, 1, 2]<=[2,2]T(1,0) last_tile_dim_replicate}
  q = (f32[8,16], f32[4]) parameter(1), sharding={{ devices=[1,4]0, 1,2,3 }, /*index=1*/ {replicated}}
  k = f32[8,16] get-tuple-element(q), index=0
  zero = f32[] constant(0)
  dot = f32[4,16] dot(p, k), lhs_contracting_dims={ 1 }, rhs_contracting_dims={0}, operand_precision={highest,default}
  listed = f32[4,16] all-reduce(dot), channel_id=7, replica_groups={ {0, 1}, {2, 3} }, use_global_device_ids=true, to_apply=sum
  iota = f32[8,16] all-gather(dot), channel_id=8, replica_groups=[2,2]<=[2,2]T(1,0), dimensions={ 0 }
  all = f32[4,16] all-reduce(listed), replica_groups={}, to_apply=sum
  sent = f32[4,16] collective-permute(all), channel_id=9, source_target_pairs={ {0, 1}, {1, 0} }
  cut = f32[2,8] slice(sent), slice={ [0:4:2], [0:8] }
  pad = f32[6,8] pad(cut, zero), padding=0_0_2x0_0
  image = f32[1,6,8,1] reshape(pad)
  filter = f32[3,3,1,2] broadcast(zero), dimensions={}
  conv = f32[1,3,7,2] convolution(image, filter), window={ pad=1_1x0_1 size=3x3 stride=2x1 }, dim_labels=b01f_01io->b01f
  window = f32[1,3,5,2] reduce-window(conv, zero), window={size=1x1x3x1}, to_apply=sum
  call = f32[4] custom-call(p), custom_call_target="a\\"b", backend_config={ "n": ["2"] }, api_version=API_VERSION_TYPED_FFI
  quoted = f32[4] custom-call(p), custom_call_target='b', backend_config="{\\"known\\": 2}", custom_call_has_side_effect=true
  fused = f32[4,8] fusion(p), kind=kLoop, calls=half, metadata={ op_name="x/y" source_line=3, source_file="f.py" }
  start = (s32[], f32[4,8]) tuple(s32[] constant(0), fused), frontend_attributes={ a="1", b={c=2} }
  ROOT loop = (s32[], f32[4,8]) while(start), body=step, condition=go
}
"""
PRINT = """
import sys
from importlib import import_module
print(import_module("jaxlib._hlo").hlo_module_from_text(sys.stdin.read()).to_string())
"""


def all_values(text: str) -> dict[tuple[str, str], object]:
    """Return the value of each attribute of each instruction by the instruction's and the attribute's name."""
    parsed = module(text, Wants(graph=True))
    assert parsed.unparsed_lines == 0
    instructions = [instruction for computation in parsed.computations.values() for instruction in body(computation)]
    names: list[Any] = list(values._KINDS)
    cached: dict[tuple[str, str], Any] = {(i.name, name): i.attr(name) for i in instructions for name in names}
    assert not [name for instruction in instructions for name in names if isinstance(instruction.value(name), MalformedValue)]
    return {key: _comparable(value) for key, value in cached.items() if value is not None and value != ()}


def _comparable(value: object) -> object:
    """Return a value without its text, in which the two may differ."""
    if isinstance(value, DeviceGroups):
        return value.groups
    if isinstance(value, DevicePairs):
        return value.pairs
    if isinstance(value, Sharding):
        elements = [_comparable(element) for element in value.elements]
        return value.kind, elements, value.tile_sizes, value.subgroups, tuple(value.device_lines())
    return value.fields if isinstance(value, BackendConfig) else value


def test_values_stay_the_same_in_the_text_that_xla_prints() -> None:
    pytest.importorskip("jaxlib")
    ran = subprocess.run([sys.executable, "-c", PRINT], input=MODULE, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    ours, printed = all_values(MODULE), all_values(ran.stdout)
    assert {key: printed.get(key) for key in ours} == ours
    assert len(ours) > 35
