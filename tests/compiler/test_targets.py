"""Targets as the user writes them."""

from __future__ import annotations

import pytest

from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.errors import UsageError

GPUS = ["h100-sxm"]


@pytest.mark.parametrize(
    ("text", "platform", "topology", "devices"),
    [
        ("cpu", "cpu", "", None),
        ("tpu-v5e:2x4", "tpu", "v5e:2x4", 8),
        ("tpu-v4:2x2x1", "tpu", "v4:2x2x1", 4),
        ("tpu-7x:2x2x1", "tpu", "TPU7x:2x2x1", 8),  # two devices a chip
        ("h100-sxm:8", "gpu", "8", 8),
    ],
)
def test_targets(text: str, platform: str, topology: str, devices: int | None) -> None:
    target = parse_target(text, GPUS)
    assert (target.platform, target.topology, target.devices) == (platform, topology, devices)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tpu-v5e", "write it like tpu-v5e:2x4"),
        ("tpu-v5p:8", "write it like tpu-v5p:2x2x1"),
        ("h100-sxm", "write it like h100-sxm:8"),
        ("h100-sxm:0", "write it like h100-sxm:8"),
        ("cpu:8", "write it without a number"),
        ("tpu-v5:2x4", "'tpu-v5' is no target; did you mean"),
        ("", "is no target"),
    ],
)
def test_what_is_no_target(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_target(text, GPUS)
