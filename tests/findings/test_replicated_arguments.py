"""HI104 without training: weights that are only read, and batches. A matrix f32[4096,4096] has 64 MiB."""

from __future__ import annotations

import pytest

import hlo_inspect
from hlo_inspect.report.model import Finding

MIB = 1 << 20
WHOLE, ROWS, COLUMNS = "{replicated}", "{devices=[8,1]<=[8]}", "{devices=[1,8]<=[8]}"

# global shapes, before partitioning: a division by 8 leaves 8 of 64 MiB on each device
FORWARD = """HloModule infer, num_partitions=8

ENTRY main {{
  a = f32[4096,4096]{{1,0}} parameter(0), sharding={a}, metadata={{op_name="{names[0]}"}}
  b = f32[4096,4096]{{1,0}} parameter(1), sharding={b}, metadata={{op_name="{names[1]}"}}
  x = f32[64,4096]{{1,0}} parameter(2), sharding={x}, metadata={{op_name="x"}}
  h = f32[64,4096]{{1,0}} dot(x, a), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  r = f32[64,4096]{{1,0}} tanh(h)
  ROOT y = f32[64,4096]{{1,0}} dot(r, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
WEIGHTS = ("params['up']", "params['down']")


def found(a: str, b: str, x: str = WHOLE, names: tuple[str, str] = WEIGHTS, shape: str = "") -> list[Finding]:
    text = FORWARD.format(a=a, b=b, x=x, names=names)
    text = text.replace("b = f32[4096,4096]{1,0}", f"b = {shape}") if shape else text
    return [finding for finding in hlo_inspect.inspect(text, "findings").findings if finding.rule == "HI104"]


def test_a_weight_of_a_program_that_does_not_train() -> None:
    (finding,) = found(COLUMNS, WHOLE)
    assert (finding.subject, finding.stake, finding.severity) == ("b", 56 * MIB, "warning")
    assert (
        finding.message == "params['down'] is replicated; sharded over 8 devices like other arrays of params it saves 56.0 MiB"
    )


@pytest.mark.parametrize(
    ("a", "b", "x", "names"),
    [
        (COLUMNS, ROWS, WHOLE, WEIGHTS),
        (WHOLE, WHOLE, ROWS, WEIGHTS),  # data parallelism: the batch is another argument
        (COLUMNS, WHOLE, WHOLE, ("cache", "weight")),  # two arguments
        (COLUMNS, WHOLE, WHOLE, ("", "")),  # names of arguments are unknown
    ],
)
def test_silent_twins(a: str, b: str, x: str, names: tuple[str, str]) -> None:
    assert found(a, b, x, names) == []


def test_small_arrays_and_vectors_are_silent() -> None:
    assert found(COLUMNS, WHOLE, shape="f32[1024,1024]{1,0}") == []  # 3.5 MiB
    assert found(COLUMNS, "{replicated}", shape="f32[16777216]{0}") == []
    (finding,) = found("{replicated}", ROWS, names=("batch['tokens']", "batch['mask']"))
    assert (finding.subject, finding.stake) == ("a", 56 * MIB)
