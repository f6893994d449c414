"""Changes of kernels, custom calls and constants, computed from the edits of the instructions.

Fusions whose bodies together hold the same instructions as others are reported as split, merged or rewritten. An instruction
that only forwards values is reported only if nothing else differs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import CostFigure
from hlo_inspect.analysis.cost.kernels import NO_KERNELS
from hlo_inspect.analysis.provenance import NOT_FUSED, NOT_PRINTED, printed
from hlo_inspect.compare.changes import Area, Aspect, ModuleChange
from hlo_inspect.compare.edits import Edit, EditPlace
from hlo_inspect.figure import exact
from hlo_inspect.graph.canonical.canonical_module import CanonicalModule
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, LITERAL_OPCODES, TABLE, opcodes_that_are
from hlo_inspect.hlo.values.op_names import UNKNOWN

_IN_NO_KERNEL = NO_KERNELS - {"constant"}
_CHEAP = opcodes_that_are("cheap")
_FORWARDING = _CHEAP - LITERAL_OPCODES
_REPEATED = _CHEAP | {"convert"}
"""Opcodes that cost nothing if several fusions repeat them."""

_LONGEST_LIST = 6
_LEAST_SHARE = 0.5
"""Least share of the operations of a new kernel that a kernel of OLD held, if it was part of that."""

Content = Counter[tuple[str, str]]
"""The number of instructions of each opcode and shape, without layouts."""

ContentKey = frozenset[tuple[tuple[str, str], int]]
"""A `Content` as a key."""

Operation = tuple[str, str]
"""Opcode and op_name of an instruction that costs something."""


class InstructionChanges:
    """The changes that the edits between two modules make up."""

    def __init__(self, old: Context, new: Context, edits: Sequence[Edit]) -> None:
        self._sides = (old, new)
        self._edits = edits
        self._kernels = [{kernel.place[1]: kernel for kernel in context.kernels.launched} for context in self._sides]
        self._origins = KernelOrigins(old, new, [edit for edit in edits if self._area(edit) == "kernels"])

    def found(self) -> Iterator[ModuleChange]:
        """Yield changes of kernels, custom calls and constants."""
        areas = {edit: area for edit in self._edits if (area := self._area(edit)) is not None}
        kernels = [edit for edit, area in areas.items() if area == "kernels"]
        regrouping = Regrouping(self._sides[0].canonical, self._sides[1].canonical, kernels)
        for regrouped in regrouping.found:
            yield self._regrouped(regrouped)
        for edit, area in areas.items():
            if edit not in regrouping.explained:
                yield from self._changes(edit, area)

    def others(self) -> Iterator[ModuleChange]:
        """Yield changes of instructions that only forward values."""
        for edit in self._edits:
            if self._area(edit) is None and not self._is_collective(edit):
                yield self._change("other", edit, self._opcode(edit), edit.aspects)

    def _area(self, edit: Edit) -> Area | None:
        opcodes = {self._view(side, place).opcodes[place.row] for side, place in edit.places}
        if self._is_collective(edit):
            return None
        if opcodes <= _IN_NO_KERNEL or opcodes & ASYNC_ENDS:
            return None
        if opcodes == {"custom-call"}:
            return "custom calls"
        if opcodes == {"constant"}:
            return "constants" if edit.what == "changed" else None
        return "kernels"

    def _view(self, side: int, place: EditPlace) -> View:
        return self._sides[side].views.for_computation(place.computation)

    def _shown_row(self, edit: Edit) -> tuple[Context, View, int]:
        """Return the row that represents an edit: in NEW, or in OLD if the instruction is gone."""
        side, place = edit.places[-1]
        return self._sides[side], self._view(side, place), place.row

    def _opcode(self, edit: Edit) -> str:
        _, view, row = self._shown_row(edit)
        return view.opcodes[row]

    def _changes(self, edit: Edit, area: Area) -> Iterator[ModuleChange]:
        inside = [leaf for leaf in edit.leaves() if not self._is_collective(leaf)]
        others = [leaf for leaf in inside if not self._is_constant(leaf) and self._opcode(leaf) != "parameter"]
        constants = [leaf for leaf in inside if self._is_constant(leaf)]
        if constants and not others and not edit.aspects:
            for constant in constants:
                _, view, row = self._shown_row(constant)
                yield self._change("constants", edit, f"{view.shapes[row]} constant", constant.aspects)
            return
        kind = self._kind(edit)
        if edit.aspects:
            yield self._change(area, edit, kind, edit.aspects)
        elif others:
            yield self._change(area, edit, kind, tuple(self._body(others)))
        elif edit.what != "changed":
            yield self._change(area, edit, kind, self._origin(edit))

    def _origin(self, edit: Edit) -> Sequence[Aspect]:
        """Return the kernel of OLD that a new kernel was part of."""
        origin = self._origins.of(edit.new) if edit.what == "new" and edit.new is not None else ""
        return (Aspect(f"was part of {origin}"),) if origin else ()

    def _body(self, edits: Sequence[Edit]) -> Iterator[Aspect]:
        """Yield one aspect of a fusion's body: the instructions that came and went, else one that changed."""
        changed = [(edit, aspect) for edit in edits if edit.what == "changed" for aspect in edit.aspects]
        gone, new = (self._listed(edits, what) for what in ("gone", "new"))
        if gone or new:
            yield Aspect("body", gone, new)
        elif changed:
            edit, aspect = changed[0]
            yield Aspect(f"{self._opcode(edit)} {aspect.name}", aspect.was, aspect.now)

    def _listed(self, edits: Sequence[Edit], what: str) -> str:
        opcodes = [self._opcode(edit) for edit in edits if edit.what == what]
        counts = Counter([opcode for opcode in opcodes if opcode not in _CHEAP] or opcodes)
        names = [f"{count} {opcode}" if count > 1 else opcode for opcode, count in counts.most_common(_LONGEST_LIST)]
        return ", ".join([*names, "…"] if len(counts) > _LONGEST_LIST else names)

    def _is_collective(self, edit: Edit) -> bool:
        opcode = TABLE.get(self._opcode(edit))
        return opcode is not None and bool(opcode.collective)

    def _is_constant(self, edit: Edit) -> bool:
        return edit.what == "changed" and self._opcode(edit) == "constant"

    def _kind(self, edit: Edit) -> str:
        context, view, row = self._shown_row(edit)
        opcode = view.opcodes[row]
        if opcode == "custom-call":
            return f"{view.instruction_at(row).attr('custom_call_target') or ''} custom-call"
        kind = context.labels_of(view, row).kind
        return opcode if kind in (NOT_FUSED, NOT_PRINTED) else f"{kind} {opcode}"

    def _change(self, area: Area, edit: Edit, kind: str, aspects: Sequence[Aspect]) -> ModuleChange:
        context, view, row = self._shown_row(edit)
        labels = context.labels_of(view, row)
        lines = {side: self._line(side, place) for side, place in edit.places}
        return ModuleChange(
            area,
            edit.what,
            (view.names[row],),
            kind=kind,
            aspects=tuple(aspects),
            size=self._figure("bytes", [edit]) if area != "constants" else None,
            flops=self._figure("flops", [edit]) if area != "constants" else None,
            phase="" if labels.phase == UNKNOWN else labels.phase,
            source=printed(labels.source),
            old_line=lines.get(0),
            new_line=lines.get(1),
        )

    def _regrouped(self, kernels: RegroupedKernels) -> ModuleChange:
        """Return the change of kernels that together hold the instructions of other kernels."""
        old = [edit.old for edit in kernels.edits if edit.old is not None]
        new = [edit.new for edit in kernels.edits if edit.new is not None]
        shown = Edit("gone", old[0], None) if kernels.what == "split" else Edit("new", None, new[-1])
        kinds = self._kind(Edit("gone", old[0], None)), self._kind(Edit("new", None, new[-1]))
        aspects: tuple[Aspect, ...] = ()
        if kernels.what == "rewritten":
            aspects = (Aspect("kernel", *kinds) if kinds[0] != kinds[1] else Aspect("reads others"),)
        what = {"split": f"split in {len(new)}", "merged": f"{len(old)} merged in one", "rewritten": "changed"}[kernels.what]
        return replace(
            self._change("kernels", shown, "" if kinds[0] != kinds[1] and aspects else self._kind(shown), aspects),
            what=what,
            size=self._figure("bytes", kernels.edits),
            flops=self._figure("flops", kernels.edits),
            old_line=self._line(0, old[0]),
            new_line=self._line(1, new[-1]),
        )

    def _line(self, side: int, place: EditPlace) -> int:
        return self._view(side, place).lines[place.row]

    def _figure(self, figure: CostFigure, edits: Sequence[Edit]) -> int | None:
        """Return NEW - OLD of a figure in a step; None if unknown."""
        total = 0
        for edit in edits:
            for side, place in edit.places:
                kernel = self._kernels[side].get(self._line(side, place))
                amount = None if kernel is None else exact(kernel.of_step(figure))
                if amount is None:
                    return None
                total += int(amount if side else -amount)
        return total


# -- kernels that hold the same instructions ----------------------------------------------------------------------------------


class RegroupedKernels(NamedTuple):
    """Kernels of OLD and NEW that hold the same instructions: split, merged or rewritten ones."""

    what: Literal["split", "merged", "rewritten"]
    edits: tuple[Edit, ...]


class Regrouping:
    """Edited kernels that together hold the instructions of others: `found` has them, `explained` their edits."""

    def __init__(self, old: CanonicalModule, new: CanonicalModule, edits: Sequence[Edit]) -> None:
        self._sides = (old, new)
        self._edits = edits
        self.found: list[RegroupedKernels] = []
        self.explained: set[Edit] = set()
        for find in (self._neighbours, self._split_kernels, self._rewritten):
            for kernels in find():
                if self.explained.isdisjoint(kernels.edits):
                    self.found.append(kernels)
                    self.explained.update(kernels.edits)

    def _neighbours(self) -> Iterator[RegroupedKernels]:
        """Yield groups of neighbours with one kernel on one side and several on the other."""
        for group in self._groups():
            edits = tuple(self._edits[position] for position in group)
            places = [[place for edit in edits for owner, place in edit.places if owner == side] for side in (0, 1)]
            if sorted((min(len(places[0]), 2), min(len(places[1]), 2))) != [1, 2]:
                continue
            contents = [self._content(side, *places[side]) for side in (0, 1)]
            is_split = len(places[0]) == 1
            if _holds(*contents) if is_split else _holds(*reversed(contents)):
                yield RegroupedKernels("split" if is_split else "merged", edits)

    def _split_kernels(self) -> Iterator[RegroupedKernels]:
        """Yield kernels that hold the instructions of two kernels of the other side, one of which reads the other."""
        for side in (0, 1):
            whole = self._by_content(side)
            rows = dict(self._alone(1 - side))
            for place, edit in rows.items():
                for other in filter(rows.__contains__, self._read(1 - side, place)):
                    waiting = whole[self._content_key(1 - side, place, other)]
                    if waiting and self.explained.isdisjoint((edit, rows[other], waiting[0])):
                        both = (rows[other], edit)
                        yield (
                            RegroupedKernels("split", (waiting[0], *both))
                            if side == 0
                            else RegroupedKernels("merged", (*both, waiting[0]))
                        )
                        waiting.popleft()

    def _rewritten(self) -> Iterator[RegroupedKernels]:
        """Yield removed kernels that hold the instructions of an added one, as a dot that is in a fusion of its own."""
        new = self._by_content(1)
        for place, edit in self._alone(0):
            waiting = new[self._content_key(0, place)]
            if waiting and edit not in self.explained:
                yield RegroupedKernels("rewritten", (edit, waiting.popleft()))

    def _by_content(self, side: int) -> defaultdict[ContentKey, deque[Edit]]:
        edits: defaultdict[ContentKey, deque[Edit]] = defaultdict(deque)
        for place, edit in self._alone(side):
            key = self._content_key(side, place)
            if key and edit not in self.explained:
                edits[key].append(edit)
        return edits

    def _alone(self, side: int) -> Iterator[tuple[EditPlace, Edit]]:
        """Yield the edits of removed (side 0) or added (side 1) instructions, each with its place."""
        for edit in self._edits:
            if edit.what != "changed":
                yield from ((place, edit) for owner, place in edit.places if owner == side)

    def _groups(self) -> list[list[int]]:
        """Return groups of positions of neighbouring edits: one reads the other's result, or their content is equal."""
        parents = list(range(len(self._edits)))

        def top(position: int) -> int:
            while parents[position] != position:
                parents[position] = parents[parents[position]]
                position = parents[position]
            return position

        numbers = {place: position for position, edit in enumerate(self._edits) for place in edit.places}
        for (side, place), position in numbers.items():
            for other in self._read(side, place):
                if (side, other) in numbers:
                    parents[top(position)] = top(numbers[side, other])
        groups: dict[int, list[int]] = {}
        for position in range(len(self._edits)):
            groups.setdefault(top(position), []).append(position)
        return self._joined(list(groups.values()))

    def _joined(self, groups: list[list[int]]) -> list[list[int]]:
        """Join groups of OLD alone and of NEW alone with equal content."""
        joined: list[list[int]] = []
        waiting: defaultdict[tuple[ContentKey, int], deque[list[int]]] = defaultdict(deque)
        for group in groups:
            places = [place for position in group for place in self._edits[position].places]
            side = places[0][0]
            if any(owner != side for owner, _ in places):
                joined.append(group)
                continue
            key = self._content_key(side, *[place for _, place in places])
            mates = waiting[key, 1 - side]
            if key and mates:
                joined.append([*mates.popleft(), *group])
            else:
                waiting[key, side].append(group)
        return joined

    def _content_key(self, side: int, *places: EditPlace) -> ContentKey:
        return frozenset(self._content(side, *places).items())

    def _content(self, side: int, *places: EditPlace) -> Content:
        """Count the instructions that kernels compute: those of their bodies, or themselves."""
        module, content = self._sides[side], Content()
        for place in places:
            computation = module.computation(place.computation)
            spelling = computation.spellings[place.row]
            if spelling.opcode != "fusion":
                content.update(_counted(computation.view, [place.row]))
                continue
            for body in (module.computation(name) for callees in spelling.callees for name in callees.names if name in module):
                content.update(_counted(body.view, range(len(body.spellings))))
        return content

    def _read(self, side: int, place: EditPlace) -> Iterator[EditPlace]:
        """Yield the rows that a row reads, through instructions that only forward values."""
        computation = self._sides[side].computation(place.computation)
        waiting, seen = [place.row], {place.row}
        while waiting:
            for operand in computation.operands[waiting.pop()]:
                if operand is None or operand in seen:
                    continue
                seen.add(operand)
                if computation.view.opcodes[operand] in _FORWARDING:
                    waiting.append(operand)
                yield EditPlace(place.computation, operand)


def _holds(whole: Content, parts: Content) -> bool:
    """Return True if `parts` hold all of `whole`, no other kind of work, and repeat no more than `whole` holds."""
    return bool(whole) and whole <= parts and whole.keys() == parts.keys() and (parts - whole).total() <= whole.total()


def _counted(view: View, rows: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Yield opcode and shape of the rows that cost something."""
    return ((view.opcodes[row], str(view.shapes[row])) for row in rows if view.opcodes[row] not in _REPEATED)


# -- kernels of OLD that held the work of a new kernel ------------------------------------------------------------------------


class KernelOrigins:
    """The removed and changed kernels of OLD by the operations that they hold. Operations without an op_name do not count."""

    def __init__(self, old: Context, new: Context, edits: Iterable[Edit]) -> None:
        self._new = new
        self._holders: defaultdict[Operation, set[str]] = defaultdict(set)
        for edit in edits:
            if edit.old is not None:
                name = old.views.for_computation(edit.old.computation).names[edit.old.row]
                for operation in _operations(old, edit.old):
                    self._holders[operation].add(name)

    def of(self, place: EditPlace) -> str:
        """Return the kernel of OLD that held most operations of a kernel of NEW; empty if none held half of them."""
        operations = Counter(_operations(self._new, place))
        shared: Counter[str] = Counter()
        for operation, count in operations.items():
            shared.update(dict.fromkeys(self._holders.get(operation, ()), count))
        if not shared:
            return ""
        name, count = min(shared.items(), key=lambda item: (-item[1], item[0]))
        return name if count >= _LEAST_SHARE * operations.total() else ""


def _operations(context: Context, place: EditPlace) -> Iterator[Operation]:
    """Yield the operations of a kernel: those of its fused computation, or itself."""
    view = context.views.for_computation(place.computation)
    rows: Iterable[int] = [place.row]
    fused = context.views.fused(view, place.row)
    if fused is not None:
        view = context.views.for_computation(fused.name)
        rows = range(len(view.names))
    for row in rows:
        if view.opcodes[row] not in _REPEATED and (op_name := view.op_name(row)):
            yield view.opcodes[row], op_name
