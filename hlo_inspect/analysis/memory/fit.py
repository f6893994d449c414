"""Does a program fit: the usable memory of one device beside the memory that the program needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hlo_inspect.analysis.hardware import HardwareProfile

_USABLE, _STATED = "memory.usable", "memory.capacity"


class MemoryFit(NamedTuple):
    """Usable bytes of one device of a hardware profile, and the needs of the program and of its arguments; None if unknown."""

    profile: HardwareProfile
    capacity: int
    needed: int | None
    arguments: int | None = None

    @property
    def left(self) -> int | None:
        """Capacity less need, negative if the program does not fit; None if the need is unknown."""
        return None if self.needed is None else self.capacity - self.needed

    @property
    def excess(self) -> int:
        """Bytes beyond the capacity: of the program, or of its arguments alone if its need is unknown."""
        least = self.arguments if self.needed is None else self.needed
        return max((least or 0) - self.capacity, 0)

    @property
    def memory(self) -> str:
        """Name of the memory: usable memory, or all memory if no source states the usable part."""
        return "usable memory" if self.profile.value(_USABLE) is not None else "memory"

    @property
    def source(self) -> str:
        """The source that states the capacity, by its id in the profile, with the profile's remark on the figure."""
        figure = self.profile.figures.get(_USABLE) or self.profile.figures.get(_STATED)
        if figure is None:
            return ""
        return f"{figure.source}: {figure.note}" if figure.note else figure.source
