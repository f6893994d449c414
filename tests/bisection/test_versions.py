"""`bisect --over versions`: Pythons of a list whose XLA has other flags, a search of planned versions, wheels made here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest

from hlo_inspect.bisection.conditions import Observation
from hlo_inspect.bisection.trials import Trial
from hlo_inspect.bisection.versions import bisect_versions
from hlo_inspect.compiler import installations
from hlo_inspect.compiler.installations import Installation, Version, listed_versions, pip_versions
from hlo_inspect.compiler.targets import HOST, parse_target
from hlo_inspect.errors import InputError, UsageError
from tests.calling import answer_and_lines, call_text
from tests.tables import rows

DATA = Path(__file__).parents[1] / "data"
SINES = DATA / "stablehlo/sines.mlir"
OWN, NEVER = f"3.{sys.version_info.minor}", 40
OTHER = 12 if sys.version_info.minor != 12 else 13


@pytest.fixture
def listed(tmp_path: Path) -> Callable[..., Path]:
    """Return a function from flags of XLA by version to a list of Pythons. One without flags (None) does not run."""

    def write(**flags: str | None) -> Path:
        lines = ["# the oldest first"]
        for name, value in flags.items():
            python = tmp_path / f"{name}/bin/python"
            python.parent.mkdir(parents=True)
            start = f"XLA_FLAGS={value!r} exec {sys.executable!r}" if value is not None else "exit 7 #"
            python.write_text(f'#!/bin/sh\n{start} "$@"\n', encoding="utf-8")
            python.chmod(0o755)
            lines.append(f"{name}\t{python if name == 'first' else python.parents[1]}")
        path = tmp_path / "versions.txt"
        path.write_text("\n".join(lines), encoding="utf-8")
        return path

    return write


def over_versions(*arguments: object, status: int = 0) -> tuple[dict[str, Any], list[str]]:
    pytest.importorskip("jaxlib.mlir.dialects.sdy")
    return answer_and_lines("bisect", SINES, *arguments, "--over", "versions", status=status)


def test_the_version_and_its_differences_are_told(listed: Callable[..., Path]) -> None:
    """Without `cse` the second sine stays: one instruction more."""
    path = listed(before="nosuch", first="", broken=None, last="--xla_disable_hlo_passes=cse", after="nosuch")
    report, lines = over_versions("first..last", "--versions-from", path, "--if", "opcode.sine == 2")
    assert [line.partition(":")[0] for line in lines] == ["1 of 3  with first", "2 of 3  with last", "3 of 3  with broken"]
    (row,) = rows(report, "necessary")
    assert (row["name"], row["old"], row["new"]) == ("last", "opcode.sine 1", "opcode.sine 2")
    (undecided,) = rows(report, "undecided")
    assert undecided["name"] == "with broken"
    assert "exit status 7" in undecided["reason"]
    assert {row["fact"]: (row["old"], row["new"]) for row in rows(report, "facts")}["opcode.sine"] == (1, 2)
    assert report["facts"]["diff.same_program"] is False


def test_a_difference_below_hlo_is_told(listed: Callable[..., Path]) -> None:
    """Flags of LLVM leave the text as it is, and change the object file."""
    pytest.importorskip("jaxlib.mlir.dialects.sdy")
    path = listed(first="", last="--xla_cpu_max_isa=SSE4_2")
    asked = ("first..last", "--versions-from", path, "--run", "sh -c '! grep -q xla_cpu_max_isa {}/*.debug_options'")
    done = call_text("bisect", SINES, *map(str, asked), "--over", "versions")
    assert done.returncode == 0
    words = " ".join(done.stdout.split())
    assert "fails since last (status 1), but not with first (status 0)" in words
    assert "the programs are equal: the difference is below HLO: 2 of 2 object files differ" in words


class PlannedTrials:
    """Trials whose condition holds since a version; unknown ones decide nothing."""

    def __init__(self, since: int, *unknown: int) -> None:
        self._since, self._unknown, self._version = since, unknown, 0
        self.compilations = SimpleNamespace(flags={}, move_to=self._move_to, describe=lambda: None)
        self.description: Any = None
        self.tried: list[int] = []

    def _move_to(self, installation: Installation) -> None:
        self._version = int(installation.python)

    def of(self, _flags: object, kept: str) -> Trial:
        assert kept.removesuffix("-again") == f"version-{self._version}"
        self.tried.append(self._version)
        return Trial(Observation(None if self._version in self._unknown else self._version >= self._since, ""))

    def tell(self, number: int, total: int, label: str, trial: Trial) -> None:
        assert number <= total

    def decided(self, trial: Trial, label: str) -> Trial:
        return trial

    def check_equal(self, trial: Trial, again: Trial, label: str) -> None:
        assert trial == again


def planned(count: int) -> list[Version]:
    return [Version(str(number), lambda number=number: Installation(str(number))) for number in range(count)]  # type: ignore[misc]


@pytest.mark.parametrize("since", range(1, 33))
def test_thirty_three_versions_need_seven_steps(since: int) -> None:
    """Two ends and five halves, then the two again that the result names."""
    trials: Any = PlannedTrials(since)
    result = bisect_versions(trials, planned(33))
    assert (result.old.version.name, result.new.version.name) == (str(since - 1), str(since))
    assert len(trials.tried) <= 2 + 5 + 2


def test_versions_that_decide_nothing_are_named() -> None:
    trials: Any = PlannedTrials(5, 3, 4)
    result = bisect_versions(trials, planned(9))
    assert (result.old.version.name, result.new.version.name, result.between) == ("2", "5", ["3", "4"])


def test_equal_ends_need_no_halves() -> None:
    trials: Any = PlannedTrials(99)
    assert bisect_versions(trials, planned(9)).necessary == []
    assert trials.tried == [0, 8]


def wheel(folder: Path, version: str, tag: str) -> None:
    """Write a wheel of a jaxlib that has its version alone."""
    name = f"jaxlib-{version}.dist-info"
    with ZipFile(folder / f"jaxlib-{version}-{tag}.whl", "w") as archive:
        archive.writestr("jaxlib/__init__.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{name}/METADATA", f"Metadata-Version: 2.1\nName: jaxlib\nVersion: {version}\n")
        archive.writestr(f"{name}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{name}/RECORD", "")


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let pip see the wheels of a folder alone, and another Python that runs."""
    folder, python = tmp_path / "wheels", tmp_path / f"pyenv/versions/3.{OTHER}.1/bin/python"
    for path in (folder, python.parent):
        path.mkdir(parents=True)
    python.write_text("#!/bin/sh\n", encoding="utf-8")
    python.chmod(0o755)
    for name, value in {
        "PIP_QUIET": "1",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": folder,
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(installations, "_PYTHONS", (sys.version_info.minor, OTHER, NEVER))
    installations._python.cache_clear()
    yield folder
    installations._python.cache_clear()


def test_pip_brings_versions_for_this_python_or_another(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.9.9 is older than 0.10.1, and 0.10.1.1 newer; that of a Python which is not here is named."""
    pytest.importorskip("pip")
    own, other = f"cp3{sys.version_info.minor}", f"cp3{OTHER}"
    wheel(wheels, "0.9.9", f"{own}-none-any")
    wheel(wheels, "0.10.1", f"cp3{NEVER}-none-any")
    wheel(wheels, "0.10.1.1", f"{other}-none-any")
    wheel(wheels, "0.11.0", f"{own}-none-any")  # beyond the range
    versions = pip_versions(HOST, "0.9.9..0.10.1.1")
    assert [version.label for version in versions] == ["jaxlib 0.9.9", "jaxlib 0.10.1", "jaxlib 0.10.1.1"]
    first, last = versions[0].install(), versions[2].install()
    assert first.python == sys.executable
    assert last.python == str(tmp_path / f"pyenv/versions/3.{OTHER}.1/bin/python")
    for installation, version in ((first, "0.9.9"), (last, "0.10.1.1")):
        assert (Path(installation.packages) / "jaxlib/__init__.py").read_text() == f"__version__ = {version!r}\n"
    assert sorted(path.name for path in (tmp_path / "cache/hlo-inspect").iterdir()) == [
        f"jaxlib-0.10.1.1-python3.{OTHER}",
        f"jaxlib-0.9.9-python{OWN}",
    ]
    with pytest.raises(UsageError, match=rf"jaxlib 0\.10\.1 has wheels for Python 3\.{NEVER} only, which this machine lacks"):
        versions[1].install()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    with pytest.raises(UsageError, match="/dev/null/hlo-inspect: cannot be written: Not a directory; XDG_CACHE_HOME names"):
        versions[0].install()


def test_what_pip_cannot_bring_is_a_message(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    monkeypatch.setattr(installations, "_PYTHONS", (sys.version_info.minor,))
    with pytest.raises(UsageError, match=r"pip lists no versions of jaxlib: .*--versions-from LIST takes environments"):
        pip_versions(HOST, "0.1..0.2")
    with pytest.raises(UsageError, match="for GPUs name environments with --versions-from"):
        pip_versions(parse_target("h100-sxm:8"), "0.1..0.2")


def test_a_range_or_a_list_that_is_wrong_is_a_message(listed: Callable[..., Path], tmp_path: Path) -> None:
    path = str(listed(first="", second=""))
    assert [version.name for version in listed_versions(path, "first..second")] == ["first", "second"]
    for span, words in {
        "first": "'first' is no range of versions; write it like",
        "first..third": "has no third; the newest is second",
        "frist..second": "has no frist; did you mean 'first'",
        "second..first": "second is not older than first",
    }.items():
        with pytest.raises(UsageError, match=words):
            listed_versions(path, span)
    (tmp_path / "bad").write_text("0.10.1\n", encoding="utf-8")
    with pytest.raises(UsageError, match="bad:1: no Python at ''; write a line as: 0"):
        listed_versions(str(tmp_path / "bad"), "a..b")
    (tmp_path / "twice").write_text(f"a {sys.executable}\n\na {sys.executable}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="twice:3: a stands there twice"):
        listed_versions(str(tmp_path / "twice"), "a..b")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        listed_versions(str(tmp_path / "none"), "a..b")


def test_options_that_do_not_go_together() -> None:
    for words, options in {
        "--over versions A..B": ("--over", "versions"),
        "--versions-from needs --over versions": ("--over", "passes", "--versions-from", "x"),
    }.items():
        done = call_text("bisect", str(SINES), *options, "--if", "opcode.sine == 1")
        assert (done.returncode, words in done.stderr) == (2, True)
