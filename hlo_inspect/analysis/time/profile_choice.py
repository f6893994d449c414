"""The accelerator whose figures times are computed with, and the user's changes to these figures.

It is the accelerator that a user names, else the one of a recorded profile, else the one of the dump. A dump names it by files
beside it, or by marks of a TPU's generation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hlo_inspect.analysis.target_files import TPUS, described_gpu, described_tpu
from hlo_inspect.analysis.time.placement import Placement
from hlo_inspect.analysis.tpu_marks import has_tiles, tpu_marks
from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.hlo.module import Module
from hlo_inspect.lazy_pattern import lazy_pattern
from hlo_inspect.profiler.chip import NO_CHIP, ProfiledChip

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile
    from hlo_inspect.analysis.hardware_figures import HardwareFigure

_GPUS = (
    (lazy_pattern(r"GB200\b"), "gb200"),
    (lazy_pattern(r"\bB200\b"), "b200"),
    (lazy_pattern(r"\bH200\b(?! NVL)"), "h200"),
    (lazy_pattern(r"\bH100 (?:80GB HBM3|SXM)"), "h100-sxm"),
    (lazy_pattern(r"\bH100 PCIe"), "h100-pcie"),
    (lazy_pattern(r"\bA100-SXM4?-80GB"), "a100-sxm-80gb"),
    (lazy_pattern(r"\bA100-SXM4?-40GB"), "a100-sxm-40gb"),
    (lazy_pattern(r"\bV100-SXM2"), "v100-sxm2"),
    (lazy_pattern(r"\bL40S\b"), "l40s"),
    (lazy_pattern(r"\bL4$"), "l4"),
    (lazy_pattern(r"\bMI300X\b"), "mi300x"),
    (lazy_pattern(r"\bMI250X\b"), "mi250x"),
)


class DumpedDevice(NamedTuple):
    """The shipped profile that a dump was compiled for, and its mark; None with the reason if there is none."""

    profile: str | None
    told_by: str


NOTHING_TELLS = DumpedDevice(None, "the dump does not name its accelerator: choose one with --profile")


def dumped_device(module: Module) -> DumpedDevice:
    """Return the accelerator that the dump of a module names."""
    path = Path(module.path)
    tpu = described_tpu(path)
    if tpu is not None and tpu.profile is not None:
        return DumpedDevice(tpu.profile, f"{tpu.name} in {tpu.file} of the dump")
    if tpu is None and has_tiles(module):
        generation = tpu_marks(module).generation
        if generation is None:
            return DumpedDevice(None, "a TPU whose generation the text does not show: choose one with --profile")
        return DumpedDevice(generation, "its tiles, memory spaces and the compiler's estimates")
    name = tpu.name if tpu is not None else described_gpu(path)
    if name is None:
        return NOTHING_TELLS
    gpu = next((profile for pattern, profile in _GPUS if pattern.search(name)), None)
    if gpu is None:
        return DumpedDevice(None, f"there is no profile of {name}, for which the dump was compiled: name one with --profile")
    return DumpedDevice(gpu, f"{name} in the file about the GPU beside the dump")


_GIB = 1 << 30
_GPU_CHIPS = {
    ("Nvidia", (7, 0), 80): (("v100-sxm2", 0, 40),),
    ("Nvidia", (8, 0), 108): (("a100-sxm-40gb", 30, 50), ("a100-sxm-80gb", 70, 90)),
    ("Nvidia", (8, 9), 58): (("l4", 0, 30),),
    ("Nvidia", (8, 9), 142): (("l40s", 40, 50),),
    ("Nvidia", (9, 0), 114): (("h100-pcie", 70, 90),),
    ("Nvidia", (9, 0), 132): (("h100-sxm", 70, 90), ("h200", 130, 150)),
    ("Nvidia", (10, 0), 148): (("b200", 160, 200),),
    ("AMD", (9, 0), 110): (("mi250x", 60, 70),),
    ("AMD", (9, 4), 304): (("mi300x", 180, 200),),
}
"""Hardware profiles by vendor, compute capability and multiprocessors of a GPU, each with the GiB of memory it can have."""


def profiled_device(chip: ProfiledChip) -> DumpedDevice:
    """Return the accelerator that the planes of a recorded profile name."""
    if chip.type:
        name = TPUS.get(chip.type)
        there_is_none = f"there is no profile of {chip.type}, which the recorded profile names: name one with --profile"
        return DumpedDevice(name, f"{chip.type} in the recorded profile" if name is not None else there_is_none)
    for name, smallest, largest in _GPU_CHIPS.get((chip.vendor, chip.capability, chip.cores), ()):
        if smallest * _GIB < chip.memory < largest * _GIB:
            major, minor = chip.capability
            return DumpedDevice(name, f"{chip.vendor} {major}.{minor}, {chip.cores} multiprocessors, in the recorded profile")
    return NOTHING_TELLS


_PEAKS = ("matmul.", "vector.", "memory.", "links.")
_NO_PEAKS = ("links.host.", "memory.usable")
"""Figures that bounds rest on."""
_OF_A_DEVICE = ("matmul.", "vector.", "memory.", "on_chip.")

_CHANGE = lazy_pattern(r"([a-z0-9_.\-]{1,80}) ?= ?(\d{1,9}(?:\.\d{1,9})?|\d{1,9}/\d{1,9}) ?x", re.ASCII)
_PEAK, _MATMUL = "peak.", "matmul."


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """Options that describe the machine: profiles, changes of their figures, and the placement of devices.

    Times are those of the first profile.
    """

    profiles: tuple[HardwareProfile, ...] = ()
    changes: tuple[FigureChange, ...] = ()
    placement: Placement = field(default_factory=Placement)

    @property
    def needs_profile(self) -> bool:
        """True if an option has a meaning for a profile only."""
        return bool(self.changes) or self.placement != Placement()


class ProfileChoice(NamedTuple):
    """The profile of all times, and the source of the choice; None if there is none, explained in `notes`."""

    profile: HardwareProfile | None
    chosen_by: str
    notes: tuple[str, ...] = ()


def choose_profile(
    options: MachineOptions, module: Module, read_whole: Callable[[], Module | None], chip: ProfiledChip = NO_CHIP
) -> ProfileChoice:
    """Choose the profile for a module, with the changes that a user asks for.

    It is the profile that the user names, else the `chip` of a recorded profile. Without either the dump shows the accelerator,
    if the module was read with its graph. `read_whole` returns any module with its graph.

    Raise UsageError for a change of a figure that the profile does not state, and for options that need a profile if there is
    none.
    """
    if options.profiles:
        profile, chosen_by = options.profiles[0], "--profile"
    else:
        device = profiled_device(chip)
        if device == NOTHING_TELLS and module.wants.graph:
            device = dumped_device(module)
        if device.profile is None and options.needs_profile:
            raise UsageError(
                "--what-if, --topology and --devices-per-node need a profile, and the dump does not name its accelerator: "
                "choose one with --profile"
            )
        if device.profile is None:
            return ProfileChoice(None, "", (device.told_by,))
        from hlo_inspect.analysis.hardware import load_profile

        profile, chosen_by = load_profile(device.profile), device.told_by
    of_device, note = _device_profile(profile, read_whole)
    notes = [note] if note else []
    others = [name for name in profile.not_primary if name.startswith(_PEAKS) and not name.startswith(_NO_PEAKS)]
    others = [name for name in others if not name.startswith("links.") or name.endswith((".bandwidth", ".count"))]
    if others:
        command = f"`hlo-inspect profiles {profile.name}` lists them"
        notes.append(f"{len(others)} of its peaks are not from the maker's documents: {command}")
    return ProfileChoice(changed(of_device, options.changes), chosen_by, tuple(notes))


def _device_profile(profile: HardwareProfile, read_whole: Callable[[], Module | None]) -> tuple[HardwareProfile, str]:
    """Return the profile of XLA's device, if that is a part of the chip, and a note."""
    on_chip, cores = profile.cores_per_chip, profile.cores_per_device
    if on_chip is None or cores is None or on_chip == 1:
        return profile, ""
    beginning = f"a device of {profile.title} is"
    if cores == on_chip:
        module = read_whole()
        if module is None or not has_tiles(module):
            return profile, ""
        marks = tpu_marks(module)
        if marks.is_split or not (marks.has_kernels or marks.generation):
            return profile, ""
        cores, beginning = 1, "no kernel spans the cores of a chip: a device is"
    share = on_chip // cores
    of_chip = {name: figure for name, figure in profile.figures.items() if name.startswith(_OF_A_DEVICE) and figure is not None}
    figures: dict[str, HardwareFigure | None] = {
        name: figure._replace(value=figure.value / share) for name, figure in of_chip.items()
    }
    whole = profile.figures["cores_per_device"]
    figures["cores_per_device"] = whole._replace(value=cores) if whole is not None else None
    part = "half a chip" if share == 2 else f"1/{share} of a chip"
    note = f"{beginning} {cores} of {on_chip} cores, with the figures of {part}; devices of a chip share its links"
    return profile.with_figures(figures, ())._replace(devices_per_chip=share), note


# -- changes of its figures ----------------------------------------------------------------------------------------------------


class FigureChange(NamedTuple):
    """A figure of a profile by its dotted name, and its factor."""

    name: str
    factor: Fraction

    @property
    def text(self) -> str:
        return f"{self.name} × {float(self.factor):g}"


def given_change(text: str) -> FigureChange:
    """Parse a change such as `links.nvlink.bandwidth=2x` or `peak.bf16=0.5x`. Raise UsageError for anything else."""
    match = _CHANGE.fullmatch(text.strip())
    factor = Fraction(match[2]) if match is not None and not match[2].endswith("/0") else Fraction(0)
    if match is None or factor <= 0:
        raise UsageError(f"{text[:60]!r} is not a change of a profile: write it like links.nvlink.bandwidth=2x or peak.bf16=2x")
    return FigureChange(match[1], factor)


def changed(profile: HardwareProfile, changes: Iterable[FigureChange]) -> HardwareProfile:
    """Return the profile with its figures multiplied. Raise UsageError for a figure that it does not state."""
    for change in changes:
        name = change.name
        if name.startswith(_PEAK):
            name = _MATMUL + name.removeprefix(_PEAK)
        figure = profile.figures.get(name)
        if figure is None:
            raise UsageError(_unknown(profile, change.name))
        value = figure.value * change.factor if isinstance(figure.value, int) else figure.value * float(change.factor)
        _require_sense(profile, change, figure, value)
        value = int(value) if value == int(value) else float(value)
        stated = figure._replace(value=value, stated=f"{figure.stated} × {float(change.factor):g}")
        profile = profile.with_figures({name: stated}, (change.text,))
    return profile


def _require_sense(profile: HardwareProfile, change: FigureChange, figure: HardwareFigure, value: float | Fraction) -> None:
    """Raise UsageError for a value that such a figure cannot have."""
    if figure.unit == "flag" or figure.axes or figure.when:
        raise UsageError(f"{change.name} cannot be multiplied")
    if figure.unit == "ratio" and value > 1:
        raise UsageError(f"{change.text}: a share is at most 1, and the profile {profile.name} states {figure.stated}")
    if figure.unit == "count" and value != int(value):
        raise UsageError(f"{change.text}: {float(value):g} is not a whole number of them")


def _unknown(profile: HardwareProfile, name: str) -> str:
    """Return the reason why no figure has this name."""
    if name in profile.figures or name.replace(_PEAK, _MATMUL, 1) in profile.figures:
        return f"the profile {profile.name} states no {name}, so nothing can be multiplied"
    names = [key for key, figure in profile.figures.items() if figure is not None]
    closest = did_you_mean(name, [*names, *(key.replace(_MATMUL, _PEAK, 1) for key in names if key.startswith(_MATMUL))])
    return f"the profile {profile.name} has no figure {name!r}{closest}; `hlo-inspect profiles {profile.name}` lists them"
