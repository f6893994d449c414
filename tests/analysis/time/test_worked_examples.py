"""Timelines of compiled programs, worked out by hand.

Durations are those of sent bytes alone and of a plain roofline, or of the compiler's own cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.analysis.collectives.logical_collectives import Collective
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.kernels import Kernel
from hlo_inspect.analysis.time.program_steps import IssuedWork, IssueStep, LoopStep, Step, issued_work
from hlo_inspect.analysis.time.timeline import InstructionTimes, Timeline
from hlo_inspect.graph.calls import place
from hlo_inspect.graph.view import InstructionPlace
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.cost import Cost

SHARED = Path(__file__).parents[4] / "shared" / "dumps"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="without the folder of shared dumps")

H100 = {
    "matmul.bf16": 989.4e12,
    "matmul.tf32": 494.7e12,
    "matmul.f32": 494.7e12,
    "vector.f32": 66.9e12,
    "vector.bf16": 133.8e12,
}
A100 = {"matmul.bf16": 312e12, "matmul.f32": 156e12, "vector.f32": 19.5e12, "vector.bf16": 78e12}


def program_of(name: str) -> tuple[Context, IssuedWork]:
    (module,) = read_modules(open_source(SHARED / f"{name}.opt.hlo.txt.xz"), Cost.wants)
    context = Context(module)
    return context, issued_work(module, context.views, context.call_graph, context.kernels, context.collectives, in_order=True)


def roofline(rates: dict[str, float], bandwidth: float) -> Callable[[Kernel], float]:
    def seconds(kernel: Kernel) -> float:
        cost = kernel.parts[0].cost
        compute = sum(row[0] / rates[key.unit] for key, row in cost.work.rows.items() if row[0] and key.unit in rates)
        return max(compute, sum(size for _, size in kernel.moved) / bandwidth)

    return seconds


def cycles(kernel: Kernel) -> float:
    """Return the compiler's estimate at 1.5 GHz; a kernel without one takes its bytes at 819 GB/s."""
    config = kernel.instruction.attr("backend_config")
    stated = [part["estimated_cycles"] for part in config.objects() if "estimated_cycles" in part] if config else []
    return int(str(stated[0])) / 1.5e9 if stated else sum(size for _, size in kernel.moved) / 819e9


def one_stream(context: Context, collective: Collective) -> Sequence[str]:
    return ("collectives",)


def timeline(
    name: str,
    kernel_s: Callable[[Kernel], float],
    link: float,
    streams: Callable[[Context, Collective], Sequence[str]] = one_stream,
    change: Callable[[IssuedWork], IssuedWork] = lambda work: work,
) -> tuple[Context, Timeline]:
    context, work = program_of(name)
    work = change(work)

    def seconds(position: InstructionPlace) -> float:
        collective = work.collectives.get(position)
        if collective is None:
            return 0.0 if position in work.streams else kernel_s(work.kernels[position])
        return (collective.wire_bytes or 0) / link

    def streams_of(position: InstructionPlace) -> Sequence[str]:
        return streams(context, work.collectives[position]) if position in work.collectives else work.streams[position]

    return context, Timeline(work.program, seconds, streams_of)


def axes(context: Context, collective: Collective) -> Sequence[str]:
    axis = context.axes[context.collectives.index(collective)]
    return tuple((axis or "none").split(","))


def figures(context: Context, result: Timeline) -> tuple[float, float, float, int]:
    """Return the step, the exposed part and the time of collectives in microseconds, and the number of their runs."""
    sites = [result.site(place(collective.start)) for collective in context.collectives]
    return (
        result.step * 1e6,
        sum(site.exposed for site in sites) * 1e6,
        sum(site.busy for site in sites) * 1e6,
        sum(site.runs for site in sites),
    )


def site(context: Context, steps: Timeline, name: str) -> InstructionTimes:
    (collective,) = (collective_of_text for collective_of_text in context.collectives if collective_of_text.start.name == name)
    return steps.site(place(collective.start))


def near(value: float) -> Any:
    """Compare with 0.1 % tolerance."""
    return pytest.approx(value, rel=1e-3)


def about(value: float, error: float) -> Any:
    """Compare with a number of which fewer digits are stated."""
    return pytest.approx(value, abs=error)


def one_iteration(work: IssuedWork) -> IssuedWork:
    """Return the program with each loop run once."""
    steps = {
        name: [step._replace(trips=1) if isinstance(step, LoopStep) else step for step in body]
        for name, body in work.program.steps.items()
    }
    return work._replace(program=work.program._replace(steps=steps))


def test_a_short_program_with_a_synchronous_all_to_all() -> None:
    context, result = timeline("gpu_h100x8/moe_ep_alltoall", roofline(H100, 3352e9), 450e9)
    assert figures(context, result) == (near(6.10), near(0.138), near(0.414), 4)
    assert result.compute * 1e6 == near(5.96)
    second = site(context, result, "all-to-all-start.2")
    assert (second.window * 1e6, second.exposed * 1e6) == (near(0.1168), about(0.0106, 1e-4))
    assert site(context, result, "all-to-all-start").exposed == 0
    assert site(context, result, "all-to-all-start.1").exposed * 1e6 == near(0.1274)


def test_b_collectives_in_two_loops() -> None:
    context, result = timeline("gpu_h100x8/tf_dptp_scan", roofline(H100, 3352e9), 450e9)
    assert figures(context, result) == (near(169.09), near(12.85), near(21.87), 27)
    assert result.compute * 1e6 == near(156.24)
    in_loop = site(context, result, "all-reduce-start.4")
    assert (in_loop.runs, in_loop.window * 1e6 / 4, in_loop.exposed * 1e6) == (4, near(0.5118), near(11.060))
    assert site(context, result, "all-reduce-start.10").exposed * 1e6 == near(1.788)


def test_c_gathered_and_scattered_at_once() -> None:
    context, result = timeline("gpu_h100x8/tf_fsdp_unroll", roofline(H100, 3352e9), 450e9)
    step, exposed, _, _ = figures(context, result)
    assert (step, exposed, result.compute * 1e6) == (near(120.85), near(34.28), near(86.57))
    scattered = site(context, result, "reduce-scatter-start")
    assert (scattered.window * 1e6, scattered.exposed * 1e6) == (near(0.515), near(16.816))


def test_d_collectives_that_are_in_flight_together() -> None:
    """With one stream for all, as GPUs have, and with one for each mesh axis."""
    name, kernels = "timeline/gpu_a100_2x8_collective_zoo", roofline(A100, 2039e9)
    context, result = timeline(name, kernels, 300e9)
    assert figures(context, result) == (near(16.703), near(13.624), near(14.363), 12)
    context, result = timeline(name, kernels, 300e9, axes)
    assert figures(context, result)[:2] == (near(15.502), near(12.423))
    assert site(context, result, "all-gather-start.1").exposed * 1e6 == near(10.303)
    queued = site(context, result, "reduce-scatter-start.1")
    assert (queued.busy * 1e6, queued.exposed * 1e6) == (near(0.1092), near(1.738))


def test_e_asynchronous_fusions_of_a_tpu() -> None:
    context, result = timeline("tpu_v5e_2x4/tf_fsdp_scan", cycles, 45e9, axes)
    assert figures(context, result) == (near(990.94), near(302.09), near(502.34), 67)
    assert result.compute * 1e6 == near(688.84)
    hidden, late = site(context, result, "async-collective-start.3"), site(context, result, "async-collective-start.4")
    assert (hidden.window * 1e6 / 4, hidden.exposed) == (near(12.607), 0)
    assert (late.window * 1e6 / 4, late.exposed * 1e6 / 4) == (near(5.076), near(5.118))
    assert site(context, result, "all-gather.280").exposed * 1e6 / 4 == near(10.194)
    assert site(context, result, "fusion.517").exposed * 1e6 / 4 == near(38.229)


def test_f_permutes_that_are_hidden_and_an_all_reduce_that_is_not() -> None:
    """The ring goes round once, as the example takes it; the program goes round eight times."""
    name = "timeline/tpu_v5e_2x4_ring_attention_ppermute"
    context, result = timeline(name, cycles, 45e9, axes, one_iteration)
    permutes = [result.site(place(permute.start)) for permute in context.collectives if permute.kind == "collective-permute"]
    assert [(permute.busy * 1e6, permute.exposed) for permute in permutes] == [(near(0.728), 0)] * 4
    assert min(permute.window for permute in permutes) * 1e6 == about(2.9, 0.05)
    assert max(permute.window for permute in permutes) * 1e6 == about(19.1, 0.05)
    assert result.step * 1e6 == near(52.29)
    context, result = timeline(name, cycles, 45e9, axes)
    assert sum(result.site(place(permute.start)).runs for permute in context.collectives) == 33

    context, result = timeline("timeline/tpu_v5e_2x4_ddp_bucketed_psum_shardmap", cycles, 45e9, axes)
    assert figures(context, result)[:3] == (near(345.27), near(265.40), near(265.40))
    assert result.compute * 1e6 == near(79.88)
    context, result = timeline("gpu_h100x8/ddp_bucketed_psum_shardmap", roofline(H100, 3352e9), 450e9)
    assert (result.compute * 1e6, figures(context, result)[1], result.step * 1e6) == (near(30.43), near(26.54), near(56.97))


@pytest.mark.parametrize("name", ["gpu_h100x8/tf_dptp_scan", "tpu_v5e_2x4/tf_fsdp_scan", "cpu/pipeline_ppermute"])
def test_a_step_is_its_compute_and_its_exposed_time(name: str) -> None:
    context, result = timeline(name, cycles, 45e9, axes)
    exposed = sum(result.site(step.place).exposed for steps in result.program.steps.values() for step in issues(steps))
    assert result.step == pytest.approx(result.compute + exposed, rel=1e-12)
    compute = sum(
        result.runs(place(kernel.instruction)) * cycles(kernel)
        for kernel in context.own_kernels
        if kernel.instruction.opcode != "copy-start"
    )
    if "tpu" not in name:  # fusions that wait are no kernels
        assert result.compute == pytest.approx(compute, rel=1e-9)


def issues(steps: Iterable[Step]) -> Iterator[IssueStep]:
    return (step for step in steps if isinstance(step, IssueStep))
