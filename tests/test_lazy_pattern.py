"""Regular expressions are compiled on first use. These tests compile all of them, so that users meet no wrong expression."""

from __future__ import annotations

import gc
import pkgutil
import re
from importlib import import_module

import pytest

import hlo_inspect
from hlo_inspect.lazy_pattern import _LazyPattern, lazy_pattern


def test_every_expression_of_the_package_can_be_compiled() -> None:
    for module in pkgutil.walk_packages(hlo_inspect.__path__, "hlo_inspect."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    patterns = [item for item in gc.get_objects() if type(item) is _LazyPattern]
    assert len(patterns) > 200
    for item in patterns:
        re.compile(item.pattern, item._given_flags)


def test_a_lazy_pattern_behaves_like_the_compiled_expression() -> None:
    lazy, compiled = lazy_pattern("(a+)b", re.IGNORECASE), re.compile("(a+)b", re.IGNORECASE)
    assert "match" not in vars(lazy)
    matched = lazy.match("AAb")
    assert matched is not None
    assert matched.groups() == ("AA",)
    assert matched.re == compiled
    assert lazy.sub("x", "ab aab") == "x x"
    assert [*lazy.split("1ab2")] == ["1", "a", "2"]
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, 1)


def test_a_wrong_expression_raises_an_error_on_first_use() -> None:
    with pytest.raises(re.error):
        lazy_pattern("(").search("")
