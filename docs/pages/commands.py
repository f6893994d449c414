"""Generated parts of the pages of commands: the help, the options, and the columns of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from docs.pages.inventory import DescribedTable, described_tables
from docs.pages.markdown import make_table, with_part
from hlo_inspect.cli.commands import COMMANDS, GROUPS, cli, find_command
from hlo_inspect.cli.options import SectionOption
from hlo_inspect.report.cells import heading
from hlo_inspect.report.table import Column

DOCS = Path(__file__).parents[1]
SHARED = ("Tables", "Output", "Input", "Program and hardware", "Configuration")
"""Sections of `--help` with the options that many commands share. Their page is `commands/index.md`."""

_EXAMPLE = "summary"
"""Command that has the shared options of all sections."""

_NEW_PAGE = """\
# {name}

<!-- generated: help -->
<!-- end: help -->

## Details

<!-- generated: details -->
<!-- end: details -->

## Options

<!-- generated: options -->
<!-- end: options -->
"""


def command_texts() -> dict[str, str]:
    """Return the pages by their paths below `docs`: the text of the files, with new generated parts."""
    texts = {f"commands/{name}.md": _page(name) for name in COMMANDS}
    index = (DOCS / "commands/index.md").read_text(encoding="utf-8")
    index = with_part(index, "commands", _list_of_commands())
    for section in SHARED:
        index = with_part(index, section.lower(), _options(_command(_EXAMPLE), section))
    return {**texts, "commands/index.md": index}


def _command(name: str) -> click.Command:
    command = find_command(name)
    if command is None:
        raise ValueError(f"no command {name}")
    return command


def _page(name: str) -> str:
    path = DOCS / "commands" / f"{name}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else _NEW_PAGE.format(name=name)
    command = _command(name)
    summary, *details = _paragraphs(command)
    text = with_part(text, "help", f"{summary}\n\n```text\n{_usage(command)}\n```")
    if details:
        text = with_part(text, "details", "\n\n".join(details))
    text = with_part(text, "options", _all_options(command))
    tables = described_tables(name)
    return with_part(text, "columns", "".join(map(_columns, tables))) if tables else text


def _usage(command: click.Command) -> str:
    context = click.Context(command, info_name=command.name, parent=click.Context(cli, info_name="hlo-inspect"))
    return " ".join(command.get_usage(context).removeprefix("Usage: ").split())


def _paragraphs(command: click.Command) -> list[str]:
    """Return the help text, each paragraph as one line of Markdown."""
    return [with_code(" ".join(paragraph.split())) for paragraph in (command.help or "").split("\n\n")]


def with_code(text: str) -> str:
    """Return a help text as Markdown: options, placeholders and patterns are code."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if index % 2 else _CODE.sub(r"`\g<0>`", piece) for index, piece in enumerate(pieces))


_CODE = re.compile(
    r"(?<![\w-])--?[a-zA-Z][\w-]*(?:=[^\s,;]*[^\s,;.])?"  # options
    r"|'[^']*[*{<>|][^']*'|(?<!\w)<[\w-]+>|\{\w+\}|(?<!\S)\*(?!\S)"  # patterns and placeholders
    r"|(?<![\w`])\[[a-z]+\](?![\w(])"  # extras
)


def _list_of_commands() -> str:
    listed = ((group, name, line) for group, names in GROUPS.items() for name, line in names.items())
    rows = ((group, f"[`{name}`]({name}.md)", with_code(line)) for group, name, line in listed)
    return make_table(("group", "command", "answers"), rows)


def _section_of(option: click.Option) -> str:
    return option.section if isinstance(option, SectionOption) else "Options"


def _options_of(command: click.Command, section: str) -> Iterator[click.Option]:
    """Yield the options that `--help` shows in a section."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden and _section_of(parameter) == section:
            yield parameter


def _options(command: click.Command, section: str) -> str:
    context = click.Context(command)
    return "\n".join(_items(option.get_help_record(context) for option in _options_of(command, section)))


def _items(records: Iterable[tuple[str, str] | None]) -> Iterator[str]:
    for record in records:
        if record is not None:
            names, text = record
            yield f"* `{names}`: {with_code(' '.join(text.split()))}"
    yield ""


def _all_options(command: click.Command) -> str:
    """Return the command's own options, and links to the sections that it shares with others."""
    own = _options(command, "Options")
    shared = [f"[{section.lower()}](index.md#{_slug(section)})" for section in SHARED if any(_options_of(command, section))]
    links = f"Options of all commands: {', '.join(shared)}.\n" if shared else ""
    return "\n".join(filter(None, (own, links))) or "It has no options.\n"


def _slug(heading: str) -> str:
    return heading.lower().replace(" ", "-")


def _columns(table: DescribedTable) -> str:
    rows = ((f"`{column.name}`", _heading(column), column.unit, meaning) for column, meaning in table.columns)
    return f"### {table.name}\n\n{make_table(('column', 'on pages', 'unit', 'meaning'), rows)}\n"


def _heading(column: Column) -> str:
    """Return the heading on a page, empty if it is the name."""
    shown = heading(column)
    return "" if shown == column.name.replace("_", " ") else shown
