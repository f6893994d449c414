"""What the state of an optimizer costs. A moment is f32[64,64], 16,384 bytes; there are two."""

from __future__ import annotations

from pathlib import Path

import pytest

from hlo_inspect.report.model import Finding
from tests.analysis.optimizer.programs import ADAM, changed, report_of, step_of, text_of

DATA = Path(__file__).parents[1] / "data"
ALL = "{devices=[8,1]<=[8]}"
INNER = "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"
OUTER = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"


def adam(*, donated: bool = True) -> str:
    text = step_of(*ADAM, outputs="new m v", states=2, donated=donated)
    return text.replace("[4,4]", "[64,64]").replace("[9,4]", "[9,64]")


def divided(state: str, batch: str, header: str = ", num_partitions=8") -> str:
    """Adam on 8 devices with that sharding of the moments and of the batch."""
    text = changed(adam(), "^HloModule test", f"HloModule test{header}")
    text = changed(text, r"(%m[12] = .* parameter\(\d\))", rf"\1, sharding={state}") if state else text
    return changed(text, r"(%x = .* parameter\(4\))", rf"\1, sharding={batch}")


def found(text: str, rule: str) -> list[Finding]:
    return [finding for finding in report_of(text).findings if finding.rule == rule]


def test_state_that_is_not_donated() -> None:
    (finding,) = found(adam(donated=False), "HI505")
    assert (finding.severity, finding.subject, finding.bytes_at_stake) == ("warning", "m1", 2 * 16384)
    assert finding.message == (
        "the optimizer's state is not donated: 1 first moment and 1 second moment; donating it would save 32,768 bytes"
    )


def test_one_moment_that_is_not_donated() -> None:
    (finding,) = found(changed(adam(), r", \{2\}: \(2, \{\}, may-alias\)", ""), "HI505")
    assert (finding.subject, finding.bytes_at_stake) == ("m2", 16384)


def test_state_that_is_donated_or_small() -> None:
    assert found(adam(), "HI505") == []
    assert found(text_of("adam.kept.after"), "HI505") == []  # 288 bytes


def test_weights_alone_are_no_state() -> None:
    text = step_of("u = multiply g rate", "new = add w u", donated=False).replace("[4,4]", "[64,64]")
    assert found(text, "HI505") == []


def test_replicated_state_with_a_divided_batch() -> None:
    """On each of 8 devices an eighth is left: 2 * (16384 - 2048)."""
    (finding,) = found(divided("{replicated}", ALL), "HI506")
    assert (finding.severity, finding.subject, finding.bytes_at_stake) == ("info", "m1", 28672)
    assert finding.message == (
        "the optimizer's state is the same on 8 devices among which parameter 4 is divided: 1 first moment and "
        "1 second moment; dividing it too would save 28,672 bytes on each of them"
    )


def test_state_that_is_divided_in_part() -> None:
    """Two tiles of 8,192 bytes, each on 4 devices that read different parts of the batch: 2 * (8192 - 2048)."""
    (finding,) = found(divided(OUTER, INNER), "HI506")
    assert finding.bytes_at_stake == 12288
    assert "on 4 devices" in finding.message


@pytest.mark.parametrize(
    ("state", "batch", "saved"),
    [("{replicated}", ALL, 16900 - 2113), (OUTER, INNER, 8450 - 2113)],
)
def test_a_part_is_rounded_up(state: str, batch: str, saved: int) -> None:
    """A moment of 65 * 65 has 16,900 bytes; an eighth of it, or a quarter of one of two tiles, takes 2,112.5."""
    (finding,) = found(divided(state, batch).replace("[64,64]", "[65,65]").replace("[9,64]", "[9,65]"), "HI506")
    assert finding.bytes_at_stake == 2 * saved


@pytest.mark.parametrize(("first", "second"), [(ALL, OUTER), (OUTER, ALL)])
def test_the_input_that_is_divided_most_counts(first: str, second: str) -> None:
    """One input is divided in eight, the other one in two."""
    other = rf"\1\n  %y = f32[9,64]{{1,0}} parameter(5), sharding={second}"
    (finding,) = found(changed(divided("{replicated}", first), r"(%x = .*)", other), "HI506")
    assert finding.bytes_at_stake == 2 * (16384 - 2048)
    assert f"on 8 devices among which parameter {4 if first == ALL else 5} is divided" in finding.message


def test_the_bytes_of_a_partitioned_module_are_those_of_a_device() -> None:
    (finding,) = found(divided(OUTER, INNER, ", is_scheduled=true, num_partitions=8"), "HI506")
    assert finding.bytes_at_stake == 2 * (16384 - 4096)


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
def test_where_the_text_does_not_tell(state: str, batch: str, header: str) -> None:
    assert found(divided(state, batch, header), "HI506") == []


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_program_of_two_times_four_devices(stage: str) -> None:
    """The batch is divided in two, the moments in four. With matrices of 64 x 256 there are four moments of 16,384 bytes on
    each device, half of which the other one has too; before partitioning the text says 65,536.
    """
    text = (DATA / f"cpu/adamw_step.{stage}.txt").read_text(encoding="utf-8")
    sizes = {"[8,8]": "[64,64]"} if stage == "after" else {"[8,32]": "[64,256]", "[32,8]": "[256,64]"}
    for old, new in sizes.items():
        text = text.replace(old, new)
    (finding,) = found(text, "HI506")
    assert finding.bytes_at_stake == 4 * 8192
    assert "on 2 devices among which parameter 7 is divided: 2 first moments and 2 second moments" in finding.message
