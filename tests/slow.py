"""The files of tests that are not quick: those that take a second, start processes, or reach servers or a browser.

    python -m pytest -n 2 --dist loadfile --junitxml times.xml && python -m tests.slow times.xml

writes their list, `slow.txt`, the slowest first, which begin first: no process of xdist waits for another one at the end. All
other files are marked `quick`, and their tests may start nothing.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parent
LIST = FOLDER / "slow.txt"
SECONDS = 1.0
"""Time of a file from which it is slow."""

_STARTING = (
    *("subprocess", "Popen", "WorkerProcess", "playwright", "browser", "jobs=", "server", "socket", '"-j"', " collect("),
    *("ask_xla", "benchmarks.history"),
)
"""Words of files whose tests start processes, or reach others."""


def names() -> list[str]:
    """Return the slow files, below the folder of all tests, the slowest first."""
    return LIST.read_text(encoding="utf-8").split()


def _slow_files(times: Path) -> list[str]:
    """Return the slow files of a run, the slowest first. Those that it left out are slow too."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(times).iter("testcase"):  # noqa: S314 - written by pytest
        seconds[_file_of(str(case.get("classname")))] += float(case.get("time", 0))
    slow = []
    for path in sorted(FOLDER.rglob("test_*.py")):
        name, text = path.relative_to(FOLDER).as_posix(), path.read_text(encoding="utf-8")
        if seconds.get(name, SECONDS) >= SECONDS or any(word in text for word in _STARTING):
            slow.append(name)
    return sorted(slow, key=lambda name: -seconds[name])


def _file_of(test_class: str) -> str:
    """Return the file of a test from its dotted name, which may end with a class."""
    parts = test_class.split(".")[1:]
    return next((name for end in range(len(parts), 0, -1) if (FOLDER / (name := f"{'/'.join(parts[:end])}.py")).is_file()), "")


if __name__ == "__main__":
    LIST.write_text("".join(f"{name}\n" for name in _slow_files(Path(sys.argv[1]))), encoding="utf-8")
