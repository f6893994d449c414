"""The text that tells an agent how to ask hlo-inspect: a SKILL.md with a front matter."""

from __future__ import annotations

from importlib.resources import files

FILE = "SKILL.md"


def skill_text() -> str:
    """Return the SKILL.md of this package."""
    return files(__package__).joinpath(FILE).read_text(encoding="utf-8")
