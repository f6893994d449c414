"""Entry parameters and outputs: buffers that outputs reuse, donations, and parameters that nothing reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import MAX_NOTED, Computation, Module
from hlo_inspect.hlo.opcodes import ADDING, ASYNC_ENDS, LITERAL_OPCODES, opcodes_that_are, opcodes_that_give
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.header import Alias, Header, ShapeIndex, read_signature
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.hlo.values.shapes import ArrayShape, Layout, Shape, TupleShape, array_leaves, subshape
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.lazy_pattern import lazy_pattern

_SCOPE = lazy_pattern(r"[a-z_]\(")  # an op_name that is a scope of operations, not an argument's path
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Output:
    """An array of the entry's result. `alias` names the parameter whose buffer it uses, if any."""

    index: ShapeIndex
    shape: ArrayShape
    sharding: Sharding | None
    alias: Alias | None


@dataclass(frozen=True, slots=True)
class ParameterLeaf:
    """An array of an entry parameter.

    `donor` means that its buffer is donated without an output. `unused` means that no instruction reads it; None if the text
    does not say it. `path` is the argument's path in the caller's tree. JAX prints it as the parameter's op_name; else it is
    another name of the argument. `kept_because` tells why an array is not donated: one of the constants `FITS` to `ALL_TAKEN`.
    """

    number: int
    index: ShapeIndex
    instruction: Instruction | None
    shape: ArrayShape
    sharding: Sharding | None
    alias: Alias | None
    donor: bool
    unused: bool | None
    kept_because: str
    path: str = ""

    @property
    def name(self) -> str:
        return self.instruction.name if self.instruction else ""

    @property
    def line(self) -> int | None:
        return self.instruction.line if self.instruction else None

    @property
    def donated(self) -> bool | None:
        """True if aliased or a donor; None if the text does not say it."""
        if self.alias is not None or self.donor:
            return True
        return None if self.kept_because == NOT_TOLD else False

    @property
    def could_be_donated(self) -> bool:
        return self.kept_because == FITS


FITS = "an output fits it"
NOT_TOLD = "the text lacks the header"
NO_RESULT = "the text ends before the result"
NO_OUTPUT = "no output has its shape and type"
OTHER_SHARDING = "outputs of its shape are sharded otherwise"
OTHER_LAYOUT = "outputs of its shape lie otherwise in memory"
ALL_TAKEN = "the outputs of its shape take other parameters"


class InterfaceFault(NamedTuple):
    """An alias or donor of the header without a parameter or output.

    `bytes` is the size of the buffer at its other end, 0 if unknown.
    """

    message: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters and results of the entry computation.

    `parameters_known` and `outputs_known` are false if neither the entry nor a layout in the header shows parameters or result.
    `complete` is false if a shape is unknown. `donation_known` is false if the text lacks the part of the header that names
    aliases and donors.
    """

    count: int
    parameters: tuple[ParameterLeaf, ...]
    outputs: tuple[Output, ...]
    faults: tuple[InterfaceFault, ...]
    complete: bool = True
    parameters_known: bool = True
    outputs_known: bool = True
    donation_known: bool = True

    @property
    def uses_known(self) -> bool:
        """True if the text shows for every parameter whether an instruction reads it."""
        return all(leaf.unused is not None for leaf in self.parameters)


def find_interface(module: Module) -> Interface:
    """Find the entry's parameters and outputs.

    They come from the entry itself, else from the layout that the header prints, else from the entry's first line.
    """
    entry = module.entry
    root = entry.root if entry and not _has_other_root(module, entry) else None
    instructions = entry.parameters if entry else {}
    is_whole = entry is not None and not entry.is_truncated
    tells_all = is_whole and bool(instructions) and root is not None and root.shape is not None
    header_layout = None if tells_all else module.header.entry_layout
    layout = header_layout if tells_all or header_layout is not None else read_signature(module.entry_signature)
    shapes: dict[int, Shape | None] = {}
    if not (is_whole and instructions) and layout is not None and isinstance(layout[0], TupleShape):
        shapes = dict(enumerate(layout[0].elements))
    shapes |= {number: i.shape for number, i in instructions.items()}
    result = root.shape if root else None
    if result is None and layout is not None:
        result = layout[1]
    outputs = _outputs(module, result, root)
    is_printed = (root is not None and root.shape is not None) or header_layout is not None
    reason = "" if is_printed else NO_RESULT  # a signature has no layouts to compare
    parameters = _parameters(module, shapes, instructions, entry, outputs, reason if module.header.tells_donation else NOT_TOLD)
    complete = result is not None and all(shape is not None for shape in shapes.values())
    return Interface(
        count=len(shapes),
        parameters=parameters,
        outputs=outputs,
        faults=_faults(module, shapes, result),
        complete=complete,
        parameters_known=is_whole or layout is not None,
        outputs_known=result is not None,
        donation_known=module.header.tells_donation,
    )


def _has_other_root(module: Module, entry: Computation) -> bool:
    """Return True if the text states another result than that of the last instruction, and marks no root."""
    return any(problem.code == "HI014" and problem.subject == entry.name for problem in module.problems)


def _outputs(module: Module, result: Shape | None, root: Instruction | None) -> tuple[Output, ...]:
    aliases = {alias.output_index: alias for alias in module.header.aliases}
    leaves = array_leaves(result)
    return tuple(
        Output(index, shape, sharding, _around(aliases, index))
        for (index, shape), sharding in zip(leaves, _shardings(root, len(leaves)), strict=True)
    )


def _shardings(instruction: Instruction | None, arrays: int) -> Sequence[Sharding | None]:
    """Return the sharding of each array of a result.

    A tuple's sharding has one element for each array; otherwise they are unknown (None).
    """
    sharding = instruction.attr("sharding") if instruction is not None else None
    if sharding is None or sharding.kind != "tuple" or not sharding.elements:
        return [sharding] * arrays
    return sharding.elements if len(sharding.elements) == arrays else [None] * arrays


def _around(table: Mapping[ShapeIndex, _T], index: ShapeIndex) -> _T | None:
    """Return the entry of an array, or of the innermost tuple around it that has one."""
    for length in range(len(index), -1, -1):
        if index[:length] in table:
            return table[index[:length]]
    return None


def _parameters(
    module: Module,
    shapes: dict[int, Shape | None],
    instructions: dict[int, Instruction],
    entry: Computation | None,
    outputs: tuple[Output, ...],
    reason_unknown: str,
) -> tuple[ParameterLeaf, ...]:
    aliases = {(alias.parameter, *alias.parameter_index): alias for alias in module.header.aliases}
    donors = {(donor.parameter, *donor.parameter_index): True for donor in module.header.donors}
    paths = _paths(module, instructions)
    leaves: list[ParameterLeaf] = []
    for number in sorted(shapes):
        instruction = instructions.get(number)
        arrays = array_leaves(shapes[number])
        for (index, shape), own in zip(arrays, _shardings(instruction, len(arrays)), strict=True):
            place = (number, *index)
            leaves.append(
                ParameterLeaf(
                    number=number,
                    index=index,
                    instruction=instruction,
                    shape=shape,
                    sharding=own,
                    alias=_around(aliases, place),
                    donor=_around(donors, place) is not None,
                    unused=_is_unused(entry, instruction, index),
                    kept_because="",
                    path=paths.get(number, ""),
                )
            )
    return _with_reasons(leaves, outputs, reason_unknown)


def _paths(module: Module, instructions: dict[int, Instruction]) -> dict[int, str]:
    """Return the path of each parameter.

    A name that all parameters share, such as `xla__device_data`, is no path. In that case try the name that Neuron's compiler
    gives an input, then the source line of the parameter.
    """
    metadata = {number: instruction.attr("metadata") for number, instruction in instructions.items()}
    path_makers: tuple[Callable[[int], str], ...] = (
        lambda number: _path(metadata[number]),
        lambda number: (instructions[number].attr("frontend_attributes") or {}).get("neff_input_names", ""),
        lambda number: "" if (own := metadata[number]) is None else origin_of(own, module.frames).source,
    )
    for name_of in path_makers:
        paths = {number: name_of(number) for number in instructions}
        if len(set(paths.values())) > 1 or (len(paths) == 1 and any(paths.values())):
            return paths
    return {}


def _path(metadata: Metadata | None) -> str:
    return "" if metadata is None or _SCOPE.search(metadata.op_name) else metadata.op_name


def _is_unused(entry: Computation | None, instruction: Instruction | None, index: ShapeIndex) -> bool | None:
    if entry is None or instruction is None or entry.reads is None or not entry.reads.known or entry.is_truncated:
        return None
    if instruction.is_root:
        return False
    if instruction.name in entry.reads.unread:
        return True
    read = entry.reads.elements.get(instruction.name)
    return read is not None and bool(index) and index[0] not in read


def _with_reasons(leaves: list[ParameterLeaf], outputs: tuple[Output, ...], reason_unknown: str) -> tuple[ParameterLeaf, ...]:
    by_shape: dict[str, list[Output]] = {}
    for output in outputs:
        by_shape.setdefault(str(output.shape), []).append(output)
    takers = Counter(str(leaf.shape) for leaf in leaves if leaf.donor and leaf.alias is None)
    reasons: dict[tuple[str, str | None, Layout | None], str] = {}  # thousands of parameters can have one shape

    def kept_reason(leaf: ParameterLeaf) -> str:
        shape = str(leaf.shape)
        key = (shape, leaf.sharding.text if leaf.sharding is not None else None, leaf.shape.layout)
        if key not in reasons:
            reasons[key] = reason_unknown or _kept_reason(leaf, by_shape.get(shape, []), takers[shape])
        return reasons[key]

    return tuple(leaf if leaf.alias or leaf.donor else replace(leaf, kept_because=kept_reason(leaf)) for leaf in leaves)


def _kept_reason(leaf: ParameterLeaf, outputs: list[Output], donors: int) -> str:
    """Return why a parameter is not donated.

    `outputs` have its shape; `donors` is the number of donors of that shape that wait for an output.
    """
    free = [output for output in outputs if output.alias is None]
    same_sharding = [o for o in free if o.sharding is None or leaf.sharding is None or o.sharding.text == leaf.sharding.text]
    same_layout = [o for o in same_sharding if o.shape.layout == leaf.shape.layout]
    if not outputs:
        return NO_OUTPUT
    if len(free) <= donors:
        return ALL_TAKEN
    if not same_sharding:
        return OTHER_SHARDING
    return FITS if same_layout else OTHER_LAYOUT


def _faults(module: Module, shapes: dict[int, Shape | None], result: Shape | None) -> tuple[InterfaceFault, ...]:
    """Return the aliases and donors of the header that have no parameter or output."""
    faults = []
    for alias in module.header.aliases:
        if result is not None and subshape(result, alias.output_index) is None:
            message = f"input_output_alias names output {list(alias.output_index)}, which the result does not have"
            faults.append(InterfaceFault(message, _bytes_at(shapes.get(alias.parameter), alias.parameter_index)))
    pairs = [(a.parameter, a.parameter_index, a.output_index) for a in module.header.aliases]
    for number, index, output in [*pairs, *((donor.parameter, donor.parameter_index, None) for donor in module.header.donors)]:
        shape = shapes.get(number)
        if shapes and (number not in shapes or (shape is not None and subshape(shape, index) is None)):
            message = f"the header donates parameter {number}{list(index) or ''}, which the entry does not have"
            faults.append(InterfaceFault(message, _bytes_at(result, output) if output is not None else 0))
    return tuple(faults)


def _bytes_at(shape: Shape | None, index: ShapeIndex) -> int:
    part = subshape(shape, index) if shape is not None else None
    return (part.array_bytes or 0) if part is not None else 0


def fitting(leaves: Iterable[ParameterLeaf], outputs: Iterable[Output]) -> list[ParameterLeaf]:
    """Select the parameters that could be donated.

    For each shape their number is at most the number of outputs that alias no parameter.
    """
    free = Counter(str(output.shape) for output in outputs if output.alias is None)
    fitting_leaves = []
    for leaf in leaves:
        shape = str(leaf.shape)
        if free[shape]:
            free[shape] -= 1
            fitting_leaves.append(leaf)
    return fitting_leaves


# -- updates ----------------------------------------------------------------------------------------------------------------

NO_UPDATE = "no update of a weight was found"
"""Reason why phases are unknown in a module that updates no weight."""

FLOATS = ("f", "bf")


def may_update(header: Header) -> bool:
    """Return True if some output can be the new value of a parameter, or if the header does not show it.

    Both must be arrays of floats with the same dimensions.
    """
    layout = header.entry_layout
    if layout is None:
        return True
    inputs, outputs = (
        {leaf.dimensions for _, leaf in array_leaves(shape) if leaf.dtype.startswith(FLOATS)} for shape in layout
    )
    return not inputs.isdisjoint(outputs)


_MOVING = (
    (opcodes_that_give("same", "element", "packing", "move", "part") - opcodes_that_are("update"))
    | opcodes_that_are("collective", "device-number", "marker")
    | LITERAL_OPCODES
    | ASYNC_ENDS
)
"""Opcodes that make no new value of an array: they move it, share it, or sum it up over devices."""


def makes_something(module: Module, applied: Set[str | None]) -> bool:
    """Return True if the module, read with its graph, may make new values of arrays, as an update does.

    Computations of `applied`, which collectives apply, do not count.
    """
    named = module.computations.items()
    return any(not _MOVING.issuperset(computation.opcodes) for name, computation in named if name not in applied)


def adds_something(module: Module, applied: Set[str | None]) -> bool:
    """Return True if the module may add or subtract, as the update of a weight does.

    The module must be read with its graph, or with `ADDING` noted. Computations of `applied`, which collectives apply, do not
    count. A program that only reshards arrays returns False.
    """
    if module.wants.reads_every_line:
        named = module.computations.items()
        return any(not ADDING.isdisjoint(computation.opcodes) for name, computation in named if name not in applied)
    return module.noted is None or len(module.noted) >= MAX_NOTED or not module.noted <= applied
