"""The parts of the page's build that need no network."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from docs.playground.build import EXAMPLES, build, write_page
from docs.playground.packages import ROOT, BuildError
from docs.playground.runtime import CDN, library_sources, lock_file, pack, pack_files


@pytest.fixture
def pyodide(tmp_path: Path) -> Path:
    """Return a folder with the files of Pyodide that the build reads."""
    folder = tmp_path / "pyodide"
    folder.mkdir()
    packages = {
        name: {"file_name": f"{name}.whl", "sha256": hashlib.sha256(b"wheel").hexdigest()} for name in ("numpy", "scipy")
    }
    (folder / "pyodide-lock.json").write_text(json.dumps({"info": {"python": "3.14.2"}, "packages": packages}))
    with ZipFile(folder / "python_stdlib.zip", "w") as archive:
        for name in (
            "json/decoder.py",
            "encodings/utf_8.py",
            "encodings/cp1252.py",
            "pdb.py",
            "unittest/case.py",
            "calendar.py",
        ):
            archive.writestr(name, "")
    return folder


def test_the_list_of_packages_has_numpy_only_if_it_can_be_had(pyodide: Path, tmp_path: Path) -> None:
    wheel = tmp_path / "numpy.whl"
    wheel.write_bytes(b"wheel")
    for numpy, everywhere, names in ((None, False, []), (None, True, ["numpy"]), (wheel, False, ["numpy"])):
        lock = lock_file(pyodide, numpy, everywhere=everywhere)
        assert (lock["info"], list(lock["packages"])) == ({"python": "3.14.2"}, names)  # type: ignore[call-overload]
    wheel.write_bytes(b"another")
    with pytest.raises(BuildError, match=r"is not numpy\.whl of Pyodide"):
        lock_file(pyodide, wheel, everywhere=False)


def test_unused_modules_of_the_library_are_left_out(pyodide: Path, tmp_path: Path) -> None:
    library_sources(pyodide, tmp_path / "library")
    files = {path.relative_to(tmp_path / "library").as_posix() for path in (tmp_path / "library").rglob("*.py")}
    assert files == {"json/decoder.py", "encodings/utf_8.py", "calendar.py"}


def test_archives_depend_on_their_content_only(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "file").write_text("text")
        pack(tmp_path / name, tmp_path / f"{name}.zip")
        pack_files(tmp_path / name, tmp_path / f"{name}.bin")
    for kind in ("zip", "bin"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()
    assert gzip.decompress((tmp_path / "one.bin").read_bytes()) == b'[["inner/file", 4]]\ntext'


def test_examples_are_files_of_the_repository() -> None:
    assert all((ROOT / name).is_file() for name in EXAMPLES)


def test_a_folder_of_other_files_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    with pytest.raises(BuildError, match="other files"):
        build(tmp_path)
    assert (tmp_path / "precious").exists()


def test_the_policy_names_another_address_only_if_pyodide_comes_from_there(tmp_path: Path) -> None:
    for address, sources in (("", "'self'"), (CDN, f"'self' {CDN}")):
        write_page(tmp_path, address)
        text = (tmp_path / "index.html").read_text(encoding="utf-8")
        assert f"connect-src {sources};" in text
        assert f"script-src 'self' 'wasm-unsafe-eval' {address}".rstrip() + ";" in text
        assert ("load its own files only" in text) == (not address)
        assert json.loads(text.partition('id="settings">')[2].partition("</script>")[0])["pyodide"] == address
