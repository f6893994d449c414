"""Shardings of an optimized program's parameters, from the text that was lowered.

XLA prints none in optimized texts since jaxlib 0.11, and libtpu in older ones. The text before partitioning has them, and
StableHLO has those that the program states. Shapes confirm them: a sharding counts if it makes the whole array the part that a
device holds. A parameter without one whose part is the whole array is replicated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.analysis.devices.participants import DeviceCounts, ShapesAre
from hlo_inspect.errors import HloInspectError
from hlo_inspect.graph.parameters import Interface, find_interface
from hlo_inspect.hlo.input.dump_directory import stage_of, text_before_partitioning
from hlo_inspect.hlo.input.inputs import read_input
from hlo_inspect.hlo.input.source import Openable, open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.settings.argument_shardings import LoweredArray, read_arguments
from hlo_inspect.hlo.settings.stablehlo import MAX_BYTES
from hlo_inspect.hlo.settings.text_proto import read_file
from hlo_inspect.hlo.values.device_groups import DeviceListError, shardy_meshes
from hlo_inspect.hlo.values.shapes import ArrayShape
from hlo_inspect.hlo.values.sharding import Sharding, parse_sharding, parse_shardy_shardings, spelled_by_xla
from hlo_inspect.hlo.wants import Wants

NOT_DECIDED = "HI104, HI506 and replicated bytes are not decided"
HOW_TO = "XLA writes it with --xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd"
_REPLICATED = parse_sharding("{replicated}")


class ParameterShardings(NamedTuple):
    """The interface with the shardings of parameters. `unknown` is the note on those that are unknown; empty if none is."""

    interface: Interface
    unknown: str = ""


def find_shardings(
    module: Module, interface: Interface, counts: DeviceCounts, shapes_are: ShapesAre | None, lowered: object
) -> ParameterShardings:
    """Return the shardings of parameters: those of what was lowered, if a text of one device's part prints none.

    `lowered` is HLO or StableHLO, or the path of such a file; None if the files of the dump directory tell.
    """
    if (counts.sharded or 1) == 1 or shapes_are != "per_device":
        return ParameterShardings(interface)
    if not any(leaf.sharding for leaf in interface.parameters):
        interface = _with_lowered(module, interface, lowered)
    arrays = [leaf for leaf in interface.parameters if leaf.shape.elements != 1]
    unknown = sum(leaf.sharding is None for leaf in arrays)
    if unknown < len(arrays):
        note = f"the sharding of {unknown} of {len(arrays)} parameters is unknown: {NOT_DECIDED}; {HOW_TO}"
    elif lowered is not None:
        note = f"this text prints no shardings, and what was lowered has none that fit: {NOT_DECIDED}"
    else:
        note = f"this text prints no shardings: {NOT_DECIDED}; read it in its dump directory, or pass `lowered=` to `inspect`"
    return ParameterShardings(interface, note if unknown else "")


def _with_lowered(module: Module, interface: Interface, lowered: object) -> Interface:
    leaves = interface.parameters
    for arrays in _lowered_arrays(module, lowered):
        if len(arrays) == len(leaves):
            shardings = [_confirmed(leaf.shape, array) for leaf, array in zip(leaves, arrays, strict=True)]
            if any(shardings):
                sharded = (replace(leaf, sharding=own) for leaf, own in zip(leaves, shardings, strict=True))
                return replace(interface, parameters=tuple(sharded))
    return interface


def _lowered_arrays(module: Module, lowered: object) -> Iterator[Sequence[LoweredArray]]:
    """Yield the parameters by each text that was lowered, the best first. Raise InputError if the user's is unreadable."""
    if lowered is not None:
        text = str(lowered)
        text = text if "\n" in text else read_file(Path(text), MAX_BYTES)
        yield _hlo_arrays(text, module.name) if "HloModule " in text else read_arguments(text, module.name)
        return
    from hlo_inspect.hlo.settings.compile_settings import stablehlo_file

    path = Path(module.path)
    before, stablehlo = text_before_partitioning(path), stablehlo_file(path) if stage_of(module.path) else None
    if before is not None:
        with suppress(HloInspectError):
            yield _hlo_arrays(before, module.name)
    if stablehlo is not None:
        with suppress(HloInspectError):
            yield read_arguments(read_file(stablehlo, MAX_BYTES), module.name)


def _hlo_arrays(text: Openable, name: str) -> Sequence[LoweredArray]:
    """Return the parameters of the module of that name, with the names of axes if Shardy's attributes have them."""
    arrays = []
    module = next((module for module in read_input(open_source(text), Wants(entry=True)) if module.name == name), None)
    meshes = shardy_meshes(module.header.attributes.get("frontend_attributes", "")) if module is not None else {}
    for leaf in find_interface(module).parameters if module is not None else ():
        attributes = leaf.instruction.attr("frontend_attributes") if leaf.instruction is not None else None
        named = parse_shardy_shardings((attributes or {}).get("xla.sdy.sharding", ""), meshes)
        is_one = len(named) == 1 and not leaf.index
        arrays.append(LoweredArray(leaf.shape.dimensions, spelled_by_xla(named[0]) if is_one else leaf.sharding))
    return arrays


def _confirmed(part: ArrayShape, array: LoweredArray) -> Sharding | None:
    """Return the sharding that makes the array the part that a device holds; None if it is unknown."""
    whole, sharding = array.dimensions, array.sharding
    if sharding is None:
        return _REPLICATED if part.dimensions == whole else None
    try:
        divided = list(zip_longest(whole, sharding.divisions, fillvalue=1))
    except DeviceListError:
        return None
    parts = [-(-size // count) if size is not None and count else None for size, count in divided]
    return sharding if parts == list(part.dimensions) else None
