"""Texts of which a part was pasted: computations are called that are not there, and may hold the update."""

from __future__ import annotations

import hlo_inspect
from tests.optimizer.test_repeated_gradients import FLIPPED, STEP

WHOLE = STEP.format(moment=FLIPPED, weight=FLIPPED)
ENTRY = WHOLE[: WHOLE.index("moment {")] + WHOLE[WHOLE.index("ENTRY") :]


def test_undefined_computations_leave_updates_unknown() -> None:
    report = hlo_inspect.inspect(ENTRY, ("optimizer",))
    counts = ("name", "update_count", "frozen_count", "weight_bytes", "state_bytes")
    assert [report.facts[f"optimizer.{name}"] for name in counts] == [None] * 5
    (reason,) = [note for note in report.notes if note.startswith("optimizer.name:")]
    assert "calls a computation that is not defined" in reason
    (finding,) = [finding for finding in report.findings if finding.rule == "HI504"]  # one for both fusions
    assert "1 more such instructions" in finding.message


def test_undefined_computations_leave_the_kind_of_program_open() -> None:
    """The names of instructions show a backward pass, the update may be missing."""
    text = ENTRY.replace("{1,0} dot(x, y), ", '{1,0} dot(x, y), metadata={op_name="transpose(jvp())"}, ')
    report = hlo_inspect.inspect(text, ("summary",))
    assert report.headline[0].parts[0] == "program with matrix multiplications"
