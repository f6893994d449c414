"""The changes that the benchmark of `diff` plants."""

from benchmarks.planted import changed_text

TEXT = """\
  a = f32[4]{0} add(x, y)
  %b = f32[4]{0:T(128)} multiply(f32[4]{0:T(128)} %a, f32[4]{0} %a)
  c = (f32[], f32[]) tuple(d, e)
  ROOT f = pred[] maximum(pred[] c.1, c.2), metadata={op_name="jit(f)/add(a, b)"}
"""


def test_opcodes_are_others_however_operands_are_written() -> None:
    changed = changed_text(TEXT, 3).splitlines()
    assert changed[0] == "  a = f32[4]{0} subtract(x, y)"
    assert changed[1] == "  %b = f32[4]{0:T(128)} maximum(f32[4]{0:T(128)} %a, f32[4]{0} %a)"
    assert changed[2:] == [TEXT.splitlines()[2], TEXT.splitlines()[3].replace("maximum", "minimum")]


def test_the_asked_number_of_changes_is_made() -> None:
    assert changed_text(TEXT, 1) == TEXT.replace(" add(x", " subtract(x")
