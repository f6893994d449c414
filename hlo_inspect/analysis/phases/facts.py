"""What is true of each value of a training step: which values lead to what, and which depend on what.

Each fact is one bit of each component of the graph, found by one pass in the order of the values or against it.

* `GRADIENT`, leads to a gradient; `UPDATED`, depends on one.
* `LOSS`, leads to a loss. No value of the backward pass does.
* `COTANGENT`, depends on the first cotangents: what leads to gradients and is computed directly from the *tail* of the forward
  pass, `TAIL`: values behind a product that lead to a loss and to no further product that leads to a loss. Saved activations
  are not in the tail, as a product comes behind them: what is computed from them alone depends on no cotangent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hlo_inspect.graph.value_graph import MOVES, PARAMETER, PRODUCT, REDUCES, NodesAtPlaces, ValueGraph
from hlo_inspect.graph.view import strong_components
from hlo_inspect.optimizer.overview import Overview

GRADIENT, UPDATED, LOSS, COTANGENT, TAIL = 1, 2, 4, 8, 16
BEHIND_PRODUCT, FROM_INPUT, FROM_WEIGHT = 32, 64, 128
"""A product, or made of one; made of an input; made of a weight that has a gradient."""
BEFORE_PRODUCT = 256
"""Leads to another product that leads to a loss."""
REDUCED = 512
"""In the tail, behind a reduction or a gather there."""
RECOMPUTED, FOR_RECOMPUTED, TO_STATE = 1024, 2048, 4096
"""Made of a product that the backward pass computes again; leads to such a product; leads to what is updated."""
MOVED = 8192
"""A gradient, or only moved or summed from gradients."""

AGAIN = 16384
"""Computes the loss again for the backward pass, where all of it is."""

FOR_BACKWARD = 32768
"""Goes unchanged into a product of the backward pass."""

MAX_LOSSES = 48
MAX_GRADIENTS = 256
MAX_INPUTS = 256


class TrainedWeight(NamedTuple):
    """The nodes of one weight's gradient, and of the arrays that hold the weight: itself and its working copy."""

    gradients: set[int]
    arrays: set[int]


def trained_weights(overview: Overview, graph: ValueGraph) -> list[TrainedWeight]:
    """Return the weights of which gradients were found that depend on a cotangent, as the updates of the optimizer say."""
    places = NodesAtPlaces(overview.frames, graph)
    found = []
    for row in [row for row in overview.rows if not row.matched.is_linear]:
        gradients = {node for place, part in row.matched.gradient_places() for node in places.nodes(place, part)}
        held = [array.source for array in (row.weight, row.master) if array is not None]
        if gradients:
            found.append(TrainedWeight(gradients, {node for source in held for node in places.input(*source)}))
    return found


class Components:
    """The components of the graph of values: nodes that are made of each other are one, as the state of a loop and what makes
    it new. They are numbered so that each comes after those that it is made of.

    `of` is the component of each node, `operands` those that each is made of, `kinds` what any of its nodes is; `is_cycle`
    where values are made of each other.
    """

    def __init__(self, graph: ValueGraph) -> None:
        if graph.is_ordered:
            self.of: Sequence[int] = range(len(graph))
            self.operands: list[list[int]] = graph.operands
            self.kinds = bytearray(graph.kinds)
            self.is_cycle = bytearray(len(graph))
            return
        self.of, count = strong_components(graph.operands)
        of = self.of
        self.kinds = bytearray(count)
        self.is_cycle = bytearray(count)
        self.operands = [[] for _ in range(count)]
        for node, made_of in enumerate(graph.operands):
            own = of[node]
            self.kinds[own] |= graph.kinds[node]
            found = self.operands[own]
            for other in made_of:
                if of[other] != own:
                    found.append(of[other])
                elif other != node:
                    self.is_cycle[own] = 1

    def __len__(self) -> int:
        return len(self.operands)


def spread_on(bits: list[int], operands: Sequence[Sequence[int]], mask: int) -> None:
    """Gives each component the bits of those that it is made of."""
    for number, made_of in enumerate(operands):
        found = 0
        for other in made_of:
            found |= bits[other]
        bits[number] |= found & mask


def spread_back(bits: list[int], operands: Sequence[Sequence[int]], mask: int) -> None:
    """Gives each component the bits of those that are made of it."""
    for number in range(len(operands) - 1, -1, -1):
        found = bits[number] & mask
        if found:
            for other in operands[number]:
                bits[other] |= found


class StepFacts:
    """The bits of each component. `losses` are the outputs of one element that may be losses; without any, `weights` tell what
    leads to all gradients.
    """

    def __init__(self, parts: Components, weights: Sequence[TrainedWeight], losses: Iterable[int]) -> None:
        self.parts = parts
        self.operands, self.kinds = parts.operands, parts.kinds
        self._products = [number for number, kind in enumerate(parts.kinds) if kind & PRODUCT]
        of = parts.of
        self.gradients = [sorted({of[node] for node in weight.gradients}) for weight in weights]
        self.weights = [sorted({of[node] for node in weight.arrays}) for weight in weights]
        self.bits = self._dependences()
        candidates = {of[node] for node in losses if self.bits[of[node]] & (BEHIND_PRODUCT | UPDATED) == BEHIND_PRODUCT}
        self.losses = self._accepted(sorted(candidates)[:MAX_LOSSES])
        self.is_loss_returned = bool(self.losses)
        self._mark(self.bits, self.losses, LOSS)
        spread_back(self.bits, self.operands, LOSS)
        leads_to_loss = [any(self.bits[one] & LOSS for one in arrays) for arrays in self.weights if arrays]
        if not self.losses or not all(leads_to_loss):  # a weight that leads to none was trained for a loss that is not returned
            self._mark_what_leads_to_all(LOSS, self.gradients)
        self._cotangents(self.bits)
        if not any(self.bits[number] & COTANGENT for number in self._products):
            self._mark_what_leads_to_all(AGAIN, self.gradients)
            self._cotangents(self.bits, AGAIN)
        self._recomputation()
        self._moved_gradients()
        self._what_backward_products_take()

    @staticmethod
    def _mark(bits: list[int], numbers: Iterable[int], bit: int) -> None:
        for number in numbers:
            bits[number] |= bit

    def _dependences(self) -> list[int]:
        """What does not need to know the loss."""
        own = [(BEHIND_PRODUCT if kind & PRODUCT else 0) | (FROM_INPUT if kind & PARAMETER else 0) for kind in range(256)]
        bits = [own[kind] for kind in self.kinds]
        for gradients, arrays in zip(self.gradients, self.weights, strict=True):
            self._mark(bits, gradients, GRADIENT | UPDATED | TO_STATE)
            self._mark(bits, arrays, FROM_WEIGHT)
        spread_on(bits, self.operands, BEHIND_PRODUCT | FROM_INPUT | FROM_WEIGHT | UPDATED | TO_STATE)
        spread_back(bits, self.operands, GRADIENT | TO_STATE)
        return bits

    # -- losses ---------------------------------------------------------------------------------------------------------

    def _accepted(self, candidates: Sequence[int]) -> list[int]:
        """The losses. A norm of cotangents that is returned is none: it depends on the cotangents of a scalar with fewer
        products, and uses no weight that this one does not use. A loss that uses another scalar's activations, as beside the
        auxiliary loss of a router, has weights of its own.
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
            held = 0
            for number in arrays:
                held |= masks[number]
            for place in range(len(candidates)):
                if held >> place & 1:
                    uses[place] |= 1 << bit
        accepted: list[int] = []
        cotangents: dict[int, list[int]] = {}
        for place in sorted(range(len(candidates)), key=counts.__getitem__):
            rivals = [one for one in accepted if counts[one] < counts[place] and not uses[place] & ~uses[one]]
            for one in rivals[:4]:
                if one not in cotangents:
                    cotangents[one] = self._cotangents_of(candidates[one])
                if cotangents[one][candidates[place]] & COTANGENT:
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
        """Where a loss is not returned its forward pass is what leads to all its gradients, without what has no such user
        itself: the first cotangents lead to all gradients too. They are no products, of which all users can be copies that lead
        to some gradients each. Of many gradients some are looked at. With one gradient this says nothing.

        Where the whole loss is computed again, its tail too, that is how the recomputed one is found.
        """
        distinct = list(dict.fromkeys(tuple(one) for one in gradients))
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

    # -- cotangents -----------------------------------------------------------------------------------------------------

    def _cotangents(self, bits: list[int], forward: int = LOSS) -> None:
        """The tail of the forward pass, which has the bit `forward`, and what depends on the first cotangents."""
        operands, kinds = self.operands, self.kinds
        for number in range(len(operands) - 1, -1, -1):
            own = bits[number]
            if own & forward:
                if kinds[number] & PRODUCT and self.parts.is_cycle[number]:
                    own = bits[number] = own | BEFORE_PRODUCT
                if kinds[number] & PRODUCT or own & BEFORE_PRODUCT:
                    for other in operands[number]:
                        bits[other] |= BEFORE_PRODUCT
        wanted = forward | BEHIND_PRODUCT
        tail = [number for number, own in enumerate(bits) if own & (wanted | BEFORE_PRODUCT) == wanted]
        self._mark(bits, tail, TAIL)
        begin = tail[0] if tail else len(bits)
        for number, made_of in enumerate(operands[begin:], begin):
            own = bits[number]
            if own & (LOSS | forward):
                continue
            found = 0
            for other in made_of:
                found |= bits[other]
            if found & COTANGENT or (found & TAIL and own & GRADIENT):
                bits[number] = own | COTANGENT

    # -- recomputation and moved gradients ------------------------------------------------------------------------------

    def _recomputation(self) -> None:
        """What is made of, or for, products that are computed again; and what is behind a reduction in the tail."""
        bits, operands, kinds = self.bits, self.operands, self.kinds
        again, others = self._products_without_cotangent()
        if others:
            self._mark_what_leads_to_all(LOSS, [one for one in self.gradients if not any(bits[n] & COTANGENT for n in one)])
            self._cotangents(bits)
            again, others = self._products_without_cotangent()
        if again:
            self._mark(bits, again, RECOMPUTED | FOR_RECOMPUTED)
            spread_on(bits, operands, RECOMPUTED)
            spread_back(bits, operands, FOR_RECOMPUTED)
        if others:
            self._mark_other_losses(others)
        for number in [number for number, own in enumerate(bits) if own & (TAIL | LOSS) == TAIL | LOSS]:
            found = 0
            for other in operands[number]:
                found |= bits[other]
            if found & REDUCED or (kinds[number] & REDUCES and found & BEHIND_PRODUCT):
                bits[number] |= REDUCED

    def _products_without_cotangent(self) -> tuple[list[int], list[int]]:
        """The products that lead to gradients alone and need no cotangent: those that are computed again, as by jax.checkpoint,
        have a twin in the forward pass, which is made of the same inputs. The others lead to a loss that is not returned. Of
        more than `MAX_INPUTS` inputs some count as one.
        """
        bits = self.bits
        found = [number for number in self._products if bits[number] & (GRADIENT | LOSS | COTANGENT) == GRADIENT]
        forward = [number for number in self._products if bits[number] & LOSS]
        if not found or not forward:
            return [], []
        inputs = [0] * len(bits)
        for place, number in enumerate(number for number, kind in enumerate(self.kinds) if kind & PARAMETER):
            inputs[number] |= 1 << place % MAX_INPUTS
        spread_on(inputs, self.operands, -1)
        twins = {inputs[number] for number in forward}
        return [one for one in found if inputs[one] in twins], [one for one in found if inputs[one] not in twins]

    def _mark_other_losses(self, products: Iterable[int]) -> None:
        """Marks products that lead to a loss that is not returned, what is made of them without a cotangent, and what they are
        made of.
        """
        bits = self.bits
        others = [0] * len(bits)
        self._mark(others, products, LOSS)
        spread_on(others, self.operands, LOSS)
        for number, found in enumerate(others):
            if found and bits[number] & (GRADIENT | COTANGENT | RECOMPUTED) == GRADIENT:
                bits[number] |= LOSS
        spread_back(bits, self.operands, LOSS)

    def _moved_gradients(self) -> None:
        """Gradients, and what only moves or sums them behind the place where the update takes them."""
        bits, both = self.bits, UPDATED | MOVED
        for gradient in self.gradients:
            self._mark(bits, gradient, MOVED)
        for number, kind in enumerate(self.kinds):
            if kind & MOVES and bits[number] & both == UPDATED:
                found = {bits[other] & both for other in self.operands[number]}
                if both in found and UPDATED not in found:
                    bits[number] |= MOVED

    def _what_backward_products_take(self) -> None:
        """What goes into a product of the backward pass, at most moved: weights and activations that two phases share."""
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
