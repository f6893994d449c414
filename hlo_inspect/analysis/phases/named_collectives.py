"""Which part of a training step a collective belongs to, as far as its metadata proves it.

Forward, backward and recompute are the scopes of JAX's transformations. The other two:

* loss: differentiated work directly in the step function that only a loss does – a sum to a scalar, or a softmax split over
  devices where all layers have names – and what is in a scope or file of a loss.
* optimizer: work that is not differentiated, in a scope or file of an optimizer.

Where the metadata leaves it open the phase is unknown; combined collectives often lose theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set

from hlo_inspect.analysis.collectives import Collective
from hlo_inspect.hlo.values.op_names import (
    BACKWARD,
    FORWARD,
    LOSS,
    RECOMPUTE,
    UNKNOWN,
    Scope,
    phase_of,
    scope_of,
    without_layer_numbers,
)
from hlo_inspect.hlo.values.shapes import ArrayShape, array_leaves
from hlo_inspect.lazy_pattern import lazy_pattern

# Checkpoint as JAX wrote it before it marked what is computed again: `remat(f)` and `remat`; in some versions `checkpoint`.
_OLD_REMAT = lazy_pattern(r"(remat(?:\(.*\))?)|checkpoint", re.DOTALL)


def find_phases(collectives: Sequence[Collective]) -> list[str]:
    """The phase of each collective, one of `op_names.PHASES`."""
    names = {name: without_layer_numbers(name) for name in {collective.origin.op_name for collective in collectives}}
    said = {name: scope_of(name) for name in set(names.values())}
    scopes = [said[names[collective.origin.op_name]] for collective in collectives]
    phases = [_by_itself(collective, scope) for collective, scope in zip(collectives, scopes, strict=True)]
    remats = {scope for scope in said.values() if is_of_old_remat(scope)}
    if remats and RECOMPUTE not in phases:
        _find_recomputed(collectives, scopes, phases, remats)
    _find_losses(collectives, scopes, phases)
    return phases


def _by_itself(collective: Collective, scope: Scope) -> str:
    """What the collective's own metadata says."""
    if len(set(scope.parts)) > 1:
        return _of_parts(collective, scope.parts)
    return phase_of(collective.origin.innermost, scope)


def _of_parts(collective: Collective, parts: Sequence[str]) -> str:
    """The phase of a combined collective of several phases: that of the parts that make up nine tenths of its bytes, as the
    gradients do that a scalar is combined with. The parts are in the order of its arrays.
    """
    leaves = array_leaves(collective.result_shape)
    if len(leaves) != len(parts):
        return UNKNOWN
    sizes: Counter[str] = Counter()
    for part, (_, leaf) in zip(parts, leaves, strict=True):
        if leaf.bytes is None:
            return UNKNOWN
        sizes[part] += leaf.bytes
    phase, size = sizes.most_common(1)[0]
    return phase if 10 * size >= 9 * sizes.total() else UNKNOWN


def _find_recomputed(collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str], remats: Set[Scope]) -> None:
    """Old JAX gives what is computed again the scope of the backward pass. Inside remat, in one of the scopes `remats`, it is
    what the forward pass has too: the same collective of the same primitive with the same parameters, and no more of them than
    there.

    Without printed parameters a product and its gradient look the same: that is backward where JAX would have marked what is
    computed again (it wrote `checkpoint` by then), and else unknown.
    """
    arrays = [(c.kind, str(c.result_shape)) for c in collectives]

    def key(n: int) -> tuple[str, ...]:
        return *arrays[n], *_without_remat(scope_of(collectives[n].origin.op_name).path)  # with numbers of layers

    inside = [n for n, phase in enumerate(phases) if phase == BACKWARD and scopes[n] in remats]
    of_inside = {arrays[n] for n in inside}
    forward = Counter(key(n) for n, phase in enumerate(phases) if phase == FORWARD and arrays[n] in of_inside)
    keys = {n: key(n) for n in inside}
    again = Counter(keys.values())
    for n, its_key in keys.items():
        if its_key in forward:
            is_sure = scopes[n].parameters and again[its_key] <= forward[its_key]
            phases[n] = RECOMPUTE if is_sure else UNKNOWN


def is_of_old_remat(scope: Scope) -> bool:
    """Whether JAX wrote a name before it marked what is computed again."""
    remat = [match for match in map(_OLD_REMAT.fullmatch, scope.path) if match]
    return bool(remat) and bool(scope.parameters or remat[0][1])


def _without_remat(path: Iterable[str]) -> list[str]:
    kept = [scope for scope in path if not _OLD_REMAT.fullmatch(scope)]
    return [scope[len("transpose(") : -1] if scope.startswith("transpose(") else scope for scope in kept]


def _find_losses(collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]) -> None:
    bare = [i for i, phase in enumerate(phases) if phase in {FORWARD, UNKNOWN} and scopes[i].is_bare]
    for i in bare:
        if phases[i] == FORWARD and _is_scalar_sum(collectives[i], scopes[i]):
            phases[i] = LOSS
    if any(scope.has_name and scope.phase != UNKNOWN for scope in scopes):
        _find_softmax(bare, collectives, scopes, phases)
    if not any("jvp()" in name for scope in scopes for name in scope.path):
        _find_unmarked_sums(bare, collectives, scopes, phases)


def _is_scalar_sum(collective: Collective, scope: Scope) -> bool:
    shape = collective.result_shape
    is_scalar = isinstance(shape, ArrayShape) and not shape.dimensions and shape.dtype.startswith(("f", "bf"))
    return is_scalar and scope.primitive == "reduce_sum" and collective.reduction == "add"


def _find_softmax(bare: Sequence[int], collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]) -> None:
    """A maximum and a sum over the same dimension and devices, of the same shape; layers have names, so it is no layer's."""
    pairs: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for i in bare:
        collective, shape = collectives[i], collectives[i].result_shape
        if isinstance(shape, ArrayShape) and shape.dimensions and collective.kind == "all-reduce":
            key = (collective.start.computation.name, shape.dimensions, collective.participants.key, scopes[i].parameters)
            pairs.setdefault(key, {}).setdefault(scopes[i].primitive, []).append(i)
    for found in pairs.values():
        if len(found.get("reduce_max", ())) == len(found.get("reduce_sum", ())) == 1:
            for i in (*found["reduce_max"], *found["reduce_sum"]):
                phases[i] = LOSS


def _find_unmarked_sums(
    bare: Sequence[int], collectives: Sequence[Collective], scopes: Sequence[Scope], phases: list[str]
) -> None:
    """Old JAX did not mark differentiation outside of named scopes. A scalar sum before the backward pass needs no
    gradient, and is the loss's, unless others follow after it: then both may be norms of the optimizer's.
    """
    starts: dict[str, int] = {}
    for collective, phase in zip(collectives, phases, strict=True):
        if phase in {BACKWARD, RECOMPUTE}:
            place = collective.start
            starts[place.computation.name] = min(place.line, starts.get(place.computation.name, place.line))
    sums = [i for i in bare if phases[i] == UNKNOWN and _is_scalar_sum(collectives[i], scopes[i])]
    behind = {
        collectives[i].start.computation.name
        for i in sums
        if collectives[i].start.line > starts.get(collectives[i].start.computation.name, 0)
    }
    for i in sums:
        if collectives[i].start.computation.name not in behind:
            phases[i] = LOSS
