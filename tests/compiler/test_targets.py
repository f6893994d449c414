"""Targets as the user writes them."""

from __future__ import annotations

import pytest

from hlo_inspect.compiler.targets import parse_target
from hlo_inspect.errors import UsageError


@pytest.mark.parametrize(
    ("text", "platform", "topology", "devices"),
    [
        ("cpu", "cpu", "", None),
        ("tpu-v5e:2x4", "tpu", "v5e:2x4", 8),
        ("tpu-v4:2x2x1", "tpu", "v4:2x2x1", 4),
        ("tpu-7x:2x2x1", "tpu", "TPU7x:2x2x1", 8),  # two devices a chip
        ("h100-sxm:8", "gpu", "1x1x8", 8),
        ("h100-sxm:64", "gpu", "1x8x8", 64),  # eight hosts of eight,
    ],
)
def test_targets(text: str, platform: str, topology: str, devices: int | None) -> None:
    target = parse_target(text)
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
        parse_target(text)


def test_a_gpu_is_described_by_its_profile_and_capability() -> None:
    """The figures of an H100 in a `.gpu_target_config.pbtxt` that XLA wrote on one."""
    config = parse_target("h100-sxm:1").config
    for line in (
        "core_count: 132",
        "shared_memory_per_core: 233472",
        "shared_memory_per_block_optin: 232448",
        "l2_cache_size: 52428800",
        "clock_rate_ghz: 1.98",
        'name: "NVIDIA H100 80GB HBM3"',
    ):
        assert f"  {line}\n" in config


def test_a_config_describes_a_gpu_only() -> None:
    assert parse_target("h100-sxm:1", "mine").config == "mine"
    with pytest.raises(UsageError, match="is no GPU"):
        parse_target("cpu", "mine")
