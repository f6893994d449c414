from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.cost import CUSTOM_CALL, Cost, kind_of
from hlo_inspect.analysis.cost.model import WORK, Gap, Tally, Work

HERE = Gap(5, "no shape")


def tally(**rows: tuple[int, ...]) -> Tally:
    found = Tally()
    for label, amounts in rows.items():
        found.add(label.replace("_", "-"), amounts)
    return found


def test_the_figures_of_an_instruction() -> None:
    cost = Cost.of("fusion", tally(add=(4,), tanh=(0, 4)), 48)
    assert (cost.amounts, cost.as_xla, cost.kind, cost.gaps) == ((4, 4, 0, 48), (4, 4, 0, 48), "elementwise", {})


def test_xla_does_not_count_custom_calls() -> None:
    """But for the FLOPs of matrix multiplications, which XLA has no figure for."""
    alone = Cost.of(CUSTOM_CALL, tally(custom_call=(210, 3, 210)), 284)
    assert (alone.amounts, alone.as_xla) == ((210, 3, 210, 284), (0, 0, 210, 0))
    inside = Cost.of("fusion", tally(custom_call=(210, 3, 210), add=(9,)), 284)
    assert inside.as_xla == (9, 0, 210, 284)


def test_gaps() -> None:
    work = tally(add=(4,))
    work.miss("dot", WORK, HERE)
    assert Cost.of("fusion", work, 48).gaps == dict.fromkeys(WORK, HERE)
    assert Cost.of("fusion", tally(add=(4,)), HERE).gaps == {"bytes": HERE}
    assert Cost.of("fusion", tally(add=(4,)), HERE).amounts == (4, 0, 0, 0)


@pytest.mark.parametrize(
    ("opcode", "work", "inside", "kind"),
    [
        ("dot", Work(8, 0, 8), ["dot"], "matmul"),
        ("fusion", Work(9, 1, 8), ["add", "convolution", "reduce"], "matmul"),
        (CUSTOM_CALL, Work(8, 0, 8), [CUSTOM_CALL], "matmul"),
        (CUSTOM_CALL, Work(8), [CUSTOM_CALL], "custom call"),
        ("all-reduce", Work(8), ["all-reduce"], "collective"),
        ("all-gather-done", Work(), [], "collective"),
        ("cross-replica-sum", Work(8), ["cross-replica-sum"], "collective"),
        ("fusion", Work(9), ["add", "reduce"], "reduction"),
        ("sort", Work(9), ["sort"], "reduction"),
        ("topk", Work(), [], "reduction"),
        ("fusion", Work(0, 4), ["tanh"], "elementwise"),
        ("fusion", Work(), [], "data movement"),
        ("copy", Work(), [], "data movement"),
    ],
)
def test_kinds(opcode: str, work: Work, inside: list[str], kind: str) -> None:
    assert kind_of(opcode, work, inside) == kind
