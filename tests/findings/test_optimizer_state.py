"""The cost of an optimizer's state. A moment is f32[4096,4096], 64 MiB; there are two."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.report.model import Finding
from tests.optimizer.programs import ADAM, changed, report_of, step_of, text_of

DATA = Path(__file__).parents[1] / "data"
ALL = "{devices=[8,1]<=[8]}"
INNER = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
OUTER = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"
MIB = 1 << 20


def adam(*, donated: bool = True) -> str:
    text = step_of(*ADAM, outputs="new m v", states=2, donated=donated)
    return text.replace("[4,4]", "[4096,4096]").replace("[9,4]", "[9,4096]")


def divided(state: str, batch: str, header: str = ", num_partitions=8") -> str:
    """Return Adam on 8 devices with that sharding of the moments and of the batch."""
    text = changed(adam(), "^HloModule test", f"HloModule test{header}")
    text = changed(text, r"(%m[12] = .* parameter\(\d\))", rf"\1, sharding={state}") if state else text
    return changed(text, r"(%x = .* parameter\(4\))", rf"\1, sharding={batch}")


def found(text: str, rule: str) -> list[Finding]:
    return [finding for finding in report_of(text).findings if finding.rule == rule]


def test_state_that_is_not_donated() -> None:
    (finding,) = found(adam(donated=False), "HI505")
    assert (finding.severity, finding.subject, finding.stake) == ("warning", "m1", 2 * 64 * MIB)
    assert finding.message == (
        "the optimizer's state is not donated: 1 first moment and 1 second moment; donating it saves 128.0 MiB"
    )


def test_one_moment_that_is_not_donated() -> None:
    (finding,) = found(changed(adam(), r", \{2\}: \(2, \{\}, may-alias\)", ""), "HI505")
    assert (finding.subject, finding.stake) == ("m2", 64 * MIB)


def test_state_that_is_donated_or_small() -> None:
    assert found(adam(), "HI505") == []
    assert found(text_of("adam.kept.after"), "HI505") == []  # 288 bytes


def test_weights_alone_are_no_state() -> None:
    text = step_of("u = multiply g rate", "new = add w u", donated=False).replace("[4,4]", "[4096,4096]")
    assert found(text, "HI505") == []


def test_replicated_state_with_a_divided_batch() -> None:
    """Each of 8 devices would keep an eighth of two moments of 64 MiB. It has 3 * 64 MiB and 9 / 8 rows of 16 KiB."""
    (finding,) = found(divided("{replicated}", ALL), "HI506")
    assert (finding.severity, finding.subject, finding.stake) == ("info", "m1", 112 * MIB)
    assert finding.message == (
        "1 first moment and 1 second moment are replicated over mesh axis d0 (8 devices). Sharding like that of "
        "parameter 4 saves 112.0 MiB a device (58 % of 192.0 MiB of parameters)"
    )


def test_state_that_is_divided_in_part() -> None:
    """Two tiles of 32 MiB, each on 4 devices that read different parts of the batch: 2 * (32 - 8) MiB."""
    (finding,) = found(divided(OUTER, INNER), "HI506")
    assert finding.stake == 48 * MIB
    assert "(4 devices)" in finding.message


@pytest.mark.parametrize(
    ("state", "batch", "saved"),
    [("{replicated}", ALL, 67_141_636 - 8_392_705), (OUTER, INNER, 33_570_818 - 8_392_705)],
)
def test_a_part_is_rounded_up(state: str, batch: str, saved: int) -> None:
    """A moment of 4097 * 4097 has 67,141,636 bytes; an eighth of it, or a quarter of one of two tiles, takes 8,392,704.5."""
    (finding,) = found(divided(state, batch).replace("[4096,4096]", "[4097,4097]").replace("[9,4096]", "[9,4097]"), "HI506")
    assert finding.stake == 2 * saved


@pytest.mark.parametrize(("first", "second"), [(ALL, OUTER), (OUTER, ALL)])
def test_the_input_that_is_divided_most_counts(first: str, second: str) -> None:
    """The first input is divided in eight, the other in two, or the other way round."""
    other = rf"\1\n  %y = f32[9,4096]{{1,0}} parameter(5), sharding={second}"
    (finding,) = found(changed(divided("{replicated}", first), r"(%x = .*)", other), "HI506")
    assert finding.stake == 2 * (64 - 8) * MIB
    assert f"like that of parameter {4 if first == ALL else 5} saves" in finding.message


def test_the_bytes_of_a_partitioned_module_are_those_of_a_device() -> None:
    (finding,) = found(divided(OUTER, INNER, ", is_scheduled=true, num_partitions=8"), "HI506")
    assert finding.stake == 2 * (64 - 16) * MIB


@pytest.mark.parametrize(
    ("state", "batch", "header"),
    [
        ("", ALL, ", num_partitions=8"),
        ("{replicated}", "{replicated}", ", num_partitions=8"),
        (ALL, ALL, ", num_partitions=8"),
        (OUTER, OUTER, ", num_partitions=8"),
        ("{replicated}", "{manual}", ", num_partitions=8"),
        ("{replicated}", ALL, ", num_partitions=4"),
        ("{replicated}", ALL, ", num_partitions=1"),
        ("{replicated}", ALL, ", replica_count=8"),
    ],
)
def test_replication_that_the_text_does_not_show_is_no_finding(state: str, batch: str, header: str) -> None:
    assert found(divided(state, batch, header), "HI506") == []


@pytest.mark.parametrize(
    ("rows", "x", "fires"),
    [
        # two moments of n * 16 KiB: of 16 MiB on each of 8 devices an eighth stays
        (584, 9, False),
        (586, 9, True),
        # 112 MiB of 11,200 MiB, of which 192 are arrays of 64 MiB and 11,008 an eighth of 5,636,096 rows of 16 KiB
        (4096, 5_636_000, True),
        (4096, 5_637_000, False),
    ],
)
def test_state_of_a_certain_size_is_worth_sharding(rows: int, x: int, fires: bool) -> None:
    """16 MiB, which is 16,777,216 and more than 2 * 584 * 16384 * 7 / 8 = 16,744,448; and a hundredth of the parameters."""
    text = divided("{replicated}", ALL).replace("[4096,4096]", f"[{rows},4096]").replace("[9,4096]", f"[{x},4096]")
    assert bool(found(text, "HI506")) is fires


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_program_of_two_times_four_devices(stage: str) -> None:
    """The batch is divided in two, the moments in four.

    With matrices of 2048 x 8192 there are four moments of 16 MiB on each device, half of which the other one has too. Before
    partitioning the text says 64 MiB.
    """
    text = (DATA / f"cpu/adamw_step.{stage}.txt").read_text(encoding="utf-8")
    sizes = {"[8,8]": "[2048,2048]"} if stage == "after" else {"[8,32]": "[2048,8192]", "[32,8]": "[8192,2048]"}
    for old, new in sizes.items():
        text = text.replace(old, new)
    (finding,) = found(text, "HI506")
    assert finding.stake == 4 * 8 * MIB
    assert "(2 devices)" in finding.message
    assert "2 first moments and 2 second moments are replicated over mesh axis " in finding.message
