"""The nodes of the places that were looked at, as the transfer functions ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from hlo_inspect.graph.frames import Frames, Input, Place
from hlo_inspect.optimizer.filled_buffers import FilledBuffers
from hlo_inspect.optimizer.fused_values import FusedValues
from hlo_inspect.optimizer.graph import Graph
from hlo_inspect.optimizer.operations import DEVICE_NUMBERS


class KnownNodes:
    """Nodes of `graph` by their places in `frames`. `constants` are inputs that are numbers, by their nodes."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames
        self.graph = Graph()
        self.by_place: dict[Place, int] = {}
        self.constants: dict[Input, int] = {}
        self.buffers = FilledBuffers(frames)
        self.fused = FusedValues(frames)
        self._of_device: list[bool] = []

    def at(self, places: Sequence[Place]) -> tuple[int, ...] | list[Place]:
        """The nodes at these places, or those of the places whose nodes have to be known first."""
        nodes = self.by_place
        missing = [place for place in places if place not in nodes]
        return missing or tuple(map(nodes.__getitem__, places))

    def opaque(self, place: Place) -> int:
        """A leaf for a value whose definition is not expanded."""
        return self.graph.opaque(place, self.frames.size(place))

    def broken(self, place: Place, reason: str) -> int:
        """A leaf for what could not be followed."""
        self.frames.note_fault(place, reason)
        node = self.opaque(place)
        self.graph.broken.add(node)
        return node

    def is_of_device(self, node: int) -> bool:
        """Whether an expression holds the number of the device, so that it can differ between devices."""
        graph, known = self.graph, self._of_device
        for one in range(len(known), node + 1):  # operands have lower numbers
            leaf = graph.places.get(one)
            is_number = leaf is not None and self.frames.opcode(leaf) in DEVICE_NUMBERS
            known.append(is_number or any(known[arg] for arg in graph.args[one]))
        return known[node]
