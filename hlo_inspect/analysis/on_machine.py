"""What of a module depends on the machine that it runs on, each worked out when first asked for: the profile, and all times."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol
from weakref import proxy

from hlo_inspect.graph.calls import CallGraph, InstructionPlace, place

if TYPE_CHECKING:
    from hlo_inspect.analysis.collectives import Collective
    from hlo_inspect.analysis.cost.kernels import Kernel, Kernels
    from hlo_inspect.analysis.cost.module_cost import ModuleCost
    from hlo_inspect.analysis.cost.roofline import Seconds
    from hlo_inspect.analysis.devices import DeviceCounts, ShapesAre
    from hlo_inspect.analysis.hardware import HardwareProfile
    from hlo_inspect.analysis.time.collective_times import CollectiveTime
    from hlo_inspect.analysis.time.kernel_costings import Costing
    from hlo_inspect.analysis.time.kernel_times import KernelTimes
    from hlo_inspect.analysis.time.profiles import AskedMachine, ProfileChoice
    from hlo_inspect.analysis.time.step_times import StepTimes, TimesInStep
    from hlo_inspect.analysis.time.timelines import Timelines
    from hlo_inspect.graph.parameters import Interface
    from hlo_inspect.graph.view import Views
    from hlo_inspect.hlo.module import Module


class ModuleAnalyses(Protocol):
    """What is known of a module on any machine, as far as times follow from it."""

    @property
    def module(self) -> Module: ...

    @property
    def views(self) -> Views: ...

    @property
    def interface(self) -> Interface: ...

    @property
    def call_graph(self) -> CallGraph: ...

    @property
    def device_counts(self) -> DeviceCounts: ...

    @property
    def shapes_are(self) -> ShapesAre | None: ...

    @property
    def collectives(self) -> list[Collective]: ...

    @property
    def axes(self) -> list[str | None]: ...

    @property
    def cost(self) -> ModuleCost: ...

    @property
    def kernels(self) -> Kernels: ...

    @property
    def own_kernels(self) -> list[Kernel]: ...

    @property
    def with_graph(self) -> Module | None: ...


class OnMachine:
    """A module on one machine: the one that `asked` names, else the one that the dump names.

    Another machine is another object. It refers to the `analyses` weakly, because they refer to it: keep them as long as you
    ask it.
    """

    def __init__(self, analyses: ModuleAnalyses, asked: AskedMachine | None) -> None:
        self._analyses: ModuleAnalyses = proxy(analyses)
        self._asked = asked

    @cached_property
    def profile_choice(self) -> ProfileChoice:
        """The accelerator that times are for, and what named it."""
        from hlo_inspect.analysis.time.profiles import choose_profile

        return choose_profile(self.asked, self._analyses.module, lambda: self._analyses.with_graph)

    @property
    def profile_is_named(self) -> bool:
        """Whether the user names the accelerator, so that commands that do not ask for times show some."""
        return self._asked is not None and bool(self._asked.profiles)

    @property
    def asked(self) -> AskedMachine:
        """What the user says of the machine."""
        from hlo_inspect.analysis.time.profiles import AskedMachine

        return self._asked or AskedMachine()

    @property
    def profile(self) -> HardwareProfile | None:
        """The accelerator that times are for, with the changes that are asked for."""
        return self.profile_choice.profile

    @cached_property
    def kernel_times(self) -> KernelTimes | None:
        """The times of kernels, with a profile."""
        from hlo_inspect.analysis.time.kernel_times import KernelTimes, devices_of_work, why_no_bytes

        if self.profile is None:
            return None
        of = self._analyses
        shardings = (leaf.sharding for leaf in of.interface.parameters)
        has_shardings = bool(of.module.device_marks.partitioning_targets) or any(one is not None for one in shardings)
        devices = devices_of_work(of.shapes_are, of.device_counts.devices, has_shardings)
        return KernelTimes(self.profile, of.views, why_no_bytes(of.module), devices)

    @cached_property
    def timelines(self) -> Timelines | None:
        """What each stream does in one run of the program, with a profile, in a module that was read with its graph."""
        if self.kernel_times is None:
            return None
        from hlo_inspect.analysis.time.program_steps import issued_work
        from hlo_inspect.analysis.time.timelines import find_timelines

        of, is_scheduled = self._analyses, self._analyses.module.header.is_scheduled
        work = issued_work(of.module, of.views, of.call_graph, of.kernels, of.collectives, in_order=is_scheduled)
        return find_timelines(work, self.kernel_times, self._collective_times_by_place, is_scheduled=is_scheduled)

    @cached_property
    def costings(self) -> list[Costing]:
        """What each kernel costs in one step, the costliest first."""
        from hlo_inspect.analysis.time.kernel_costings import find_costings

        return find_costings(self._analyses.kernels, self.times_in_step.of if self.times_in_step is not None else None)

    @cached_property
    def times_in_step(self) -> TimesInStep | None:
        """The times of kernels as they are in the step, with a profile."""
        from hlo_inspect.analysis.time.step_times import TimesInStep

        if self.kernel_times is None or self.timelines is None:
            return None
        return TimesInStep(self.kernel_times, self.timelines, self._collective_times_by_place)

    @cached_property
    def costing_groups(self) -> list[Costing]:
        """The same with kernels together that differ in their names only."""
        from hlo_inspect.analysis.time.kernel_costings import join_costings

        return join_costings(self.costings)

    @cached_property
    def step_times(self) -> StepTimes | None:
        """How long one run of the program takes, with a profile."""
        if self.kernel_times is None or self.timelines is None:
            return None
        from hlo_inspect.analysis.cost.roofline import Seconds
        from hlo_inspect.analysis.time.collective_times import ALL
        from hlo_inspect.analysis.time.step_times import find_step_times

        of, alone = self._analyses, self.collective_seconds.get(ALL, Seconds(0.0))
        found = find_step_times(of.cost, of.own_kernels, self.kernel_times, self.collective_times, alone, self.timelines)
        return found if of.module.entry is not None else found.without_entry()

    @cached_property
    def _collective_times_by_place(self) -> dict[InstructionPlace, CollectiveTime]:
        return {
            place(instruction): time
            for collective, time in zip(self._analyses.collectives, self.collective_times, strict=True)
            for instruction in (collective.inner, collective.start)
        }

    @cached_property
    def collective_times(self) -> list[CollectiveTime]:
        """The time of one run of each of `collectives`; nothing without a profile."""
        from hlo_inspect.analysis.mesh_axes import most_named
        from hlo_inspect.analysis.time.collective_times import collective_times
        from hlo_inspect.analysis.time.placement import CollectiveGroups

        if self.profile is None:
            return []
        of = self._analyses
        groups = CollectiveGroups(of.device_counts, most_named(of.module))
        return collective_times(of.collectives, of.axes, groups, self.profile, self.asked.placement)

    @cached_property
    def collective_seconds(self) -> dict[str, Seconds]:
        """The least time of all collectives of one run, together (`collective_times.ALL`) and by level of links."""
        from hlo_inspect.analysis.time.collective_times import collective_seconds

        if not self.collective_times:
            return {}
        return collective_seconds(self._analyses.collectives, self.collective_times, self._analyses.call_graph)
