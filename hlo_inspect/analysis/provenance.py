"""What the metadata of a module's instructions says, each found once for all that have the same.

Layers that are written out have the same names but for a number, `jvp(layers_3)` and `jvp(layers_4)`: what such a number does
not matter for is found once for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.hlo.read.stack_frames import StackFrames
from hlo_inspect.hlo.values.attributes import Metadata
from hlo_inspect.hlo.values.op_names import Origin, Scope, origin, phase_of, scope_of, without_layer_numbers


class Provenance(NamedTuple):
    """Where an instruction comes from. `phase` is what its metadata says by itself, `folded` the scopes that the program named.

    `scope` is that of its `op_name` with 0 for each number of a layer.
    """

    origin: Origin
    scope: Scope
    phase: str
    folded: str


class Provenances:
    """What each metadata of a module says, with the tables of stack frames that it points into."""

    def __init__(self, frames: StackFrames) -> None:
        self.frames = frames
        self._known: dict[Metadata, Provenance] = {}
        self._alike: dict[tuple[str, str], tuple[Scope, str, str]] = {}

    def of(self, metadata: Metadata) -> Provenance:
        known = self._known.get(metadata)
        if known is None:
            found = origin(metadata, self.frames)
            name, innermost = without_layer_numbers(found.op_name), found.innermost
            said = self._alike.get((name, innermost))
            if said is None:
                scope = scope_of(name)
                said = self._alike[name, innermost] = scope, phase_of(innermost, scope), "/".join(scope.folded)
            known = self._known[metadata] = Provenance(found, *said)
        return known
