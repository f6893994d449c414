"""Golden files: what cannot be read or compared is an error, never a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.errors import HloInspectError, InputError, InternalError
from hlo_inspect.inspection import comparisons
from hlo_inspect.testing.golden import compare_with_golden

PROGRAM = "HloModule {}\n\nENTRY main {{\n  p = f32[{}]{{0}} parameter(0)\n  ROOT r = f32[{}]{{0}} negate(p)\n}}\n"
SMALL, LARGE = PROGRAM.format("step", 4, 4), PROGRAM.format("step", 8, 8)


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    path = tmp_path / "golden" / "step.hlo"
    assert compare_with_golden(SMALL, {}, path, updates=True) == ""
    return path


def test_the_same_program_is_no_difference_and_another_one_is(golden: Path) -> None:
    assert (
        compare_with_golden(
            PROGRAM.format("step", 4, 4).replace("p = ", "q = ").replace("(p)", "(q)"), {}, golden, updates=False
        )
        == ""
    )
    first, *facts = compare_with_golden(LARGE, {}, golden, updates=False).splitlines()
    assert first == "step.hlo is another program; pytest --hlo-update writes the new one"
    assert any("32" in line for line in facts)
    assert all(line.startswith("  ") for line in facts)


def test_a_golden_file_without_a_module_is_an_error(golden: Path) -> None:
    golden.write_text("nothing about programs\n")
    with pytest.raises(InputError, match=r"golden/step\.hlo: holds no HLO module"):
        compare_with_golden(SMALL, {}, golden, updates=False)


def test_a_program_of_another_name_is_an_error(golden: Path) -> None:
    with pytest.raises(InputError, match="holds no module named like 'other'; there are: step"):
        compare_with_golden(SMALL, {"module": "other"}, golden, updates=False)
    before = golden.read_text()
    with pytest.raises(HloInspectError):
        compare_with_golden(SMALL, {"module": "other"}, golden, updates=True)
    assert golden.read_text() == before


def test_a_comparison_that_fails_is_its_error(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("not a message for users")

    monkeypatch.setattr(comparisons, "compare", fail)
    with pytest.raises(InternalError, match="internal error"):
        compare_with_golden(LARGE, {}, golden, updates=False)


def test_a_missing_golden_file_says_what_writes_it(golden: Path) -> None:
    said = compare_with_golden(SMALL, {}, golden.with_name("other.hlo"), updates=False)
    assert said == "there is no golden file other.hlo: pytest --hlo-update writes it"
