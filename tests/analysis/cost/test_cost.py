from __future__ import annotations

from hlo_inspect.analysis.cost.cost import CUSTOM_CALL, Cost
from hlo_inspect.analysis.cost.model import WORK, Gap, Part, Tally

HERE = Gap(5, "no shape")


def tally(**rows: tuple[int, ...]) -> Tally:
    found = Tally()
    for label, amounts in rows.items():
        found.add(Part(label.replace("_", "-")), amounts)
    return found


def test_the_figures_of_an_instruction() -> None:
    cost = Cost.of("fusion", tally(add=(4,), tanh=(0, 4)), 48)
    assert (cost.amounts, cost.as_xla, cost.gaps) == ((4, 4, 0, 48), (4, 4, 0, 48), {})


def test_xla_does_not_count_custom_calls() -> None:
    """But for the FLOPs of matrix multiplications, which XLA has no figure for."""
    alone = Cost.of(CUSTOM_CALL, tally(custom_call=(210, 3, 210)), 284)
    assert (alone.amounts, alone.as_xla) == ((210, 3, 210, 284), (0, 0, 210, 0))
    inside = Cost.of("fusion", tally(custom_call=(210, 3, 210), add=(9,)), 284)
    assert inside.as_xla == (9, 0, 210, 284)


def test_gaps() -> None:
    work = tally(add=(4,))
    work.miss(Part("dot"), WORK, HERE)
    assert Cost.of("fusion", work, 48).gaps == dict.fromkeys(WORK, HERE)
    assert Cost.of("fusion", tally(add=(4,)), HERE).gaps == {"bytes": HERE}
    assert Cost.of("fusion", tally(add=(4,)), HERE).amounts == (4, 0, 0, 0)


def test_gaps_of_custom_calls_are_none_of_xla_s() -> None:
    """But for the FLOPs of matrix multiplications."""
    work = tally(add=(4,))
    work.miss(Part(CUSTOM_CALL), WORK, HERE)
    inside = Cost.of("fusion", work, 48)
    assert (inside.gaps, inside.gaps_of_xla) == (dict.fromkeys(WORK, HERE), {"matmul_flops": HERE})
    assert Cost.of("fusion", work, HERE).gaps_of_xla == {"matmul_flops": HERE, "bytes": HERE}
    assert Cost.of(CUSTOM_CALL, work, HERE).gaps_of_xla == {"matmul_flops": HERE}


def test_nothing_can_be_told() -> None:
    cost = Cost.unknown("while", HERE)
    assert cost.gaps == cost.gaps_of_xla == dict.fromkeys((*WORK, "bytes"), HERE)
