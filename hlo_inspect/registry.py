"""Registries of classes that have a file each: named in one list, imported on first use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Instances of classes in the modules of a package: `custom-calls` is `CustomCalls` of the module `custom_calls`."""

    def __init__(self, package: str, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._package = package
        self._loaded: dict[str, T] = {}

    def __iter__(self) -> Iterator[T]:
        return map(self.load, self.names)

    def __len__(self) -> int:
        return len(self.names)

    def load(self, name: str) -> T:
        """Return the instance of that name. Raise KeyError if there is none."""
        if name not in self.names:
            raise KeyError(name)
        if name not in self._loaded:
            module = import_module(f"{self._package}.{name.replace('-', '_')}")
            cls = getattr(module, "".join(word.capitalize() for word in re.split("[-_]", name)))
            self._loaded[name] = cls()
        return self._loaded[name]
