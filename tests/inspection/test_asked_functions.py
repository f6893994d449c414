"""The code that a question about a small module reaches: what the module lacks is not asked for."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType, FrameType

import pytest

import hlo_inspect

DATA = Path(__file__).parents[1] / "data"
PACKAGE = str(Path(hlo_inspect.__file__).parent)
ONE_ALL_REDUCE = """HloModule jit_f, entry_computation_layout={(f32[1024]{0})->f32[1024]{0}}, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (p: f32[1024]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  ROOT %all-reduce.1 = f32[1024]{0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, \
to_apply=%add
}
"""


def called_functions(question: str, source: str = ONE_ALL_REDUCE) -> set[CodeType]:
    """Return the functions of the package that a second question calls, without those that only fill a new object."""
    hlo_inspect.inspect(source, question)
    called: set[CodeType] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith(("<", "__init__")):
            called.add(code)

    sys.setprofile(note)
    try:
        report = hlo_inspect.inspect(source, question)
    finally:
        sys.setprofile(None)
    assert report.facts["collectives.count"] == source.count("all-reduce(")
    return called


@pytest.mark.parametrize(("question", "most"), [("collectives", 310), ("summary", 800)])
def test_a_question_about_one_all_reduce_calls_few_functions(question: str, most: int) -> None:
    assert most // 2 < len(called_functions(question)) <= most


def test_a_module_that_adds_nothing_is_read_once_and_without_its_optimizer() -> None:
    files = {Path(code.co_filename).relative_to(PACKAGE) for code in called_functions("collectives")}
    assert not {file for file in files if file.parts[0] == "optimizer"}
    assert Path("hlo/read/selective.py") in files and Path("analysis/phases/names.py") not in files


def test_a_step_without_collectives_is_not_read_for_their_phases() -> None:
    step = (DATA / "cpu" / "adamw_step.before.txt").read_text(encoding="utf-8")
    files = {Path(code.co_filename).relative_to(PACKAGE).parts[0] for code in called_functions("collectives", step)}
    assert "passes" in files and "optimizer" not in files
