"""Contexts: a module with its analyses on the requested machine. Passes and rules are functions of a context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from weakref import proxy

from hlo_inspect.analysis.module_analyses import NO_REQUEST, ModuleAnalyses
from hlo_inspect.figure import Quantity, known_part, least
from hlo_inspect.graph.calls import place
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.analysis.alpa_costs import CostModel
    from hlo_inspect.analysis.collectives.logical_collectives import Collective
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
    from hlo_inspect.analysis.hardware import HardwareProfile
    from hlo_inspect.analysis.memory.fit import MemoryFit
    from hlo_inspect.analysis.time.collective_times import CollectiveTime
    from hlo_inspect.analysis.time.costings import Costing, FindCostings
    from hlo_inspect.analysis.time.kernel_times import KernelTimes
    from hlo_inspect.analysis.time.profile_choice import MachineOptions, ProfileChoice
    from hlo_inspect.analysis.time.step_times import StepTimes, TimesInStep
    from hlo_inspect.analysis.time.timelines import Timelines
    from hlo_inspect.graph.view import InstructionPlace
    from hlo_inspect.hlo.module import Module
    from hlo_inspect.hlo.values.device_groups import NamedMesh
    from hlo_inspect.profiler.measurements import RecordedProgram

_Result = TypeVar("_Result")


# -- options, parsed once for all modules of an inspection --------------------------------------------------------------------


@dataclass(frozen=True)
class ParsedOptions:
    """The parsed options of a request: machine, mesh, rules for custom calls and cost model; None if the request lacks them.

    `thresholds` are the least stakes of findings that the user sets, by name of the rule.
    """

    machine: MachineOptions | None = None
    mesh: NamedMesh | None = None
    custom_calls: UserRules = ()
    cost_model: CostModel | None = None
    thresholds: Mapping[str, int | float] = field(default_factory=dict)


def parse_options(request: Request) -> ParsedOptions:
    """Parse the options of a request. Raise UsageError if one makes no sense or if its file is unreadable."""
    machine = mesh = cost_model = None
    custom_calls: UserRules = ()
    if request.profiles or request.changes or request.topology is not None or request.devices_per_node is not None:
        from hlo_inspect.analysis.hardware import load_profile
        from hlo_inspect.analysis.time.placement import given_placement
        from hlo_inspect.analysis.time.profile_choice import MachineOptions, given_change

        placement = given_placement(request.topology, request.devices_per_node)
        profiles, changes = map(load_profile, request.profiles), map(given_change, request.changes)
        machine = MachineOptions(tuple(profiles), tuple(changes), placement)
    if request.mesh is not None:
        from hlo_inspect.analysis.devices.mesh_axes import parse_mesh

        mesh = parse_mesh(request.mesh)
    if request.custom_calls is not None:
        from hlo_inspect.analysis.cost.custom_calls.user_rules import load_user_rules

        custom_calls = load_user_rules(request.custom_calls)
    if request.cost_model is not None:
        from hlo_inspect.analysis.alpa_costs import parse_cost_model

        cost_model = parse_cost_model(request.cost_model, request.alpha, request.beta)
    return ParsedOptions(machine, mesh, custom_calls, cost_model)


NO_OPTIONS = ParsedOptions()


# -- analyses that depend on the machine --------------------------------------------------------------------------------------


class MachineAnalyses:
    """The analyses of a module on one machine: that of `asked`, else that of a recorded profile, else that of the dump.

    Each machine has its own object. `analyses` is a weak reference, because the module's analyses refer to this object: keep
    them while you use it.
    """

    def __init__(self, analyses: Context, options: MachineOptions | None) -> None:
        self._analyses: Context = proxy(analyses)
        self._asked = options

    @cached_property
    def profile_choice(self) -> ProfileChoice:
        """The hardware profile of the times, and the source that named it."""
        from hlo_inspect.analysis.time.profile_choice import choose_profile
        from hlo_inspect.profiler.chip import NO_CHIP

        measured = self._analyses.measured
        chip = measured.chip if measured is not None else NO_CHIP
        return choose_profile(self.asked, self._analyses.module, lambda: self._analyses.with_graph, chip)

    @property
    def profile_is_named(self) -> bool:
        """True if the user names the accelerator; pages without times then show some."""
        return self._asked is not None and bool(self._asked.profiles)

    @property
    def asked(self) -> MachineOptions:
        """The machine options of the user."""
        from hlo_inspect.analysis.time.profile_choice import MachineOptions

        return self._asked or MachineOptions()

    @property
    def profile(self) -> HardwareProfile | None:
        """The hardware profile of the times, with the user's changes."""
        return self.profile_choice.profile

    @cached_property
    def memory_fit(self) -> MemoryFit | None:
        """The memory of a device beside the need of the program; None if no profile states it."""
        from hlo_inspect.analysis.memory.fit import MemoryFit

        profile = self.profile
        if profile is None or profile.usable_memory is None:
            return None
        figures, is_per_device = self._analyses.memory.figures, self._analyses.shapes_are == "per_device"
        arguments = figures["argument_bytes"] if is_per_device else None
        return MemoryFit(profile, int(profile.usable_memory), figures["needed_bytes"], arguments)

    @cached_property
    def kernel_times(self) -> KernelTimes | None:
        """The times of kernels; None without a profile."""
        from hlo_inspect.analysis.time.kernel_times import KernelTimes, devices_of_work, no_bytes_reason

        if self.profile is None:
            return None
        analyses = self._analyses
        has_shardings = bool(analyses.module.device_marks.partitioning_targets) or any(
            leaf.sharding is not None for leaf in analyses.interface.parameters
        )
        devices = devices_of_work(analyses.shapes_are, analyses.device_counts.devices, has_shardings)
        return KernelTimes(self.profile, analyses.views, no_bytes_reason(analyses.module), devices)

    @cached_property
    def timelines(self) -> Timelines | None:
        """The streams of one step; None without a profile. The module has to be read with its graph."""
        if self.kernel_times is None:
            return None
        from hlo_inspect.analysis.time.program_steps import issued_work
        from hlo_inspect.analysis.time.timelines import find_timelines

        analyses, is_scheduled = self._analyses, self._analyses.module.header.is_scheduled
        work = issued_work(
            analyses.module, analyses.views, analyses.call_graph, analyses.kernels, analyses.collectives, in_order=is_scheduled
        )
        return find_timelines(work, self.kernel_times, self._collective_times_by_place, is_scheduled=is_scheduled)

    @cached_property
    def costings(self) -> list[Costing]:
        """The cost of each kernel in one step, the most expensive first."""
        from hlo_inspect.analysis.time.costings import find_costings

        return self._costings(find_costings)

    @cached_property
    def times_in_step(self) -> TimesInStep | None:
        """The times of kernels within the step; None without a profile."""
        from hlo_inspect.analysis.time.step_times import TimesInStep

        if self.kernel_times is None or self.timelines is None:
            return None
        return TimesInStep(self.kernel_times, self.timelines, self._collective_times_by_place)

    @cached_property
    def costing_groups(self) -> list[Costing]:
        """The costings, merged if they differ in the kernels' names only."""
        from hlo_inspect.analysis.time.costings import find_joined_costings

        return self._costings(find_joined_costings)

    def _costings(self, find: FindCostings) -> list[Costing]:
        from hlo_inspect.analysis.time.kernel_times import no_bytes_reason

        times = self.times_in_step.for_kernel if self.times_in_step is not None else None
        return find(self._analyses.kernels, times, bool(no_bytes_reason(self._analyses.module)))

    @cached_property
    def step_times(self) -> StepTimes | None:
        """The time of one step; None without a profile."""
        if self.kernel_times is None or self.timelines is None:
            return None
        from hlo_inspect.analysis.time.collective_times import ALL
        from hlo_inspect.analysis.time.step_times import find_step_times

        analyses, collectives_alone = self._analyses, self.collective_seconds.get(ALL, 0.0)
        times = find_step_times(
            analyses.cost, analyses.own_kernels, self.kernel_times, self.collective_times, collectives_alone, self.timelines
        )
        if self.timelines.is_scheduled:
            times = times.with_busy(max(map(least, self.busy.values()), default=0.0))
        return times if analyses.module.entry is not None else times.without_entry()

    @cached_property
    def busy(self) -> Mapping[str, Quantity]:
        """The busy time of each resource; nothing without a profile."""
        if self.kernel_times is None or self.timelines is None:
            return {}
        from hlo_inspect.analysis.time.utilization import resource_seconds

        analyses = self._analyses
        collectives = zip(analyses.collectives, self.collective_times, strict=True)
        work, levels = analyses.cost.opcodes, self.collective_seconds
        return resource_seconds(work, self.kernel_times, self.timelines.bound, collectives, levels)

    @property
    def known_step(self) -> Quantity | None:
        """The known part of the estimate of a step, of which shares are; None without a profile or a schedule.

        It has a reason if the runs of a kernel are unknown: nothing is a share of it then. A missing model is no such reason.
        """
        if self.step_times is None or self.timelines is None or not self.timelines.is_scheduled:
            return None
        return known_part(least(self.step_times.estimate_step), self.timelines.estimate.timeline.reason)

    @cached_property
    def _collective_times_by_place(self) -> dict[InstructionPlace, CollectiveTime]:
        return {
            place(instruction): time
            for collective, time in zip(self._analyses.collectives, self.collective_times, strict=True)
            for instruction in (collective.inner, collective.start)
        }

    @cached_property
    def collective_times(self) -> list[CollectiveTime]:
        """The time of one run of each of `collectives`; empty without a profile."""
        return self._times_of(self._analyses.collectives)

    def _times_of(self, collectives: list[Collective]) -> list[CollectiveTime]:
        from hlo_inspect.analysis.devices.mesh_axes import most_named
        from hlo_inspect.analysis.time.collective_times import collective_times
        from hlo_inspect.analysis.time.placement import CollectiveGroups

        if self.profile is None:
            return []
        analyses = self._analyses
        groups = CollectiveGroups(analyses.device_counts, most_named(analyses.module))
        return collective_times(collectives, analyses.axes, groups, self.profile, self.asked.placement)

    @cached_property
    def expected_collective_seconds(self) -> Quantity | None:
        """The bound of all collectives of one step once XLA's collective passes ran; None if that is unknown."""
        from hlo_inspect.analysis.time.collective_times import ALL, collective_seconds

        expected = self._analyses.expected_collectives
        if expected is None or not self.collective_times:
            return None if expected is None or self.profile is None else self.collective_seconds.get(ALL, 0.0)
        return collective_seconds(expected, self._times_of(expected), self._analyses.call_graph)[ALL]

    @cached_property
    def collective_seconds(self) -> dict[str, Quantity]:
        """The bound of all collectives of one step, in total (`collective_times.ALL`) and by level of links."""
        from hlo_inspect.analysis.time.collective_times import collective_seconds

        if not self.collective_times:
            return {}
        return collective_seconds(self._analyses.collectives, self.collective_times, self._analyses.call_graph)


class Context(ModuleAnalyses):
    """The analyses of a module with the options of a request, as passes and rules see them.

    `measured` are its measured times, if the input is a recorded profile and the pass `measured` runs.
    """

    def __init__(
        self,
        module: Module,
        request: Request = NO_REQUEST,
        options: ParsedOptions = NO_OPTIONS,
        read_graph: Callable[[], Module | None] | None = None,
    ) -> None:
        super().__init__(module, request, options.mesh, options.custom_calls, read_graph)
        self.on_machine = MachineAnalyses(self, options.machine)
        self.cost_model = options.cost_model
        self.measured: RecordedProgram | None = None
        self.thresholds = options.thresholds
        self._once: dict[Callable[[Context], object], object] = {}

    def once(self, analysis: Callable[[Context], _Result]) -> _Result:
        """Return the result of an analysis of another package, computed on first use."""
        if analysis not in self._once:
            self._once[analysis] = analysis(self)
        result: _Result = self._once[analysis]  # type: ignore[assignment]  # stored under the function that made it
        return result

    def on_each_profile(self) -> list[Context]:
        """Return a context for each requested profile; only this one unless there are several."""
        options = self.on_machine.asked
        return [self, *(self._with_machine(replace(options, profiles=(profile,))) for profile in options.profiles[1:])]

    def without_changes(self) -> Context:
        """Return the context on the stated profile, without the user's changes."""
        options = self.on_machine.asked
        return self._with_machine(replace(options, changes=())) if options.changes else self

    def _with_machine(self, machine: MachineOptions) -> Context:
        """Return the context on another machine. Analyses of the module itself are shared."""
        other = copy(self)
        other._once = {}
        other.on_machine = MachineAnalyses(other, machine)
        return other
