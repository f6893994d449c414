"""Which devices hold the same, by hand."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.copies import copies_of, parts_among
from hlo_inspect.hlo.sharding import Groups


def sets(groups: Groups | None) -> set[frozenset[int]] | None:
    return None if groups is None else {frozenset(group) for group in groups}


@pytest.mark.parametrize(
    ("sharding", "devices", "expected"),
    [
        ("{replicated}", 4, [{0, 1, 2, 3}]),
        ('{replicated metadata={op_name="devices=[4]"}}', 2, [{0, 1}]),
        ("{devices=[4]<=[4]}", 4, [{0}, {1}, {2}, {3}]),
        ("{devices=[2,2]0,2,1,3}", 4, [{0}, {1}, {2}, {3}]),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", 4, [{0, 1}, {2, 3}]),
        ("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", 4, [{0, 2}, {1, 3}]),
        ("{devices=[2,2]0,1,2,3 last_tile_dim_replicate}", 4, [{0, 1}, {2, 3}]),
        ("{devices=[2,1]<=[2] last_tile_dim_replicate}", 2, [{0}, {1}]),
        ("{mesh['a'=2,'b'=2], [{'a'}, {}]}", 4, [{0, 1}, {2, 3}]),
        ("{mesh['a'=2,'b'=2], [{'b'}]}", 4, [{0, 2}, {1, 3}]),
        ("{mesh['a'=2,'b'=2], [{'b', 'a'}]}", 4, [{0}, {1}, {2}, {3}]),
        ("{mesh['a'=2,'b'=2], replicated}", 4, [{0, 1, 2, 3}]),
    ],
)
def test_copies(sharding: str, devices: int, expected: list[set[int]]) -> None:
    assert sets(copies_of(sharding, devices)) == {frozenset(one) for one in expected}


@pytest.mark.parametrize(
    "sharding",
    [
        "",
        "{manual}",
        "{maximal device=0}",
        "{devices=[2,1,2,1]<=[4] last_tile_dims={manual, replicated}}",
        "{devices=[2]<=[2]}",
        "{devices=[4]0,1,2,2}",
        "{devices=[2,2]<=[3,3]}",
        "{devices=[99999999999]<=[4]}",
        "{mesh['a'=2,'b'=2], [{'a':(1)2}]}",
        "{mesh['a'=2,'b'=2], [{'a'}], unreduced={'b'}}",
        "{unknown}",
    ],
)
def test_what_does_not_tell(sharding: str) -> None:
    assert copies_of(sharding, 4) is None


def test_no_devices_and_too_many() -> None:
    assert copies_of("{replicated}", 0) is None
    assert copies_of("{replicated}", 1 << 40) is None


def test_parts() -> None:
    assert parts_among(((0, 1, 2, 3),), ((0, 1), (2, 3))) == 2
    assert parts_among(((0, 1), (2, 3)), ((0, 1), (2, 3))) == 1
    assert parts_among(((0, 1), (2, 3)), ((0, 2), (1, 3))) == 2
    assert parts_among((), ((0,),)) == 1
