"""Paths of several parameters that share a row."""

from __future__ import annotations

import pytest

from hlo_inspect.passes.params import joined_path


@pytest.mark.parametrize(
    ("paths", "path"),
    [
        (["a['w']"], "a['w']"),
        (["p['layers'][0]['w']", "p['layers'][1]['w']"], "p['layers'][*]['w']"),
        (["p['layers_0']['w']", "p['layers_11']['w']"], "p['layers_*']['w']"),
        (["p['wq']['kernel']", "p['wk']['kernel']"], "p['…']['kernel']"),
        (["state.mu['a']", "state.mu['b']"], "state.mu['…']"),
        (["x", "y"], "x, …"),
        (["", ""], ""),
    ],
)
def test_several_paths_join_to_one(paths: list[str], path: str) -> None:
    assert joined_path(paths) == path
