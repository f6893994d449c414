"""Called computations that differ only in names and metadata: the nodes of all are those of the first one, between other
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from hlo_inspect.graph.fingerprints import Fingerprints
from hlo_inspect.graph.value_graph import BodyTemplate, CallFrame, Value, ValueGraph

_MEETING = frozenset({"send", "recv"})
"""Each call of these meets those of other computations, so that its nodes are more than what is made of its arguments."""


class BodyTemplates:
    """The templates of a module's computations, each made from the first call from which it can be."""

    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints
        self._known: dict[int, BodyTemplate] = {}

    def find(self, name: str, arguments: int) -> BodyTemplate | None:
        """The template of a computation that gets so many arguments, where it is known."""
        fingerprint = self._fingerprints.of(name)
        known = self._known.get(fingerprint) if fingerprint is not None else None
        return known if known is not None and known.arguments == arguments else None

    def learn(self, frame: CallFrame, graph: ValueGraph) -> None:
        """Keeps what a call was read as, where it gets one node for each argument and all of these differ."""
        name, arguments = frame.name, frame.arguments
        if arguments is None or not are_nodes(arguments) or len(set(arguments)) < len(arguments):
            return
        fingerprint = self._fingerprints.of(name)
        if fingerprint is None or fingerprint in self._known or not self._fingerprints.is_alone(name):
            return
        if not _MEETING.isdisjoint(frame.view.opcodes):
            return
        own = range(frame.first, frame.stop)
        numbers: dict[Value, int] = {node: node - frame.first for node in own}
        numbers.update((node, ~number) for number, node in enumerate(arguments))
        try:
            operands = [[numbers[one] for one in made_of] for made_of in graph.operands[frame.first : frame.stop]]
            values = [_numbered(value, numbers) for value in frame.values]
        except KeyError:  # arrays in parts, tuples in tuples
            return
        kinds, rows = bytes(graph.kinds[frame.first : frame.stop]), graph.row_of[frame.first : frame.stop]
        self._known.setdefault(fingerprint, BodyTemplate(len(arguments), operands, kinds, rows, values, frame.view.root))


def are_nodes(arguments: Sequence[Value]) -> TypeGuard[Sequence[int]]:
    """Whether each argument is one node."""
    return set(map(type, arguments)) <= {int}


def _numbered(value: Value, numbers: Mapping[Value, int]) -> Value:
    """A node, a tuple of nodes, or nothing, by these numbers; `KeyError` for anything else."""
    if isinstance(value, tuple):
        return tuple([numbers[one] for one in value])
    return None if value is None else numbers[value]
