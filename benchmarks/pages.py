"""Weight of pages of `report`: their size, and the work of a browser that opens them.

    python -m benchmarks.pages [DUMP[:PROFILE] ...] [--diff OLD NEW] [--modules N ...] [--page FILE]

measures pages of a tiny module, of each dump, of a diff, and of N generated modules for each N. Columns: bytes of the file,
nodes of the document, processor time of the page until it rests, and peak memory of the build. `--page` measures a page that
is there. Needs Playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measure import run_command
from benchmarks.run import print_table
from hlo_inspect.report.formats import ALL_FORMATS, RenderOptions
from hlo_inspect.report.model import Report
from hlo_inspect.report.units import format_value

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SECONDS, STEP = 4.0, 0.5
"""The page rests if it does nothing for one more `STEP` after its first seconds."""
LONGEST = 60.0

BUILT = 200
"""Modules up to which each module is inspected. Pages of more have copies of one report: only the browser is measured."""

TINY = """\
HloModule tiny, is_scheduled=true

ENTRY main {
  x = f32[64,64]{1,0} parameter(0)
  w = f32[64,64]{1,0} parameter(1)
  y = f32[64,64]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[64,64]{1,0} exponential(y)
}
"""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Built(NamedTuple):
    """A page to measure. `peak_bytes` is the peak memory of the command that wrote it, None if it was not measured."""

    name: str
    path: Path
    peak_bytes: int | None


class Opening(NamedTuple):
    """Work of the browser until the page rests."""

    nodes: int
    task_seconds: float


def opened(browser: Browser, path: Path) -> Opening:
    """Open a page, wait until it rests, and return the work so far."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # other processes do not count
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_timeout(SECONDS * 1000)
    before, waited = -1.0, SECONDS
    while True:
        metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
        if metrics["TaskDuration"] - before < STEP / 20 or waited > LONGEST:
            break
        before, waited = metrics["TaskDuration"], waited + STEP
        page.wait_for_timeout(STEP * 1000)
    page.close()
    return Opening(int(metrics["Nodes"]), metrics["TaskDuration"])


def built_pages(arguments: argparse.Namespace, folder: Path) -> Iterator[Built]:
    """Yield each page as soon as it is written."""
    for path in map(Path, arguments.page):
        yield Built(path.name, path, None)
    if arguments.page:
        return
    tiny = folder / "tiny.txt"
    tiny.write_text(TINY, encoding="utf-8")
    yield _built("tiny module", folder, [str(tiny)])
    for dump in arguments.dumps:
        path, _, profile = dump.partition(":")
        yield _built(Path(path).name.partition(".")[0], folder, [path, *(["--profile", profile] if profile else [])])
    if arguments.diff:
        yield _built("diff", folder, [*arguments.diff, "--diff"])
    for count in arguments.modules:
        yield _modules(count, folder) if count <= BUILT else _copies(count, tiny, folder)


def _built(name: str, folder: Path, arguments: Sequence[str]) -> Built:
    output = folder / "page.html"
    command = run_command(["report", *arguments, "-q", "-o", str(output)])
    return Built(name, output, command.peak_bytes)


def _modules(count: int, folder: Path) -> Built:
    """Write the page of `count` training steps of one to four layers."""
    from benchmarks.training_step import training_step

    dumps = folder / str(count)
    dumps.mkdir()
    texts = [training_step(layers) for layers in range(1, 5)]
    for number in range(count):
        name = f"module_{number:04d}.jit_step_{number}.gpu_after_optimizations.txt"
        (dumps / name).write_text(texts[number % len(texts)], encoding="utf-8")
    return _built(f"{count:,} modules", folder, [str(dumps)])


def _copies(count: int, tiny: Path, folder: Path) -> Built:
    """Write the page of `count` modules that differ in their names."""
    import hlo_inspect
    from hlo_inspect.cli.commands.report import PASSES
    from hlo_inspect.passes.modules import ModuleList

    report = hlo_inspect.inspect(tiny, PASSES)
    listed = ModuleList()

    def reports() -> Iterator[Report]:
        for number in range(count):
            copy = replace(report, facts={**report.facts, "module.name": f"tiny_{number}"})
            listed.add(copy)
            yield copy
        yield listed.report("copies")

    output = folder / "page.html"
    with output.open("w", encoding="utf-8") as stream:
        ALL_FORMATS["html"](reports(), stream, RenderOptions())
    return Built(f"{count:,} modules", output, None)


def main() -> None:
    """Print the weight of each page."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", metavar="DUMP[:PROFILE]")
    parser.add_argument("--diff", nargs=2, metavar=("OLD", "NEW"))
    parser.add_argument("--modules", nargs="*", type=int, default=[BUILT], metavar="N")
    parser.add_argument("--page", nargs="*", default=[], metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for page in built_pages(arguments, Path(folder)):
            opening = opened(browser, page.path)
            size = format_value(page.path.stat().st_size, "bytes")
            peak = format_value(page.peak_bytes, "bytes") if page.peak_bytes is not None else ""
            rows.append((page.name, size, f"{opening.nodes:,}", f"{opening.task_seconds:.2f} s", peak))
        browser.close()
    print_table([("page", "file", "nodes", "browser", "peak of the build"), *rows])


if __name__ == "__main__":
    main()
