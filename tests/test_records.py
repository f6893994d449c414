"""`records.dataclass` is held against the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from hlo_inspect import records

FROZEN: dict[str, bool] = {"frozen": True, "slots": True}
OPTIONS: tuple[dict[str, bool], ...] = (
    {},
    {"slots": True},
    {"frozen": True},
    FROZEN,
    {"slots": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False},
    {"frozen": True, "slots": True, "repr": False},
)


def declared(decorator: Callable[..., Any], options: dict[str, bool]) -> Any:
    @decorator(**options)
    class Sample:
        """What is declared."""

        name: str
        size: int | None = None
        names: list[str] = field(default_factory=list)
        get: Callable[[], int] | None = field(default=None, compare=False, repr=False)

        @property
        def twice(self) -> int:
            return 2 * (self.size or 0)

    return Sample


@pytest.fixture(params=OPTIONS, ids=lambda options: " ".join(options) or "none")
def pair(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return declared(records.dataclass, request.param), declared(dataclasses.dataclass, request.param)


def test_classes_look_alike(pair: tuple[Any, Any]) -> None:
    ours, standard = pair
    signatures = [inspect.signature(cls).parameters for cls in pair]
    assert [(one.name, one.kind, one.annotation) for one in signatures[0].values()] == [
        (one.name, one.kind, one.annotation) for one in signatures[1].values()
    ]
    assert [one.name for one in dataclasses.fields(ours)] == ["name", "size", "names", "get"]
    assert ours.__match_args__ == standard.__match_args__
    assert getattr(ours, "__slots__", None) == getattr(standard, "__slots__", None)
    assert ours.__doc__ == "What is declared."
    assert (ours.__hash__ is None) == (standard.__hash__ is None)


def test_instances_behave_alike(pair: tuple[Any, Any]) -> None:
    results = []
    for cls in pair:
        one, same, other = cls("a", 2, get=int), cls("a", size=2), cls("b")
        results.append(
            (
                repr(one).startswith("<") or repr(one),
                one == same,
                one != other,
                one == ("a", 2, []),
                other.names is not cls("b").names,
                one.twice,
                dataclasses.asdict(same),
                dataclasses.replace(one, name="c").name,
                copy.copy(one).size,
                copy.deepcopy(same).names,
            )
        )
    assert results[0] == results[1]
    with pytest.raises(TypeError):
        pair[0]()
    with pytest.raises(TypeError):
        pair[0]("a", nothing=1)


def test_frozen_instances_stay_as_they_are() -> None:
    for options in ({"frozen": True}, FROZEN):
        one = declared(records.dataclass, options)("a")
        with pytest.raises(FrozenInstanceError, match="field"):
            one.size = 3
        with pytest.raises(FrozenInstanceError, match="field"):
            del one.name
        assert (one.name, one.size) == ("a", None)


def test_equal_ones_are_one_key() -> None:
    assert {Travelling("a", (1,)): 1}[Travelling("a", (1,))] == 1
    assert len({Travelling("a"), Travelling("a"), Travelling("a", (1,))}) == 2


def test_own_methods_stay() -> None:
    @records.dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert (repr(Own(1)), Own(1) == Own(2), hash(Own(1))) == ("own", True, 7)


@records.dataclass(frozen=True, slots=True)
class Travelling:
    name: str
    inner: tuple[int, ...] = ()


@records.dataclass(slots=True)
class Recursive:
    name: str
    inner: list[Recursive] = field(default_factory=list)


def test_pickles_come_back() -> None:
    for one in (Travelling("a", (1, 2)), Recursive("b", [Recursive("c")])):
        assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301 - what was just written


def test_what_holds_itself_can_be_shown() -> None:
    one = Recursive("a")
    one.inner.append(one)
    assert repr(one) == "Recursive(name='a', inner=[...])"
