"""Which pass brought an instruction in, and what later passes made of it.

XLA writes no such thing down. An instruction is the one of the state before that has its name; else one of its kind with the
same op_name, shape and groups. What takes the operands of several that are gone is these merged; what has the op_name of one
that is gone, or at least its shape and groups, came of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from hlo_inspect.analysis.pass_history.state import Followed


@dataclass(slots=True)
class PassTrace:
    """One instruction on its way through the passes, each named by its label: `now` is what it is, or was last, `first` what it
    was first. An empty text is no pass.
    """

    first: Followed
    now: Followed
    brought_by: str
    merged_by: str = ""
    async_by: str = ""
    became_by: str = ""
    gone_by: str = ""

    def names(self) -> Iterable[str]:
        return (self.first.name, self.now.name)


class Traces:
    """Follows instructions from state to state. `found` are all that there ever were."""

    def __init__(self) -> None:
        self.found: list[PassTrace] = []
        self._items: Sequence[Followed] = ()
        self._of_items: list[list[PassTrace]] = []

    def take(self, items: Sequence[Followed], label: str) -> None:
        """The instructions of the next state, which the pass of that label made."""
        step = _PassStep(self._items, items)
        of_items: list[list[PassTrace]] = [[] for _ in items]
        for before, after in step.pairs:
            was, now = self._items[before], items[after]
            for trace in self._of_items[before]:
                if now.is_async and not was.is_async:
                    trace.async_by = trace.async_by or label
                if now.kind != was.kind:
                    trace.became_by = label
                if after in step.merged:
                    trace.merged_by = label
                trace.now = now
                of_items[after].append(trace)
        for before in step.gone:
            for trace in self._of_items[before]:
                trace.gone_by = label
        for after in step.new:
            now = items[after]
            trace = PassTrace(now, now, label, async_by=label if now.is_async else "")
            self.found.append(trace)
            of_items[after].append(trace)
        self._items, self._of_items = items, of_items


class _PassStep:
    """From one state to the next, by the numbers of instructions: `pairs` of what was and what it is now, those that are `gone`
    and those that are `new`; `merged` are those that several became.
    """

    def __init__(self, before: Sequence[Followed], after: Sequence[Followed]) -> None:
        self._before, self._after = before, after
        self.pairs: list[tuple[int, int]] = []
        self.merged: set[int] = set()
        self.gone, self.new = list(range(len(before))), list(range(len(after)))
        self._match(lambda one: (one.kind, one.name, len(one.operands)))
        self._match(lambda one: (one.kind, one.op_name, one.shape, one.groups))
        self._merge()
        self._match(lambda one: (one.kind, one.op_name) if one.op_name else None)
        self._match(lambda one: (one.op_name, one.groups) if one.op_name else None)
        self._match(lambda one: (one.kind, one.shape, one.groups))

    def _match(self, key: Callable[[Followed], Hashable | None]) -> None:
        """Pairs those of one key in the order of the text; those whose key is `None` with nothing."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for one in self.gone:
            if (of := key(self._before[one])) is not None:
                waiting[of].append(one)
        found = []
        for one in self.new:
            of = key(self._after[one])
            if of is not None and waiting.get(of):
                found.append((waiting[of].popleft(), one))
        self._take(found)

    def _merge(self) -> None:
        """Pairs several with one that has the operands of all of them."""
        waiting: dict[Hashable, deque[int]] = defaultdict(deque)
        for one in self.gone:
            was = self._before[one]
            if len(was.operands) == 1:
                waiting[was.kind, was.groups, was.operands[0]].append(one)
        found = []
        for one in self.new:
            now = self._after[one]
            needed = Counter((now.kind, now.groups, operand) for operand in now.operands)
            if len(now.operands) > 1 and all(len(waiting[key]) >= count for key, count in needed.items()):
                found += [(waiting[key].popleft(), one) for key, count in needed.items() for _ in range(count)]
                self.merged.add(one)
        self._take(found)

    def _take(self, pairs: Sequence[tuple[int, int]]) -> None:
        self.pairs += pairs
        gone, new = {before for before, _ in pairs}, {after for _, after in pairs}
        self.gone = [one for one in self.gone if one not in gone]
        self.new = [one for one in self.new if one not in new]
