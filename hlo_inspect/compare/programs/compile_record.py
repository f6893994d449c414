"""Contents of a compile: arguments, results, skeleton, flags and options, without the module's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from hlo_inspect.compare.programs.skeleton import Skeleton, find_skeleton
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.canonical.elided_constants import elided_constants, hash_with_constants
from hlo_inspect.graph.parameters import Interface, Output, ParameterLeaf, find_interface
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.settings.compile_settings import CompileSettings
from hlo_inspect.hlo.settings.stablehlo import ElidedConstant, StableHlo
from hlo_inspect.hlo.values.shapes import ArrayShape, Layout, array_leaves

# Attributes of the header that other fields of a record hold, or that follow from these.
_STATED_ELSEWHERE = frozenset(
    {
        "entry_computation_layout",
        "input_output_alias",
        "buffer_donor",
        "num_partitions",
        "replica_count",
        "is_scheduled",
        "allow_spmd_sharding_propagation_to_parameters",
        "allow_spmd_sharding_propagation_to_output",
        "origin_recovery_table",
        "frontend_attributes",
    }
)
_PROPAGATION = ("allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output")


class ArrayRecord(NamedTuple):
    """An argument or result.

    `layout` is that of the header. `sharding` and `shardy` are texts. `donated` names the outputs that may take its buffer.
    """

    dtype: str
    dimensions: tuple[int | None, ...]
    layout: Layout | None
    sharding: str
    shardy: str = ""
    donated: str = ""
    name: str = ""

    @property
    def shape(self) -> str:
        return str(ArrayShape(self.dtype, self.dimensions))


@dataclass(frozen=True)
class CompileRecord:
    """A compile of a function. `number` is that of its file, None for a text outside of a dump.

    `program` is the hash of the program before optimizations, with elided constants if `stablehlo` has them;
    `printed_program` lacks them. A record that
    `is_optimized` is of the text after them. `partitions` and
    `replicas` count devices. `header` has the remaining attributes of the header, `propagation` those about free shardings.
    `is_whole` is False if the text is truncated: then only arguments and header are known. `skeleton` is None then.
    """

    function: str
    number: int | None
    path: str
    is_optimized: bool
    program: str
    printed_program: str
    arguments: tuple[ArrayRecord, ...]
    results: tuple[ArrayRecord, ...]
    partitions: int
    replicas: int
    header: Mapping[str, str]
    propagation: tuple[str, ...]
    skeleton: Skeleton | None
    settings: CompileSettings
    stablehlo: StableHlo | None = None
    elided: tuple[ElidedConstant, ...] | None = ()

    @cached_property
    def asked_shapes(self) -> tuple[object, ...]:
        """The parts that decide if the bodies of two compiles are compared: numbers of devices, shapes of arguments."""
        return self.partitions, self.replicas, *((argument.dtype, argument.dimensions) for argument in self.arguments)

    @cached_property
    def signatures(self) -> tuple[ArrayRecord, ...]:
        """The arguments without their names."""
        return tuple(argument._replace(name="") for argument in self.arguments)

    @property
    def is_whole(self) -> bool:
        return self.skeleton is not None


def record_compile(
    module: Module, number: int | None, settings: CompileSettings, stablehlo: StableHlo | None, *, is_optimized: bool = False
) -> CompileRecord:
    """Return the record of a module that was read with its graph and entry."""
    views = Views(module.computations)
    interface = find_interface(module)
    is_whole = not module.problems.is_truncated and module.entry is not None
    skeleton = find_skeleton(module, views) if is_whole else None
    elided = elided_constants(module, views, lambda: stablehlo)
    printed_program = CanonicalModule(module, views).program if is_whole else ""
    attributes = module.header.attributes
    return CompileRecord(
        function=module.name,
        number=number,
        path=module.path,
        is_optimized=is_optimized,
        program=hash_with_constants(printed_program, elided or ()) if is_whole else "",
        printed_program=printed_program,
        arguments=tuple(_arguments(module, interface)),
        results=tuple(_results(module, interface)),
        partitions=module.header.num_partitions,
        replicas=module.header.replica_count,
        header={name: text for name, text in attributes.items() if name not in _STATED_ELSEWHERE},
        propagation=tuple(attributes.get(name, "") for name in _PROPAGATION),
        skeleton=skeleton,
        settings=settings,
        stablehlo=stablehlo,
        elided=elided,
    )


def _layouts(module: Module, side: Literal[0, 1], arrays: Sequence[ParameterLeaf] | Sequence[Output]) -> list[Layout | None]:
    """Return the layouts of the arguments (0) or results (1): those of the header if it has one for each."""
    entry_layout = module.header.entry_layout
    stated = array_leaves(entry_layout[side]) if entry_layout is not None else []
    return [leaf.layout for _, leaf in stated] if len(stated) == len(arrays) else [array.shape.layout for array in arrays]


def _arguments(module: Module, interface: Interface) -> Iterator[ArrayRecord]:
    for leaf, layout in zip(interface.parameters, _layouts(module, 0, interface.parameters), strict=True):
        donated = "any output" if leaf.donor else ""
        if leaf.alias is not None:
            donated = f"output {','.join(map(str, leaf.alias.output_index)) or '0'}"
        name, shape = leaf.path or leaf.name, leaf.shape
        yield ArrayRecord(shape.dtype, shape.dimensions, layout, *_shardings(leaf), donated, name)


def _shardings(leaf: ParameterLeaf) -> tuple[str, str]:
    attributes = leaf.instruction.attr("frontend_attributes") if leaf.instruction is not None else None
    shardy = (attributes or {}).get("xla.sdy.sharding", "")
    return leaf.sharding.text if leaf.sharding is not None else "", shardy


def _results(module: Module, interface: Interface) -> Iterator[ArrayRecord]:
    for output, layout in zip(interface.outputs, _layouts(module, 1, interface.outputs), strict=True):
        sharding = output.sharding.text if output.sharding is not None else ""
        yield ArrayRecord(output.shape.dtype, output.shape.dimensions, layout, sharding)
