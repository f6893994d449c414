"""Where the shipped configuration files are found."""

from pathlib import Path

import pytest

from hlo_inspect import shipped


def test_beside_the_package_in_a_source_checkout() -> None:
    root = Path(shipped.__file__).parent.parent
    assert shipped.shipped_configs("hardware") == root / "configs" / "hardware"


def test_inside_the_package_when_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "hlo_inspect"
    (package / "configs" / "checks").mkdir(parents=True)
    monkeypatch.setattr(shipped, "__file__", str(package / "shipped.py"))
    assert shipped.shipped_configs("checks") == package / "configs" / "checks"
