"""The fixture `hlo`: it compiles a function, reads text or a path, and checks the budget of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pytest

from hlo_inspect.checks.config import Config, find_config
from hlo_inspect.checks.policy import Assertion, assertion_in, given
from hlo_inspect.errors import HloInspectError
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.request import check_names
from hlo_inspect.testing.hlo_program import GoldenPlace, HloProgram, check_facts

_CONFIG: pytest.StashKey[Config] = pytest.StashKey()


def fixture_for(request: pytest.FixtureRequest, marker: str) -> Hlo:
    """Return the fixture of a test, with the conditions of its `marker`.

    Raise pytest.UsageError for a wrong marker or configuration, with its place.
    """
    __tracebackhide__ = True
    stash = request.config.stash
    try:
        if _CONFIG not in stash:
            stash[_CONFIG] = find_config(request.config.rootpath)
        budget = list(_budget(request.node, marker))
    except HloInspectError as error:
        raise pytest.UsageError(str(error)) from None
    place = GoldenPlace(request.path.parent, updates=bool(request.config.getoption("--hlo-update")))
    config = stash[_CONFIG]
    return Hlo(place, config, {**config.defaults, "thresholds": config.lint.thresholds}, budget)


def _budget(item: pytest.Item, name: str) -> Iterator[Assertion]:
    """Yield the conditions of the markers of that name on a test. Raise UsageError if one makes no sense."""
    __tracebackhide__ = True
    path, line, _ = item.location
    place = f"{path}:{(line or 0) + 1}: {name}"
    for marker in item.iter_markers(name):
        if marker.kwargs or not marker.args or not all(isinstance(text, str) for text in marker.args):
            raise pytest.UsageError(f"{place} takes conditions, such as 'memory.peak_bytes <= 2 GiB'")
        for text in marker.args:
            assertion = assertion_in(given(place, text))
            check_facts([assertion])
            yield assertion


class Hlo:
    """Maker of programs for one test. `options` returns another one with options of `hlo_inspect.inspect`."""

    def __init__(self, place: GoldenPlace, config: Config, options: Mapping[str, Any], budget: Sequence[Assertion]) -> None:
        self._place = place
        self._config = config
        self._options = options
        self._budget = budget
        self._made: list[HloProgram] = []

    def __call__(self, target: object, /, *arguments: object, **keywords: object) -> HloProgram:
        """Return the program of a `Compiled`, a `Lowered`, a function with arguments, HLO text, or a path.

        A `Lowered` and a function are compiled. A function that is not jitted is jitted first. The budget of the test is
        checked at once.
        """
        __tracebackhide__ = True
        try:
            source = _source(target, arguments, keywords)
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        program = HloProgram(source, self._options, self._config, self._place)
        self._made.append(program)
        if self._budget:
            program.expect_all(self._budget)
        return program

    def __repr__(self) -> str:
        return "<fixture hlo>"

    def options(self, **options: object) -> Hlo:
        """Return the fixture with options of `hlo_inspect.inspect`, such as `mesh="data=4,model=2"` or `profile="h100-sxm"`."""
        __tracebackhide__ = True
        try:
            check_names(list(options))
        except HloInspectError as error:
            raise pytest.UsageError(str(error)) from None
        changed = Hlo(self._place, self._config, {**self._options, **options}, self._budget)
        changed._made = self._made  # the budget is that of the test
        return changed

    @property
    def has_unchecked_budget(self) -> bool:
        """True if the test has a budget and gave no program that it holds for."""
        return bool(self._budget) and not self._made


def _source(target: object, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> Openable:
    """Return the text of a program, or the path of a dump."""
    __tracebackhide__ = True
    if isinstance(target, str | bytes | PathLike):
        _refuse_arguments(target, arguments, keywords)
        return Path(target) if isinstance(target, PathLike) else target
    if hasattr(target, "as_text"):
        _refuse_arguments(target, arguments, keywords)
        return _text(target.compile() if hasattr(target, "compile") else target)
    lower: Callable[..., Any] | None = getattr(target, "lower", None)
    if lower is None and callable(target):
        import jax

        lower = jax.jit(target).lower
    if lower is None:
        raise pytest.UsageError(
            f"hlo takes a compiled or lowered program, a function, text or a path, not {type(target).__name__}"
        )
    return _text(lower(*arguments, **keywords).compile())


def _refuse_arguments(target: object, arguments: tuple[object, ...], keywords: Mapping[str, object]) -> None:
    __tracebackhide__ = True
    if arguments or keywords:
        raise pytest.UsageError(f"only a function takes arguments, not {type(target).__name__}; options go to hlo.options(...)")


def _text(compiled: Any) -> str:  # noqa: ANN401 - jax.stages.Compiled, or the like of another front end
    __tracebackhide__ = True
    text = compiled.as_text()
    if not isinstance(text, str) or not text.strip():
        raise pytest.UsageError(f"as_text() of {type(compiled).__name__} returned no text; pass HLO text or a path")
    return text
