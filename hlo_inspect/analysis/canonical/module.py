"""A module without its names: the fingerprints of its computations, and one of its program and of its schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cached_property
from hashlib import blake2b

from hlo_inspect.analysis.canonical.computation import CanonicalComputation
from hlo_inspect.analysis.canonical.order import operands_first
from hlo_inspect.analysis.canonical.spelling import Speller
from hlo_inspect.analysis.canonical.text import CanonicalText
from hlo_inspect.analysis.view import View, Views
from hlo_inspect.hlo.module import Module

_UNKNOWN = 0
"""Stands for a computation that the module does not have, or that calls itself."""


class CanonicalModule:
    """The computations of a module that was read with its graph. Without `layouts` these count for nothing.

    Kernels of the same text up to names are one object.
    """

    def __init__(self, module: Module, views: Views, *, layouts: bool = True) -> None:
        self.module = module
        self._views = views
        self.layouts = layouts
        self._hashes: dict[Hashable, int] = {}

    def of(self, name: str) -> CanonicalComputation:
        """A computation; `KeyError` where the module has none of that name."""
        return self._computations[name]

    def __contains__(self, name: str) -> bool:
        return name in self._computations

    def view(self, name: str) -> View:
        """The rows of a computation."""
        return self._views.of(name)

    @cached_property
    def _computations(self) -> dict[str, CanonicalComputation]:
        found: dict[str, CanonicalComputation] = {}
        fingerprints: dict[str, int] = {}
        unnamed: dict[int, CanonicalComputation] = {}
        entry = self.module.entry.name if self.module.entry is not None else None
        speller = Speller(layouts=self.layouts)
        for name in self.module.computations:
            alike = self._views.fingerprints.of(name) if name != entry else None
            if alike is not None and not self._views.fingerprints.is_alone(name):
                alike = None
            known = unnamed.get(alike) if alike is not None else None
            if known is None:
                view = self._views.of(name)
                spellings = [speller.spell(view, index) for index in range(len(view.rows))]
                known = CanonicalComputation(view, spellings, lambda callee: fingerprints.get(callee, _UNKNOWN), self._hashes)
                if alike is not None:
                    unnamed[alike] = known
            found[name] = known
        for name in operands_first(found, lambda name: [one for one in found[name].callees if one in found]):
            if name != entry:  # which few ask for
                fingerprints[name] = found[name].fingerprint
        return found

    @cached_property
    def inner(self) -> Counter[int]:
        """How often each fingerprint is that of a computation other than the entry."""
        entry = self.module.entry.name if self.module.entry is not None else None
        return Counter(one.fingerprint for name, one in self._computations.items() if name != entry)

    @property
    def names(self) -> list[str]:
        """The computations, in the order of the text."""
        return list(self._computations)

    @cached_property
    def program(self) -> str:
        """Names the program, in 32 hexadecimal digits: the same for two texts that differ in the names of module, computations,
        instructions and channels, in metadata, in the order of independent lines, and in whether they are scheduled.
        """
        return self._hash(is_scheduled=False)

    @cached_property
    def schedule(self) -> str | None:
        """Names program and schedule, in 32 hexadecimal digits; `None` where the module is not scheduled."""
        return self._hash(is_scheduled=True) if self.module.header.is_scheduled else None

    def _hash(self, *, is_scheduled: bool) -> str:
        hashed = blake2b(digest_size=16)
        for line in CanonicalText(self, is_scheduled=is_scheduled).unnamed_lines():
            hashed.update(line.encode(errors="surrogatepass"))
        return hashed.hexdigest()
