"""The page Try it, as a person uses it, in one tab that no test reloads unless that is what it tests."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from tests.calling import call, call_text
from tests.playground.conftest import BELOW, Tab, as_summed, served
from tests.profiler.spaces import plane, space

if TYPE_CHECKING:
    from playwright.sync_api import Browser

DATA = Path(__file__).parents[1] / "data"
SMALL = DATA / "cpu" / "adamw_step.after.txt"
FSDP = DATA / "cpu" / "scan_fsdp.after.txt"
TPU = DATA / "tpu" / "gathered_matmul.after.txt"
AXE = os.environ.get("HLO_INSPECT_AXE", "")
DUMP_OF_PROFILE = b"HloModule jit_step\n\nENTRY main {\n  x = f32[8] parameter(0)\n  ROOT add = f32[8] add(x, x)\n}\n"
HOSTILE = "<img src=x onerror=alert(1)>\u202e$(touch x)`;'\"&.txt"


@pytest.fixture(autouse=True)
def _without_problems(tab: Tab) -> Iterator[None]:
    """Check after each test that the page had no errors and asked for its own files only."""
    yield
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith((tab.address, "blob:", "data:"))] == []


def _columns(tab: Tab) -> str:
    return str(tab.page.evaluate("columns()"))


def test_an_example_shows_its_first_lines_then_its_report(tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are what the command writes, to the byte."""
    tab.page.get_by_role("button", name="AdamW on 8 devices").click()
    tab.wait("document.documentElement.dataset.report")
    tab.rests()
    monkeypatch.setenv("COLUMNS", _columns(tab))
    page = tmp_path / "report.html"
    assert (
        tab.page.evaluate("document.getElementById('first').textContent")
        == call_text("summary", SMALL.name, folder=SMALL.parent).stdout
    )
    assert call("report", SMALL.name, "-q", "-o", page, folder=SMALL.parent).returncode == 0
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Download the report").click()
    assert Path(download.value.path()).read_bytes() == page.read_bytes()
    frame = tab.page.frames[1]
    frame.wait_for_selector("html[data-ready]")
    assert frame.locator("h1").inner_text().startswith("Train step: adamw")
    frame.locator("figure").first.scroll_into_view_if_needed()
    frame.wait_for_selector("svg.picture, canvas")


@pytest.fixture
def three(tab: Tab) -> Tab:
    """Return the page with three dumps open, of which one is compressed."""
    if tab.page.inner_text("#opened") != "3 files":
        tab.open(
            (SMALL.name, SMALL.read_bytes()),
            (FSDP.name, FSDP.read_bytes()),
            (f"{TPU.name}.zst", zstandard.compress(TPU.read_bytes())),
        )
        assert tab.page.is_hidden("#trouble")
        assert tab.page.frames[1].wait_for_selector("h1")
    return tab


def test_facts_are_those_of_the_command(three: Tab) -> None:
    for path, name in ((SMALL, SMALL.name), (FSDP, FSDP.name), (TPU, f"{TPU.name}.zst")):
        for command in ("summary", "time --profile h100-sxm"):
            answer = three.answer(f"{command} {name} --format json")
            expected = call_text(*command.split(), path.name, "--format", "json", folder=path.parent).stdout
            assert as_summed(answer.replace(name, path.name)) == as_summed(expected)


def test_the_command_line_answers_as_a_terminal(three: Tab, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the keyboard alone: completions, an answer, and the line before."""
    tab = three
    tab.page.click("#tab-report")
    tab.page.focus("#tab-report")
    tab.page.keyboard.press("ArrowRight")
    for _ in range(4):  # the download of the report, the panel, the terminal, the line
        tab.page.keyboard.press("Tab")
    assert tab.page.evaluate("document.activeElement.id") == "line"
    tab.page.keyboard.type("collectives sc")
    tab.page.wait_for_selector("#offers li")
    tab.page.keyboard.press("Tab")
    assert tab.page.input_value("#line") == f"collectives {FSDP.name} "
    tab.page.keyboard.type("--site")
    tab.page.wait_for_selector("#offers li:has-text('--sites')")
    tab.page.keyboard.press("ArrowDown")
    assert tab.page.get_attribute("#line", "aria-activedescendant") == "offer-0"
    tab.page.keyboard.press("Enter")
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Enter")
    tab.rests()
    monkeypatch.setenv("COLUMNS", _columns(tab))
    expected = call_text("collectives", FSDP.name, "--sites", folder=FSDP.parent).stdout
    assert tab.page.locator("#terminal pre").last.evaluate("answer => answer.textContent") == expected
    tab.page.keyboard.press("ArrowUp")
    assert tab.page.input_value("#line").strip() == f"collectives {FSDP.name} --sites"
    tab.page.fill("#line", "")


def test_a_command_that_fails_says_what_the_terminal_says(three: Tab) -> None:
    tab = three
    assert "No such command 'sumary'; did you mean 'summary'?" in tab.answer("sumary x")
    assert tab.page.locator("#terminal .status").last.inner_text() == "exit status 2"
    assert "processes, which a browser does not have" in tab.answer(f"summary {SMALL.name} -j 2")
    assert "the extra [xla]" in tab.answer(f"summary {SMALL.name} --strict")
    assert "wrote params.csv" in tab.answer(f"params {SMALL.name} --format csv -o params.csv") + tab.page.inner_text(
        "#terminal"
    )


def test_other_inputs(tab: Tab) -> None:
    """A name that is hostile, an archive that is damaged, and a file that is binary."""
    text = SMALL.read_bytes()
    tab.open((HOSTILE, text))
    assert tab.page.inner_text("#opened") == HOSTILE
    assert tab.page.is_hidden("#trouble")
    tab.open(("damaged.gz", gzip.compress(text)[:-200]))
    assert "damaged.gz" in tab.page.inner_text("main")
    assert "cannot be read to its end" in tab.page.inner_text("#trouble")
    tab.open(("binary.txt", bytes(range(256)) * 64))
    assert "binary.txt: " in tab.page.inner_text("#trouble")
    assert tab.page.locator("iframe").count() == 0


def test_what_needs_numpy_says_so(tab: Tab) -> None:
    """The times of a recorded profile are arrays; neither npm nor PyPI has numpy for this Python."""
    stats: dict[str, int | str] = {"hlo_op": "add", "hlo_module": "jit_step", "program_id": 7, "run_id": 1}
    profile = space(plane("/host:CPU", {"a": [("add", 2000, 10, stats)]}))
    tab.open(("one.xplane.pb", profile), ("dump.txt", DUMP_OF_PROFILE))
    assert tab.answer("measured one.xplane.pb dump.txt").startswith(
        "hlo-inspect: this needs numpy, which is not part of this page"
    )
    assert tab.answer("summary dump.txt").startswith("jit_step")


def test_pasted_text_is_read(tab: Tab) -> None:
    tab.page.get_by_role("button", name="Paste text").click()
    tab.page.fill("#pasted", SMALL.read_text(encoding="utf-8"))
    tab.page.get_by_role("button", name="Read it").click()
    tab.rests()
    assert tab.page.evaluate("document.getElementById('first').textContent").startswith("jit_step ")
    tab.page.get_by_role("button", name="Paste text").click()


def test_stop_ends_the_work_and_the_next_dump_is_read(tab: Tab) -> None:
    tab.choose(("a.txt", FSDP.read_bytes() * 40))
    tab.page.click("#stop")
    assert tab.page.inner_text("#trouble") == "Stopped."
    tab.rests()
    tab.open((SMALL.name, SMALL.read_bytes()))
    assert tab.page.locator("iframe").count() == 1


def test_nothing_leaves_the_page(tab: Tab, browser: Browser, site: Path) -> None:
    """The policy binds page and worker: they reach no other server, and of their own one only the folder. Nothing is stored."""
    (site / "outside.txt").write_text("outside", encoding="utf-8")
    origin = tab.address.removesuffix(f"{BELOW}/")
    reached = "address => fetch(address).then(() => 'reached', () => 'refused')"
    with served(site) as other:
        for where in (tab.page, tab.page.workers[0]):
            answers = [where.evaluate(reached, address) for address in (f"{origin}outside.txt", f"{other}{BELOW}/page.js")]
            assert answers == ["refused", "refused"]
            assert where.evaluate(reached, f"{tab.address}page.css") == "reached"
    assert all("Content Security Policy" in problem or "CSP" in problem or "Fetch API" in problem for problem in tab.problems)
    tab.problems.clear()
    tab.requests.clear()
    stored = tab.page.evaluate(
        """async () => [localStorage.length, sessionStorage.length, document.cookie, (await indexedDB.databases()).length,
            (await caches.keys()).length]"""
    )
    assert stored == [0, 0, "", 0, 0]
    assert tab.context.cookies() == []


def test_a_narrow_page(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 390, "height": 800})
    for panel in ("report", "commands"):
        tab.page.click(f"#tab-{panel}")
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
    tab.page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.extras("HLO_INSPECT_AXE")
def test_axe_finds_nothing(tab: Tab) -> None:
    run = "async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes[0].target.join(' ')])"
    tab.page.evaluate(Path(AXE).read_text(encoding="utf-8") + "; undefined")
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        for panel in ("report", "commands"):
            tab.page.click(f"#tab-{panel}")
            assert tab.page.evaluate(run) == []
    tab.page.emulate_media(color_scheme="light")


def test_a_browser_without_what_is_needed_is_told(browser: Browser, tab: Tab) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(tab.address)
    assert page.inner_text("#trouble").startswith("This browser has no DecompressionStream")
    context.close()
