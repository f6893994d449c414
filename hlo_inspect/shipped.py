"""Where the configuration files are that come with the package."""

from __future__ import annotations

from pathlib import Path


def shipped_configs(kind: str) -> Path:
    """The folder of the shipped `hardware` profiles or example `checks`: inside the installed package, beside it in a source
    checkout.
    """
    package = Path(__file__).parent
    inside = package / "configs"
    return (inside if inside.is_dir() else package.parent / "configs") / kind
