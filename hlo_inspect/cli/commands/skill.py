"""The command `skill`: what an agent has to know to ask hlo-inspect."""

from __future__ import annotations

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import SectionedCommand, max_chars_option
from hlo_inspect.cli.output import deliver_lines


@click.command("skill", cls=SectionedCommand)
@click.option(
    "-o", "--output", metavar="FILE", shell_complete=completion.files, help="Write to FILE instead of standard output."
)
@max_chars_option
def skill(output: str | None, max_chars: int | None) -> int:
    """Print a SKILL.md: which command answers which question, how to read an answer and how to keep it small.

    An agent that has it needs no other documentation. Save it as hlo-inspect/SKILL.md in the folder of your agent's skills.
    """
    deliver_lines(skill_text().splitlines(keepends=True), output, max_chars)
    return 0


def skill_text() -> str:
    """Return the SKILL.md of this package."""
    from importlib.resources import files

    return files("hlo_inspect.agents").joinpath("SKILL.md").read_text(encoding="utf-8")
