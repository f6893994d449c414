"""The command `normalize`: a module's text in canonical names."""

from __future__ import annotations

from typing import Any

import click

from hlo_inspect.cli import completion
from hlo_inspect.cli.options import SectionedCommand, max_chars_option, request_option
from hlo_inspect.cli.output import deliver_lines, refuse_to_overwrite
from hlo_inspect.cli.streams import reported, tell


@click.command("normalize", cls=SectionedCommand)
@click.option(
    "-o", "--output", metavar="FILE", shell_complete=completion.files, help="Write to FILE instead of standard output."
)
@click.option("--unscheduled", is_flag=True, help="Sort the lines of a scheduled module too, and drop is_scheduled.")
@click.option("--layouts/--no-layouts", default=True, help="Keep layouts of shapes, or remove them. Default: keep.")
@click.option("--metadata/--no-metadata", default=False, help="Keep metadata, or remove it. Default: remove.")
@request_option("module")
@request_option("stage")
@request_option("strict")
@max_chars_option
@click.option("-q", "--quiet", is_flag=True, help="Print no message about unreadable lines.")
@click.argument("source", metavar="INPUT", shell_complete=completion.files)
def normalize(
    source: str,
    output: str | None,
    max_chars: int | None,
    *,
    quiet: bool,
    **asked: Any,  # noqa: ANN401 - click hands over all options
) -> int:
    """Print the module with canonical names of instructions, computations and channels.

    Two texts of one program have the same normal form. So `git diff` shows real changes, and golden tests stay stable. An
    instruction's name is its opcode and a hash of shape, opcode and attributes. The name does not depend on the line number,
    so a new line renames few others. An unscheduled text is sorted; a scheduled one keeps its order, but an element of a tuple
    stands before its first user. XLA's parser accepts the result.
    """
    from hlo_inspect.inspection.normal_texts import NormalTexts

    texts = NormalTexts(**asked)
    if output is not None:
        refuse_to_overwrite(output, texts.files(source))
    deliver_lines(texts.lines(source), output, max_chars, mark="// ")
    status = max(map(reported, texts.errors), default=0)
    if not quiet:
        for note in texts.notes:
            tell(f"hlo-inspect: {note}")
    return status
