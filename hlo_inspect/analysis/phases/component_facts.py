"""Facts of each value of a training step: the values that it leads to, and the values that it depends on.

Each fact is one bit of each component of the graph, found by one pass in the order of the values or against it.

* `GRADIENT`, leads to a gradient; `UPDATED`, depends on one.
* `LOSS`, leads to a loss. No value of the backward pass does.
* `COTANGENT`, depends on the first cotangents. These lead to gradients and are computed directly from the `TAIL` of the forward
  pass.
* `TAIL`: values behind a product that lead to a loss and to no further product that leads to a loss, unless that gives one
  number. Saved activations are not in the tail, as a product comes behind them: values computed from them alone depend on no
  cotangent.

A step can have several losses, one after the update of another's weights: generator and discriminator, actor and critic. What
such a later loss reads of an updated weight counts as the weight itself, so that its forward pass depends on no gradient.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from hlo_inspect.analysis.phases.loop_exits import loop_exits
from hlo_inspect.graph.flow import ALL_BITS, Bits, FlowRule, flow_of, mark, no_bits, nodes_of_kind
from hlo_inspect.graph.orders import strong_components
from hlo_inspect.graph.value_graph import MOVES, PARAMETER, PRODUCT, REDUCES, SCALAR, NodesAtPlaces, ValueGraph
from hlo_inspect.optimizer.overview import Overview

GRADIENT, UPDATED, LOSS, COTANGENT, TAIL = 1, 2, 4, 8, 16
BEHIND_PRODUCT, FROM_INPUT, FROM_WEIGHT = 32, 64, 128
"""A product, or made of one; made of an input; made of a weight that has a gradient."""
BEFORE_PRODUCT = 256
"""Leads to another product that leads to a loss."""
REDUCED = 512
"""In the tail, behind a reduction or a gather there."""
RECOMPUTED, FOR_RECOMPUTED, TO_STATE = 1024, 2048, 4096
"""Made of a product that the backward pass recomputes; leads to such a product; leads to an updated state."""
MOVED = 8192
"""A gradient, or only moved or summed from gradients."""

AGAIN = 16384
"""Computes the loss again for the backward pass, if the whole loss is recomputed."""

FOR_BACKWARD = 32768
"""Goes unchanged into a product of the backward pass."""

LABEL = 65536
"""Only the loss uses it, and it is made of no product."""

_LEADS_TO_ALL, _HAS_USER, _OTHER, _NOT_MOVED, _USED, _USED_ELSEWHERE = (LABEL << place for place in range(1, 7))
"""Bits that one or two spreads need and then remove."""

MAX_LOSSES = 48
MAX_GRADIENTS = 256
MAX_INPUTS = 256
_BITS_AT_ONCE = 64


class TrainedWeight(NamedTuple):
    """The nodes of one weight's gradient, of the arrays that hold the weight, and of their new values.

    The arrays are the weight itself and its working copy.
    """

    gradients: set[int]
    arrays: set[int]
    updated: set[int]


def trained_weights(overview: Overview, graph: ValueGraph) -> list[TrainedWeight]:
    """Return the weights whose updates by the optimizer show a gradient."""
    places = NodesAtPlaces(overview.frames, graph)
    weights = []
    for row in [row for row in overview.rows if not row.matched.is_linear]:
        gradients = {node for place, part in row.matched.gradient_places() for node in places.nodes(place, part)}
        arrays = [array for array in (row.weight, row.master) if array is not None]
        if gradients:
            old = {node for array in arrays for node in places.input(*array.source)}
            updated = {node for array in arrays for node in places.nodes(array.place)}
            weights.append(TrainedWeight(gradients, old, updated))
    return weights


class Components:
    """The strongly connected components of the graph of values, numbered operands first.

    The state of a loop and its new values are one component. `component_of` is the component of each node, `operands` are the
    operands of each component. `kinds` joins the kinds of its nodes; `is_cycle` is 1 if its values depend on each other.
    `exits` are pairs of a loop with a product and a component behind it that is made of its state.
    """

    def __init__(self, graph: ValueGraph) -> None:
        if graph.is_ordered:
            self.component_of: Sequence[int] = range(len(graph))
            self.operands: Sequence[Sequence[int]] = graph.operands
            self.kinds = bytearray(graph.kinds)
            self.is_cycle = bytearray(len(graph))
            self.exits: list[tuple[int, int]] = []
            return
        self.component_of, count = strong_components(graph.operands)
        component_of = self.component_of
        self.kinds = bytearray(count)
        self.is_cycle = bytearray(count)
        lists: list[list[int]] = [[] for _ in range(count)]
        self.operands = lists
        for node, made_of in enumerate(graph.operands):
            own = component_of[node]
            self.kinds[own] |= graph.kinds[node]
            operands = lists[own]
            for other in made_of:
                if component_of[other] != own:
                    operands.append(component_of[other])
                elif other != node:
                    self.is_cycle[own] = 1
        self.exits = loop_exits(graph, component_of, self.kinds)

    def __len__(self) -> int:
        return len(self.operands)


class ComponentFacts:
    """The bits of each component.

    `losses` are the outputs of one element that may be losses. Without any, the gradients of `weights` show the forward pass.
    """

    def __init__(self, parts: Components, weights: Sequence[TrainedWeight], losses: Iterable[int]) -> None:
        self.parts = parts
        self.operands, self.kinds = parts.operands, parts.kinds
        self.flow = flow_of(self.operands, self.kinds)
        self._products = nodes_of_kind(parts.kinds, PRODUCT)
        component_of = parts.component_of
        self.gradients = [sorted({component_of[node] for node in weight.gradients}) for weight in weights]
        self.weights = [sorted({component_of[node] for node in weight.arrays}) for weight in weights]
        self.bits = self._dependences()
        whole_bits = self.bits
        later = self._read_by_later_losses([{component_of[node] for node in weight.updated} for weight in weights])
        if later:
            self.operands = self._with_old_weights(later)
            self.flow = flow_of(self.operands, self.kinds)
            self.bits = self._dependences()
        outputs = [component_of[node] for node in losses]
        candidates = {part for part in outputs if self.bits[part] & (BEHIND_PRODUCT | UPDATED) == BEHIND_PRODUCT}
        self.losses = self._accepted(sorted(candidates)[:MAX_LOSSES])
        self.is_loss_returned = bool(self.losses)
        mark(self.bits, self.losses, LOSS)
        self.flow.back(self.bits, LOSS)
        leads_to_loss = [any(self.bits[part] & LOSS for part in arrays) for arrays in self.weights if arrays]
        constants: list[int] = []
        if not self.losses or not all(leads_to_loss):  # another loss is not returned
            self._mark_what_leads_to_all(LOSS, self.gradients)
            constants = self._mark_separate_losses()
        self._cotangents(self.bits, constants=constants)
        if not any(self.bits[number] & COTANGENT for number in self._products):
            self._mark_what_leads_to_all(AGAIN, self.gradients)
            self._cotangents(self.bits, AGAIN)
        self._recomputation()
        self._moved_gradients()
        self._backward_operands()
        if later:
            self._mark_updates(whole_bits)
        self._labels()

    def _dependences(self) -> Bits:
        """Return the bits that do not depend on the loss."""
        bits = no_bits(len(self.kinds))
        for gradients, arrays in zip(self.gradients, self.weights, strict=True):
            mark(bits, gradients, GRADIENT | UPDATED | TO_STATE)
            mark(bits, arrays, FROM_WEIGHT)
        own = FlowRule(kind_has=PRODUCT, takes=BEHIND_PRODUCT), FlowRule(kind_has=PARAMETER, takes=FROM_INPUT)
        self.flow.on(bits, BEHIND_PRODUCT | FROM_INPUT | FROM_WEIGHT | UPDATED | TO_STATE, own)
        self.flow.back(bits, GRADIENT | TO_STATE)
        return bits

    # -- updates that a later loss reads --------------------------------------------------------------------------------

    def _read_by_later_losses(self, updated: Sequence[set[int]]) -> dict[int, int]:
        """Return the new values of weights that lead to another weight's gradient, each with the weight's old value."""
        old_values = zip(updated, self.weights, strict=True)
        return {part: arrays[0] for parts, arrays in old_values if arrays for part in parts if self.bits[part] & GRADIENT}

    def _with_old_weights(self, later: dict[int, int]) -> list[Sequence[int]]:
        """Return the operands of each component with the old values of weights in place of the new."""
        return [
            [later.get(other, other) for other in made_of] if not later.keys().isdisjoint(made_of) else made_of
            for made_of in self.operands
        ]

    def _mark_updates(self, whole_bits: Sequence[int]) -> None:
        """Mark what depends on a gradient through an updated weight, or leads to such a state, and belongs to no later loss."""
        for number, own in enumerate(self.bits):
            if not own & (GRADIENT | LOSS):
                self.bits[number] = own | whole_bits[number] & (UPDATED | TO_STATE)

    # -- losses ---------------------------------------------------------------------------------------------------------

    def _accepted(self, candidates: Sequence[int]) -> list[int]:
        """Return the candidates that are losses, not norms of cotangents.

        A norm depends on the cotangents of a scalar with fewer products, and uses no weight that this scalar does not use. A
        loss that uses another scalar's activations, as with the auxiliary loss of a router, has weights of its own.
        """
        if len(candidates) < 2:
            return list(candidates)
        masks = no_bits(len(self.kinds))
        for place, number in enumerate(candidates):
            masks[number] |= 1 << place
        self.flow.back(masks, ALL_BITS)
        products = [masks[number] for number in self._products if masks[number]]
        counts = [sum(mask >> place & 1 for mask in products) for place in range(len(candidates))]
        uses = [0] * len(candidates)
        for bit, arrays in enumerate(self.weights):
            used = 0
            for number in arrays:
                used |= masks[number]
            for place in range(len(candidates)):
                if used >> place & 1:
                    uses[place] |= 1 << bit
        accepted: list[int] = []
        cotangents: dict[int, Bits] = {}
        for place in sorted(range(len(candidates)), key=counts.__getitem__):
            rivals = [rival for rival in accepted if counts[rival] < counts[place] and not uses[place] & ~uses[rival]]
            for rival in rivals[:4]:
                if rival not in cotangents:
                    cotangents[rival] = self._cotangents_of(candidates[rival])
                if cotangents[rival][candidates[place]] & COTANGENT:
                    break
            else:
                accepted.append(place)
        return [candidates[place] for place in accepted]

    def _cotangents_of(self, loss: int) -> Bits:
        bits = self.bits[:]
        bits[loss] |= LOSS
        self.flow.back(bits, LOSS)
        self._cotangents(bits)
        return bits

    def _mark_what_leads_to_all(self, bit: int, gradients: Iterable[Sequence[int]]) -> None:
        """Mark the forward pass of an unreturned loss: the values that lead to all gradients.

        Values without a user that does so are not marked: the first cotangents lead to all gradients too. They are no products,
        and all their users can be copies that lead to some gradients each. Of many gradients a sample is used. One gradient
        shows nothing.

        If the whole loss is recomputed, this finds the recomputed one too.
        """
        distinct = list(dict.fromkeys(tuple(gradient_parts) for gradient_parts in gradients))
        if len(distinct) < 2:
            return
        self.flow.mark_leading_to_all(distinct[:: -(-len(distinct) // MAX_GRADIENTS)], self.bits, _LEADS_TO_ALL)
        marked = (
            FlowRule(has=_LEADS_TO_ALL, gives=_HAS_USER),
            FlowRule(has=_LEADS_TO_ALL | _HAS_USER, lacks=LOSS, takes=bit),
            FlowRule(has=_LEADS_TO_ALL, lacks=LOSS, kind_has=PRODUCT, takes=bit),
        )
        self.flow.back(self.bits, rules=marked, kept=ALL_BITS ^ (_LEADS_TO_ALL | _HAS_USER))

    def _mark_separate_losses(self) -> list[int]:
        """Mark the forward passes of several unreturned losses, such as those of critics and an actor.

        The weights of one loss are those whose gradients depend on each other's weights. A product of a constant and of weights
        of other losses has the first cotangent of a mean: nothing made of it is forward. Return these products.
        """
        bits, old = self.bits, enumerate(self.weights)
        numbers = [number for number, arrays in old if arrays and not any(bits[part] & LOSS for part in arrays)]
        if len(numbers) < 2 or len(numbers) > MAX_GRADIENTS:
            return []
        with_constant = [part for part in self._products if self._has_constant(part)]
        ends = [part for number in numbers for part in self.gradients[number]]
        made_of = self._made_of([self.weights[number] for number in numbers], [*with_constant, *ends])
        needed = [reduce(or_, (made_of[part] for part in self.gradients[number]), 0) for number in numbers]
        groups: dict[int, list[int]] = {}
        constants: list[int] = []
        for place, own in enumerate(needed):
            mutual = sum(1 << other for other, others in enumerate(needed) if own >> other & 1 and others >> place & 1)
            groups.setdefault(mutual | 1 << place, []).append(place)
        for mutual, places in groups.items():
            before = bits[:]
            self._mark_what_leads_to_all(LOSS, [self.gradients[numbers[place]] for place in places])
            firsts = [part for part in with_constant if not made_of[part] & mutual]
            constants += [part for part in firsts if bits[part] & GRADIENT]
            self._restore_behind(firsts, before)
        return [part for part in constants if not bits[part] & LOSS]

    def _restore_behind(self, parts: Iterable[int], before: Bits) -> None:
        """Give components, and all that is made of them, the bits that they had before."""
        behind = no_bits(len(self.kinds))
        mark(behind, parts, 1)
        self.flow.on(behind, 1)
        for part in self.flow.nodes_with(behind, 1):
            self.bits[part] = before[part]

    def _has_constant(self, part: int) -> bool:
        """Return True if an operand of a component depends on no input."""
        return any(not self.bits[operand] & FROM_INPUT for operand in self.operands[part])

    def _loops_of_constants(self, parts: Sequence[int]) -> list[int]:
        """Return the backward loops among `parts` if the loss is a plain sum of a loop's result.

        The cotangent of a sum is a constant: no product depends on one, and the backward loop begins with a constant. So may a
        loop that computes the forward pass again, of which the backward loop is made.
        """
        if any(self.bits[number] & COTANGENT for number in self._products):
            return []
        loops = [part for part in parts if self.parts.is_cycle[part] and self._has_constant(part)][:MAX_LOSSES]
        made_of = self._made_of([[part] for part in loops], loops)
        used = reduce(or_, (own & ~(1 << place) for place, own in enumerate(made_of.values())), 0)
        return [part for place, part in enumerate(loops) if not used >> place & 1]

    # -- cotangents -----------------------------------------------------------------------------------------------------

    def _cotangents(self, bits: Bits, forward: int = LOSS, constants: Sequence[int] = ()) -> None:
        """Mark the tail of the forward pass (its bit is `forward`), and values that depend on the first cotangents.

        `constants` are products of first cotangents that are constants.
        """
        is_cycle = self.parts.is_cycle
        mark(bits, [number for number in self._products if is_cycle[number] and bits[number] & forward], BEFORE_PRODUCT)
        before = (
            FlowRule(has=forward, kind_has=PRODUCT, kind_lacks=SCALAR, gives=BEFORE_PRODUCT),
            FlowRule(has=forward | BEFORE_PRODUCT, gives=BEFORE_PRODUCT),
        )
        self.flow.back(bits, rules=before)
        mark(bits, [*self._cotangents_behind_loops(bits, forward), *constants], COTANGENT)
        behind = (
            FlowRule(has=forward | BEHIND_PRODUCT, lacks=BEFORE_PRODUCT, takes=TAIL),
            FlowRule(lacks=LOSS | forward, operands_have=COTANGENT, takes=COTANGENT),
            FlowRule(has=GRADIENT, lacks=LOSS | forward, operands_have=TAIL, takes=COTANGENT),
        )
        self.flow.on(bits, rules=behind)

    def _cotangents_behind_loops(self, bits: Bits, forward: int) -> list[int]:
        """Return the first cotangents of a loss right behind a loop: its products are those of the loop's last iteration."""
        open_loops = {
            loop
            for loop, user in self.parts.exits
            if bits[user] & forward
            and (bits[user] & BEFORE_PRODUCT or (self.kinds[user] & PRODUCT and not self.kinds[user] & SCALAR))
        }
        is_cotangent = GRADIENT | LOSS | forward
        return [
            user
            for loop, user in self.parts.exits
            if bits[loop] & forward and loop not in open_loops and bits[user] & is_cotangent == GRADIENT
        ]

    # -- recomputation and moved gradients ------------------------------------------------------------------------------

    def _recomputation(self) -> None:
        """Mark values made of or for recomputed products, and values behind a reduction in the tail."""
        bits = self.bits
        again, others = self._products_without_cotangent()
        constants = [number for number in others if self._has_constant(number)] + self._loops_of_constants(again)
        if constants and self.is_loss_returned:
            self._cotangents(bits, constants=constants)
            again, others = self._products_without_cotangent()
        if others:
            self._mark_what_leads_to_all(
                LOSS, [parts for parts in self.gradients if not any(bits[n] & COTANGENT for n in parts)]
            )
            self._cotangents(bits)
            again, others = self._products_without_cotangent()
        if again:
            mark(bits, again, RECOMPUTED | FOR_RECOMPUTED)
            self.flow.on(bits, RECOMPUTED)
            self.flow.back(bits, FOR_RECOMPUTED)
        if others:
            self._mark_other_losses(others)
        reduced = [
            FlowRule(has=TAIL | LOSS, operands_have=BEHIND_PRODUCT, kind_has=kind, takes=REDUCED) for kind in (REDUCES, SCALAR)
        ]
        self.flow.on(bits, rules=(FlowRule(has=TAIL | LOSS, operands_have=REDUCED, takes=REDUCED), *reduced))

    def _products_without_cotangent(self) -> tuple[list[int], list[int]]:
        """Return the products that lead to gradients alone and need no cotangent: recomputed products, and others.

        Recomputed products, as by jax.checkpoint, have a twin in the forward pass with the same inputs. The others lead to a
        loss that is not returned. Above `MAX_INPUTS` inputs share a bit.
        """
        bits = self.bits
        products = [number for number in self._products if bits[number] & (GRADIENT | LOSS | COTANGENT) == GRADIENT]
        forward = [number for number in self._products if bits[number] & LOSS]
        if not products or not forward:
            return [], []
        places = nodes_of_kind(self.kinds, PARAMETER)
        inputs = self._made_of([places[first::MAX_INPUTS] for first in range(min(len(places), MAX_INPUTS))], products + forward)
        twins = {inputs[number] for number in forward}
        return [part for part in products if inputs[part] in twins], [part for part in products if inputs[part] not in twins]

    def _made_of(self, groups: Sequence[Iterable[int]], parts: Sequence[int]) -> dict[int, int]:
        """Return the groups that each component is made of, one bit a group."""
        masks = dict.fromkeys(parts, 0)
        for first in range(0, len(groups), _BITS_AT_ONCE):
            bits = no_bits(len(self.kinds))
            for place, group in enumerate(groups[first : first + _BITS_AT_ONCE]):
                mark(bits, group, 1 << place)
            self.flow.on(bits, ALL_BITS)
            for part in masks:
                masks[part] |= bits[part] << first
        return masks

    def _mark_other_losses(self, products: Iterable[int]) -> None:
        """Mark products that lead to an unreturned loss, their operands, and their users without a cotangent."""
        mark(self.bits, products, _OTHER)
        self.flow.on(self.bits, _OTHER, (FlowRule(has=_OTHER | GRADIENT, lacks=COTANGENT | RECOMPUTED, takes=LOSS),))
        self.flow.back(self.bits, LOSS, kept=ALL_BITS ^ _OTHER)

    def _moved_gradients(self) -> None:
        """Mark gradients, and values that only move or sum them behind the operand of the update."""
        for gradient in self.gradients:
            mark(self.bits, gradient, MOVED)
        sums_gradients = FlowRule(
            has=UPDATED, lacks=MOVED, operands_have=MOVED, operands_lack=_NOT_MOVED, kind_has=MOVES, takes=MOVED
        )
        self.flow.on(self.bits, rules=(sums_gradients, FlowRule(has=UPDATED, lacks=MOVED, takes=_NOT_MOVED)))

    def _backward_operands(self) -> None:
        """Mark operands of products of the backward pass, also through moves: weights and activations that two phases share."""
        taken = (
            FlowRule(has=GRADIENT | COTANGENT, lacks=LOSS, kind_has=PRODUCT, gives=FOR_BACKWARD),
            FlowRule(has=FOR_BACKWARD, lacks=COTANGENT, kind_has=MOVES, kind_lacks=PRODUCT, gives=FOR_BACKWARD),
        )
        self.flow.back(self.bits, rules=taken, kept=ALL_BITS ^ _NOT_MOVED)

    def _labels(self) -> None:
        """Mark the values behind no product whose users that lead to the loss are all labels or `REDUCED`."""
        labels = (
            FlowRule(has=LOSS | _USED, lacks=_USED_ELSEWHERE | BEHIND_PRODUCT, takes=LABEL),
            FlowRule(has=LOSS, gives=_USED),
            FlowRule(has=LOSS, lacks=LABEL | REDUCED, gives=_USED_ELSEWHERE),
        )
        self.flow.back(self.bits, rules=labels, kept=ALL_BITS ^ (_USED | _USED_ELSEWHERE))
