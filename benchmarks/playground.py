"""The page Try it in Chromium: its size, processor time until it answers, memory, and equality of its facts.

    python -m benchmarks.playground [--large DUMP ...] [--facts DUMP ...] [--folder FOLDER]

builds the page (or takes the folder of a build), serves it from loopback and opens it in a browser that reaches nothing else. A
time is the processor time of all processes of the browser, so other work on the machine hardly counts. Needs Playwright,
Chromium, npm and node.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from benchmarks.run import print_table
from docs.playground.build import build
from docs.playground.sizes import size_lines
from hlo_inspect.report.units import format_value
from tests.calling import call_text
from tests.chromium import CHROMIUM, OFFLINE
from tests.playground.conftest import BELOW, Tab, as_summed, served

SETTLED, LONGEST = 4.0, 600
TICKS = os.sysconf("SC_CLK_TCK")
COMMANDS = ("summary", "params", "collectives", "cost", "time", "memory", "optimizer", "fusions", "top")


class Processes(NamedTuple):
    """The processes of a browser: processor time so far, and memory of the largest one now."""

    seconds: float
    bytes: int


def processes_of(marker: str) -> Processes:
    """Return the figures of the processes that were started with the marker, and of all below them."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    roots: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it ended meanwhile
            continue
        number = int(entry.name)
        parents[number] = int(fields[1])
        seconds[number] = sum(map(int, fields[11:15])) / TICKS  # with its ended children
        if marker.encode() in command:
            roots.add(number)
    family = {number for number in parents if _is_below(number, parents, roots)}
    return Processes(sum(seconds[number] for number in family), max(map(_memory, family), default=0))


def _is_below(number: int, parents: dict[int, int], roots: set[int]) -> bool:
    while number in parents:
        if number in roots:
            return True
        number = parents[number]
    return False


def _memory(number: int) -> int:
    """Return the bytes of a process that it shares with no other."""
    try:
        lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Private_"))


class Chromium:
    """A Chromium that reaches loopback only, with the profile of a person: its cache keeps files and compiled code."""

    def __init__(self, profile: Path) -> None:
        from playwright.sync_api import sync_playwright

        self._marker = f"--benchmark-{uuid4()}"
        self._playwright = sync_playwright().start()
        arguments = ["--no-sandbox", OFFLINE, self._marker]
        self.context = self._playwright.chromium.launch_persistent_context(profile, executable_path=CHROMIUM, args=arguments)

    def figures(self) -> Processes:
        return processes_of(self._marker)

    def close(self) -> None:
        self.context.close()
        self._playwright.stop()


@contextmanager
def running_chromium(profile: Path) -> Iterator[Chromium]:
    chromium = Chromium(profile)
    try:
        yield chromium
    finally:
        chromium.close()


def starts(address: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """Measure from opening the page to the first lines of the small example: in a new profile, again, and in the open page."""
    yield ("from", "processor time")
    for word in ("cold", "warm", "warm again"):
        with running_chromium(folder / "profile") as chromium:
            time.sleep(SETTLED)
            before = chromium.figures().seconds
            tab = Tab(chromium.context, address)
            _first_lines(tab)
            yield (f"open to first lines, {word}", f"{chromium.figures().seconds - before:.1f} s")
            tab.rests()
            time.sleep(SETTLED)  # meanwhile the browser keeps the compiled code
            before = chromium.figures().seconds
            _first_lines(tab)
            first = chromium.figures().seconds - before
            tab.rests()
            time.sleep(1)
            whole = chromium.figures().seconds - before
    yield ("first lines in the open page", f"{first:.2f} s")
    yield ("the same with the report", f"{whole:.2f} s")


def _first_lines(tab: Tab) -> None:
    """Click on the small example and wait for its first lines."""
    tab.page.evaluate("delete document.documentElement.dataset.first")
    tab.page.get_by_role("button", name="AdamW on 8 devices").click()
    tab.wait("document.documentElement.dataset.first")


def dumps(address: str, paths: list[Path], folder: Path) -> Iterator[tuple[str, ...]]:
    """Measure `summary` and the report of large dumps, beside the same command in this Python."""
    yield ("dump", "first lines", "summary again", "in CPython", "ratio", "with the report", "memory")
    for path in paths:
        with running_chromium(folder / "profile") as chromium:
            tab = Tab(chromium.context, address)
            tab.rests()
            before = chromium.figures().seconds
            tab.page.set_input_files("#files", path)
            tab.wait("document.documentElement.dataset.first", LONGEST)
            first = chromium.figures().seconds - before
            tab.rests(LONGEST)
            whole, memory = chromium.figures()
            again = _seconds_of_summary(tab, chromium, path)
            ours = _own_seconds(path)
            times = (first, again, ours, again / ours, whole - before)
            figures = [f"{value:.1f}{unit}" for value, unit in zip(times, (" s", " s", " s", " ×", " s"), strict=True)]
            size = format_value(path.stat().st_size, "bytes")
            yield (f"{path.name.partition('.')[0]}, {size}", *figures, format_value(memory, "bytes"))


def _seconds_of_summary(tab: Tab, chromium: Chromium, path: Path) -> float:
    """Return the processor time of `summary` on the command line of the page, the least of two."""
    times = []
    for _ in range(2):
        before = chromium.figures().seconds
        tab.answer(f"summary {path.name}", LONGEST)
        times.append(chromium.figures().seconds - before)
    return min(times)


def _own_seconds(path: Path) -> float:
    """Return the processor time of `summary` in this process, the least of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF)
        call_text("summary", path.name, folder=path.parent)
        after = resource.getrusage(resource.RUSAGE_SELF)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def facts(address: str, paths: list[Path], folder: Path) -> Iterator[tuple[str, ...]]:
    """Compare JSON of the page with that of this Python, or the errors of both."""
    yield ("dump", "commands", "JSON")
    with running_chromium(folder / "profile") as chromium:
        tab = Tab(chromium.context, address)
        tab.rests()
        for path in paths:
            tab.open((path.name, path.read_bytes()))
            differ = [command for command in COMMANDS if not _is_equal(tab, command, path)]
            yield (path.name, str(len(COMMANDS)), "differ: " + ", ".join(differ) if differ else "equal")


def _is_equal(tab: Tab, command: str, path: Path) -> bool:
    line = f"{command} {path.name} --format json -n 0"
    ours = call_text(*line.split(), folder=path.parent)
    printed = tab.answer(f"{line} -o out.json")
    if ours.returncode:
        return printed == ours.stderr
    return as_summed(_written(tab)) == as_summed(ours.stdout)


def _written(tab: Tab) -> str:
    """Return the text of the last file that a command wrote."""
    with tab.page.expect_download() as download:
        tab.page.locator("#terminal a[download]").last.click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def main() -> None:
    """Print all figures of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="folder of a build; without it the page is built")
    parser.add_argument("--large", nargs="*", type=Path, default=[], metavar="DUMP")
    parser.add_argument("--facts", nargs="*", type=Path, default=[], metavar="DUMP")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / BELOW
        if arguments.folder is None:
            build(folder)
        else:
            folder.symlink_to(arguments.folder.resolve())
        print("\n".join(size_lines(folder)))
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        with served(Path(temporary)) as origin:
            address = f"{origin}{BELOW}/"
            work = Path(temporary) / "work"
            print_table(starts(address, work))
            print_table(dumps(address, arguments.large, work))
            print_table(facts(address, arguments.facts, work))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
