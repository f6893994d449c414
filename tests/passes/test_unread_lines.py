"""A line that cannot be read may be a collective: `check` fails and names it. Counts are in tests/cases/passes/summary."""

from __future__ import annotations

from tests.calling import call_text

TEXT = """HloModule jit_f, is_scheduled=true, num_partitions=2

ENTRY %main (x: f32[8,16]) -> f32[8,16] {
  %x = f32[8,16]{1,0} parameter(0)
  %g == f32[8,16]{1,0} all-gather(%x), channel_id=2, replica_groups={{0},{1}}, dimensions={0}, use_global_device_ids=true
  ROOT %z = f32[8,16]{1,0} negate(%g)
}
"""


def test_check_fails_and_says_which_line() -> None:
    done = call_text("check", "-", "--assert", "collectives.count == 0", given=TEXT)
    assert done.returncode == 1
    assert "line 5 cannot be read and may be a collective (all-gather)" in done.stdout
    assert call_text("check", "-", "--assert", "collectives.all-to-all.count == 0", given=TEXT).returncode == 0
