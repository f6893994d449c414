"""Constants that HLO text elides, and weak types, from StableHLO."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo.settings.stablehlo import parse_stablehlo
from tests.linear_time import assert_linear

TEXT = """\
module @jit_f {
  func.func public @main(%arg0: tensor<11xf32>, %arg1: tensor<f32>) -> tensor<11xf32> {
    %cst = stablehlo.constant dense<"0xE9F1"> : tensor<4x3xf32> loc(#loc1)
    %c = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %c_0 = stablehlo.constant {a = "dense"} dense<[[true, true, true, true], [true, false]]> : tensor<3x4xi1>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<4000xf32>
    %cst_2 = stablehlo.constant dense<"0x00"> : tensor<40xcomplex<f32>>
    %0 = stablehlo.convert %arg1 : tensor<f32> loc(#loc2)
    %1 = stablehlo.convert %0 : (tensor<f32>) -> tensor<bf16>
    %2 = stablehlo.convert %1 : (tensor<bf16>) -> tensor<bf16>
    %3 = call @g(%arg3, %arg2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  }
  func.func private @f(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = func.call @f(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  }
  func.func private @g(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = call @f(%arg1, %arg0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
"""


def test_large_constants_and_converts_of_one_type_in_called_functions_too() -> None:
    parsed = parse_stablehlo(TEXT)
    assert [(constant.dimensions, constant.element_type) for constant in parsed.constants] == [
        ((4, 3), "f32"),
        ((3, 4), "i1"),
        ((40,), "complex<f32>"),
    ]
    assert list(map(tuple, parsed.weak_values)) == [("main", "%arg1"), ("main", "%1"), ("f", "%arg1")]
    assert parsed.weak_arguments == {1, 3}


def test_other_values_have_another_digest() -> None:
    digests = [parse_stablehlo(text).constants[0].digest for text in (TEXT, TEXT, TEXT.replace("0xE9F1", "0xE9F2"))]
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize(
    "line", ["stablehlo.constant dense<", "stablehlo.constant {} ", "stablehlo.convert (tensor<", "stablehlo.convert %a : "]
)
def test_texts_are_read_in_linear_time(line: str) -> None:
    def parse(count: int) -> None:
        parse_stablehlo(line * count)

    assert_linear(parse, 4000)
