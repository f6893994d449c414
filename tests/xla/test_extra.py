"""The optional extra `[xla]` if it is missing or too old."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

import hlo_inspect
from hlo_inspect.cli.main import run
from hlo_inspect.errors import MissingExtraError
from tests.hlo.input.test_foreign_text import HLO_PROTO, STABLEHLO

DATA = Path(__file__).parents[1] / "data"
TEXT = DATA / "cpu" / "sgd_unused.after.txt"
INSTALL = "pip install jaxlib"


@pytest.fixture
def without_jaxlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)


class Greeter:
    """Stands for the process of a jaxlib that cannot be used."""

    def __init__(self, greeting: dict[str, Any]) -> None:
        self.greeting = greeting

    def close(self) -> None:
        pass


@pytest.mark.usefixtures("without_jaxlib")
class TestWithoutTheExtra:
    def test_strict_is_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["params", str(TEXT), "nowhere.txt", "--strict"]) == 2
        assert capsys.readouterr() == ("", f"hlo-inspect: --strict needs the extra [xla]: {INSTALL}\n")

    @pytest.mark.parametrize(
        ("name", "data", "format_"),
        [
            ("x.hlo.pb", HLO_PROTO, "serialized HLO"),
            ("x.pb.gz", gzip.compress(HLO_PROTO, mtime=0), "serialized HLO"),
            ("x", HLO_PROTO, "serialized HLO"),
            ("x.mlir", STABLEHLO, "StableHLO or another MLIR text"),
            ("x.mlirbc", b"ML\xefR\x0dMLIR23\0", "MLIR bytecode"),
        ],
        ids=["HloProto", "compressed", "without ending", "text", "bytecode"],
    )
    def test_the_input_is_named_and_the_others_are_read(
        self, name: str, data: bytes, format_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        assert run(["params", str(path), str(TEXT)]) == 2
        out, err = capsys.readouterr()
        assert err == f"hlo-inspect: {path}: this is {format_}; reading it needs the extra [xla]: {INSTALL}\n"
        assert "jit_step" in out

    def test_an_input_that_cannot_be_read_at_all_counts_more(self, tmp_path: Path) -> None:
        (tmp_path / "x.pb").write_bytes(HLO_PROTO)
        assert run(["params", str(tmp_path / "x.pb"), str(tmp_path / "nowhere.txt")]) == 3

    @pytest.mark.parametrize("given", [HLO_PROTO, io.BytesIO(HLO_PROTO), bytearray(HLO_PROTO), memoryview(HLO_PROTO)])
    def test_from_python(self, given: Any) -> None:
        with pytest.raises(MissingExtraError, match="this is serialized HLO"):
            hlo_inspect.inspect(given)

    def test_text_is_read(self) -> None:
        assert hlo_inspect.inspect(TEXT).facts["module.name"] == "jit_step"


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (
            {"error": None, "version": "0.1.75", "missing": ["HloModule", "mlir"]},
            "jaxlib 0.1.75 is too old: it has no HloModule",
        ),
        ({"error": "ImportError: no numpy"}, "jaxlib cannot be imported: ImportError: no numpy"),
    ],
)
def test_a_jaxlib_that_cannot_be_used(
    greeting: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr("hlo_inspect.xla_worker.Worker", lambda: Greeter(greeting))
    assert run(["params", str(TEXT), "--strict"]) == 2
    message = f"--strict needs the extra [xla], but {reason} (pip install --upgrade jaxlib)\n"
    assert capsys.readouterr() == ("", f"hlo-inspect: {message}")
