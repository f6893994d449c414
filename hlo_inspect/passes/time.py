"""Where the time of a step goes, at least and by a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import ClassVar

from hlo_inspect.analysis.collectives import KERNEL_WANTS
from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.phases import phases
from hlo_inspect.passes.base import Pass
from hlo_inspect.passes.time_page import time_headline, time_tables
from hlo_inspect.passes.time_tables import time_parts
from hlo_inspect.report.model import Section


class Time(Pass):
    """Where the time of a step goes: compute, memory, exposed communication, and the bottleneck.

    Two numbers, never mixed. The bound: nothing can be faster than FLOPs at the dense peak, bytes at the memory bandwidth,
    wire bytes over the links. The estimate is a model: a fixed cost of each kernel, tiles, what kernels and links reach,
    latencies. Of a scheduled text both are put on a timeline: kernels one after the other in the order of the schedule,
    collectives and copies on streams beside them. What of a collective is not over when its result is needed is exposed; the
    step is the kernels and what is exposed. Loops run as often as they do, of a conditional the branch that ends first at
    least, and the one that ends last by the model. A step is one run of the program on one device.

    Without a schedule it is not known what is hidden: the step takes at least the longest of all FLOPs, all bytes and all
    collectives.

    `--format perfetto` writes the timeline by the model as a trace, which ui.perfetto.dev and chrome://tracing open.
    """

    name = "time"
    includes = ("cost",)
    asks_phases = True
    compares_profiles = True
    formats = ("perfetto",)
    passes_of_formats: ClassVar[Mapping[str, str]] = {"perfetto": "time-events"}
    wants = KERNEL_WANTS | phases.WANTS
    specs = ()

    def run(self, context: Context) -> Section:
        parts_of = cache(partial(time_parts, context))  # tables and first lines are made where they are shown
        return Section({}, time_tables(context, parts_of), [], time_headline(context, parts_of))
