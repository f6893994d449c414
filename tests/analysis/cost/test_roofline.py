"""Shares, as notes of rates print them."""

from __future__ import annotations

import pytest

from hlo_inspect.analysis.cost.roofline import percent


@pytest.mark.parametrize(
    ("share", "text"), [(0.0009, "0.090 %"), (0.5, "50 %"), (0.99991, "99.9910 %"), (1, "100 %"), (2.5, "250 %")]
)
def test_shares(share: float, text: str) -> None:
    assert percent(share) == text
