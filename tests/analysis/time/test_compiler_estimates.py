"""The compiler's own estimates in `backend_config`: which are read, and which are none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.time.kernel_times import NO_ESTIMATE, CompilerEstimate, compiler_estimate
from hlo_inspect.hlo.wants import Wants

WINDOW = '"window_config":{"output_window_bounds":["1","4"],"estimated_cycles":%s,"iteration_bounds":["2","3"]}'
GPU = '"operation_queue_id":"0","reification_cost":[%s]'


@pytest.fixture
def estimate(entry: Callable[..., Context]) -> Callable[[str, str], CompilerEstimate]:
    """Return `estimate(config, opcode)`: the compiler's estimate of an instruction with this configuration."""

    def estimate_of(config: str, opcode: str = "negate") -> CompilerEstimate:
        context = entry(
            "%p = f32[8]{0} parameter(0)",
            f"ROOT %x = f32[8]{{0}} {opcode}(%p), backend_config={config}",
            wants=Wants(graph=True),
        )
        return compiler_estimate(context.views.for_computation("main"), 1)

    return estimate_of


Estimate = Callable[..., CompilerEstimate]


@pytest.mark.parametrize("written", ['"1870"', "1870"])
def test_cycles_of_a_tpu(written: str, estimate: Estimate) -> None:
    """Protos print integers of 64 bits as strings; 1,870 cycles at 1.5 GHz."""
    stated = estimate("{" + WINDOW % written + "}")
    assert stated == CompilerEstimate(1870, None)
    assert stated.in_seconds(1.5e9) == pytest.approx(1870 / 1.5e9)
    assert stated.in_seconds(None) is None


def test_a_copy_whose_grid_has_a_hundred_cycles_a_step_was_not_estimated(estimate: Estimate) -> None:
    """Two by three steps: 600 cycles stand for nothing, of a copy only."""
    assert estimate("{" + WINDOW % '"600"' + "}", "copy") == NO_ESTIMATE
    assert estimate("{" + WINDOW % '"601"' + "}", "copy") == CompilerEstimate(601, None)
    assert estimate("{" + WINDOW % '"600"' + "}", "negate") == CompilerEstimate(600, None)


@pytest.mark.parametrize("written", ['"9223372036854775807"', '"-1"', '""', "null", "[1]", '"1e9"', '"' + "9" * 5000 + '"'])
def test_malformed_cycles_are_no_estimate(written: str, estimate: Estimate) -> None:
    """XLA prints the largest integer of 64 bits if it has no estimate, as of kernels on the sparse cores of a v6e."""
    assert estimate("{" + WINDOW % written + "}") == NO_ESTIMATE


def test_time_of_a_gpu(estimate: Estimate) -> None:
    """The first entry that says something: a collective's has microseconds alone."""
    stated = '{"end_to_end_cycles":3510.5,"exec_time_us":2.5,"compute_time_us":1,"memory_access_time_us":2,"name":"x"}'
    assert estimate("{" + GPU % f'{{"name":"empty"}},{stated}' + "}") == CompilerEstimate(3510, 2.5e-6)
    assert estimate("{" + GPU % '{"exec_time_us":7}' + "}") == CompilerEstimate(None, 7e-6)
    assert estimate("{" + GPU % '{"exec_time_us":7}' + "}").in_seconds(None) == 7e-6


@pytest.mark.parametrize("entries", ["", '{"exec_time_us":-1}', '{"exec_time_us":"soon"}', '{"exec_time_us":NaN}', "3"])
def test_a_gpu_without_an_estimate(entries: str, estimate: Estimate) -> None:
    assert estimate("{" + GPU % entries + "}") == NO_ESTIMATE


@pytest.mark.parametrize(
    "config", ["{}", '"estimated_cycles"', '{"estimated_cycles":"5"}', '{"window_config":["estimated_cycles"]}']
)
def test_configurations_of_another_form(config: str, estimate: Estimate) -> None:
    assert estimate(config) == NO_ESTIMATE
