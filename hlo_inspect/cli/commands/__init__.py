"""The commands, in one explicit list: the passes, and others, each a file here that is imported when it runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hlo_inspect.passes import PASSES, SUMMARIES, WORKLOAD, find_pass, workload_pass

if TYPE_CHECKING:
    import click

COMMANDS: dict[str, str] = {
    **SUMMARIES,
    "list": "List the modules: one row each, the largest first.",
    "check": "Check facts against a policy: exit status 1 when one fails.",
    "diff": "What changed from OLD to NEW: facts first, then what explains them.",
    "report": "One HTML file with everything inside: where the step goes, kernels, collectives, memory, parameters, findings.",
    "show": "One instruction: what it is, what feeds it, what reads it, its line of Python; the ways between two.",
    "normalize": "Print the text in canonical names, for git diff and golden tests.",
    "history": "Which compiler pass changed what: of a dump directory with a file for each pass.",
    "profiles": "List the hardware profiles, or show one with the sources of its figures.",
    "rules": "List the findings that exist.",
    "rule": "Show what a finding means, why it matters and how to fix it.",
}
"""What the list of commands says of each."""


def find_command(name: str) -> click.Command | None:
    """The command of that name, or the pass of that alias."""
    if name in COMMANDS and name not in SUMMARIES:
        found: click.Command = import_module(f"{__name__}.{name}").command
        return found
    from hlo_inspect.cli.commands.of_pass import command_of
    from hlo_inspect.errors import UsageError

    if name == WORKLOAD:
        return command_of(workload_pass())
    try:
        one = find_pass(name)
    except UsageError:
        return None
    return command_of(one) if one.name in PASSES.names else None
