"""The two kinds of a heap, of lists and of arrays, place the same spans at the same offsets."""

from __future__ import annotations

import subprocess
import sys
from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from hlo_inspect.analysis.memory import placed_spans
from hlo_inspect.analysis.memory.placed_spans import PlacedSpanArrays, PlacedSpans

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("largest", [3, 40, 1 << 70])
def test_lists_place_as_arrays_do(largest: int) -> None:
    random = Random(largest)  # noqa: S311 - nothing is secret
    for _ in range(20):
        ticks = [sorted(random.sample(range(60), 2 * random.choice((1, 1, 1, 2, 3)))) for _ in range(40)]
        groups = [list(zip(group[::2], group[1::2], strict=True)) for group in ticks]
        sizes = [random.randint(1, largest) for _ in groups]
        lists, arrays = PlacedSpans(groups), PlacedSpanArrays(groups, sum(sizes))
        placed = zip(groups, sizes, strict=True)
        assert all(lists.place(spans, units) == arrays.place(spans, units) for spans, units in placed)


def test_a_span_takes_the_smallest_gap_that_holds_it() -> None:
    """Six spans side by side, of which three end first, leave gaps of 5, 2 and 3 units."""
    sizes = (5, 1, 2, 1, 3, 1)
    heap = PlacedSpans([[(0, 30)]])
    assert [heap.place([(0, 4 if index % 2 == 0 else 9)], size) for index, size in enumerate(sizes)] == [
        0,
        *accumulate(sizes[:-1]),
    ]
    assert [heap.place([(5, 9)], units) for units in (2, 2, 3, 2, 1)] == [6, 9, 0, 3, 11]
    assert heap.place([(20, 30)], 100) == 0


def test_few_groups_need_no_numpy() -> None:
    """A command on a dump with a schedule imports it nowhere, and neither does a browser."""
    program = (
        "import sys; from hlo_inspect.cli.main import run; status = run(sys.argv[1:]);"
        "print(status, 'numpy' in sys.modules, file=sys.stderr)"
    )
    dump = ROOT / "tests" / "data" / "memory" / "gpu_unrolled.hlo"
    done = subprocess.run(
        [sys.executable, "-c", program, "memory", str(dump)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr == "0 False\n"


def test_the_kind_depends_on_the_number_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [[(0, 1)]] * placed_spans.MANY_GROUPS
    assert isinstance(placed_spans.placed_spans(groups[1:], 1), PlacedSpans)
    assert isinstance(placed_spans.placed_spans(groups, 1), PlacedSpanArrays)
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert isinstance(placed_spans.placed_spans(groups, 1), PlacedSpans)
