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
from tests.browser.conftest import CHROMIUM
from tests.calling import call_text
from tests.playground.conftest import BELOW, Tab, as_summed, served

TICKS = os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).parents[1]
SMALL = ROOT / "tests" / "data" / "cpu" / "adamw_step.after.txt"


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


class Browser:
    """A Chromium without a network, whose processes are known."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright

        self.marker = f"--benchmark-{uuid4()}"
        self._playwright = sync_playwright().start()
        offline = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        self.browser = self._playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", offline, self.marker])

    def seconds(self) -> float:
        return processes_of(self.marker).seconds

    def close(self) -> None:
        self.browser.close()
        self._playwright.stop()


@contextmanager
def opened_browser() -> Iterator[Browser]:
    browser = Browser()
    try:
        yield browser
    finally:
        browser.close()


def starts(address: str, rows: list[tuple[str, ...]]) -> None:
    """Measure from opening the page to the first lines of the small example: cold, warm, and in the running page."""
    with opened_browser() as browser:
        time.sleep(2)
        before = browser.seconds()
        tab = Tab(browser.browser, address)
        _first_lines(tab)
        rows.append(("open to first lines, cold", f"{browser.seconds() - before:.1f} s"))
        tab.rests()
        for word in ("second time", "third time"):
            time.sleep(3)  # the browser keeps compiled code a while after the page has run
            before = browser.seconds()
            tab.page.reload()
            _first_lines(tab)
            rows.append((f"the same, {word}", f"{browser.seconds() - before:.1f} s"))
            tab.rests()
        before = browser.seconds()
        _first_lines(tab)
        rows.append(("first lines in the open page", f"{browser.seconds() - before:.2f} s"))
        tab.rests()
        rows.append(("with its report", f"{browser.seconds() - before:.1f} s"))


def _first_lines(tab: Tab) -> None:
    tab.page.evaluate("delete document.documentElement.dataset.first")
    tab.page.get_by_role("button", name="AdamW on 8 devices").click()
    tab.wait("document.documentElement.dataset.first")


def dumps(address: str, paths: list[Path], rows: list[tuple[str, ...]]) -> None:
    """Measure `summary` and the report of large dumps, beside the same command in this Python."""
    for path in paths:
        with opened_browser() as browser:
            tab = Tab(browser.browser, address)
            tab.rests()
            tab.page.set_input_files("#files", path)
            before = browser.seconds()
            tab.wait("document.documentElement.dataset.first")
            first = browser.seconds() - before
            tab.rests()
            whole = browser.seconds() - before
            said = tab.page.inner_text("#trouble")
            line = f"summary {path.name}"
            before = browser.seconds()
            tab.answer(line)
            again = browser.seconds() - before
            memory = processes_of(browser.marker).bytes
            ours = _own_seconds(path)
            size = format_value(path.stat().st_size, "bytes")
            figures = (f"{first:.1f} s", f"{again:.1f} s", f"{ours:.2f} s", f"{again / ours:.1f} ×", f"{whole:.1f} s")
            rows.append((f"{path.name[:40]}, {size}", *figures, format_value(memory, "bytes"), said[:60]))


def _own_seconds(path: Path) -> float:
    """Return the processor time of `summary` in this process, the least of three."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF)
        call_text("summary", path.name, folder=path.parent)
        after = resource.getrusage(resource.RUSAGE_SELF)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(times)


def facts(address: str, paths: list[Path], rows: list[tuple[str, ...]]) -> None:
    """Compare JSON of the page with that of this Python."""
    commands = ("summary", "params", "collectives", "cost", "time", "memory", "optimizer", "fusions", "top")
    with opened_browser() as browser:
        tab = Tab(browser.browser, address)
        tab.rests()
        for path in paths:
            tab.open((path.name, path.read_bytes()))
            differ = []
            for command in commands:
                line = f"{command} {path.name} --format json -n 0"
                ours = call_text(*line.split(), folder=path.parent).stdout
                if as_summed(tab.answer(f"{line} -o out.json") + _written(tab)) != as_summed(ours):
                    differ.append(command)
            rows.append(
                (path.name, f"{len(commands)} commands", "differ: " + ", ".join(differ) if differ else "equal to the byte")
            )


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
            started: list[tuple[str, ...]] = [("from", "processor time")]
            starts(address, started)
            print_table(started)
            read: list[tuple[str, ...]] = [
                ("dump", "first lines", "summary again", "in CPython", "ratio", "with the report", "memory", "said")
            ]
            dumps(address, arguments.large, read)
            print_table(read)
            equal: list[tuple[str, ...]] = [("dump", "compared", "JSON")]
            facts(address, arguments.facts, equal)
            print_table(equal)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
