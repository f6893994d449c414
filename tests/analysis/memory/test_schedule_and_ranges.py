"""Times, values and live ranges of small modules, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.memory.device_memory import DeviceMemory
from hlo_inspect.analysis.memory.phis import without_redundant_phis
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants

GRAPH = Wants(graph=True, entry=True)
DUMP = Path(__file__).parents[2] / "data/xla_dump_to/module_0000.jit_step.cpu_after_optimizations.txt"

# q is the same in each run of the loop, i and x change; numbers behind lines are times
LOOP = """HloModule loop, is_scheduled=true

%cond (c: (s32[], f32[4], f32[4])) -> pred[] {
  %c = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %n = s32[] constant(5)
  ROOT %go = pred[] compare(%i, %n), direction=LT
}

%body (b: (s32[], f32[4], f32[4])) -> (s32[], f32[4], f32[4]) {
  %b = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  %j = s32[] get-tuple-element(%b), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%j, %one)
  %x = f32[4]{0} get-tuple-element(%b), index=1
  %k = f32[4]{0} get-tuple-element(%b), index=2
  %y = f32[4]{0} multiply(%x, %k)
  ROOT %out = (s32[], f32[4]{0}, f32[4]{0}) tuple(%next, %y, %k)
}

ENTRY %main (p: f32[4], q: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %q = f32[4]{0} parameter(1)
  %zero = s32[] constant(0)
  %first = f32[4]{0} copy(%p)
  %i0 = s32[] copy(%zero)
  %init = (s32[], f32[4]{0}, f32[4]{0}) tuple(%i0, %first, %q)
  %loop = (s32[], f32[4]{0}, f32[4]{0}) while(%init), condition=%cond, body=%body
  ROOT %r = f32[4]{0} get-tuple-element(%loop), index=1
}
"""


@pytest.fixture
def device(read: Callable[..., Context]) -> Callable[[str], DeviceMemory]:
    def found(text: str) -> DeviceMemory:
        memory = read(text, GRAPH).memory
        assert memory.device is not None, memory.reason
        return memory.device

    return found


def ranges(device: DeviceMemory) -> dict[str, tuple[int, int]]:
    """By name and shape index of the definition."""
    ranges_by_name = {}
    for value, time in enumerate(device.values.times):
        index = ",".join(map(str, device.values.index(value)))
        ranges_by_name[f"{device.place(time).name}{{{index}}}"] = device.ranges.starts[value], device.ranges.ends[value]
    return ranges_by_name


def sharing(device: DeviceMemory) -> set[frozenset[str]]:
    """Return the definitions of the values of each buffer that has several."""
    names = list(ranges(device))
    return {frozenset(names[value] for value in members) for members in device.buffers.members if len(members) > 1}


def test_a_loop_is_inlined_with_its_condition_first(device: Callable[[str], DeviceMemory]) -> None:
    memory = device(LOOP)
    names = " ".join(memory.schedule.name(time) for time in range(memory.schedule.end))
    assert names == "p q zero first i0 init c i n go b j one next x k y out loop r"
    spans = {run.name: (run.start, run.end, run.role) for run in memory.schedule.runs}
    assert spans == {"main": (0, 20, "entry"), "cond": (6, 10, "condition"), "body": (10, 18, "body")}


def test_live_ranges_of_a_loop(device: Callable[[str], DeviceMemory]) -> None:
    """The loop's operand ends when the body has it; q, which is invariant, is one value to the end."""
    assert ranges(device(LOOP)) == {
        "p{}": (0, 20),
        "q{}": (0, 20),
        "zero{}": (2, 4),
        "first{}": (3, 6),
        "i0{}": (4, 6),
        "init{}": (5, 6),
        "c{}": (6, 10),
        "c{0}": (6, 10),
        "c{1}": (6, 10),
        "n{}": (8, 9),
        "go{}": (9, 10),
        "b{}": (10, 15),
        "b{0}": (10, 13),
        "b{1}": (10, 16),
        "one{}": (12, 13),
        "next{}": (13, 18),
        "y{}": (16, 18),
        "out{}": (17, 18),
        "loop{}": (18, 19),
        "loop{0}": (18, 18),
        "loop{1}": (18, 20),
    }


def test_a_loop_carried_value_has_one_buffer(device: Callable[[str], DeviceMemory]) -> None:
    assert sharing(device(LOOP)) == {
        frozenset({"init{}", "c{}", "b{}", "out{}", "loop{}"}),
        frozenset({"i0{}", "c{0}", "b{0}", "next{}", "loop{0}"}),
        frozenset({"first{}", "c{1}", "b{1}", "y{}", "loop{1}"}),
    }


CONDITIONAL = """HloModule choice, is_scheduled=true

%yes (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %minus = f32[4]{0} negate(%a)
}

%no (b: f32[4]) -> f32[4] {
  %b = f32[4]{0} parameter(0)
  ROOT %power = f32[4]{0} exponential(%b)
}

ENTRY %main (p: pred[], x: f32[4]) -> f32[4] {
  %p = pred[] parameter(0)
  %x = f32[4]{0} parameter(1)
  %y = f32[4]{0} add(%x, %x)
  ROOT %c = f32[4]{0} conditional(%p, %y, %x), true_computation=%yes, false_computation=%no
}
"""


def test_branches_share_the_result_of_a_conditional(device: Callable[[str], DeviceMemory]) -> None:
    memory = device(CONDITIONAL)
    assert ranges(memory) == {
        "p{}": (0, 8),
        "x{}": (0, 8),
        "y{}": (2, 7),
        "minus{}": (4, 5),
        "power{}": (6, 7),
        "c{}": (7, 8),
    }
    assert sharing(memory) == {frozenset({"minus{}", "power{}", "c{}"})}
    assert (memory.output_bytes, memory.temp_bytes) == (16, 16)  # y is live while the branches run


def test_the_ranges_of_a_real_program_are_those_that_xla_wrote() -> None:
    """`-live-range.txt` beside the dump: every range, and what is live at XLA's own peak."""
    module = next(read_modules(open_source(DUMP), GRAPH))
    memory = Context(module).memory.device
    assert memory is not None
    stated, peak, lines = {}, set(), iter(Path(str(DUMP).replace(".txt", "-live-range.txt")).read_text().splitlines())
    for line in lines:
        if "BufferLiveRange" in line:
            break
    for line in lines:
        name, _, span = line.strip().rpartition(":")
        if "peak" in line:
            time = int(line.split()[3])
            break
        start, _, end = span.partition("-")
        stated[name] = int(start), int(end)
    for line in lines:
        if " bytes (" not in line:
            break
        peak.add(line.strip().partition(":")[0])
    assert len(stated) == 14
    computed = ranges(memory)
    assert computed == stated
    assert {name for name, (start, end) in computed.items() if start <= time <= end} == peak


@pytest.mark.parametrize(
    ("inputs", "values"),
    [
        ({10: (1, 10)}, {10: 1}),
        ({10: (1, 2)}, {}),
        ({10: (1, 11), 11: (1, 10)}, {10: 1, 11: 1}),  # swapped in each run, both from one value
        ({10: (1, 11), 11: (2, 10)}, {}),
        ({10: (1, 11), 11: (12, 10), 12: (10, 12)}, {10: 1, 11: 1, 12: 1}),
        (
            {10: (1, 2), 11: (10, 12), 12: (10, 11)},
            {11: 10, 12: 10},
        ),  # an inner loop passes on the value that the outer one changes
        ({10: (1, 13), 11: (10, 12), 12: (10, 12), 13: (11, 2)}, {11: 10, 12: 10}),
    ],
)
def test_phis_of_one_value_are_that_value(inputs: dict[int, tuple[int, ...]], values: dict[int, int]) -> None:
    assert without_redundant_phis(inputs) == values
