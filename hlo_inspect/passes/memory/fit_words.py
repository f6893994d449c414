"""The words that say if a program fits, on the pages of `memory` and `summary`."""

from __future__ import annotations

from hlo_inspect.analysis.memory.fit import MemoryFit
from hlo_inspect.report.model import Amount, Parts, sentence


def fit_parts(fit: MemoryFit) -> Parts:
    """Yield if the program fits, the memory of a device, and what is left or too much; nothing if the need is unknown."""
    if fit.left is None:
        return
    fits, rest = ("fits", "left") if fit.left >= 0 else ("does not fit", "too much")
    text = f"{fits} in the {{}} of {fit.memory} of {fit.profile.name}, {{}} {rest}"
    yield from sentence(text, Amount(fit.capacity, "bytes"), Amount(abs(fit.left), "bytes"))
