"""Texts printed with `compact_operands`, which show the first four operands of an instruction."""

from __future__ import annotations

import hlo_inspect

ROWS = "".join(
    f"  p{n} = f32[8192,1024]{{1,0}} parameter({n})\n  n{n} = f32[8192,1024]{{1,0}} negate(p{n})\n" for n in range(6)
)
OUTPUT = f"({', '.join(['f32[8192,1024]{1,0}'] * 6)})"


def text(first: str, second: str) -> str:
    return (
        f"HloModule m, is_scheduled=true\n\nENTRY e {{\n{ROWS}"
        f"  t = {OUTPUT} tuple({first})\n  ROOT u = {OUTPUT} tuple({second})\n}}\n"
    )


WHOLE = text("n0, n1, n2, n3, n4, n5", "n0, n1, n2, n3, n4, n5")
COMPACT = text("n0, n1, n2, n3, ...(+2)", "n0, n1, n2, n3, ...(+2)")


def test_memory_has_one_finding() -> None:
    (finding,) = [candidate for candidate in hlo_inspect.inspect(COMPACT, "memory").findings if candidate.rule == "HI301"]
    assert finding.message == "an operand of t has no name, and operands of 1 other instructions have none"
    assert not [finding for finding in hlo_inspect.inspect(WHOLE, "memory").findings if finding.rule == "HI301"]


def test_unused_parameters_are_unknown_if_operands_are_left_out() -> None:
    assert hlo_inspect.inspect(WHOLE, "params").facts["params.unused_count"] == 0
    bare = COMPACT.replace("negate(p5)", "negate(p4)")  # p5 may be among the omitted operands
    assert hlo_inspect.inspect(bare, "params").facts["params.unused_count"] is None


def test_the_order_of_additions_is_unknown_if_operands_are_left_out() -> None:
    """6 x 2^23 FLOPs are more than a float32 counts one by one: their order decides how XLA rounds."""
    for given, is_noted in ((WHOLE, False), (COMPACT, True)):
        report = hlo_inspect.inspect(given, "cost")
        assert report.facts["cost.flops"] == 6 * 2**23
        assert any(note.startswith("cost.flops: the text leaves out operands") for note in report.notes) == is_noted


def test_updates_that_are_left_out_of_a_scatter_cost_what_is_not_known() -> None:
    """A scatter of three arrays has seven operands: which of them is the first update follows from how many there are."""
    scatter = """HloModule m

    add {
      x = f32[] parameter(0)
      y = f32[] parameter(1)
      z = f32[] parameter(2)
      w = f32[] parameter(3)
      s = f32[] add(x, z)
      t = f32[] add(y, w)
      ROOT r = (f32[], f32[]) tuple(s, t)
    }

    ENTRY e {
      a = f32[8,4] parameter(0)
      i = s32[2,1] parameter(1)
      u = f32[2,4] parameter(2)
      ROOT r = (f32[8,4], f32[8,4]) scatter(a, a, i, u, u), update_window_dims={1}, inserted_window_dims={0}, to_apply=add
    }
    """
    assert hlo_inspect.inspect(scatter, "cost").facts["cost.flops"] == 2 * 2 * 4
    facts = hlo_inspect.inspect(scatter.replace("a, a, i, u, u", "a, a, i, u, ...(+1)"), "cost").facts
    assert (facts["cost.flops"], facts["cost.bytes_accessed"]) == (None, None)
