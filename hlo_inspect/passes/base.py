"""What a pass is: one question about a module, answered as facts, tables and findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from hlo_inspect.analysis.context import Context
from hlo_inspect.hlo.module import Wants
from hlo_inspect.report.model import FactSpec, Finding, Table, Value


class Pass(ABC):
    """One question.

    `wants` is what the reader has to keep for it; `specs` names every fact that it gives. `includes` are passes whose facts and
    findings belong to its answer, but not their tables. A pass without tables of its own is no command.
    """

    name: ClassVar[str]
    wants: ClassVar[Wants]
    specs: ClassVar[tuple[FactSpec, ...]]
    includes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def facts(self, context: Context) -> dict[str, Value]:
        """Every fact of `specs`; of a family those members that occur."""

    @abstractmethod
    def tables(self, context: Context) -> list[Table]:
        """The command's own table first."""

    def findings(self, context: Context) -> list[Finding]:
        return []

    def notes(self, context: Context, unknown: Sequence[str]) -> list[str]:
        """Why the `unknown` facts, those that are `None`, are so: one line each, starting with the fact's name."""
        return []
