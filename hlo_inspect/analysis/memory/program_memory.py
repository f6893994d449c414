"""Device memory of any module: all figures for a schedule, else the figures that the entry's shapes state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from hlo_inspect.analysis.memory.device_memory import DeviceMemory, find_device_memory
from hlo_inspect.analysis.memory.platforms import Platform, find_platform
from hlo_inspect.analysis.memory.schedule import MemoryFault
from hlo_inspect.graph.parameters import Interface
from hlo_inspect.graph.view import Views
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.values.shapes import HOST_SPACE, total
from hlo_inspect.request import PlatformName

FIGURES = (
    "argument_bytes",
    "output_bytes",
    "alias_bytes",
    "constant_bytes",
    "temp_bytes",
    "peak_bytes",
    "xla_peak_bytes",
    "needed_bytes",
    "host_bytes",
    "padding_bytes",
    "live_peak_bytes",
    "heap_bytes",
)
"""The first three figures are known without a schedule; the others depend on layouts and on the order of instructions.

The first four are those of allocations that live through the whole step.
"""


PARTS_OF_NEEDED = ("argument_bytes", "output_bytes", "constant_bytes", "temp_bytes")
"""The figures whose sum is `needed_bytes`, less `alias_bytes`."""

_TOLERANCES: Mapping[str, float] = {"temp_bytes": 0.01, "peak_bytes": 0.01}
"""The accuracy of computed figures that are not exact, as a share of XLA's figures."""


class StatedFigure(NamedTuple):
    """A figure of XLA's files, and the computed figure; None if unknown."""

    name: str
    stated: int
    computed: int | None

    @property
    def differs(self) -> bool:
        """True if the two differ by more than the accuracy of the computed figure."""
        if self.computed is None:
            return False
        return abs(self.stated - self.computed) > _TOLERANCES.get(self.name, 0.0) * self.stated


class ProgramMemory(NamedTuple):
    """The memory of a module. If nothing is known, `device` is None and `reason` says why.

    `figures` by name, in bytes, None if unknown; `spaces` is the peak of each memory space. `reasons` explain each unknown
    figure. `faults` are faults of the text, `stated` the figures of XLA's own files beside it.
    """

    platform: Platform
    device: DeviceMemory | None
    reason: str
    figures: Mapping[str, int | None]
    spaces: Mapping[int, int | None]
    reasons: Mapping[str, str]
    faults: tuple[MemoryFault, ...] = ()
    stated: tuple[StatedFigure, ...] = ()


def find_program_memory(module: Module, views: Views, interface: Interface, given: PlatformName | None = None) -> ProgramMemory:
    """Return the memory of a module that was read with its graph. `given` is the platform that the user names."""
    platform = find_platform(module, views, given)
    reason = _not_stated_reason(module)
    if reason:
        return _logical(platform, reason, interface)
    if platform.is_tpu and not any("]{" in head for head in module.heads):
        return _partly_known(platform, "the text has no layouts; on TPU these give tile padding and memory spaces", {})
    device = find_device_memory(module, views, platform)
    faults = tuple(device.faults)
    if not faults:
        figures = {name: int(getattr(device, name)) for name in FIGURES}
        return ProgramMemory(platform, device, "", figures, device.space_peak_bytes(), {})
    return _faulty(device, faults)


def _not_stated_reason(module: Module) -> str:
    """Return the reason why the text does not state the memory; empty if it does."""
    entry = module.entry
    computations = module.computations.values()
    if entry is None or module.problems.is_truncated or any(computation.is_truncated for computation in computations):
        return "the text does not hold the whole module"
    if not module.header.is_scheduled:
        return "the module is not scheduled (no is_scheduled=true)"
    if not entry.rows:
        return "the entry computation has no instructions that could be read"
    if module.unparsed_lines:
        return "lines of the module could not be read"
    return ""


def _partly_known(
    platform: Platform,
    reason: str,
    stated: Mapping[str, int | None],
    spaces: Iterable[int] = (0,),
    faults: tuple[MemoryFault, ...] = (),
) -> ProgramMemory:
    """Return the memory of which only the figures `stated` may be known, with the reason for the others."""
    figures: dict[str, int | None] = dict.fromkeys(FIGURES) | dict(stated)
    reasons = {name: reason for name, value in figures.items() if value is None}
    reasons |= {f"space.{space}.peak_bytes": reason for space in spaces}
    return ProgramMemory(platform, None, reason, figures, dict.fromkeys(spaces), reasons, faults)


def _logical(platform: Platform, reason: str, interface: Interface) -> ProgramMemory:
    """Return the bytes of arguments and outputs on the device by their shapes, without padding."""
    figures: dict[str, int | None] = {}
    parameters, outputs = (
        [leaf for leaf in leaves if leaf.shape.memory_space != HOST_SPACE]
        for leaves in (interface.parameters, interface.outputs)
    )
    if interface.parameters_known and interface.complete:
        figures["argument_bytes"] = total(leaf.shape.bytes for leaf in parameters)
    if interface.outputs_known and interface.complete:
        figures["output_bytes"] = total(leaf.shape.bytes for leaf in outputs)
        if interface.donation_known:
            figures["alias_bytes"] = total(leaf.shape.bytes for leaf in outputs if leaf.alias is not None)
    return _partly_known(platform, reason, figures)


def _faulty(device: DeviceMemory, faults: tuple[MemoryFault, ...]) -> ProgramMemory:
    """Return the figures that faults leave known: arguments, constants, and outputs if aliases and sizes are sound."""
    figures: dict[str, int | None] = {}
    if not any(fault.of_sizes for fault in faults):
        figures = {"argument_bytes": device.argument_bytes, "constant_bytes": device.constant_bytes}
        if not any(fault.of_aliases for fault in faults):
            figures |= {"output_bytes": device.output_bytes, "alias_bytes": device.alias_bytes}
    more = f", and {len(faults) - 1} more" if len(faults) > 1 else ""
    return _partly_known(device.platform, f"{faults[0].message}{more}", figures, device.space_peak_bytes(), faults)
