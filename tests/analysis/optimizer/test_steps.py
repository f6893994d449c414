"""Instructions that are neither stepped through nor done element by element."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.steps import carried
from hlo_inspect.analysis.optimizer.text import Body
from hlo_inspect.analysis.view import View
from tests.analysis.optimizer.reading import entry_of, module_of, root_of

P = "%p = f32[8]{0} parameter(0)"
SLICES = ("%a = f32[3]{0} slice(%p), slice={[0:3]}", "%b = f32[5]{0} slice(%p), slice={[3:8]}")


def test_slices_that_make_up_the_whole() -> None:
    assert root_of(entry_of(P, *SLICES, "ROOT %r = f32[8]{0} concatenate(%a, %b), dimensions={0}")) == "p0"
    assert root_of(entry_of(P, *SLICES, "ROOT %r = f32[8]{0} concatenate(%a, %a), dimensions={0}")) != "p0"
    joined = 'ROOT %r = f32[8]{0} custom-call(%a, %b), custom_call_target="ConcatBitcast"'
    assert root_of(entry_of(P, *SLICES, joined)) == "p0"


def test_slices_fetched_ahead() -> None:
    start = "%s = ((f32[8]{0}), f32[3]{0}, s32[]) slice-start(%p), slice={[0:3]}"
    done = "%a = f32[3]{0} slice-done(%s)"
    lines = (P, start, done, SLICES[1], "ROOT %r = f32[8]{0} concatenate(%a, %b), dimensions={0}")
    assert root_of(entry_of(*lines)) == "p0"


def test_moving_equal_constants_about() -> None:
    constant = ("%c = f32[] constant(0.9)", "%b = f32[8]{0} broadcast(%c), dimensions={}")
    moved = "ROOT %r = f32[8]{0} all-to-all(%b), dimensions={0}, replica_groups={}"
    assert root_of(entry_of(*constant, moved)) == "0.9"
    assert root_of(entry_of(*constant, "ROOT %r = f32[16]{0} concatenate(%b, %b), dimensions={0}")) == "0.9"


def test_factors_of_a_product_of_matrices() -> None:
    lines = ("%a = f32[4,4]{1,0} parameter(0)", "%b = f32[4,4]{1,0} parameter(1)", "%c = f32[4,4]{1,0} parameter(2)")
    config = '"{\\"alpha_real\\":0.25,\\"alpha_imag\\":0,\\"beta\\":1}"'
    call = 'ROOT %r = f32[4,4]{1,0} custom-call(%a, %b, %c), custom_call_target="__cublas$gemm", backend_config='
    assert root_of(entry_of(*lines, call + config)) == "add(multiply(0.25, <r>), p2)"
    assert root_of(entry_of(*lines, call + '"no json"')) == "<r>"
    assert root_of(entry_of(*lines, call + '"[]"')) == "<r>"


def test_branches_become_a_choice() -> None:
    branch = "%{0} (x: f32[8]) -> f32[8] {{\n  %x{0} = f32[8]{{0}} parameter(0)\n  ROOT %y{0} = f32[8]{{0}} {1}(%x{0})\n}}\n"
    before = branch.format("t", "sine") + branch.format("f", "cosine")
    lines = ("%q = pred[] parameter(1)", P)
    named = "ROOT %r = f32[8]{0} conditional(%q, %p, %p), true_computation=%t, false_computation=%f"
    numbered = ("%i = s32[] convert(%q)", "ROOT %r = f32[8]{0} conditional(%i, %p, %p), branch_computations={%f, %t}")
    assert root_of(entry_of(*lines, named, before=before)) == "select(p1, sine(p0), cosine(p0))"
    assert root_of(entry_of(*lines, *numbered, before=before)) == "select(p1, sine(p0), cosine(p0))"


BODY = "%body (s: (f32[8], f32[8])) -> (f32[8], f32[8]) {\n  %s = (f32[8]{0}, f32[8]{0}) parameter(0)\n"
BODY += "  %k = f32[8]{0} get-tuple-element(%s), index=0\n  %v = f32[8]{0} get-tuple-element(%s), index=1\n"
BODY += "  %n = f32[8]{0} negate(%v)\n  ROOT %t = (f32[8]{0}, f32[8]{0}) tuple(%k, %n)\n}\n"


def test_what_a_loop_leaves_alone() -> None:
    lines = (P, "%i = (f32[8]{0}, f32[8]{0}) tuple(%p, %p)", "%w = (f32[8]{0}, f32[8]{0}) while(%i), condition=%c, body=%body")
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=0", before=BODY)) == "p0"
    assert root_of(entry_of(*lines, "ROOT %r = f32[8]{0} get-tuple-element(%w), index=1", before=BODY)) == "<w>"
    module = module_of(entry_of(P, "ROOT %r = f32[8]{0} negate(%p)", before=BODY))
    body = Body(View(module.computations["body"]))
    assert (carried(body, 0), carried(body, 1), carried(body, 9)) == (0, None, None)


def test_a_constant_that_is_not_printed() -> None:
    assert root_of(entry_of("ROOT %r = f32[8]{0} constant({...})")) == "<r>"
