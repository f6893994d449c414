"""The words of the command line, for messages that repeat it."""

from __future__ import annotations

import shlex

NAME = "hlo-inspect"

ARGUMENTS = "hlo_inspect.arguments"
"""Key of the words in the `meta` of click's context."""


def command_without_limit() -> str:
    """Return the command line of the command that runs, without --max-chars."""
    import click

    words = iter(click.get_current_context().meta.get(ARGUMENTS, ()))
    kept = [NAME]
    for word in words:
        if word == "--max-chars":
            next(words, None)
        elif not word.startswith("--max-chars="):
            kept.append(word)
    return shlex.join(kept)
