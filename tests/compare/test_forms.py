"""The same program as `as_text()` prints it and as its dump file has it, by jax 0.12: one program, with one identity.

The dump files write `x#1` for an element of a tuple, and other numbers of stack frames; XLA prints the keys of `backend_config`
in another order each time. All texts are XLA's own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.inspection.normal_texts import NormalTexts
from tests.calling import call_text
from tests.compare.plants import planted_in
from tests.compare.sides import changes, module, words

FOLDER = Path(__file__).parents[1] / "data" / "forms_jax_0_12"
PAIRS = [
    ("collectives.as_text", "collectives.dump"),
    ("control_flow.as_text", "control_flow.dump"),
    ("tpu_sgd_unused.as_text", "tpu_sgd_unused.dump"),
    ("tpu_scan_forward.as_text", "tpu_scan_forward.dump"),
    ("collectives.before.long", "collectives.before.short"),
]


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.hlo").read_text(encoding="utf-8")


def identities(text: str) -> list[object]:
    return [row[1] for row in hlo_inspect.inspect(text, "fingerprint").table("identities").rows]


@pytest.mark.parametrize(("long", "short"), PAIRS)
def test_both_forms_have_the_same_three_identities_and_normal_text(long: str, short: str) -> None:
    texts = text_of(long), text_of(short)
    assert texts[0].count(" get-tuple-element(") > texts[1].count(" get-tuple-element(")
    assert re.search(r"%[\w.\-]+#\d", texts[1])
    assert not re.search(r"%[\w.\-]+#\d", texts[0])
    assert identities(texts[0]) == identities(texts[1])
    normal = ["".join(NormalTexts().lines_of(text)) for text in texts]
    assert normal[0] == normal[1]
    assert module(texts[0]).program == module(normal[0]).program


@pytest.mark.parametrize(("long", "short"), PAIRS)
def test_a_change_planted_in_one_form_is_the_only_change_from_the_other(long: str, short: str) -> None:
    old, text = module(text_of(long)), text_of(short)
    assert changes(old, module(text)) == []
    planted = list(planted_in(text))
    for label, expected in planted:
        new = module(expected.text)
        assert old.program != new.program, label
        assert [change.area for change in changes(old, new)] == [expected.area], label
        assert [change.area for change in changes(new, old)] == [expected.area], label
    assert planted or short == "tpu_sgd_unused.dump"


def test_a_constant_a_group_a_layout_an_order_and_an_element_stay_different() -> None:
    long, short = text_of("collectives.as_text"), text_of("collectives.dump")
    program, schedule, _ = identities(long)
    lines = short.split("\n")
    second = next(number for number, line in enumerate(lines) if "%pmax.7 = " in line)
    assert "%psum.14 = " in lines[second - 1]
    lines[second - 1 : second + 1] = reversed(lines[second - 1 : second + 1])
    assert identities("\n".join(lines))[0] == program
    assert identities("\n".join(lines))[1] != schedule
    for was, now in (
        ("constant(3)", "constant(4)"),
        ("{'model'}, use_global_device_ids=true, to_apply", "{'data'}, use_global_device_ids=true, to_apply"),
        ("%pmax.7 = f32[8,8]{1,0}", "%pmax.7 = f32[8,8]{0,1}"),
        ("#1", "#0"),
    ):
        assert was in short
        assert identities(short.replace(was, now, 1))[0] != program, was


def test_another_element_is_a_change_of_its_user() -> None:
    """In the other form the row of the element that is not read any more is gone."""
    text = text_of("control_flow.dump")
    used = re.search(r"%([\w.\-]+) = [^\n]*?%([\w.\-]+)#1\b", text)
    assert used is not None
    new = module(text[: used.end() - 1] + "0" + text[used.end() :])
    (change,) = changes(module(text), new)
    assert (change.name, change.what) == (used[1], "changed")
    assert f"{used[2]}.element.1" in words(change)
    both = changes(module(text_of("control_flow.as_text")), new)
    assert {(change.name, change.what) for change in both if change.kind != "get-tuple-element"} == {(used[1], "changed")}
    assert [change.what for change in both if change.kind == "get-tuple-element"] == ["gone"]


TEXT = """\
HloModule m, is_scheduled=true

ENTRY %e {
  %p = (f32[4]{0}, f32[4]{0}) parameter(0)
  %a = f32[4]{0} get-tuple-element(%p), index=0
  %b = f32[4]{0} get-tuple-element(%p), index=1
  ROOT %r = f32[4]{0} subtract(%a, %b)
}
"""


@pytest.mark.parametrize(
    ("was", "now", "is_same"),
    [
        ("%r =", "%r =", True),
        ("subtract(%a, %b)", "subtract(%p#0, %p#1)", True),
        ("subtract(%a, %b)", "subtract(%p#1, %p#0)", False),
        ("subtract(%a, %b)", "subtract(%c, %b)", True),
        ("index=1", "index=1, sharding={replicated}", True),
        ("  %b = f32[4]{0}", "  %b = f32[4]{0:T(128)}", False),
        ("index=1", "index=1, control-predecessors={%a}", False),
        ("  ROOT", "  %unused = f32[4]{0} get-tuple-element(%p), index=1\n  ROOT", True),
        ("  ROOT %r = f32[4]{0} subtract(%a, %b)", "  ROOT %c = f32[4]{0} get-tuple-element(%p), index=0", False),
    ],
)
def test_rows_that_the_short_form_lacks_do_not_count(was: str, now: str, *, is_same: bool) -> None:
    """`%c` is `%a` again. The short form has neither its attributes nor unused rows; XLA's parser refuses another layout."""
    text = TEXT.replace(was, now).replace("  %b =", "  %c = f32[4]{0} get-tuple-element(%p), index=0\n  %b =")
    assert (identities(text)[:2] == identities(TEXT)[:2]) is is_same


def test_elements_of_elements_are_one_program() -> None:
    """`%p#1#0` is element 0 of element 1."""
    head = "HloModule m\n\nENTRY %e {\n  %p = (f32[4]{0}, (f32[2]{0}, f32[8]{0})) parameter(0)\n"
    rows = "  %i = (f32[2]{0}, f32[8]{0}) get-tuple-element(%p), index=1\n  %j = f32[2]{0} get-tuple-element(%i), index=0\n"
    long = f"{head}{rows}  ROOT %n = f32[2]{{0}} negate(%j)\n}}\n"
    assert identities(long) == identities(f"{head}  ROOT %n = f32[2]{{0}} negate(%p#1#0)\n}}\n")
    assert identities(long) == identities(f"{head}  ROOT %n = f32[2]{{0}} negate(f32[2]{{0}} %p#1#0)\n}}\n")
    assert identities(long)[0] != identities(f"{head}  ROOT %n = f32[2]{{0}} negate(%p#1#1)\n}}\n")[0]


def test_elements_of_one_another_are_read() -> None:
    """No legal text has them."""
    lines = "%a = f32[] get-tuple-element(%b), index=0", "%b = f32[] get-tuple-element(%a), index=0", "%c = f32[] negate(%a#0)"
    text = "HloModule m\n\nENTRY %e {\n" + "\n".join(lines) + "\nROOT %r = f32[] add(%c, %b)\n}\n"
    assert len(identities(text)) == 3
    other = text.replace("%c = f32[] negate(%a#0)", "%c = f32[] negate(%a#1)")
    assert len(changes(module(text), module(other))) <= 1


def test_ranks_and_recompiles_see_one_program(tmp_path: Path) -> None:
    for rank, name in enumerate(PAIRS[0]):
        (tmp_path / str(rank)).mkdir()
        (tmp_path / str(rank) / "module_0000.jit_step.cpu_after_optimizations.txt").write_text(text_of(name), encoding="utf-8")
    facts = json.loads(call_text("ranks", f"{tmp_path}/{{rank}}", "--format", "json").stdout)["facts"]
    assert (facts["ranks.count"], facts["ranks.deviating"]) == (2, 0)
    paths = [FOLDER / f"{name}.hlo" for name in PAIRS[4]]
    report = json.loads(call_text("recompiles", *paths, "--format", "json").stdout)
    assert report["facts"]["recompiles.reason.nothing"] == 1
