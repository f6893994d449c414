"""Meshes whose devices are not in the order of their ids: the rows and columns are chosen first, then found again."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlo_inspect.analysis.mesh_order import MAX_ORDERED_DEVICES, find_order
from hlo_inspect.hlo.sharding import Groups


def lines(devices: list[int], shape: tuple[int, ...], axis: int) -> Groups:
    """The groups along one axis of a mesh that holds `devices` row-major."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, device in zip(itertools.product(*map(range, shape)), devices, strict=True):
        groups.setdefault(place[:axis] + place[axis + 1 :], []).append(device)
    return tuple(map(tuple, groups.values()))


def test_rows_and_columns() -> None:
    """Rows {0,1} {3,2}, columns {0,3} {1,2}: device 3 is below 0, so that 2 is below 1."""
    assert find_order([((0, 1), (2, 3)), ((0, 3), (1, 2))], 4) == (0, 1, 3, 2)


def test_axes_that_only_intersections_tell() -> None:
    """Planes of a 2x2x2 cube with device 6 and 7 exchanged: each axis is where two planes meet."""
    cube = [0, 1, 2, 3, 4, 5, 7, 6]
    rows, columns, files = (lines(cube, (2, 2, 2), axis) for axis in (2, 1, 0))
    planes = [((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 1, 4, 5), (2, 3, 6, 7)), ((0, 2, 4, 7), (1, 3, 5, 6))]
    assert find_order(planes, 8) == tuple(cube)
    assert find_order([rows, columns, files], 8) == tuple(cube)


@pytest.mark.parametrize(
    ("lists", "devices"),
    [
        ([], 4),
        ([((0, 3), (1, 2))], 4),  # who is below whom is open
        ([((0, 1, 2), (3, 4, 5)), ((0, 3), (1, 4), (2, 5))], 7),  # device 6 is in none
        ([((0, 1, 2), (3, 4)), ((0, 3), (1, 4), (2, 5))], 6),
        ([((0, 1), (1, 2))], 3),
        ([((0, 1), (2, 9))], 4),
        ([((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))], 4),  # three directions in a square of four
    ],
)
def test_groups_that_leave_the_order_open(lists: list[Groups], devices: int) -> None:
    assert find_order(lists, devices) is None


def test_so_many_devices_are_not_tried() -> None:
    devices = 2 * MAX_ORDERED_DEVICES
    assert find_order([(tuple(range(devices)),)], devices) is None


@given(st.permutations(range(12)), st.sampled_from([(3, 4), (4, 3), (2, 3, 2), (2, 2, 3), (2, 6)]))
@settings(max_examples=60, deadline=None)
def test_any_order_is_found_again(devices: list[int], shape: tuple[int, ...]) -> None:
    """The mesh found has the same lines, whatever the order of its axes and of the devices along them."""
    chosen = [lines(devices, shape, axis) for axis in range(len(shape))]
    order = find_order(chosen, len(devices))
    assert order is not None
    assert math.prod(shape) == len(order)

    def sets(groups: Groups) -> frozenset[frozenset[int]]:
        return frozenset(map(frozenset, groups))

    wanted = {sets(groups) for groups in chosen}
    assert any(
        {sets(lines(list(order), turned, axis)) for axis in range(len(turned))} == wanted
        for turned in itertools.permutations(shape)
    )
