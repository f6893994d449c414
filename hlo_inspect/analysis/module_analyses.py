"""The analyses of a module on any machine, each imported and computed on first use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import proxy

from hlo_inspect.graph.calls import CallGraph, place
from hlo_inspect.hlo.values.op_names import NOT_SOUGHT
from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.analysis.collectives.collective_faults import CollectiveFault
    from hlo_inspect.analysis.collectives.executed_collectives import ExecutedCollectives
    from hlo_inspect.analysis.collectives.logical_collectives import Collective
    from hlo_inspect.analysis.compiler_warnings import JoinedWarning
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
    from hlo_inspect.analysis.cost.kernels import Kernel, Kernels
    from hlo_inspect.analysis.cost.module_cost import ModuleCost
    from hlo_inspect.analysis.devices.mesh import Mesh
    from hlo_inspect.analysis.devices.mesh_axes import PartitionSpecs
    from hlo_inspect.analysis.devices.participants import Copies, DeviceCounts, ShapesAre
    from hlo_inspect.analysis.fusion_contents import Fusion, FusionKind
    from hlo_inspect.analysis.lowered_shardings import ParameterShardings
    from hlo_inspect.analysis.memory.array_flow import ArrayFlow
    from hlo_inspect.analysis.memory.array_sources import ArraySource, ArraySources
    from hlo_inspect.analysis.memory.host_transfers import HostTransfer, OffloadRequests
    from hlo_inspect.analysis.memory.largest_arrays import LargestArrays
    from hlo_inspect.analysis.memory.live_arrays import LiveArray
    from hlo_inspect.analysis.memory.parameter_copies import GatheredParameter
    from hlo_inspect.analysis.memory.parameter_relations import ParameterRelations, Relation
    from hlo_inspect.analysis.memory.program_memory import ProgramMemory
    from hlo_inspect.analysis.memory.sidecars import Sidecars
    from hlo_inspect.analysis.phases.graph_phases import GraphPhases
    from hlo_inspect.analysis.phases.phases import Phases
    from hlo_inspect.analysis.program import Program
    from hlo_inspect.analysis.provenance import Labeller, Labels, Provenances
    from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
    from hlo_inspect.graph.parameters import Interface
    from hlo_inspect.graph.view import View, Views
    from hlo_inspect.hlo.module import Module
    from hlo_inspect.hlo.settings.compile_settings import CompileSettings
    from hlo_inspect.hlo.settings.stablehlo import ElidedConstant, StableHlo
    from hlo_inspect.hlo.values.device_groups import NamedMesh
    from hlo_inspect.hlo.values.header import ShapeIndex
    from hlo_inspect.optimizer.overview import Overview

NO_REQUEST = Request()


class ModuleAnalyses:
    """The analyses of a module.

    `user_mesh` and `call_rules` are the user's mesh and rules for custom calls. `read_graph` reads a module again with its
    graph.
    """

    def __init__(
        self,
        module: Module,
        request: Request = NO_REQUEST,
        user_mesh: NamedMesh | None = None,
        call_rules: UserRules = (),
        read_graph: Callable[[], Module | None] | None = None,
    ) -> None:
        self.module = module
        self.request = request
        self._user_mesh = user_mesh
        self._call_rules = call_rules
        self._read_graph = read_graph

    @cached_property
    def with_graph(self) -> Module | None:
        """The module with its graph; None if it was read without the graph and cannot be read again."""
        if self.module.wants.graph:
            return self.module
        return self._read_graph() if self._read_graph is not None else None

    @cached_property
    def device_counts(self) -> DeviceCounts:
        from hlo_inspect.analysis.devices.mesh_axes import require_fit
        from hlo_inspect.analysis.devices.participants import device_counts

        counts = device_counts(self.module)
        if self._user_mesh is not None:
            require_fit(self._user_mesh, counts.devices, self.module.name)
        return counts

    @cached_property
    def shapes_are(self) -> ShapesAre | None:
        from hlo_inspect.analysis.devices.participants import shapes_are

        return shapes_are(self.module, self.device_counts)

    @cached_property
    def phases(self) -> Phases:
        """The phase of each instruction."""
        from hlo_inspect.analysis.phases.phases import Phases

        weak_self = proxy(self)  # analyses do not hold their context: both are freed with the last reference to the context
        return Phases(weak_self, seeks_all=not self.request.skips_graph_phases)

    @cached_property
    def provenances(self) -> Provenances:
        """The provenance that the metadata of instructions states."""
        from hlo_inspect.analysis.provenance import Provenances

        return Provenances(self.module.frames)

    @cached_property
    def graph_phases(self) -> GraphPhases | None:
        """The phases by the graph of values; None if the request uses names only, no graph is read, or no weight is updated."""
        if not self.request.uses_graph_for_phases or not self._may_be_step(self.module):
            return None
        module = self.with_graph
        if module is None or not self._may_be_step(module):
            return None
        whole = self if module is self.module else ModuleAnalyses(module)
        if not whole.optimizer.all_rows or (whole.optimizer.rows and not whole.optimizer.is_training_step):
            return None
        from hlo_inspect.analysis.phases.graph_phases import GraphPhases

        return GraphPhases(whole.views, whole.optimizer, self.module.header)

    def has_merged_recomputation(self) -> bool:
        """Return True if names of the recomputation stand on the forward pass, as the graph shows if it may be read."""
        from hlo_inspect.analysis.merged_recomputation import is_merged
        from hlo_inspect.graph.view import Views

        module = self.with_graph if self.request.uses_graph_for_phases else self.module
        return module is not None and is_merged(self.views if module is self.module else Views(module.computations), module)

    @property
    def no_graph_reason(self) -> str:
        """The reason why the graph of values gives no phases; empty if the request uses names only."""
        if not self.request.uses_graph_for_phases:
            return ""
        if self.graph_phases is not None:
            return self.graph_phases.reason
        from hlo_inspect.graph.parameters import NO_UPDATE

        return NO_UPDATE if self.module.wants.graph or self._read_graph is not None else "it was not read"

    def _may_be_step(self, module: Module) -> bool:
        """Return True if the opcodes and outputs of the module, as it was read, allow the update of a weight."""
        from hlo_inspect.graph.parameters import adds_something, may_update

        applied = {collective.inner.callee("to_apply") for collective in self.collectives}
        return adds_something(module, applied) and may_update(module.header)

    @cached_property
    def collective_phases(self) -> list[str]:
        """The phase of each of `collectives`."""
        return [phase.phase for phase in self.phases.of_collectives]

    @property
    def leaves_phases_open(self) -> bool:
        """True if --quick leaves the phase of a collective unknown."""
        return NOT_SOUGHT in self.collective_phases

    @cached_property
    def mesh(self) -> Mesh:
        from hlo_inspect.analysis.devices.mesh_axes import mesh_of

        return mesh_of(self.module, self.collectives, self.device_counts, self._user_mesh)

    @cached_property
    def axes(self) -> list[str | None]:
        """The mesh axes of each of `collectives`."""
        from hlo_inspect.analysis.devices.mesh_axes import axis_labels

        return axis_labels(self.collectives, self.device_counts, self.mesh)

    @cached_property
    def call_graph(self) -> CallGraph:
        return CallGraph(self.module)

    @cached_property
    def executed(self) -> ExecutedCollectives:
        """The runs of collectives in a step, with the bytes that they read and send."""
        from hlo_inspect.analysis.collectives.executed_collectives import ExecutedCollectives

        phases = [phase.runs or phase.phase for phase in self.phases.of_collectives]
        return ExecutedCollectives(self.call_graph, self.collectives, self.axes, phases)

    @cached_property
    def are_as_written(self) -> bool:
        """True if XLA's collective passes have not run on the partitioned program yet, and will."""
        from hlo_inspect.analysis.collectives.as_written import is_as_written

        is_whole = self.request.quick or self.module.header.is_scheduled
        module = None if is_whole else self.with_graph
        return is_as_written(module or self.module, self.shapes_are, self.request.platform)

    @cached_property
    def expected_collectives(self) -> list[Collective] | None:
        """The collectives as XLA's collective passes leave them; None if these may follow and the graph is not read."""
        if not self.request.uses_graph_for_phases and not self.module.header.is_scheduled:
            return None
        if not self.are_as_written:
            return self.collectives
        from hlo_inspect.analysis.collectives.as_written import as_optimized

        module = self.with_graph
        if module is None:
            return None
        return as_optimized(self.views if module is self.module else ModuleAnalyses(module).views, self.collectives)

    @cached_property
    def expected(self) -> ExecutedCollectives | None:
        """The runs of `expected_collectives` in a step."""
        if not any(written.kind == "all-reduce" and not written.start.is_root for written in self.collectives):
            return self.executed
        collectives = self.expected_collectives
        if collectives is None or collectives is self.collectives:
            return self.executed if collectives is not None else None
        from hlo_inspect.analysis.collectives.executed_collectives import ExecutedCollectives

        return ExecutedCollectives(self.call_graph, collectives, self.axes, self.collective_phases)

    @cached_property
    def interface(self) -> Interface:
        from hlo_inspect.graph.parameters import find_interface

        return find_interface(self.module)

    @cached_property
    def shardings(self) -> ParameterShardings:
        """The parameters with their shardings, which the text that was lowered tells if this one prints none."""
        from hlo_inspect.analysis.lowered_shardings import find_shardings

        return find_shardings(self.module, self.interface, self.device_counts, self.shapes_are, self.request.lowered)

    @cached_property
    def partition_specs(self) -> PartitionSpecs:
        """The partition of arrays, in the names of mesh axes."""
        from hlo_inspect.analysis.devices.mesh_axes import PartitionSpecs

        weak_self = proxy(self)
        return PartitionSpecs(self.module, lambda: weak_self.mesh)

    @cached_property
    def sharding_copies(self) -> Copies:
        """The number of devices that hold the same part of a parameter, by the text of its sharding."""
        from hlo_inspect.analysis.devices.participants import count_copies

        return count_copies(self.shardings.interface.parameters, self.device_counts)

    @cached_property
    def views(self) -> Views:
        """The rows of the computations, shared by all analyses of the graph."""
        from hlo_inspect.graph.view import Views

        return Views(self.module.computations)

    @cached_property
    def canonical(self) -> CanonicalModule:
        """The module without its names; it has to be read with its graph."""
        from hlo_inspect.graph.canonical.canonical_module import CanonicalModule

        return CanonicalModule(self.module, self.views)

    @cached_property
    def settings(self) -> CompileSettings | None:
        """Flags and options from the files beside the text; None if it is no file of a dump."""
        from pathlib import Path

        from hlo_inspect.hlo.input.dump_directory import stage_of
        from hlo_inspect.hlo.settings.compile_settings import read_settings

        return read_settings(Path(self.module.path)) if stage_of(self.module.path) else None

    @cached_property
    def stablehlo(self) -> StableHlo | None:
        """The StableHLO beside the text; None if the dump has none, or none that is readable."""
        from hlo_inspect.hlo.settings.stablehlo import stablehlo_beside

        return stablehlo_beside(self.module.path) if self.settings is not None else None

    @cached_property
    def elided_constants(self) -> tuple[ElidedConstant, ...] | None:
        """The values of constants that the text elides; None if they are unknown."""
        from hlo_inspect.graph.canonical.elided_constants import elided_constants

        return elided_constants(self.module, self.views, lambda: self.stablehlo)

    @cached_property
    def optimizer(self) -> Overview:
        """The updates of weights; the module has to be read with its graph."""
        from hlo_inspect.graph.parameters import makes_something
        from hlo_inspect.optimizer.overview import find_optimizer

        applied = {collective.inner.callee("to_apply") for collective in self.collectives}
        views = map(self.views.for_computation, self.module.computations)
        undefined = (None in operands for view in views for operands in view.operands_of_rows)  # such a value may be anything
        makes_values = makes_something(self.module, applied) or any(undefined)
        return find_optimizer(self.module, self.interface, self.views, makes_values=makes_values)

    @cached_property
    def fusions(self) -> list[Fusion]:
        """The fusions; the module has to be read with its graph."""
        from hlo_inspect.analysis.fusion_contents import find_fusions

        return find_fusions(self.views)

    @cached_property
    def fusion_kinds(self) -> list[FusionKind]:
        from hlo_inspect.analysis.fusion_contents import fusion_kinds

        return fusion_kinds(self.module)

    @cached_property
    def custom_call_targets(self) -> Counter[str]:
        from hlo_inspect.analysis.fusion_contents import custom_call_targets

        return custom_call_targets(self.module)

    @cached_property
    def collectives(self) -> list[Collective]:
        from hlo_inspect.analysis.collectives.logical_collectives import find_collectives

        return find_collectives(self.module, self.device_counts)

    @cached_property
    def cost(self) -> ModuleCost:
        from hlo_inspect.analysis.cost.module_cost import module_cost

        return module_cost(self.module, self.call_graph, self.views, self._call_rules, self._labeller)

    @cached_property
    def kernels(self) -> Kernels:
        """The instructions that the device launches by themselves."""
        from hlo_inspect.analysis.cost.kernels import find_kernels

        return find_kernels(self.cost, self.call_graph)

    @cached_property
    def own_kernels(self) -> list[Kernel]:
        """The kernels except collectives."""
        collectives = {
            place(instruction) for collective in self.collectives for instruction in (collective.inner, collective.start)
        }
        return [kernel for kernel in self.kernels.launched if kernel.place not in collectives]

    @cached_property
    def program(self) -> Program:
        """The kind of program. Costs and optimizer, which --quick leaves out, make it more precise."""
        from hlo_inspect.analysis.program import find_program

        cost = None if self.request.quick else self.cost
        overview = None if self.request.quick else self.optimizer
        return find_program(self.module, self.interface, self.views, self._named_phases(cost), cost, overview)

    def _named_phases(self, cost: ModuleCost | None) -> Iterator[str]:
        """Yield the phases by names of collectives, fusions and instructions with a cost, with repetitions."""
        from hlo_inspect.analysis.fusion_contents import metadata_of_fusions

        names, collectives = self.phases.names, [collective.inner for collective in self.collectives]
        yield from (names.phase_of(place(collective), names.own(collective)) for collective in collectives)
        yield from (self.provenances.get(metadata).scope.phase for metadata in dict.fromkeys(metadata_of_fusions(self.module)))
        for running in cost.running.values() if cost is not None else ():
            yield from self._labeller.named_phases(running.view, running.rows)

    @cached_property
    def sidecars(self) -> Sidecars:
        """XLA's files about memory beside the text."""
        from hlo_inspect.analysis.memory.sidecars import find_sidecars

        return find_sidecars(self.module, self.views)

    @cached_property
    def memory(self) -> ProgramMemory:
        """Device memory, with the figures of XLA's own files if there are any. The module has to be read with its graph."""
        from hlo_inspect.analysis.memory.program_memory import find_program_memory
        from hlo_inspect.analysis.memory.sidecars import with_stated

        computed = find_program_memory(self.module, self.views, self.interface, self.request.platform)
        return with_stated(computed, self.sidecars)

    @cached_property
    def live_arrays(self) -> list[LiveArray]:
        """The live arrays at the peak, the largest first; empty if the peak is unknown."""
        from hlo_inspect.analysis.memory.live_arrays import LiveArrays

        device = self.memory.device
        if device is None:
            return []
        roles = None if self.request.quick else self.optimizer.roles
        return LiveArrays(device, roles, self.relation_of, self.array_sources, self.labels_of, self.phase_of).find()

    @cached_property
    def gathered_parameters(self) -> list[GatheredParameter]:
        """The gathered copies of parameters in a scheduled program."""
        from hlo_inspect.analysis.memory.parameter_copies import find_gathered

        device = self.memory.device
        return find_gathered(device, self.relation_of, self.phase_of) if device is not None else []

    def phase_of(self, view: View, row: int) -> str:
        phase = self.phases.of_row(view, row)
        return self.labels_of(view, row).phase if phase is None else phase.phase

    def labels_of(self, view: View, row: int) -> Labels:
        """Return kind, phase, source and scope of a row."""
        return self._labeller.get(view, row)

    @cached_property
    def _labeller(self) -> Labeller:
        from hlo_inspect.analysis.provenance import Labeller

        return Labeller(self.provenances, self.phases.of_rows)

    @cached_property
    def largest_arrays(self) -> LargestArrays:
        """The largest arrays that the text makes. Gradients are found unless --quick leaves out the optimizer."""
        from hlo_inspect.analysis.memory.largest_arrays import LargestArrays

        weak_self = proxy(self)  # methods would hold the context
        relations = lambda view, row, index: weak_self.relation_of(view, row, index)  # noqa: E731, PLW0108
        sources = lambda view, row, index: weak_self.source_of(view, row, index)  # noqa: E731, PLW0108
        return LargestArrays(self.module, self.views, self._array_flow, relations, sources)

    def relation_of(self, view: View, row: int, element: ShapeIndex) -> Relation | None:
        """Return the relation of a row's array to a parameter, if any."""
        return self._parameter_relations.get((view.computation.name, row, element))

    def source_of(self, view: View, row: int, element: ShapeIndex) -> ArraySource:
        """Return the source of a row's array, with the phase of the row."""
        return self.array_sources.with_phase((view.computation.name, row, element), self.labels_of(view, row))

    @cached_property
    def array_sources(self) -> ArraySources:
        """The instructions whose metadata says which line of the program makes an array."""
        from hlo_inspect.analysis.memory.array_sources import ArraySources

        paths = {leaf.number: leaf.path for leaf in self.interface.parameters}
        return ArraySources(self._array_flow, self._parameter_relations, self._labeller.named, paths)

    @cached_property
    def _array_flow(self) -> ArrayFlow:
        from hlo_inspect.analysis.memory.array_flow import ArrayFlow

        return ArrayFlow(self.module, self.views)

    @cached_property
    def _parameter_relations(self) -> ParameterRelations:
        from hlo_inspect.analysis.memory.parameter_relations import ParameterRelations, made_arrays

        overview = None if self.request.quick else self.optimizer
        entry = self.module.entry.name if self.module.entry else ""
        return ParameterRelations(self._array_flow, made_arrays(self.interface, overview, self.views, entry))

    @cached_property
    def host_transfers(self) -> list[HostTransfer]:
        """The copies between host and device."""
        from hlo_inspect.analysis.memory.host_transfers import find_transfers

        return find_transfers(self.views, self.call_graph)

    @cached_property
    def compiler_warnings(self) -> list[JoinedWarning]:
        """XLA's warnings in the log around the module."""
        if not self.module.warnings:
            return []
        from hlo_inspect.analysis.compiler_warnings import join_warnings

        module = self.with_graph
        whole = self if module is self.module else ModuleAnalyses(module) if module is not None else None
        return join_warnings(self.module, self.collectives, whole._array_flow if whole is not None else None)

    @cached_property
    def offload_requests(self) -> OffloadRequests | None:
        """The requests for host memory of an optimized program, which the text before optimizations has."""
        from hlo_inspect.analysis.memory.host_transfers import find_offload_requests

        return find_offload_requests(self.module)

    @cached_property
    def ignored_offload(self) -> OffloadRequests | None:
        """The requests for host memory that an optimized program ignores."""
        from hlo_inspect.analysis.memory.host_transfers import uses_host

        requests = self.offload_requests
        return requests if requests is not None and not uses_host(self.views) else None

    @cached_property
    def collective_faults(self) -> list[CollectiveFault]:
        from hlo_inspect.analysis.collectives.collective_faults import collective_faults

        return collective_faults(self.collectives, self.device_counts)
