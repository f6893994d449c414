"""The segments of schedules: equations and words.

With the counter c, of a segment that begins at `b`, takes `n` steps and goes from `s` to `e`:

    constant       s
    linear         s + (e - s) * (c - b) / n
    cosine         e + (s - e) * (1 + cos(pi * (c - b) / n)) / 2       (with an exponent: that half sum to its power)
    polynomial     e + (s - e) * (1 - (c - b) / n) ** p
    exponential    s * r ** ((c - b) / k), r every k steps
    staircase      s * r ** floor((c - b) / k)
    inverse root   f / sqrt(c + o)
    inverse        s / (1 + f * c)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["constant", "linear", "cosine", "polynomial", "exponential", "staircase", "inverse square root", "inverse"]

FAR = 100_000  # steps for which the last segment is checked


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of `steps` from counter `first` on, `None` for the last one. `exponent` is that of a cosine or polynomial;
    `factor` the r or the f, `every` the k or the o of the equations; of a cosine that does not stop at its end the n.
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
        """The rate by the equation."""
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
        """Counters at which the equation is held against the text: both ends and between, except where a stair begins."""
        length = self.steps if self.steps is not None else FAR
        if self.kind == "cosine" and self.steps is None:
            length = int(self.every)
        if self.kind == "staircase":
            every = int(self.every)
            return [self.first + every * n + every // 2 for n in {0, 1, 2, length // every // 2} if every * (n + 1) <= length]
        near = [n for n in (1, 10, 100, 1000, 10_000) if n < length]
        return [self.first + n for n in (*near, *(length * n // 7 for n in range(7)), length - 1)]


def described(parts: Sequence[Segment]) -> str:
    """Segments as a phrase: the value at the end of each, and at its start unless the segment before it ended there."""
    one_step = parts[0].kind == "constant" and parts[0].start == 0.0 and parts[0].steps == 1
    if len(parts) == 2 and (_is_warm_up(parts[0]) or one_step) and parts[1].kind == "cosine" and parts[1].steps is None:
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
    lasting = "" if part.steps is None else f" for {part.steps} steps"
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
    return f"{name}{source} to {_number(part.end)} over {_number(part.steps or part.every)} steps"


def _number(value: float) -> str:
    """All digits that were compared."""
    return f"{value:.10g}"
