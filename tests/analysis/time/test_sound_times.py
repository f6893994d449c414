"""No time is shorter than a machine can be: of all scheduled dumps, on the profiles that fit them."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context, ParsedOptions
from hlo_inspect.analysis.hardware import HardwareProfile, load_profile, profile_names
from hlo_inspect.analysis.time.profile_choice import MachineOptions
from hlo_inspect.figure import greatest, least
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.passes.time.time_tables import time_parts
from tests.conftest import EVERYTHING

DATA = Path(__file__).parents[2] / "data"
SHARED = Path(__file__).parents[4] / "shared" / "dumps"
MOST_CHARACTERS = 100_000
ROUNDING = 1 + 1e-9


def scheduled_contexts(folder: Path, step: int) -> Iterator[Context]:
    """Yield the scheduled modules of each `step`-th file below a folder, on the profiles that fit them, which take turns."""
    profiles = [load_profile(name) for name in profile_names()]
    turns = {is_tpu: cycle([profile for profile in profiles if profile.is_tpu == is_tpu]) for is_tpu in (False, True)}
    for path in sorted(folder.rglob("*"))[::step]:
        if path.suffix not in {".txt", ".hlo", ".xz"} or ".tar" in path.suffixes or not path.is_file():
            continue
        data = path.read_bytes()
        if len(data) > MOST_CHARACTERS:
            continue
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode(errors="replace")
        if "is_scheduled=true" not in text or len(text) > MOST_CHARACTERS:
            continue
        for module in read_modules(open_source(path), EVERYTHING):
            if module.header.is_scheduled and module.entry is not None:
                profile = next(turns[":T(" in text])
                yield Context(module, options=ParsedOptions(MachineOptions((profile,))))


def faults_of_kernels(context: Context) -> Iterator[str]:
    """Yield kernels and collectives whose estimate is below their bound."""
    times = context.on_machine.kernel_times
    assert times is not None
    for kernel in context.own_kernels:
        time = times.for_kernel(kernel)
        if time.estimate_s < time.bound_s:
            yield f"the estimate of {kernel.name} is below its bound"
    for collective, time_of in zip(context.collectives, context.on_machine.collective_times, strict=True):
        if time_of.estimate_s is not None and time_of.estimate_s < (time_of.bound_s or 0.0):
            yield f"the estimate of {collective.start.name} is below its bound"


def faults_of_step(context: Context) -> Iterator[str]:
    """Yield resources that are busy for longer than the step, and parts that do not add up to it."""
    machine = context.on_machine
    step, timelines = machine.step_times, machine.timelines
    assert step is not None
    assert timelines is not None
    likely = least(step.estimate_step)
    if likely * ROUNDING < least(step.step):
        yield "the estimate of the step is below its bound"
    for resource, seconds in machine.busy.items():
        if least(seconds) > least(step.step) * ROUNDING:
            yield f"{resource} is busy for longer than the step"
    if max(map(least, (step.compute, step.memory, step.collectives))) > least(step.step) * ROUNDING:
        yield "FLOPs, bytes or collectives alone take longer than the step"
    for exposed, whole in ((step.exposed, step.step), (step.estimate_exposed, step.estimate_step)):
        limit = greatest(exposed)
        if limit is not None and not 0 <= least(exposed) <= limit <= least(whole) * ROUNDING:
            yield "collectives are exposed for longer than the step"
    parts = time_parts(context)
    if any(min(least(part.bound), least(part.estimate), least(part.fixed)) < 0 for part in parts):
        yield "a part is negative"
    if sum(least(part.bound) for part in parts) != pytest.approx(least(step.step), rel=1e-6):
        yield "bounds of the parts do not add up to the step"
    if sum(least(part.estimate) for part in parts) != pytest.approx(likely, rel=1e-6):
        yield "estimates of the parts do not add up to the step"


@pytest.mark.parametrize(("folder", "step", "count"), [(DATA, 1, 200), *(((SHARED, 4, 40),) if SHARED.is_dir() else ())])
def test_no_time_is_shorter_than_a_machine_can_be(folder: Path, step: int, count: int) -> None:
    """There are 11,100 pairs of a dump and a profile; each run tries the same part of them."""
    faults, tried = [], 0
    for context in scheduled_contexts(folder, step):
        tried += 1
        profile = context.on_machine.profile
        assert isinstance(profile, HardwareProfile)
        place = f"{context.module.header.name} on {profile.name}"
        faults += [f"{place}: {fault}" for faults_of in (faults_of_kernels, faults_of_step) for fault in faults_of(context)]
    assert faults == []
    assert tried > count
