"""Generated text: what is stated of it is what XLA's parser and the package find in it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import hlo_inspect
from benchmarks.generate import expected_path, generate, read_base, size_in_bytes
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.hlo.module import Module
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.wants import Wants
from tests.hlo.reading import body

DUMP = Path(__file__).parents[1] / "data" / "cpu" / "collectives.after.txt"


@pytest.mark.parametrize("whole_entry", [False, True])
def test_generated_text_holds_what_is_stated(whole_entry: bool, tmp_path: Path) -> None:
    base, output = read_base(DUMP), tmp_path / "text.txt"
    generate(base, output, 20 * DUMP.stat().st_size, whole_entry=whole_entry)
    stated = json.loads(expected_path(output).read_text(encoding="utf-8"))
    report = hlo_inspect.inspect(output, ("summary",))
    assert {fact: report.facts[fact] for fact in stated} == stated
    assert report.findings == tuple(f for f in report.findings if not f.rule.startswith("HI0"))
    assert 15 < output.stat().st_size / DUMP.stat().st_size < 30


@pytest.mark.parametrize("whole_entry", [False, True])
def test_each_copy_has_names_and_channels_of_its_own(whole_entry: bool, tmp_path: Path) -> None:
    base, output = read_base(DUMP), tmp_path / "text.txt"
    generate(base, output, 5 * DUMP.stat().st_size, whole_entry=whole_entry)
    (module,) = read_modules(open_source(output), Wants(graph=True))
    (once,) = read_modules(open_source(DUMP), Wants(graph=True))
    copies = (module.computation_count - 1) // (once.computation_count - whole_entry)
    assert copies > 3
    assert sorted(channels(module).values()) == sorted([*channels(once).values()] * copies)


def channels(module: Module) -> Counter[str]:
    bodies = [instruction for computation in module.computations.values() for instruction in body(computation)]
    return Counter(str(i.attr("channel_id")) for i in bodies if i.has("channel_id"))


def test_sizes() -> None:
    assert [size_in_bytes(text) for text in ("12", "3KB", "100mb", "1GB")] == [12, 3000, 10**8, 10**9]
