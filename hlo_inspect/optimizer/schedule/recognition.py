"""Schedules: a learning rate as a function of the number of steps, by name.

A rate has one segment or several in turn. With the counter c, a segment begins at `b`, takes `n` steps and goes from `s` to
`e`:

* constant: `s`
* linear: `s + (e - s) * (c - b) / n`
* cosine: `e + (s - e) * (1 + cos(pi * (c - b) / n)) / 2` (with an exponent: that half sum to its power)
* polynomial: `e + (s - e) * (1 - (c - b) / n) ** p`
* exponential: `s * r ** ((c - b) / k)`, r every k steps
* staircase: `s * r ** floor((c - b) / k)`
* inverse root: `f / sqrt(c + o)`
* inverse: `s / (1 + f * c)`

optax documents these for `constant_schedule`, `linear_schedule`, `polynomial_schedule`, `cosine_decay_schedule` and
`exponential_decay`. Its `join_schedules`, `warmup_*` and `piecewise_constant_schedule` have parts that follow each other. The
inverse root is that of Vaswani et al. 2017 (arXiv:1706.03762). Only the expression decides. A segment is named if its equation,
with the printed numbers, gives the values that the text computes at several counters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from hlo_inspect.optimizer.algebra.hyperparameter import ABSENT, EXACT, shortest
from hlo_inspect.optimizer.algebra.normal_form import NormalForms, Sum, close, product
from hlo_inspect.optimizer.algebra.numeric import value_of_form
from hlo_inspect.optimizer.algebra.unexplained_updates import describe
from hlo_inspect.optimizer.matching.training_steps import WeightUpdates
from hlo_inspect.optimizer.matching.weights import Weight
from hlo_inspect.optimizer.schedule.curve import Curve, are_equal_at
from hlo_inspect.optimizer.schedule.piecewise import LAST, Piece, expand_segments, pieces_of

Kind = Literal["constant", "linear", "cosine", "polynomial", "exponential", "staircase", "inverse square root", "inverse"]

MAX_SEGMENTS = 12
TOLERANCE = 1e-5  # of the largest rate
FAR = 100_000  # steps for which the last segment is checked


class Segment(NamedTuple):
    """A segment of `steps` from counter `first` on, None for the last one.

    `exponent` is that of a cosine or polynomial; `factor` the r or the f, `every` the k or the o of the equations. For a cosine
    that does not stop at its end, `every` is the n.
    """

    kind: Kind
    first: int
    steps: int | None
    start: float
    end: float
    exponent: float = 1.0
    factor: float = 0.0
    every: float = 0.0

    def value(self, counter: int) -> float:
        """Return the rate by the equation."""
        passed = counter - self.first
        if self.kind == "constant":
            return self.start
        if self.kind == "inverse square root":
            return self.factor / math.sqrt(counter + self.every)
        if self.kind == "inverse":
            return self.start / (1 + self.factor * counter)
        if self.kind in {"exponential", "staircase"}:
            times = passed / self.every
            return self.start * math.pow(self.factor, math.floor(times) if self.kind == "staircase" else times)
        if self.steps is None and self.kind == "linear":
            return self.start + self.factor * passed
        share = passed / (self.every if self.steps is None else self.steps)
        if self.kind == "cosine":
            share = 1 - math.pow((1 + math.cos(math.pi * share)) / 2, self.exponent)
        elif self.kind == "polynomial":
            share = 1 - math.pow(1 - share, self.exponent)
        return self.start + (self.end - self.start) * share

    def points(self) -> list[int]:
        """Return counters at which to compare equation and text: both ends and between, but no beginning of a stair."""
        length = self.steps if self.steps is not None else FAR
        if self.kind == "cosine" and self.steps is None:
            length = int(self.every)
        if self.kind == "staircase":
            every = int(self.every)
            return [self.first + every * n + every // 2 for n in {0, 1, 2, length // every // 2} if every * (n + 1) <= length]
        small_counters = [n for n in (1, 10, 100, 1000, 10_000) if n < length]
        return [self.first + n for n in (*small_counters, *(length * n // 7 for n in range(7)), length - 1)]


def format_segments(parts: Sequence[Segment]) -> str:
    """Format segments as a phrase. Each has its value at the end, and at the start unless the previous segment ended there."""
    if len(parts) == 2 and _is_warm_up(parts[0]) and parts[1].kind == "cosine" and parts[1].steps is None:
        return f"{_phrase(parts[1], None)} after {parts[0].steps} of warm-up"
    phrases: list[str] = []
    before: float | None = None
    for part in parts:
        if part.steps is None and part.kind == "constant" and part.start == before:
            break  # stays there
        phrases.append(_phrase(part, before))
        before = part.end if part.kind not in {"exponential", "staircase", "inverse square root", "inverse"} else None
    return ", then ".join(phrases)


def _is_warm_up(part: Segment) -> bool:
    return part.kind == "linear" and part.first == 0 and part.steps is not None and part.end > part.start


def _phrase(part: Segment, before: float | None) -> str:
    name: str = "linear warm-up" if _is_warm_up(part) else part.kind
    if part.exponent != 1.0 and part.kind in {"cosine", "polynomial"}:
        name = f"{name} with exponent {_number(part.exponent)}"
    lasting = "" if part.steps is None else f" for {_steps(part.steps)}"
    if part.kind == "constant":
        return f"{name} {_number(part.start)}{lasting}"
    if part.kind == "inverse square root":
        offset = "" if not part.every else f" {'+' if part.every > 0 else '-'} {_number(abs(part.every))}"
        return f"{name} {_number(part.factor)} / sqrt(counter{offset}){lasting}"
    if part.kind == "inverse":
        return f"{name} {_number(part.start)} / (1 + {_number(part.factor)} * counter){lasting}"
    if part.kind in {"exponential", "staircase"}:
        often = "each step" if part.every == 1 else f"every {_number(part.every)} steps"
        return f"{name} from {_number(part.start)}, times {_number(part.factor)} {often}{lasting}"
    if part.steps is None and part.kind == "linear":
        return f"{name} from {_number(part.start)} by {_number(part.factor)} each step"
    source = "" if part.start == before else f" {_number(part.start)}"
    return f"{name}{source} to {_number(part.end)} over {_steps(part.steps or part.every)}"


def _steps(count: float) -> str:
    return "1 step" if count == 1 else f"{_number(count)} steps"


def _number(value: float) -> str:
    """Format a number with all digits that were compared."""
    return f"{value:.10g}"


class Rates:
    """Learning rates in words; equal expressions are examined once."""

    def __init__(self, updates: WeightUpdates) -> None:
        self._updates = updates
        self._known: dict[tuple[int, frozenset[tuple[object, float]]], str] = {}
        self._counters = {id(m.forms): {m.forms.leaf(array.old): array for array in m.counters} for m in updates.expressions}

    def text(self, weight: Weight) -> str:
        claim, forms = weight.claim, weight.update.forms
        state = (claim.hyperparameters.get("learning_rate", ABSENT) if claim is not None else ABSENT).status
        if claim is None or state != "computed":
            return state
        key = (id(forms), frozenset(claim.rate.items()))
        if key not in self._known:
            self._known[key] = self._schedule(forms, claim.rate) or self._expression(forms, claim.rate)
        return self._known[key]

    def _schedule(self, forms: NormalForms, rate: Sum) -> str | None:
        rate = expand_segments(self._updates.flow, forms, expanded_rate(forms, rate))
        leaves = forms.leaves(rate)
        counter = next(iter(leaves)) if len(leaves) == 1 else None
        array = self._counters[id(forms)].get(counter) if counter is not None else None
        if counter is None or array is None or not counts_steps(forms, forms.definition(array.new), counter):
            return None
        return format_schedule(forms, rate, counter)

    def _expression(self, forms: NormalForms, rate: Sum) -> str:
        sources = [forms.graph.sources.get(node) for leaf in forms.leaves(rate) if (node := forms.atoms[leaf].node) is not None]
        parameters = [self._updates.parameters[source] for source in sources if source in self._updates.parameters]
        numbers = sorted({number for number, _ in parameters})
        plural = "s" if len(numbers) > 1 else ""
        source = f" from parameter{plural} {', '.join(map(str, numbers))}" if numbers else ""
        expression = describe(forms, rate)
        if len(numbers) == 1 and expression == f"p{numbers[0]}":
            return f"parameter {numbers[0]}"
        return f"computed{source}" if "…" in expression else f"computed{source}: {expression}"


def format_schedule(forms: NormalForms, rate: Sum, counter: int) -> str | None:
    """Format a schedule by the counter's old value, or by its new value if that gives rounder numbers."""
    phrases: list[tuple[int, str]] = []
    for ahead in (0, 1):
        parts = schedule_of(forms, rate, counter, ahead)
        if parts is not None:
            words = format_segments(parts)
            phrases.append((len(words) + 2 * ahead, words + ", of the counter + 1" * ahead))
    return min(phrases, key=lambda phrase: phrase[0], default=(0, None))[1]


def schedule_of(forms: NormalForms, rate: Sum, counter: int, ahead: int = 0) -> list[Segment] | None:
    """Return the segments of a rate as a function of a counter of steps; with `ahead` of 1, of the counter + 1.

    Return None if a part of the rate is not recognised, or if arithmetic with its constants fails.
    """
    try:
        return _schedule(forms, rate, counter, ahead)
    except (ArithmeticError, ValueError):
        return None


def _schedule(forms: NormalForms, rate: Sum, counter: int, ahead: int) -> list[Segment] | None:
    pieces = pieces_of(forms, rate, counter, ahead) if forms.leaves(rate) == {counter} else None
    if pieces is None:
        return None
    reached = [piece for piece in pieces if piece.last >= ahead]  # the counter begins at 0
    ends = [(piece.curve, end) for piece in reached for end in (max(piece.first, ahead), min(piece.last, piece.first + FAR))]
    largest = max(abs(curve.value(end)) for curve, end in ends)
    if not math.isfinite(largest) or largest == 0.0:
        return None
    pieces = _join_pieces(pieces, largest)
    if len(pieces) > MAX_SEGMENTS:
        return None
    parts: list[Segment] = []
    for piece in pieces:
        part = _part(piece, largest)
        if part is None:
            return None
        if parts and part.kind == "constant" and abs(part.start - parts[-1].end) <= EXACT * largest:
            part = part._replace(start=parts[-1].end, end=parts[-1].end)
        parts.append(part)
    parts = _with_short_warm_up(parts, TOLERANCE * largest)
    return parts if _holds(forms, rate, parts, ahead, TOLERANCE * largest) else None


def _with_short_warm_up(parts: list[Segment], tolerance: float) -> list[Segment]:
    """Return the segments; constants of one step each that rise from 0 on a line to the next segment become that line."""
    count = next((n for n, part in enumerate(parts) if part.kind != "constant" or part.steps != 1), len(parts))
    if not 0 < count < len(parts) or parts[0].first != 0 or parts[0].start != 0.0:
        return parts
    end = parts[count].value(count)
    line = Segment("linear", 0, count, 0.0, end, factor=end / count)
    is_even = all(abs(part.start - line.value(part.first)) <= tolerance for part in parts[:count])
    return [line, *parts[count:]] if is_even and end > 0.0 else parts


def counts_steps(forms: NormalForms, new: Sum, counter: int) -> bool:
    """Return True if the new value of a counter is the old value plus 1."""
    pieces = pieces_of(forms, new, counter)
    return pieces == [Piece(0, LAST, Curve("linear", 1.0, 1.0))]


def expanded_rate(forms: NormalForms, rate: Sum) -> Sum:
    """Return the expression of a rate. If another output keeps the rate, that is the expression of the output."""
    for _ in range(4):
        kept = [(m, v, atom) for m, v in rate.items() for atom, e in m if forms.atoms[atom].op == "value" and e == 1.0]
        if len(rate) != 1 or len(kept) != 1:
            break
        monomial, value, atom = kept[0]
        node = forms.atoms[atom].node
        if node is None:
            break
        rate = forms.multiply({product(monomial, ((atom, -1.0),)): value}, forms.definition(node))
    return rate


def _join_pieces(pieces: Sequence[Piece], scale: float) -> list[Piece]:
    """Join adjacent pieces of one curve; a counter that fits two pieces belongs to the second."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and _continues(last.curve, piece, scale):
            joined[-1] = last._replace(last=piece.last)
            continue
        first = _beginning(last, piece, scale) if last is not None else piece.first
        if last is not None and first < piece.first:
            joined[-1] = last._replace(last=first - 1)
            if last.first == first:
                joined.pop()
        joined.append(piece._replace(first=first))
    return joined


def _beginning(left: Piece, right: Piece, scale: float) -> int:
    """Return the counter at which the second of two pieces begins.

    It is the last counter of the first piece, or the beginning of the stair on which both meet.
    """
    if _is_shared(left, right, scale):
        return left.last
    stairs = right.curve.inner if right.curve.kind == "exponential" else None
    beginning = math.ceil(right.first - stairs.passed(right.first) - TOLERANCE) if stairs is not None else right.first
    is_level = left.curve.kind == "constant" and left.first <= beginning
    return beginning if is_level and are_equal_at(left.curve, right.curve, [beginning], scale) else right.first


def _is_shared(left: Piece, right: Piece, scale: float) -> bool:
    """Return True if two pieces meet at the first piece's last counter rather than at the second piece's first counter."""
    gaps = [abs(left.curve.value(counter) - right.curve.value(counter)) for counter in (left.last, right.first)]
    return (gaps[0] < gaps[1] or left.first == left.last) and are_equal_at(left.curve, right.curve, [left.last], scale)


def _continues(curve: Curve, piece: Piece, scale: float) -> bool:
    if piece.first == piece.last:
        return are_equal_at(curve, piece.curve, [piece.first], scale)
    end = min(piece.last, piece.first + FAR)
    is_same_kind = curve.kind == piece.curve.kind
    return is_same_kind and are_equal_at(curve, piece.curve, [piece.first, (piece.first + end) // 2, end], scale)


# -- segments -----------------------------------------------------------------------------------------------------------


def _part(piece: Piece, largest: float) -> Segment | None:
    curve, first = piece.curve, piece.first
    steps = None if piece.last == LAST else piece.last + 1 - first
    start = _rounded_value(curve, first, largest)
    end = _rounded_value(curve, first + steps, largest) if steps is not None else 0.0
    if curve.kind == "constant":
        return Segment("constant", first, steps, start, start)
    if curve.kind == "linear":
        return Segment("linear", first, steps, start, end, factor=shortest(curve.scale))
    if curve.kind == "exponential":
        return _exponential(curve, first, steps, start)
    if curve.kind == "cosine":
        return _wave(curve, first, steps, largest)
    if curve.kind == "power" and curve.inner is not None:
        return _power(curve, curve.inner, Segment("polynomial", first, steps, start, end, curve.parameter))
    return None


def _wave(curve: Curve, first: int, steps: int | None, largest: float) -> Segment | None:
    """Return half a wave. A cosine without an end goes from one extreme to the next."""
    is_linear = curve.inner is not None and curve.inner.kind == "linear"
    length = math.pi / abs(curve.inner.scale) if curve.inner is not None and is_linear else 0.0
    until = steps if steps is not None else round(length)
    if not _is_half_wave(curve, first, until) or (steps is None and (until < 1 or not close(length, until, 1e-4))):
        return None
    start, end = _rounded_value(curve, first, largest), _rounded_value(curve, first + until, largest)
    return Segment("cosine", first, steps, start, end, every=0.0 if steps is not None else until)


def _exponential(curve: Curve, first: int, steps: int | None, start: float) -> Segment | None:
    inner = curve.inner
    kind: Kind = "exponential"
    if inner is not None and inner.kind == "floor":
        if inner.base != int(inner.base) or inner.scale != 1.0 or inner.inner is None:
            return None
        kind, inner = "staircase", inner.inner
        beginning = inner.value(first)
        if abs(beginning - round(beginning)) > TOLERANCE:
            return None
    if inner is None or inner.kind != "linear" or curve.base != 0.0:
        return None
    every, factor = 1 / abs(inner.scale), shortest(curve.parameter ** math.copysign(1.0, inner.scale))
    if every < 1 - TOLERANCE or not close(every, round(every), 1e-4):
        every, factor = 1.0, float(f"{curve.parameter**inner.scale:.10g}")
        if kind == "staircase":
            return None
    return Segment(kind, first, steps, start, start, factor=factor, every=float(round(every)))


def _power(curve: Curve, inner: Curve, part: Segment) -> Segment | None:
    """Return a power of a wave that ends at 0, of a line that falls to 0, or the inverse (root) of a counter."""
    if inner.kind == "cosine":
        is_wave = close(inner.base, inner.scale) and _is_half_wave(inner, part.first, part.steps)
        return part._replace(kind="cosine") if is_wave else None
    if inner.kind != "linear":
        return None
    if part.exponent == -0.5 and curve.base == 0.0 and inner.scale > 0:
        factor = shortest(curve.scale / math.sqrt(inner.scale), 1e-6)
        return part._replace(kind="inverse square root", factor=factor, every=shortest(inner.base / inner.scale, 1e-6))
    if part.exponent == -1.0 and curve.base == 0.0 and inner.scale > 0 and inner.base > 0:
        start, falling = shortest(curve.scale / inner.base, 1e-6), shortest(inner.scale / inner.base, 1e-6)
        return part._replace(kind="inverse", start=start, factor=falling)
    is_whole = part.steps is not None and abs(inner.value(part.first + part.steps)) <= TOLERANCE * abs(inner.value(part.first))
    return part if is_whole and part.exponent > 0 else None


def _is_half_wave(curve: Curve, first: int, steps: int | None) -> bool:
    """Return True if a cosine goes from one of its extremes to the next one."""
    if curve.inner is None or steps is None:
        return False
    turns = [curve.inner.value(end) / math.pi for end in (first, first + steps)]
    return all(abs(turn - round(turn)) < 1e-4 for turn in turns) and abs(round(turns[1]) - round(turns[0])) == 1


def _rounded_value(curve: Curve, counter: int, largest: float) -> float:
    """Return the value that the author wrote, from rounded terms; 0 for the noise at a cosine's end."""
    value = curve.value(counter)
    size = abs(curve.base) + abs(value - curve.base)
    return 0.0 if abs(value) <= 1e-9 * largest else shortest(value, EXACT * size / abs(value))


def _holds(forms: NormalForms, rate: Sum, parts: Sequence[Segment], ahead: int, tolerance: float) -> bool:
    """Return True if the equations give the values that the text computes."""
    return all(_agrees(forms, rate, part, point, ahead, tolerance) for part in parts for point in part.points())


def _agrees(forms: NormalForms, rate: Sum, part: Segment, point: int, ahead: int, tolerance: float) -> bool:
    computed = value_of_form(forms, rate, lambda _: float(point - ahead))
    try:
        return computed is not None and abs(computed - part.value(point)) <= tolerance
    except (ArithmeticError, ValueError):
        return False
