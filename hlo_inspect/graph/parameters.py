"""Entry parameters and outputs: which buffer an output reuses, which is donated, which is never read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from hlo_inspect.hlo.instruction import Instruction
from hlo_inspect.hlo.module import Computation, Module
from hlo_inspect.hlo.opcodes import opcodes_that_are
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.header import Alias, Header, ShapeIndex, read_signature
from hlo_inspect.hlo.values.op_names import origin_of
from hlo_inspect.hlo.values.shapes import ArrayShape, Layout, Shape, TupleShape, array_leaves, subshape
from hlo_inspect.hlo.values.sharding import Sharding
from hlo_inspect.lazy_pattern import lazy_pattern

_SCOPE = lazy_pattern(r"[a-z_]\(")  # an op_name that is a scope of operations, not an argument's path


@dataclass(frozen=True, slots=True)
class Output:
    """An array of the entry's result. `alias` says which parameter's buffer it takes."""

    index: ShapeIndex
    shape: ArrayShape
    sharding: Sharding | None
    alias: Alias | None


@dataclass(frozen=True, slots=True)
class ParameterLeaf:
    """An array of an entry parameter. `donor` is a buffer given away without an output; `unused` that no instruction reads it,
    `None` where the text does not say.

    `path` is the argument's path in the caller's tree, which JAX gives as the parameter's op_name, else another name of it.
    `kept_because` says why an array that is not donated could not be, that it could, or that the text does not say.
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
        """`None` where the text does not say."""
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
    """An alias or donor of the header that leads nowhere, and the bytes of the buffer at its other end, as far as known."""

    message: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters and results of the entry computation.

    `known` and `outputs_known` are false where neither the entry nor a layout in the header has parameters or the
    result, `complete` where a shape is not known, `donation_known` where the text lacks the part of the header that names
    aliases and donors.
    """

    count: int
    parameters: tuple[ParameterLeaf, ...]
    outputs: tuple[Output, ...]
    faults: tuple[InterfaceFault, ...]
    complete: bool = True
    known: bool = True
    outputs_known: bool = True
    donation_known: bool = True

    @property
    def uses_known(self) -> bool:
        """Whether it is known of every parameter if something reads it."""
        return all(leaf.unused is not None for leaf in self.parameters)


def find_interface(module: Module) -> Interface:
    """The entry's parameters and outputs, from the entry itself, else from the layout that the header prints, else from the
    entry's first line.
    """
    entry = module.entry
    root = entry.root if entry else None
    instructions = entry.parameters if entry else {}
    is_whole = entry is not None and not entry.is_cut_off
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
        known=is_whole or layout is not None,
        outputs_known=result is not None,
        donation_known=module.header.tells_donation,
    )


def _outputs(module: Module, result: Shape | None, root: Instruction | None) -> tuple[Output, ...]:
    aliases = {alias.output_index: alias for alias in module.header.aliases}
    leaves = array_leaves(result)
    shardings = _shardings(root, len(leaves))
    return tuple(Output(*leaf, sharding, _at(aliases, leaf[0])) for leaf, sharding in zip(leaves, shardings, strict=True))


def _shardings(instruction: Instruction | None, arrays: int) -> Sequence[Sharding | None]:
    """The sharding of each array of a result; that of a tuple has one for each of them, else it is not known."""
    sharding = instruction.attr("sharding") if instruction is not None else None
    if sharding is None or sharding.kind != "tuple" or not sharding.elements:
        return [sharding] * arrays
    return sharding.elements if len(sharding.elements) == arrays else [None] * arrays


def _at(aliases: dict[ShapeIndex, Alias], index: ShapeIndex) -> Alias | None:
    """The alias of an output, or of the tuple that holds it."""
    return next((aliases[index[:n]] for n in range(len(index), -1, -1) if index[:n] in aliases), None)


def _parameters(
    module: Module,
    shapes: dict[int, Shape | None],
    instructions: dict[int, Instruction],
    entry: Computation | None,
    outputs: tuple[Output, ...],
    why_unknown: str,
) -> tuple[ParameterLeaf, ...]:
    aliases = {(alias.parameter, alias.parameter_index): alias for alias in module.header.aliases}
    donors = {(donor.parameter, donor.parameter_index) for donor in module.header.donors}
    paths = _paths(module, instructions)
    leaves: list[ParameterLeaf] = []
    for number in sorted(shapes):
        instruction = instructions.get(number)
        arrays = array_leaves(shapes[number])
        for (index, shape), own in zip(arrays, _shardings(instruction, len(arrays)), strict=True):
            prefixes = [(number, index[:k]) for k in range(len(index), -1, -1)]
            leaves.append(
                ParameterLeaf(
                    number=number,
                    index=index,
                    instruction=instruction,
                    shape=shape,
                    sharding=own,
                    alias=next((aliases[p] for p in prefixes if p in aliases), None),
                    donor=any(p in donors for p in prefixes),
                    unused=_is_unused(entry, instruction, index),
                    kept_because="",
                    path=paths.get(number, ""),
                )
            )
    return _with_reasons(leaves, outputs, why_unknown)


def _paths(module: Module, instructions: dict[int, Instruction]) -> dict[int, str]:
    """The path of each parameter. What all of them are called, as `xla__device_data`, is no path of any: instead of it the name
    that Neuron's compiler gives an input, else the line that made it.
    """
    metadata = {number: instruction.attr("metadata") for number, instruction in instructions.items()}
    ways: tuple[Callable[[int], str], ...] = (
        lambda number: _path(metadata[number]),
        lambda number: (instructions[number].attr("frontend_attributes") or {}).get("neff_input_names", ""),
        lambda number: "" if (one := metadata[number]) is None else origin_of(one, module.frames).source,
    )
    for name_of in ways:
        paths = {number: name_of(number) for number in instructions}
        if len(set(paths.values())) > 1 or (len(paths) == 1 and any(paths.values())):
            return paths
    return {}


def _path(metadata: Metadata | None) -> str:
    return "" if metadata is None or _SCOPE.search(metadata.op_name) else metadata.op_name


def _is_unused(entry: Computation | None, instruction: Instruction | None, index: ShapeIndex) -> bool | None:
    if entry is None or instruction is None or entry.reads is None or not entry.reads.known or entry.is_cut_off:
        return None
    if instruction.is_root:
        return False
    if instruction.name in entry.reads.unread:
        return True
    read = entry.reads.elements.get(instruction.name)
    return read is not None and bool(index) and index[0] not in read


def _with_reasons(leaves: list[ParameterLeaf], outputs: tuple[Output, ...], why_unknown: str) -> tuple[ParameterLeaf, ...]:
    by_shape: dict[str, list[Output]] = {}
    for output in outputs:
        by_shape.setdefault(str(output.shape), []).append(output)
    takers = Counter(str(leaf.shape) for leaf in leaves if leaf.donor and leaf.alias is None)
    known: dict[tuple[str, str | None, Layout | None], str] = {}  # thousands of parameters can have one shape

    def why_kept(leaf: ParameterLeaf) -> str:
        shape = str(leaf.shape)
        alike = (shape, leaf.sharding.text if leaf.sharding is not None else None, leaf.shape.layout)
        if alike not in known:
            known[alike] = why_unknown or _why_kept(leaf, by_shape.get(shape, []), takers[shape])
        return known[alike]

    return tuple(leaf if leaf.alias or leaf.donor else replace(leaf, kept_because=why_kept(leaf)) for leaf in leaves)


def _why_kept(leaf: ParameterLeaf, outputs: list[Output], donors: int) -> str:
    """Why a parameter of the shape of `outputs` is not donated, when so many `donors` of that shape wait for an output."""
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
    """Aliases and donors of the header that lead nowhere."""
    faults = []
    for alias in module.header.aliases:
        if result is not None and subshape(result, alias.output_index) is None:
            message = f"input_output_alias names output {list(alias.output_index)}, which the result does not have"
            faults.append(InterfaceFault(message, _bytes_at(shapes.get(alias.parameter), alias.parameter_index)))
    given = [(a.parameter, a.parameter_index, a.output_index) for a in module.header.aliases]
    for number, index, output in [*given, *((donor.parameter, donor.parameter_index, None) for donor in module.header.donors)]:
        shape = shapes.get(number)
        if shapes and (number not in shapes or (shape is not None and subshape(shape, index) is None)):
            message = f"the header gives away parameter {number}{list(index) or ''}, which the entry does not have"
            faults.append(InterfaceFault(message, _bytes_at(result, output) if output is not None else 0))
    return tuple(faults)


def _bytes_at(shape: Shape | None, index: ShapeIndex) -> int:
    part = subshape(shape, index) if shape is not None else None
    return (part.array_bytes or 0) if part is not None else 0


def fitting(leaves: Iterable[ParameterLeaf], outputs: Iterable[Output]) -> list[ParameterLeaf]:
    """Of these parameters as many of each shape as there are outputs of that shape which take no parameter's buffer."""
    free = Counter(str(output.shape) for output in outputs if output.alias is None)
    found = []
    for leaf in leaves:
        shape = str(leaf.shape)
        if free[shape]:
            free[shape] -= 1
            found.append(leaf)
    return found


# -- updates ----------------------------------------------------------------------------------------------------------------

NO_UPDATE = "no update of a weight was found"
"""Why the graph of values gives no phases for a module without any."""

FLOATS = ("f", "bf")


def may_update(header: Header) -> bool:
    """Whether some output can be the new value of a parameter: both are arrays of floats of one shape. True where the header
    does not tell.
    """
    layout = header.entry_layout
    if layout is None:
        return True
    inputs, outputs = (
        {leaf.dimensions for _, leaf in array_leaves(shape) if leaf.dtype.startswith(FLOATS)} for shape in layout
    )
    return not inputs.isdisjoint(outputs)


_ADDING = (opcodes_that_are("sum") - {"negate"}) | {"map", "scatter"} | {"call", "custom-call"}


def adds_something(module: Module, applied: Container[str | None]) -> bool:
    """Return True if a module, read with its graph, may add or subtract outside of the computations that collectives apply, as
    the update of a weight does. A program that reshards arrays does not.
    """
    return any(not _ADDING.isdisjoint(one.opcodes) for name, one in module.computations.items() if name not in applied)
