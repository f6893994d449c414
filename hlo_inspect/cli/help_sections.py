"""`--help` in sections: the options of the command itself first, then those that many commands share, under headings."""

from __future__ import annotations

from typing import Any

import click

OWN = "Options"


class SectionOption(click.Option):
    """An option that `--help` lists under the heading `section`."""

    def __init__(self, *arguments: Any, section: str, **settings: Any) -> None:  # noqa: ANN401 - those of click.Option
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose `--help` lists options by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {OWN: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                name = parameter.section if isinstance(parameter, SectionOption) else OWN
                sections.setdefault(name, []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)
