"""Packing of a heap, and which allocations are free, against programs that look at everything."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.allocations import Occupancy, partitioned
from hlo_inspect.analysis.memory.heap import Interval, pack
from hlo_inspect.hlo.wants import Wants


def interval(value: int, size: int, start: int, end: int, base: int | None = None) -> Interval:
    return Interval(value, size, start, value if base is None else base, end)


def packed(*intervals: Interval) -> tuple[int, dict[int, int]]:
    packing = pack({interval.value: interval for interval in intervals}, 64)
    return packing.bytes, dict(packing.offsets)


def test_the_order_with_the_lower_heap_is_taken() -> None:
    """By size: 0 at 0, 2 at 0, 1 above both at 128 (188 bytes). By duration: 1 at 0, both others at 64 (164 bytes)."""
    assert packed(interval(0, 100, 0, 3), interval(1, 60, 1, 5), interval(2, 80, 4, 7)) == (164, {1: 0, 0: 64, 2: 64})


def test_the_smallest_gap_is_taken() -> None:
    """0 to 3 are stacked at 0, 128, 192 and 256. Then 4 goes into the gap of 64 bytes, not into that of 128."""
    chunks = [interval(0, 128, 0, 4), interval(1, 64, 0, 9), interval(2, 60, 0, 4), interval(3, 52, 0, 9)]
    assert packed(*chunks, interval(4, 50, 6, 7)) == (308, {0: 0, 1: 128, 2: 192, 3: 256, 4: 192})


def test_values_that_share_memory_are_placed_once() -> None:
    assert packed(interval(0, 64, 0, 3), interval(1, 64, 4, 9, base=0), interval(2, 64, 2, 5)) == (128, {0: 0, 2: 64})


def best_fit(intervals: Sequence[Interval], alignment: int) -> tuple[int, dict[int, int]]:
    """Pack by looking at every free gap, with the lower of both orders. Shared intervals have their base's offset."""
    sharing = {base: [owner for owner in intervals if owner.base == base] for base in {owner.base for owner in intervals}}
    bases = [owner for owner in intervals if owner.base == owner.value]

    def meet(left: Interval, right: Interval) -> bool:
        return any(a.start <= b.end and b.start <= a.end for a in sharing[left.value] for b in sharing[right.value])

    def duration(interval: Interval) -> int:
        return max(each.end for each in sharing[interval.value]) - min(each.start for each in sharing[interval.value])

    def height(offsets: dict[int, int]) -> int:
        return max(offsets[interval.value] + interval.bytes for interval in bases)

    def placed(order: Sequence[Interval]) -> dict[int, int]:
        offsets: dict[int, int] = {}
        for interval in order:
            others = [other for other in bases if other.value in offsets and meet(interval, other)]
            used = sorted((offsets[other.value], offsets[other.value] + other.bytes) for other in others)
            gaps, begin = [], 0
            for bottom, top in used:
                gaps.append((bottom - begin, begin))
                begin = max(begin, -(-top // alignment) * alignment)
            offsets[interval.value] = min([gap for gap in gaps if gap[0] >= interval.bytes], default=(0, begin))[1]
        return offsets

    by_size = placed(sorted(bases, key=lambda owner: (-owner.bytes, owner.start - owner.end, owner.value)))
    by_duration = placed(sorted(bases, key=lambda owner: (-duration(owner), -owner.bytes, owner.value)))
    return min((height(by_size), by_size), (height(by_duration), by_duration), key=lambda owner: owner[0])


@pytest.mark.parametrize("largest", [1 << 8, 1 << 34])
def test_packings_of_many_intervals(largest: int) -> None:
    numbers = random.Random(largest)  # noqa: S311 - a test that is the same each time
    for _ in range(200):
        starts = [numbers.randrange(40) for _ in range(numbers.randrange(1, 24))]
        sizes = [numbers.choice([4, 64, 100, 256, numbers.randrange(1, largest)]) for _ in starts]
        chosen = zip(starts, sizes, strict=True)
        intervals = [interval(value, size, start, start + numbers.randrange(12)) for value, (start, size) in enumerate(chosen)]
        assert packed(*intervals) == best_fit(intervals, 64)


def test_packings_of_many_intervals_that_share_memory() -> None:
    """Few distinct times and sizes: both orders often come close, and the second stops once it cannot be lower."""
    numbers = random.Random(1)  # noqa: S311 - a test that is the same each time
    for _ in range(1000):
        bases: list[int] = []
        intervals: list[Interval] = []
        for value in range(numbers.randint(1, 14)):
            is_sharing = bool(bases) and numbers.random() < 0.2
            bases += [] if is_sharing else [value]
            start, size = numbers.randint(0, 20), numbers.choice([1, 3, 64, 65, 100, 128, 256, 500])
            base = numbers.choice(bases) if is_sharing else value
            intervals.append(interval(value, size, start, start + numbers.randint(0, 10), base))
        alignment = numbers.choice([1, 64, 128])
        packing = pack({member.value: member for member in intervals}, alignment)
        assert (packing.bytes, dict(packing.offsets)) == best_fit(intervals, alignment)


def test_the_order_of_temporaries_is_that_of_std_partition() -> None:
    assert partitioned([None, 16, 8]) == [16, 8]
    assert partitioned([None, 16, 8, None, None]) == [8, 16]
    assert partitioned([5, None, 7, None]) == [7, 5]
    assert partitioned([None]) == []


def test_which_allocations_are_free() -> None:
    occupancy = Occupancy(40)
    spans = {0: (0, 7), 1: (7, 12), 2: (30, 40), 3: (11, 12)}
    for number, (start, end) in spans.items():
        occupancy.take(start, end, number)
    for start in range(40):
        for end in range(start + 1, 41):
            taken = {number for number, (low, high) in spans.items() if low < end and start < high}
            assert occupancy.free((1 << len(spans)) - 1, start, end) == sum(1 << number for number in spans.keys() - taken)


def test_buffers_of_any_size_are_placed() -> None:
    """Shapes of a damaged text have more bytes than an address."""
    huge = 1 << 63
    chunks = [interval(0, huge, 0, 3), interval(1, huge, 1, 5), interval(2, 64, 4, 9)]
    assert packed(*chunks) == (
        2 * huge,
        {1: 0, 0: huge, 2: huge},
    )


APPLIED = """HloModule m, is_scheduled=true

%scaled (c: f32[], d: f32[]) -> f32[] {
  %c = f32[] parameter(0)
  %d = f32[] parameter(1)
  %two = f32[] constant(2)
  %product = f32[] multiply(%c, %two)
  ROOT %scaled_sum = f32[] add(%product, %d)
}

ENTRY %main (x: f32[8]) -> f32[] {
  %x = f32[8]{0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %r = f32[] reduce(%x, %zero), dimensions={0}, to_apply=%scaled
}
"""


def test_values_of_what_is_applied_are_on_the_stack(read: Callable[..., Context]) -> None:
    """But for its constant of 4 bytes."""
    memory = read(APPLIED, Wants(graph=True, entry=True)).memory.device
    assert memory is not None
    assert (memory.thread_local.allocations, memory.thread_local.constant_bytes) == (4, 4)
