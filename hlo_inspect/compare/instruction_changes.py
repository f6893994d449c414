"""Kernels, custom calls and constants that differ, worked out from the edits of the instructions.

A fusion whose body was divided among several, or several whose bodies are in one now, are reported as such: their bodies hold
the same instructions, apart from what costs nothing to repeat. An instruction that only forwards values is reported only where
nothing else differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.cost.figures import Figure
from hlo_inspect.analysis.cost.kernels import NO_KERNELS, Kernel
from hlo_inspect.analysis.cost.labels import NOT_FUSED, NOT_PRINTED, printed
from hlo_inspect.compare.changes import Area, Aspect, ModuleChange
from hlo_inspect.compare.edits import Edit, EditPlace
from hlo_inspect.compare.regrouping import RegroupedKernels, Regrouping
from hlo_inspect.graph.view import View
from hlo_inspect.hlo.opcodes import ASYNC_ENDS, TABLE, opcodes_that_are
from hlo_inspect.hlo.values.op_names import UNKNOWN

_FORWARDING = NO_KERNELS - {"constant"}
_CHEAP = opcodes_that_are("cheap")
_LONGEST_LIST = 6


class InstructionChanges:
    """The changes that edits between two modules are."""

    def __init__(self, old: Context, new: Context, edits: Sequence[Edit]) -> None:
        self._sides = (old, new)
        self._edits = edits
        self._kernels = tuple(_by_line(context) for context in self._sides)

    def found(self) -> Iterator[ModuleChange]:
        """Changes of kernels, custom calls and constants; where there are none, what else differs."""
        areas = {edit: area for edit in self._edits if (area := self._area(edit)) is not None}
        kernels = [edit for edit, area in areas.items() if area == "kernels"]
        regrouping = Regrouping(self._sides[0].canonical, self._sides[1].canonical, kernels)
        for regrouped in regrouping.found:
            yield self._regrouped(regrouped)
        for edit, area in areas.items():
            if edit not in regrouping.explained:
                yield from self._changes(edit, area)

    def others(self) -> Iterator[ModuleChange]:
        """What differs in instructions that only forward values."""
        for edit in self._edits:
            if self._area(edit) is None and not self._is_collective(edit):
                yield self._change("other", edit, self._opcode(edit), edit.aspects)

    def _area(self, edit: Edit) -> Area | None:
        opcodes = {self._view(side, place).opcodes[place.row] for side, place in edit.places}
        if self._is_collective(edit):
            return None
        if opcodes <= _FORWARDING or opcodes & ASYNC_ENDS:
            return None
        if opcodes == {"custom-call"}:
            return "custom calls"
        if opcodes == {"constant"}:
            return "constants" if edit.what == "changed" else None
        return "kernels"

    def _view(self, side: int, place: EditPlace) -> View:
        return self._sides[side].views.of(place.computation)

    def _shown(self, edit: Edit) -> tuple[Context, View, int]:
        """The row that an edit is shown at: in NEW, and in OLD where the instruction is gone."""
        side, place = edit.places[-1]
        return self._sides[side], self._view(side, place), place.row

    def _opcode(self, edit: Edit) -> str:
        _, view, row = self._shown(edit)
        return view.opcodes[row]

    def _changes(self, edit: Edit, area: Area) -> Iterator[ModuleChange]:
        inside = [one for one in edit.leaves() if not self._is_collective(one)]
        others = [one for one in inside if not self._is_constant(one) and self._opcode(one) != "parameter"]
        constants = [one for one in inside if self._is_constant(one)]
        if constants and not others and not edit.aspects:
            for one in constants:
                _, view, row = self._shown(one)
                yield self._change("constants", edit, f"{view.shapes[row]} constant", one.aspects)
            return
        kind = self._kind(edit)
        if edit.aspects:
            yield self._change(area, edit, kind, edit.aspects)
        elif others:
            yield self._change(area, edit, kind, tuple(self._body(others)))
        elif edit.what != "changed":
            yield self._change(area, edit, kind, ())

    def _body(self, edits: Sequence[Edit]) -> Iterator[Aspect]:
        """In what the body of a fusion changed, in one aspect: an instruction that changed, else those that came and went."""
        changed = [(one, aspect) for one in edits if one.what == "changed" for aspect in one.aspects]
        gone, new = (self._listed(edits, what) for what in ("gone", "new"))
        if gone or new:
            yield Aspect("body", gone, new)
        elif changed:
            one, aspect = changed[0]
            yield Aspect(f"{self._opcode(one)} {aspect.name}", aspect.was, aspect.now)

    def _listed(self, edits: Sequence[Edit], what: str) -> str:
        opcodes = [self._opcode(one) for one in edits if one.what == what]
        counts = Counter([opcode for opcode in opcodes if opcode not in _CHEAP] or opcodes)
        names = [f"{count} {opcode}" if count > 1 else opcode for opcode, count in counts.most_common(_LONGEST_LIST)]
        return ", ".join([*names, "…"] if len(counts) > _LONGEST_LIST else names)

    def _is_collective(self, edit: Edit) -> bool:
        opcode = TABLE.get(self._opcode(edit))
        return opcode is not None and bool(opcode.collective)

    def _is_constant(self, edit: Edit) -> bool:
        return edit.what == "changed" and self._opcode(edit) == "constant"

    def _kind(self, edit: Edit) -> str:
        context, view, row = self._shown(edit)
        opcode = view.opcodes[row]
        if opcode == "custom-call":
            return f"{view.instruction_at(row).attr('custom_call_target') or ''} custom-call"
        kind = context.labels_of(view, row).kind
        return opcode if kind in (NOT_FUSED, NOT_PRINTED) else f"{kind} {opcode}"

    def _change(self, area: Area, edit: Edit, kind: str, aspects: Sequence[Aspect]) -> ModuleChange:
        context, view, row = self._shown(edit)
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

    def _regrouped(self, found: RegroupedKernels) -> ModuleChange:
        """Kernels that hold together what other ones held."""
        old = [edit.old for edit in found.edits if edit.old is not None]
        new = [edit.new for edit in found.edits if edit.new is not None]
        one = Edit("gone", old[0], None) if found.what == "split" else Edit("new", None, new[-1])
        kinds = self._kind(Edit("gone", old[0], None)), self._kind(Edit("new", None, new[-1]))
        aspects: tuple[Aspect, ...] = ()
        if found.what == "rewritten":
            aspects = (Aspect("kernel", *kinds) if kinds[0] != kinds[1] else Aspect("reads others"),)
        what = {"split": f"split in {len(new)}", "merged": f"{len(old)} merged in one", "rewritten": "changed"}[found.what]
        return replace(
            self._change("kernels", one, "" if kinds[0] != kinds[1] and aspects else self._kind(one), aspects),
            what=what,
            size=self._figure("bytes", found.edits),
            flops=self._figure("flops", found.edits),
            old_line=self._line(0, old[0]),
            new_line=self._line(1, new[-1]),
        )

    def _line(self, side: int, place: EditPlace) -> int:
        return self._view(side, place).lines[place.row]

    def _figure(self, figure: Figure, edits: Sequence[Edit]) -> int | None:
        """How much more of it a step has; `None` where that is not known."""
        total = 0
        for edit in edits:
            for side, place in edit.places:
                kernel = self._kernels[side].get(self._line(side, place))
                amount = None if kernel is None else kernel.of_step(figure).exact
                if amount is None:
                    return None
                total += amount if side else -amount
        return total


def _by_line(context: Context) -> Mapping[int, Kernel]:
    return {kernel.place[1]: kernel for kernel in context.kernels.found}
