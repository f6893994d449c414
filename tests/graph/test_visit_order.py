"""The order in which XLA visits rows, by the library and without it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hlo_inspect.graph.view import View
from hlo_inspect.graph.visit_order import xla_order
from hlo_inspect.hlo.module import Computation
from hlo_inspect.hlo.wants import Wants
from hlo_inspect.native import library
from tests.hlo.reading import modules


@pytest.fixture(autouse=True, params=["1", "0"], ids=["native", "python"])
def is_native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    monkeypatch.setenv(library.VARIABLE, request.param)
    library.load.cache_clear()
    if request.param == "1" and library.library() is None:
        pytest.skip("no library")
    yield request.param == "1"
    library.load.cache_clear()


def view_of(*lines: str) -> View:
    text = "\n".join(["HloModule m", "", "ENTRY main {", *(f"  {line}" for line in lines), "}", ""])
    (module,) = modules(text.encode(), Wants(graph=True, entry=True))
    return View(module.computations["main"])


def order(*lines: str) -> list[str]:
    view = view_of(*lines)
    return [view.names[index] for index in xla_order(view)]


def test_operands_come_first_and_in_their_order() -> None:
    lines = ["%a = f32[] parameter(0)", "%b = f32[] parameter(1)", "%c = f32[] negate(%a)", "%d = f32[] negate(%b)"]
    assert order(*lines, "ROOT %r = f32[] subtract(%d, %c)") == ["b", "d", "a", "c", "r"]


def test_unused_instructions_come_before_the_root() -> None:
    lines = ["%a = f32[] parameter(0)", "ROOT %r = f32[] negate(%a)", "%unused = f32[] abs(%a)"]
    assert order(*lines) == ["a", "unused", "r"]


def test_the_last_is_the_root_where_none_is_marked() -> None:
    assert order("%a = f32[] parameter(0)", "%b = f32[] negate(%a)", "%c = f32[] abs(%a)") == ["a", "b", "c"]


def test_uses_that_go_round_and_names_that_are_not_there() -> None:
    assert sorted(order("%a = f32[] negate(%b)", "%b = f32[] negate(%a)", "ROOT %r = f32[] abs(%gone)")) == ["a", "b", "r"]


def test_a_chain_longer_than_python_recurses() -> None:
    lines = ["%x0 = f32[] parameter(0)", *(f"%x{i} = f32[] negate(%x{i - 1})" for i in range(1, 5000))]
    assert order(*lines) == [f"x{i}" for i in range(5000)]


def test_a_computation_without_instructions() -> None:
    assert list(xla_order(View(Computation("empty", 3, is_entry=False)))) == []


def test_a_row_that_several_use_comes_once() -> None:
    lines = ["%a = f32[] parameter(0)", "%b = f32[] negate(%a)", "%c = f32[] add(%b, %a)", "ROOT %r = f32[] add(%c, %b)"]
    assert order(*lines) == ["a", "b", "c", "r"]


def test_the_library_reads_rows_of_its_own(is_native: bool) -> None:
    assert (view_of("%a = f32[] parameter(0)", "ROOT %b = f32[] negate(%a)").rows.extent is not None) == is_native
