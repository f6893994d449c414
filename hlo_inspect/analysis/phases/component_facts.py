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

MAX_LOSSES = 48
MAX_GRADIENTS = 256
MAX_INPUTS = 256


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
            self.operands: list[list[int]] = graph.operands
            self.kinds = bytearray(graph.kinds)
            self.is_cycle = bytearray(len(graph))
            self.exits: list[tuple[int, int]] = []
            return
        self.component_of, count = strong_components(graph.operands)
        component_of = self.component_of
        self.kinds = bytearray(count)
        self.is_cycle = bytearray(count)
        self.operands = [[] for _ in range(count)]
        for node, made_of in enumerate(graph.operands):
            own = component_of[node]
            self.kinds[own] |= graph.kinds[node]
            operands = self.operands[own]
            for other in made_of:
                if component_of[other] != own:
                    operands.append(component_of[other])
                elif other != node:
                    self.is_cycle[own] = 1
        self.exits = loop_exits(graph, component_of, self.kinds)

    def __len__(self) -> int:
        return len(self.operands)


def spread_on(bits: list[int], operands: Sequence[Sequence[int]], mask: int) -> None:
    """Give each component the bits of its operands."""
    for number, made_of in enumerate(operands):
        merged = 0
        for other in made_of:
            merged |= bits[other]
        bits[number] |= merged & mask


def spread_back(bits: list[int], operands: Sequence[Sequence[int]], mask: int) -> None:
    """Give each component the bits of its users."""
    for number in range(len(operands) - 1, -1, -1):
        own = bits[number] & mask
        if own:
            for other in operands[number]:
                bits[other] |= own


class ComponentFacts:
    """The bits of each component.

    `losses` are the outputs of one element that may be losses. Without any, the gradients of `weights` show the forward pass.
    """

    def __init__(self, parts: Components, weights: Sequence[TrainedWeight], losses: Iterable[int]) -> None:
        self.parts = parts
        self.operands, self.kinds = parts.operands, parts.kinds
        self._products = [number for number, kind in enumerate(parts.kinds) if kind & PRODUCT]
        component_of = parts.component_of
        self.gradients = [sorted({component_of[node] for node in weight.gradients}) for weight in weights]
        self.weights = [sorted({component_of[node] for node in weight.arrays}) for weight in weights]
        self.bits = self._dependences()
        whole_bits = self.bits
        later = self._read_by_later_losses([{component_of[node] for node in weight.updated} for weight in weights])
        if later:
            self.operands = self._with_old_weights(later)
            self.bits = self._dependences()
        outputs = [component_of[node] for node in losses]
        candidates = {part for part in outputs if self.bits[part] & (BEHIND_PRODUCT | UPDATED) == BEHIND_PRODUCT}
        self.losses = self._accepted(sorted(candidates)[:MAX_LOSSES])
        self.is_loss_returned = bool(self.losses)
        self._mark(self.bits, self.losses, LOSS)
        spread_back(self.bits, self.operands, LOSS)
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

    @staticmethod
    def _mark(bits: list[int], numbers: Iterable[int], bit: int) -> None:
        for number in numbers:
            bits[number] |= bit

    def _dependences(self) -> list[int]:
        """Return the bits that do not depend on the loss."""
        own = [(BEHIND_PRODUCT if kind & PRODUCT else 0) | (FROM_INPUT if kind & PARAMETER else 0) for kind in range(256)]
        bits = [own[kind] for kind in self.kinds]
        for gradients, arrays in zip(self.gradients, self.weights, strict=True):
            self._mark(bits, gradients, GRADIENT | UPDATED | TO_STATE)
            self._mark(bits, arrays, FROM_WEIGHT)
        spread_on(bits, self.operands, BEHIND_PRODUCT | FROM_INPUT | FROM_WEIGHT | UPDATED | TO_STATE)
        spread_back(bits, self.operands, GRADIENT | TO_STATE)
        return bits

    # -- updates that a later loss reads --------------------------------------------------------------------------------

    def _read_by_later_losses(self, updated: Sequence[set[int]]) -> dict[int, int]:
        """Return the new values of weights that lead to another weight's gradient, each with the weight's old value."""
        old_values = zip(updated, self.weights, strict=True)
        return {part: arrays[0] for parts, arrays in old_values if arrays for part in parts if self.bits[part] & GRADIENT}

    def _with_old_weights(self, later: dict[int, int]) -> list[list[int]]:
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
        masks = [0] * len(self.operands)
        for place, number in enumerate(candidates):
            masks[number] |= 1 << place
        spread_back(masks, self.operands, -1)
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
        cotangents: dict[int, list[int]] = {}
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

    def _cotangents_of(self, loss: int) -> list[int]:
        bits = list(self.bits)
        bits[loss] |= LOSS
        spread_back(bits, self.operands, LOSS)
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
        chosen = distinct[:: -(-len(distinct) // MAX_GRADIENTS)]
        masks = [0] * len(self.operands)
        for place, gradient in enumerate(chosen):
            for number in gradient:
                masks[number] |= 1 << place
        spread_back(masks, self.operands, -1)
        whole = (1 << len(chosen)) - 1
        bits = self.bits
        for number in range(len(masks) - 1, -1, -1):
            if masks[number] == whole:
                if self.kinds[number] & PRODUCT and not bits[number] & LOSS:
                    bits[number] |= bit
                for other in self.operands[number]:
                    if masks[other] == whole and not bits[other] & LOSS:
                        bits[other] |= bit

    def _mark_separate_losses(self) -> list[int]:
        """Mark the forward passes of several unreturned losses, such as those of critics and an actor.

        The weights of one loss are those whose gradients depend on each other's weights. A product of a constant and of weights
        of other losses has the first cotangent of a mean: nothing made of it is forward. Return these products.
        """
        bits, old = self.bits, enumerate(self.weights)
        numbers = [number for number, arrays in old if arrays and not any(bits[part] & LOSS for part in arrays)]
        if len(numbers) < 2 or len(numbers) > MAX_GRADIENTS:
            return []
        made_of = [0] * len(bits)
        for place, number in enumerate(numbers):
            self._mark(made_of, self.weights[number], 1 << place)
        spread_on(made_of, self.operands, -1)
        needed = [reduce(or_, (made_of[part] for part in self.gradients[number]), 0) for number in numbers]
        groups: dict[int, list[int]] = {}
        constants: list[int] = []
        for place, own in enumerate(needed):
            mutual = sum(1 << other for other, others in enumerate(needed) if own >> other & 1 and others >> place & 1)
            groups.setdefault(mutual | 1 << place, []).append(place)
        for mutual, places in groups.items():
            before = list(bits)
            self._mark_what_leads_to_all(LOSS, [self.gradients[numbers[place]] for place in places])
            behind = [0] * len(bits)
            firsts = [part for part in self._products if not made_of[part] & mutual and self._has_constant(part)]
            self._mark(behind, firsts, 1)
            constants += [part for part in firsts if bits[part] & GRADIENT]
            spread_on(behind, self.operands, 1)
            for part, is_behind in enumerate(behind):
                if is_behind:
                    bits[part] = before[part]
        return [part for part in constants if not bits[part] & LOSS]

    def _has_constant(self, part: int) -> bool:
        """Return True if an operand of a component depends on no input."""
        return any(not self.bits[operand] & FROM_INPUT for operand in self.operands[part])

    # -- cotangents -----------------------------------------------------------------------------------------------------

    def _cotangents(self, bits: list[int], forward: int = LOSS, constants: Sequence[int] = ()) -> None:
        """Mark the tail of the forward pass (its bit is `forward`), and values that depend on the first cotangents.

        `constants` are products of first cotangents that are constants.
        """
        operands, kinds = self.operands, self.kinds
        for number in range(len(operands) - 1, -1, -1):
            own = bits[number]
            if own & forward:
                is_product = kinds[number] & PRODUCT and not kinds[number] & SCALAR
                if kinds[number] & PRODUCT and self.parts.is_cycle[number]:
                    own = bits[number] = own | BEFORE_PRODUCT
                if is_product or own & BEFORE_PRODUCT:
                    for other in operands[number]:
                        bits[other] |= BEFORE_PRODUCT
        wanted = forward | BEHIND_PRODUCT
        tail = [number for number, own in enumerate(bits) if own & (wanted | BEFORE_PRODUCT) == wanted]
        self._mark(bits, tail, TAIL)
        firsts = [*self._cotangents_behind_loops(bits, forward), *constants]
        self._mark(bits, firsts, COTANGENT)
        begin = min([*tail[:1], *firsts], default=len(bits))
        for number, made_of in enumerate(operands[begin:], begin):
            own = bits[number]
            if own & (LOSS | forward):
                continue
            merged = 0
            for other in made_of:
                merged |= bits[other]
            if merged & COTANGENT or (merged & TAIL and own & GRADIENT):
                bits[number] = own | COTANGENT

    def _cotangents_behind_loops(self, bits: list[int], forward: int) -> list[int]:
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
        bits, operands, kinds = self.bits, self.operands, self.kinds
        again, others = self._products_without_cotangent()
        constants = [number for number in others if self._has_constant(number)]
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
            self._mark(bits, again, RECOMPUTED | FOR_RECOMPUTED)
            spread_on(bits, operands, RECOMPUTED)
            spread_back(bits, operands, FOR_RECOMPUTED)
        if others:
            self._mark_other_losses(others)
        for number in [number for number, own in enumerate(bits) if own & (TAIL | LOSS) == TAIL | LOSS]:
            merged = 0
            for other in operands[number]:
                merged |= bits[other]
            if merged & REDUCED or (kinds[number] & (REDUCES | SCALAR) and merged & BEHIND_PRODUCT):
                bits[number] |= REDUCED

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
        inputs = [0] * len(bits)
        for place, number in enumerate(number for number, kind in enumerate(self.kinds) if kind & PARAMETER):
            inputs[number] |= 1 << place % MAX_INPUTS
        spread_on(inputs, self.operands, -1)
        twins = {inputs[number] for number in forward}
        return [part for part in products if inputs[part] in twins], [part for part in products if inputs[part] not in twins]

    def _mark_other_losses(self, products: Iterable[int]) -> None:
        """Mark products that lead to an unreturned loss, their operands, and their users without a cotangent."""
        bits = self.bits
        others = [0] * len(bits)
        self._mark(others, products, LOSS)
        spread_on(others, self.operands, LOSS)
        for number, leads in enumerate(others):
            if leads and bits[number] & (GRADIENT | COTANGENT | RECOMPUTED) == GRADIENT:
                bits[number] |= LOSS
        spread_back(bits, self.operands, LOSS)

    def _moved_gradients(self) -> None:
        """Mark gradients, and values that only move or sum them behind the operand of the update."""
        bits, both = self.bits, UPDATED | MOVED
        for gradient in self.gradients:
            self._mark(bits, gradient, MOVED)
        for number, kind in enumerate(self.kinds):
            if kind & MOVES and bits[number] & both == UPDATED:
                marks = {bits[other] & both for other in self.operands[number]}
                if both in marks and UPDATED not in marks:
                    bits[number] |= MOVED

    def _backward_operands(self) -> None:
        """Mark operands of products of the backward pass, also through moves: weights and activations that two phases share."""
        bits, operands, kinds = self.bits, self.operands, self.kinds
        for number in range(len(operands) - 1, -1, -1):
            own, kind = bits[number], kinds[number]
            if kind & PRODUCT:
                is_taken = own & (GRADIENT | COTANGENT | LOSS) == GRADIENT | COTANGENT
            else:
                is_taken = own & (FOR_BACKWARD | COTANGENT) == FOR_BACKWARD and kind & MOVES != 0
            if is_taken:
                for other in operands[number]:
                    bits[other] |= FOR_BACKWARD
