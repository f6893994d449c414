"""Comparison of two inputs: pairs of their modules, and the differences of each pair.

If a side has several modules, all names are read too. A module can then be compared, and forgotten, as soon as its mate is
read. To see that there are several, two modules of one side and one of the other are read ahead. Modules that cannot be paired
by name wait for the end.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from os import PathLike
from typing import NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.compare.compared_module import ComparedModule
from hlo_inspect.compare.comparison import ONLY_IN_NEW, ONLY_IN_OLD, ModuleComparison, compare, unpaired
from hlo_inspect.compare.pairing import pair_by, pair_names
from hlo_inspect.errors import HloInspectError, InputError, InternalError, Location, UsageError, as_internal_errors
from hlo_inspect.hlo.input.dump_directory import expanded, is_directory
from hlo_inspect.hlo.input.source import Openable, open_source
from hlo_inspect.inspection.inspection import STANDARD_INPUT, Inspection
from hlo_inspect.inspection.module_reports import ReportNeeds
from hlo_inspect.inspection.saved_reports import holds_report, saved_reports
from hlo_inspect.inspection.source_reports import without_collection
from hlo_inspect.passes import MODULE_FACTS, PASSES
from hlo_inspect.report.model import Report
from hlo_inspect.request import Request

WITH_TABLES = ("params", "collectives", "optimizer")
"""The passes whose tables are compared beside their facts."""

WITHOUT_FACTS = frozenset({"fingerprint"})
"""A pass whose facts say nothing beside what the first line says."""


class ComparedInput(NamedTuple):
    """Input of a comparison: a path, `-`, an open file or a text.

    `module` is a pattern of names of modules, `mesh` names its axes. Without them those of the request apply.
    """

    source: Openable
    module: str | None = None
    mesh: str | None = None


class Comparisons:
    """Comparison of two inputs with one request. The report of each module also has the tables of the passes `shown`."""

    def __init__(
        self,
        request: Request,
        *,
        watch: Callable[[Inspection], None] = lambda _: None,
        shown: Sequence[str] = (),
        with_notes: bool = True,
    ) -> None:
        passes = tuple(dict.fromkeys((*WITH_TABLES, *shown)))
        others = [name for name in PASSES.names if name not in WITHOUT_FACTS and name not in passes]
        self._request = replace(request, passes=passes, also=tuple(others), jobs=1)
        self._needs = ReportNeeds(notes=with_notes, measured=True)
        self._watch = watch
        self.errors: list[HloInspectError] = []
        """Files and modules that cannot be read or compared."""

    def compare(self, old: ComparedInput, new: ComparedInput) -> Iterator[ModuleComparison]:
        """Yield a comparison for each pair of modules, then one for each module without a mate.

        `errors` has the files and modules that cannot be read or compared. If a side has no module, nothing is compared.
        """
        if old.source in STANDARD_INPUT and new.source in STANDARD_INPUT:
            raise UsageError("only one of the two inputs can be standard input")
        sides = self._side(old), self._side(new)
        if all(side.is_saved for side in sides):
            self._request.refuse_options("saved reports, which are compared as they are")
        first, second = (_Lookahead(side.modules()) for side in sides)
        if first.is_single() and second.is_single():
            yield from self._compared(next(first), next(second))
        else:
            names = [side.names() for side in sides]
            if first.holds(1) and second.holds(1):
                yield from self._paired(first, second, *names)
        self.errors += [error for side in sides for error in side.errors]

    def _side(self, given: ComparedInput) -> _ComparedSide:
        return _ComparedSide(given, self._request, self._needs, self._watch)

    def _paired(
        self,
        first: Iterator[ComparedModule | None],
        second: Iterator[ComparedModule | None],
        old_names: Sequence[str],
        new_names: Sequence[str],
    ) -> Iterator[ModuleComparison]:
        plan = dict(pair_names(old_names, new_names).pairs)
        waiting: dict[int, ComparedModule | None] = {}
        old_left: list[ComparedModule] = []
        coming = enumerate(second)
        for position, module in enumerate(first):
            mate = plan.get(position)
            if mate is None:
                old_left += [module] if module is not None else []
                continue
            while mate not in waiting:
                following = next(coming, None)
                if following is None:
                    break
                waiting[following[0]] = following[1]
            if mate in waiting:
                yield from self._compared(module, waiting.pop(mate))
            elif module is not None:
                old_left.append(module)
        rest = dict((*waiting.items(), *coming))
        new_left = [module for position in sorted(rest) if (module := rest[position]) is not None]
        left = pair_by(old_left, new_left, _CONTENTS)
        for old, new in sorted(left.pairs):
            yield from self._compared(old_left[old], new_left[new])
        yield from (unpaired(old_left[old], ONLY_IN_OLD) for old in left.old)
        yield from (unpaired(new_left[new], ONLY_IN_NEW) for new in left.new)

    def _compared(self, old: ComparedModule | None, new: ComparedModule | None) -> Iterator[ModuleComparison]:
        """Yield the comparison of two modules, unless one of them is lost."""
        if old is None or new is None:
            return
        place = Location(new.report.input.path, new.report.input.first_line)
        try:
            with as_internal_errors(place, new.report.module_name), without_collection():
                comparison = compare(old, new)
        except InternalError as error:
            self.errors.append(error)
        else:
            yield comparison


_MANY_ARRAYS = 4
"""Modules of different names are paired by their signature if it has more parameters and results than this."""

_CONTENTS: tuple[Callable[[ComparedModule], Hashable | None], ...] = (
    lambda module: (module.name, module.program) if module.program is not None else None,
    lambda module: (module.name, module.signature) if module.signature is not None else None,
    lambda module: module.name,
    lambda module: module.program,
    lambda module: module.signature if module.signature is not None and len(module.signature) > _MANY_ARRAYS else None,
)


class _StoredInput(io.BytesIO):
    """Content of an input that can be read only once, stored to be read again."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


class _ComparedSide:
    """Side of a comparison. It is read for its modules and for their names, in either order."""

    def __init__(self, given: ComparedInput, request: Request, needs: ReportNeeds, watch: Callable[[Inspection], None]) -> None:
        self._errors: dict[str, HloInspectError] = {}
        module, mesh = given.module or request.module, given.mesh or request.mesh
        self._request = replace(request, module=module, mesh=mesh)
        self._needs = needs
        self._watch = watch
        source = given.source
        if source in STANDARD_INPUT or not isinstance(source, str | bytes | bytearray | memoryview | PathLike):
            opened = open_source("-" if source in STANDARD_INPUT else source)
            content = b"".join(opened.raw_pieces())
            self._open: Callable[[], Openable] = lambda: _StoredInput(content, opened.name)
        else:
            self._open = lambda: source
        self.is_saved = self._holds_report()

    @property
    def errors(self) -> list[HloInspectError]:
        """Errors so far, each once, though the side can be read twice."""
        return list(self._errors.values())

    def names(self) -> list[str]:
        """Return the names of the modules. A lost module without a known name has the text of its error, which is unique."""
        with Inspection(replace(self._request, passes=(MODULE_FACTS,), also=())) as inspection:
            items = self._readable(inspection)
            return [item.module_name if isinstance(item, Report) else item.module or str(item) for item in items]

    def modules(self) -> Iterator[ComparedModule | None]:
        """Yield the modules in order, each with its analyses; None for a module lost to an internal error."""
        taken: list[Context] = []
        with Inspection(self._request, self._needs) as inspection:
            self._watch(inspection)
            inspection.set_report_sink(lambda _, context: taken.append(context))
            for item in self._readable(inspection):
                yield ComparedModule(item, taken.pop() if taken else None) if isinstance(item, Report) else None

    def _readable(self, inspection: Inspection) -> Iterator[Report | InternalError]:
        """Yield reports, and internal errors in the position of lost modules: modules are paired by position."""
        for item in self._saved() if self.is_saved else self._reports(inspection):
            if not isinstance(item, Report):
                self._errors.setdefault(str(item), item)
            if isinstance(item, Report | InternalError):
                yield item

    def _reports(self, inspection: Inspection) -> Iterator[Report | HloInspectError]:
        source = self._open()
        try:
            sources = expanded(source) if isinstance(source, str) and "\n" not in source else [source]
        except InputError as error:
            return iter([error])
        return inspection.read(sources)

    def _saved(self) -> Iterator[Report | HloInspectError]:
        source = open_source(self._open())
        try:
            with as_internal_errors(Location(source.name)):
                yield from saved_reports(source)
        except (InputError, InternalError) as error:
            yield error

    def _holds_report(self) -> bool:
        source = self._open()
        try:
            return not is_directory(source) and holds_report(open_source(source))
        except (HloInspectError, ValueError):
            return False


class _Lookahead(Iterator[ComparedModule | None]):
    """Iterator over modules that can read some ahead. It keeps none that it has returned."""

    def __init__(self, modules: Iterator[ComparedModule | None]) -> None:
        self._modules = modules
        self._taken: deque[ComparedModule | None] = deque()

    def __next__(self) -> ComparedModule | None:
        return self._taken.popleft() if self._taken else next(self._modules)

    def holds(self, count: int) -> bool:
        """Return True if `count` modules follow. No more than these are read ahead."""
        self._taken.extend(islice(self._modules, max(0, count - len(self._taken))))
        return len(self._taken) >= count

    def is_single(self) -> bool:
        """Return True if exactly one module follows."""
        return self.holds(1) and not self.holds(2)
