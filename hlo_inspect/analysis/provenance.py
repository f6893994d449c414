"""What the metadata of a module's instructions says, each found once for all that have the same.

Layers that are written out have the same names but for a number, `jvp(layers_3)` and `jvp(layers_4)`: what such a number does
not matter for is found once for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

from hlo_inspect.analysis.op_names import Origin, Scope, origin, phase_of, scope_of, without_layer_numbers
from hlo_inspect.hlo.header import StackFrames
from hlo_inspect.hlo.values import Metadata


class Provenance(NamedTuple):
    """Where an instruction comes from. `phase` is what its metadata says by itself, `folded` the scopes that the program named.

    `scope` is that of its `op_name` with its numbers behind underscores replaced by 0.
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
        self._scopes: dict[str, tuple[Scope, str]] = {}

    def of(self, metadata: Metadata) -> Provenance:
        known = self._known.get(metadata)
        if known is None:
            found = origin(metadata, self.frames)
            scope, folded = self._scope(without_layer_numbers(found.op_name))
            known = self._known[metadata] = Provenance(found, scope, phase_of(found, scope), folded)
        return known

    def _scope(self, op_name: str) -> tuple[Scope, str]:
        known = self._scopes.get(op_name)
        if known is None:
            scope = scope_of(op_name)
            known = self._scopes[op_name] = scope, "/".join(scope.folded)
        return known
