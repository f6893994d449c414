"""Where sends and their recvs meet: TPU slices exchange arrays over the network of their hosts by such pairs."""

from __future__ import annotations

from hlo_inspect.analysis.phases.value_graph import ValueGraph
from hlo_inspect.analysis.slices import rendezvous
from hlo_inspect.analysis.view import View


class Meetings:
    """The nodes that sends and recvs make, by the name of the place where they meet."""

    def __init__(self) -> None:
        self._sends: dict[str, int] = {}
        self._receives: list[tuple[str, int]] = []

    def send(self, view: View, row: int, node: int) -> None:
        meeting = rendezvous(view.instruction_at(row))
        if meeting:
            self._sends[meeting] = node

    def receive(self, view: View, row: int, node: int) -> None:
        meeting = rendezvous(view.instruction_at(row))
        if meeting:
            self._receives.append((meeting, node))

    def join(self, graph: ValueGraph) -> None:
        """Makes what is received of what is sent."""
        for meeting, node in self._receives:
            sent = self._sends.get(meeting)
            if sent is not None:
                graph.operands[node].append(sent)
                graph.is_ordered = graph.is_ordered and sent < node
