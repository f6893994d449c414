"""The fuzzer adds cycles to each kind of computation."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

from tests.fuzz.cycles import KINDS, _computations, add_cycle

TEXT = b"""HloModule m

%fused (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %y = f32[4]{0} negate(%x)
}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%body (s: (f32[4])) -> (f32[4]) {
  %s = (f32[4]{0}) parameter(0)
  %g = f32[4]{0} get-tuple-element(%s), index=0
  ROOT %t = (f32[4]{0}) tuple(%g)
}

%condition (s2: (f32[4])) -> pred[] {
  %s2 = (f32[4]{0}) parameter(0)
  %k = pred[] constant(false)
  ROOT %l = pred[] copy(%k)
}

%called (z: f32[4]) -> f32[4] {
  %z = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(%z)
}

%left (u: f32[4]) -> f32[4] {
  %u = f32[4]{0} parameter(0)
  ROOT %v = f32[4]{0} copy(%u)
}

ENTRY %e (p: f32[4], i: s32[]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %i = s32[] parameter(1)
  %f = f32[4]{0} fusion(%p), kind=kLoop, calls=%fused
  %w = (f32[4]{0}) tuple(%f)
  %loop = (f32[4]{0}) while(%w), condition=%condition, body=%body
  %o = f32[4]{0} get-tuple-element(%loop), index=0
  %h = f32[4]{0} call(%o), to_apply=%called
  %r = f32[4]{0} all-reduce(%h), to_apply=%sum
  ROOT %q = f32[4]{0} conditional(%i, %r, %r), branch_computations={%left, %called}
}
"""


def test_kinds_of_computations() -> None:
    kinds = {computation.name: computation.kind for computation in _computations(TEXT)}
    assert kinds == {
        b"%fused": "fused",
        b"%sum": "applied",
        b"%body": "body",
        b"%condition": "condition",
        b"%left": "branch",
        b"%called": "branch",
        b"%e": "entry",
    }


def test_cycles_in_each_kind_of_computation() -> None:
    text = TEXT.replace(b"{%left, %called}", b"{%left}")
    kinds = {text[computation.start : computation.end]: computation.kind for computation in _computations(text)}
    counts: Counter[str] = Counter()
    for seed in range(300):
        damaged = add_cycle(text, random.Random(seed))  # noqa: S311 - damage, not secrets
        (changed,) = [kind for body, kind in kinds.items() if body not in damaged]
        counts[changed] += 1
    assert set(counts) == set(KINDS)
    assert min(counts.values()) > 20


def test_a_seed_gives_one_cycle_and_bears_any_text() -> None:
    dump = (Path(__file__).parent.parent / "data/cpu/scan_fsdp.after.txt").read_bytes()
    for text in (dump, TEXT, b"", b"HloModule m\nENTRY e {\n}\n", dump[: len(dump) // 2]):
        assert add_cycle(text, random.Random(7)) == add_cycle(text, random.Random(7))  # noqa: S311 - as above
