"""The README and the pages of docs as tests read them: blocks, command lines, examples, headings and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hlo_inspect.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = {path: path.read_text(encoding="utf-8") for path in (README, *sorted(DOCS.rglob("*.md")))}

_BLOCK = re.compile(r"^( *)```(\w*)\n((?s:.*?))^ *```$", re.MULTILINE)
_COMMAND = re.compile(r"(?:^|[|;&]\s*|run: |\$ |- )(hlo-inspect .*)")
_STATUS = "$ echo $?"


class Example(NamedTuple):
    """A command on a page with the output that it shows, and its exit status."""

    page: Path
    command: str
    output: str
    status: int


def examples() -> Iterator[Example]:
    """Yield the examples of all pages: blocks that begin with `$ hlo-inspect`."""
    for page, text in PAGES.items():
        for _, language, block in _BLOCK.findall(text):
            if language == "" and block.startswith("$ "):
                yield from _examples_of(page, block)


def _examples_of(page: Path, block: str) -> Iterator[Example]:
    parts = re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]
    for part, follower in zip(parts, [*parts[1:], ""], strict=True):
        line, _, output = part.partition("\n")
        if line != _STATUS:
            status = int(follower.partition("\n")[2]) if follower.startswith(_STATUS) else 0
            yield Example(page, line.removeprefix("$ "), output, status)


OWN_TESTS = {
    README: ("pip install", "check dumps"),
    DOCS / "index.md": ("pip install",),
    DOCS / "fleet.md": ("pip install",),
    DOCS / "ci.md": ("hlo-inspect",),
}
"""Words of blocks that tests of their own run as a whole.

These are `.ci/run`, tests/fleet/test_query.py, tests/test_ci_recipes.py and tests/test_readme.py.
"""


def other_command_lines() -> Iterator[tuple[Path, str]]:
    """Yield the command lines of blocks that show no output. A line that ends with a backslash goes on in the next."""
    for page, text in PAGES.items():
        for block in _blocks_without_output(text):
            if any(words in block for words in OWN_TESTS.get(page, ())):
                continue
            for line in re.sub(r"\\\n\s*", "", block).splitlines():
                if match := _COMMAND.search(line.strip()):
                    yield page, match[1]


def _blocks_without_output(text: str) -> Iterator[str]:
    for _, language, block in _BLOCK.findall(text):
        if not block.startswith("$ ") and language != "text":
            yield block
    yield from re.findall(r"(?:^(?: {4}|\t).*\n)+", _BLOCK.sub("", text), re.MULTILINE)


def inline_command_lines() -> Iterator[tuple[Path, str]]:
    """Yield the command lines in the middle of a text: code with `hlo-inspect`, or with a command and an option of it."""
    for page, text in PAGES.items():
        for code in re.findall(r"`([^`\n]*(?:\n[^`\n]+)?)`", _BLOCK.sub("", text)):
            line = " ".join(code.split())
            if match := _COMMAND.search(line):
                yield page, match[1]
            elif line.partition(" ")[0] in COMMANDS and " -" in line:
                yield page, f"hlo-inspect {line}"


def python_blocks(page: Path) -> list[str]:
    """Return the blocks of Python of a page."""
    return [block for _, language, block in _BLOCK.findall(PAGES[page]) if language == "python"]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings. Code hosts and the site make the same of plain headings."""
    headings = re.findall(r"^#+ (.*)$", _BLOCK.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s", "-", heading) for heading in plain}


def links(text: str) -> list[tuple[str, str]]:
    """Return the links of a page to other files: target, empty for the page itself, and anchor."""
    prose = re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text))
    return re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", prose)
