"""A module with its analyses on the machine that is asked for. Passes and rules are functions of it."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import proxy

from hlo_inspect.analysis.module_analyses import NO_REQUEST, ModuleAnalyses
from hlo_inspect.graph.calls import InstructionPlace, place
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.analysis.alpa import CostModel
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
    from hlo_inspect.analysis.cost.roofline import Seconds
    from hlo_inspect.analysis.hardware import HardwareProfile
    from hlo_inspect.analysis.time.collective_times import CollectiveTime
    from hlo_inspect.analysis.time.kernel_times import KernelTimes
    from hlo_inspect.analysis.time.profiles import AskedMachine, ProfileChoice
    from hlo_inspect.analysis.time.step_times import Costing, StepTimes, TimesInStep
    from hlo_inspect.analysis.time.timelines import Timelines
    from hlo_inspect.hlo.module import Module
    from hlo_inspect.hlo.values.device_groups import NamedMesh

# -- options that are parsed once for all modules of an inspection ------------------------------------------------------------


@dataclass(frozen=True)
class ParsedOptions:
    """The machine, the mesh, the rules for custom calls and the cost model of a request; None if it names none."""

    machine: AskedMachine | None = None
    mesh: NamedMesh | None = None
    custom_calls: UserRules | None = None
    cost_model: CostModel | None = None


def parse_options(request: Request) -> ParsedOptions:
    """Parse the options of a request. Raise UsageError if one makes no sense or if its file is unreadable."""
    machine = mesh = custom_calls = cost_model = None
    if request.profiles or request.changes or request.topology is not None or request.devices_per_node is not None:
        from hlo_inspect.analysis.hardware import load_profile
        from hlo_inspect.analysis.time.placement import given_placement
        from hlo_inspect.analysis.time.profiles import AskedMachine, given_change

        placement = given_placement(request.topology, request.devices_per_node)
        profiles, changes = map(load_profile, request.profiles), map(given_change, request.changes)
        machine = AskedMachine(tuple(profiles), tuple(changes), placement)
    if request.mesh is not None:
        from hlo_inspect.analysis.mesh_axes import given_mesh

        mesh = given_mesh(request.mesh)
    if request.custom_calls is not None:
        from hlo_inspect.analysis.cost.custom_calls.user_rules import load_user_rules

        custom_calls = load_user_rules(request.custom_calls)
    if request.cost_model is not None:
        from hlo_inspect.analysis.alpa import given_cost_model

        cost_model = given_cost_model(request.cost_model, request.alpha, request.beta)
    return ParsedOptions(machine, mesh, custom_calls, cost_model)


NO_OPTIONS = ParsedOptions()


# -- what depends on the machine ----------------------------------------------------------------------------------------------


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
        from hlo_inspect.analysis.time.step_times import find_costings

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
        from hlo_inspect.analysis.time.step_times import join_costings

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


class Context(ModuleAnalyses):
    """A module with what is asked of it, as passes and rules see it. `options` are those of the request that are parsed."""

    def __init__(
        self,
        module: Module,
        request: Request = NO_REQUEST,
        options: ParsedOptions = NO_OPTIONS,
        read_graph: Callable[[], Module | None] | None = None,
    ) -> None:
        super().__init__(module, request, options.mesh, options.custom_calls, read_graph)
        self.on_machine = OnMachine(self, options.machine)
        self.cost_model = options.cost_model

    def on_each_profile(self) -> list[Context]:
        """The module on each of the profiles that were asked for; itself alone where there are not several."""
        asked = self.on_machine.asked
        return [self, *(self._on(replace(asked, profiles=(profile,))) for profile in asked.profiles[1:])]

    def without_changes(self) -> Context:
        """The module on the profile as it is stated, without the changes that were asked for."""
        asked = self.on_machine.asked
        return self._on(replace(asked, changes=())) if asked.changes else self

    def _on(self, machine: AskedMachine) -> Context:
        """The module on another machine. What is known of the module itself is shared."""
        other = copy(self)
        other.on_machine = OnMachine(other, machine)
        return other
