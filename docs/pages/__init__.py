"""Pages of `docs` that are generated from the code."""

from __future__ import annotations

from pathlib import Path

from docs.pages.commands import DOCS, command_texts
from docs.pages.facts import fact_texts
from docs.pages.fleet import fleet_texts
from docs.pages.hardware import hardware_texts
from docs.pages.optimizers import optimizer_texts
from docs.pages.rules import rule_texts
from docs.pages.sent_bytes import sent_bytes_texts

_GENERATED_FOLDERS = ("rules", "hardware")


def generated_texts() -> dict[str, str]:
    """Return all generated pages by their paths below `docs`."""
    makers = (command_texts, rule_texts, fact_texts, hardware_texts, optimizer_texts, sent_bytes_texts, fleet_texts)
    return {path: text for make in makers for path, text in make().items()}


def stale_pages() -> list[Path]:
    """Return the pages of rules and hardware profiles that no longer exist."""
    whole = {*rule_texts(), *hardware_texts()}
    pages = [path for folder in _GENERATED_FOLDERS for path in sorted((DOCS / folder).glob("*.md"))]
    return [path for path in pages if path.relative_to(DOCS).as_posix() not in whole]
