"""Steps with the form of SGD: training shows in a donated weight, a returned loss or a second updated array."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from tests.optimizer.programs import DONATED

DEFLATION = (
    "%v = f32[64]{0} parameter(0)",
    "%q = f32[64,8]{1,0} parameter(1)",
    "%c = f32[8]{0} dot(%v, %q), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "%p = f32[64]{0} dot(%q, %c), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "ROOT %new = f32[64]{0} subtract(%v, %p)",
)
"""`v - Q(Q.T v)`: the part of v that is orthogonal to the columns of Q."""
ATTACK = (
    "%x = f32[32,64]{1,0} parameter(0)",
    "%w = f32[64,16]{1,0} parameter(1)",
    "%h = f32[32,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "%t = f32[32,16]{1,0} tanh(%h)",
    "%g = f32[32,64]{1,0} dot(%t, %w), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "%rate = f32[] constant(0.1)",
    "%rates = f32[32,64]{1,0} broadcast(%rate), dimensions={}",
    "%u = f32[32,64]{1,0} multiply(%g, %rates)",
    "ROOT %new = f32[32,64]{1,0} subtract(%x, %u)",
)
"""The input of a network, changed along its gradient."""
LOSS = (
    *ATTACK[:-1],
    "%new = f32[32,64]{1,0} subtract(%x, %u)",
    "%first = f32[1,1]{1,0} slice(%t), slice={[0:1], [0:1]}",
    "%loss = f32[] reshape(%first)",
    "ROOT %r = (f32[32,64]{1,0}, f32[]) tuple(%new, %loss)",
)

OTHER_SCALAR = (
    *ATTACK[:-1],
    "%new = f32[32,64]{1,0} subtract(%x, %u)",
    "%count = f32[] parameter(2)",
    "%next = f32[] add(%count, %rate)",
    "ROOT %r = (f32[32,64]{1,0}, f32[]) tuple(%new, %next)",
)
"""The step also returns a scalar that does not depend on x, such as the momentum of an accelerated method."""


def facts(lines: tuple[str, ...], header: str = "") -> tuple[object, ...]:
    text = f"HloModule jit_step{header}\n\nENTRY %main {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
    report = hlo_inspect.inspect(text, ("optimizer", "params"))
    roles = [record["role"] for record in report.table("params").records()]
    return report.facts["optimizer.name"], report.facts["optimizer.learning_rate"], roles[0]


@pytest.mark.parametrize("lines", [DEFLATION, ATTACK, OTHER_SCALAR])
def test_a_solver_s_step_is_no_sgd(lines: tuple[str, ...]) -> None:
    assert facts(lines) == ("unknown", None, None)


@pytest.mark.parametrize(("lines", "header", "rate"), [(DEFLATION, DONATED, 1.0), (ATTACK, DONATED, 0.1), (LOSS, "", 0.1)])
def test_a_donated_weight_or_a_loss_shows_training(lines: tuple[str, ...], header: str, rate: float) -> None:
    assert facts(lines, header) == ("sgd", rate, "weight")


def test_the_note_says_what_is_missing_and_the_first_line_calls_it_a_program() -> None:
    text = "HloModule jit_step\n\nENTRY %main {\n" + "".join(f"  {line}\n" for line in DEFLATION) + "}\n"
    report = hlo_inspect.inspect(text)
    words = "".join(part if isinstance(part, str) else str(part.value) for part in report.headline[0].parts)
    assert words.startswith("program with matrix multiplications")
    notes = hlo_inspect.inspect(text, "optimizer").notes
    assert [note for note in notes if note.startswith("optimizer.name: nothing shows a training step: parameter 0 is not")]


def test_the_cotangent_of_a_loop_backward_is_no_weight() -> None:
    """The program returns gradients; neither its caller nor its results have the array that the loop changes."""
    path = Path(__file__).parents[1] / "data" / "phases" / "remat_gradients.txt.xz"
    report = hlo_inspect.inspect(path, "optimizer")
    assert (report.facts["optimizer.name"], report.facts["optimizer.update_count"]) == ("none", 0)
