"""Allocations, in-place results, the heap and its packing, worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.allocations import Occupancy, partitioned
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.heap import Interval, pack
from hlo_inspect.analysis.memory.in_place import InPlace, Pair
from hlo_inspect.analysis.memory.platforms import Platform
from hlo_inspect.hlo.values.shape_text import ShapeTable
from hlo_inspect.hlo.wants import Wants
from tests.analysis.memory.test_schedule_and_ranges import LOOP

GRAPH = Wants(graph=True, entry=True)
GPU_MARK = 'backend_config={"operation_queue_id":"0"}'


@pytest.fixture
def device(read: Callable[..., Context]) -> Callable[[str], DeviceMemory]:
    def found(text: str) -> DeviceMemory:
        memory = read(text, GRAPH).memory
        assert memory.device is not None, memory.reason
        return memory.device

    return found


def names(device: DeviceMemory, kind: str) -> list[set[str]]:
    """Return the names of the values in each allocation of a kind."""
    members = device.buffers.members
    return [
        {device.place(device.values.times[value]).name for buffer in allocation.buffers for value in members[buffer]}
        for allocation in device.assignment.allocations
        if allocation.kind == kind
    ]


def in_heap(device: DeviceMemory, space: int = 0) -> set[str]:
    heap = device.heaps.get(space)
    return {device.place(device.values.times[value]).name for value in heap.trace.intervals} if heap is not None else set()


def test_a_loop(device: Callable[[str], DeviceMemory]) -> None:
    """The heap holds the counter of 4 bytes and, in the next 64, the condition of 1.

    There are two parameters and the result of 16 bytes, three constants of 4, and a table of three pointers.
    """
    memory = device(LOOP)
    assert (memory.argument_bytes, memory.output_bytes, memory.alias_bytes, memory.constant_bytes) == (32, 16, 0, 12)
    assert in_heap(memory) == {"i0", "c", "b", "next", "loop", "go"}
    assert (memory.live_peak_bytes, memory.heap_bytes) == (4 + 1, 64 + 1)
    assert memory.temp_bytes == 64 + 65  # the table lies before the heap
    assert memory.peak_bytes == 32 + 16 + 12 + 5
    assert memory.xla_peak_bytes == 32 + 16 + 12
    assert memory.needed_bytes == 32 + 16 + 12 + 129


UPDATE = """HloModule update, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

%fused (a: f32[8], b: f32[2], at: s32[]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  %b = f32[2]{0} parameter(1)
  %at = s32[] parameter(2)
  %minus = f32[2]{0} negate(%b)
  ROOT %d = f32[8]{0} dynamic-update-slice(%a, %minus, %at)
}

ENTRY %main (state: f32[8], x: f32[2], i: s32[]) -> f32[8] {
  %state = f32[8]{0} parameter(0)
  %x = f32[2]{0} parameter(1)
  %i = s32[] parameter(2)
  %twice = f32[2]{0} add(%x, %x)
  ROOT %new = f32[8]{0} UPDATE
}
"""


@pytest.mark.parametrize(
    "how", ["dynamic-update-slice(%state, %twice, %i)", "fusion(%state, %twice, %i), kind=kLoop, calls=%fused"]
)
def test_an_update_in_place(device: Callable[[str], DeviceMemory], how: str) -> None:
    memory = device(UPDATE.replace("UPDATE", how))
    assert names(memory, "parameter") == [{"state", "new"}, {"x"}, {"i"}]
    assert (memory.argument_bytes, memory.output_bytes, memory.alias_bytes, memory.temp_bytes) == (32 + 8 + 4, 32, 32, 8)


ROOTS = {
    "the update itself": ("f32[8]", "ROOT %r = f32[8]{0} dynamic-update-slice(%a, %b, %at)", [Pair(0, (), ())]),
    "behind a bitcast": (
        "f32[2,4]",
        "%d = f32[8]{0} dynamic-update-slice(%a, %b, %at)\n  ROOT %r = f32[2,4]{1,0} bitcast(%d)",
        [Pair(0, (), ())],
    ),
    "in a tuple": (
        "(f32[2], f32[8])",
        "%d = f32[8]{0} dynamic-update-slice(%a, %b, %at)\n  ROOT %r = (f32[2]{0}, f32[8]{0}) tuple(%b, %d)",
        [Pair(0, (), (1,))],
    ),
    "of something computed": (
        "f32[8]",
        "%n = f32[8]{0} negate(%a)\n  ROOT %r = f32[8]{0} dynamic-update-slice(%n, %b, %at)",
        [],
    ),
    "of a computed bitcast": (
        "f32[8]",
        "%n = f32[8]{0} bitcast(%a)\n  ROOT %r = f32[8]{0} dynamic-update-slice(%n, %b, %at)",
        [Pair(0, (), ())],
    ),
    "none": ("f32[8]", "ROOT %r = f32[8]{0} negate(%a)", []),
}


@pytest.mark.parametrize("which", ROOTS)
def test_which_parameter_a_fusion_writes_to(read: Callable[..., Context], which: str) -> None:
    result, root, pairs = ROOTS[which]
    text = f"""HloModule m

%fused (a: f32[8], b: f32[2], at: s32[]) -> {result} {{
  %a = f32[8]{{0}} parameter(0)
  %b = f32[2]{{0}} parameter(1)
  %at = s32[] parameter(2)
  {root}
}}
"""
    context = read(text, GRAPH)
    assert list(InPlace(context.views, frozenset({"bitcast"})).fusion_pairs(context.views.computations["fused"])) == pairs


DONATED = """HloModule donated, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

ENTRY %main (a: f32[64], b: f32[64]) -> f32[64] {
  %a = f32[64]{0} parameter(0)
  %b = f32[64]{0} parameter(1)
  %sum = f32[64]{0} add(%a, %b)
  %wave = f32[64]{0} cosine(%b)
  ROOT %v = f32[64]{0} multiply(%wave, %sum)
}
"""


def test_a_temporary_lies_in_a_donated_parameter(device: Callable[[str], DeviceMemory]) -> None:
    """The parameter is read last by sum, at time 2, and v is written at 4: wave fits between, then sum does not."""
    memory = device(DONATED)
    assert names(memory, "parameter") == [{"a", "v", "wave"}, {"b"}]
    assert in_heap(memory) == {"sum"}
    assert (memory.temp_bytes, memory.peak_bytes) == (256, 512 + 256)


def test_without_donation_both_need_memory(device: Callable[[str], DeviceMemory]) -> None:
    """The output is a buffer of its own, which nothing writes before."""
    memory = device(DONATED.replace(", input_output_alias={ {}: (0, {}, may-alias) }", ""))
    assert names(memory, "output") == [{"v", "wave"}]
    assert (memory.output_bytes, memory.alias_bytes, memory.temp_bytes) == (256, 0, 256)


def test_a_copy_never_lies_on_what_it_copies(device: Callable[[str], DeviceMemory]) -> None:
    """Wave would fit between a and v; sum, which nothing reads, is over at once and takes the place of a."""
    memory = device(DONATED.replace("multiply(%wave, %sum)", "copy(%wave)"))
    assert names(memory, "parameter") == [{"a", "v", "sum"}, {"b"}]
    assert in_heap(memory) == {"wave"}


CHAIN = """HloModule chain, is_scheduled=true

%fused (f: f32[64]) -> f32[64] {
  %f = f32[64]{0} parameter(0)
  ROOT %g = f32[64]{0} INSIDE
}

ENTRY %main (x: f32[64]) -> f32[] {
  %x = f32[64]{0} parameter(0)
  %one = f32[64]{0} sine(%x)
  %two = f32[64]{0} SECOND
  ROOT %r = f32[] custom-call(%two), custom_call_target="sum"
}
"""
LOOPED = "fusion(%one), kind=kLoop, calls=%fused"


@pytest.mark.parametrize(
    ("second", "inside", "buffers"),
    [
        ("cosine(%one)", "negate(%f)", 1),
        ("copy(%one)", "negate(%f)", 2),
        ("reverse(%one), dimensions={0}", "negate(%f)", 2),
        (LOOPED, "negate(%f)", 1),
        (LOOPED, "reverse(%f), dimensions={0}", 2),
        (LOOPED.replace("kLoop", "kOutput"), "negate(%f)", 2),
        (f"{LOOPED}, {GPU_MARK}", "negate(%f)", 1),
        (f"{LOOPED}, {GPU_MARK}", "copy(%f)", 2),
        (f"{LOOPED}, {GPU_MARK}", "reverse(%f), dimensions={0}", 2),
        ("sort(%one), dimensions={0}, to_apply=%less", "negate(%f)", 1),
        ('custom-call(%one), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}', "negate(%f)", 1),
        ('custom-call(%one), custom_call_target="f"', "negate(%f)", 2),
    ],
)
def test_some_results_may_overwrite_their_operand(
    device: Callable[[str], DeviceMemory], second: str, inside: str, buffers: int
) -> None:
    """If the second value may not overwrite the first one, both are live when it is written."""
    memory = device(CHAIN.replace("SECOND", second).replace("INSIDE", inside))
    assert memory.live_peak_bytes == buffers * 256


SPACES = """HloModule spaces, is_scheduled=true

ENTRY %main (p: f32[256,128]) -> f32[256,128] {
  %p = f32[256,128]{1,0:T(8,128)} parameter(0)
  %slow = f32[256,128]{1,0:T(8,128)} custom-call(%p), custom_call_target="a"
  %fast = f32[256,128]{1,0:T(8,128)S(1)} copy(%p)
  %more = f32[512,128]{1,0:T(8,128)S(1)} custom-call(%fast), custom_call_target="b"
  ROOT %result = f32[256,128]{1,0:T(8,128)} custom-call(%slow, %more), custom_call_target="c"
}
"""


def test_heaps_of_two_memory_spaces(device: Callable[[str], DeviceMemory]) -> None:
    """The peak is that of the higher heap, not of their sum: 131072 bytes in HBM, three times as much in VMEM."""
    memory = device(SPACES)
    array = 256 * 128 * 4
    assert (memory.platform.name, memory.platform.mark) == ("tpu", "tiles in layouts")
    assert {space: heap.trace.peak for space, heap in memory.heaps.items()} == {0: array, 1: 3 * array}
    assert memory.peak_bytes == 2 * array + 3 * array
    assert memory.temp_bytes == array
    assert memory.space_peak_bytes() == {0: 3 * array, 1: 3 * array}
    live = memory.live_at_peak
    assert sum(row.bytes for row in live) == memory.peak_bytes
    assert memory.peak_time == 3


def test_the_curve_has_its_highest_point_at_the_peak(device: Callable[[str], DeviceMemory]) -> None:
    memory = device(LOOP)
    curve = memory.curve()
    assert max(curve) == memory.live_peak_bytes == 5
    assert curve[memory.peak_time or 0] == 5
    assert (curve[3], curve[-1]) == (0, 0)


TPU = Platform("tpu", "", pointer_bytes=4, table_alignment=512, keeps_trace=True)


@pytest.mark.parametrize(
    ("platform", "shape", "size"),
    [
        ("cpu", "f32[3,5]{1,0}", 60),
        ("cpu", "s4[7]{0:E(4)}", 4),
        ("cpu", "(f32[4], f32[], token[])", 24),
        ("cpu", "token[]", 0),
        ("cpu", "f32[0,8]{1,0}", 0),
        ("tpu", "f32[3,5]{1,0:T(8,128)}", 8 * 128 * 4),
        ("tpu", "f32[256,2]{1,0:T(8,128)}", 256 * 128 * 4),  # 64 times its elements
        ("tpu", "bf16[9,130]{1,0:T(8,128)(2,1)}", 16 * 256 * 2),
        ("tpu", "f32[]{:T(128)}", 512),
        ("tpu", "u32[]", 4096),  # no tile
        ("tpu", "s32[]{:S(2)}", 4),
        ("tpu", "(f32[]{:T(128)}, u32[])", 512),
    ],
)
def test_sizes(platform: str, shape: str, size: int) -> None:
    computed = (TPU if platform == "tpu" else Platform("cpu", "")).bytes_of(ShapeTable().parse(shape))
    assert computed == size


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

%plain (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

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
  ROOT %r = f32[] reduce(%x, %zero), ATTRIBUTES
}
"""


@pytest.mark.parametrize(
    "attributes",
    [
        "dimensions={0}, to_apply=%scaled",
        "dimensions={0},to_apply={%scaled}",
        'metadata={op_name="a, to_apply=%plain"}, dimensions={0}, to_apply=%scaled',
        r'metadata={op_name="\", to_apply=%plain"}, dimensions={0}, to_apply=%scaled',
        "/*, to_apply=%plain*/ dimensions={0}, to_apply=%scaled",
    ],
)
@pytest.mark.parametrize("mark", ["%", ""])
def test_constants_of_what_is_applied(device: Callable[[str], DeviceMemory], attributes: str, mark: str) -> None:
    """The constant of `scaled` counts, 4 bytes; its other four values are on the stack."""
    memory = device(APPLIED.replace("ATTRIBUTES", attributes).replace("%", mark))
    assert (memory.thread_local.allocations, memory.thread_local.constant_bytes) == (4, 4)
    assert memory.constant_bytes == 4 + 4
