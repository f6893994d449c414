"""The options that all commands share."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from hlo_inspect.cli import completion
from hlo_inspect.cli.config_options import config_options, current_thresholds
from hlo_inspect.remote_servers import limit_waits
from hlo_inspect.report.formats import FORMATS, FORMATS_FOR_PEOPLE
from hlo_inspect.report.model import SEVERITIES
from hlo_inspect.report.render_options import RenderOptions, needed_tables
from hlo_inspect.report.selection import TableSelection
from hlo_inspect.request import Option, Request, option_named, options_of

if TYPE_CHECKING:
    from hlo_inspect.inspection.module_reports import NeededTables

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., int]
"""Function that takes the options and returns the exit status."""


class OutputOptions(NamedTuple):
    """Format and destination of reports. Except for `selection` the names are those of options."""

    format: str = "table"
    output: str | None = None
    top: int | None = None
    table: str | None = None
    raw_bytes: bool = False
    no_color: bool = False
    quiet: bool = False
    verbose: bool = False
    sites: bool = False
    max_chars: int | None = None
    selection: TableSelection = TableSelection()

    def rendering(self) -> RenderOptions:
        """Return the choices that do not depend on the destination."""
        return RenderOptions(self.top, self.table, self.raw_bytes, verbose=self.verbose, quiet=self.quiet, sites=self.sites)

    @property
    def needed_tables(self) -> NeededTables | None:
        """The function that cuts tables to what a page shows; None for output that takes all of them."""
        is_page = self.format in FORMATS_FOR_PEOPLE and not self.selection
        return partial(needed_tables, options=self.rendering()) if is_page else None


OWN_OPTIONS = "Options"
"""Section of a command's own options."""


class SectionOption(click.Option):
    """Option that `--help` lists under the heading `section`."""

    def __init__(self, *arguments: Any, section: str, **settings: Any) -> None:  # noqa: ANN401 - those of click.Option
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """Command whose `--help` describes its own options, and names those that many commands share, by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = self.options_by_section(ctx)
        with formatter.section(OWN_OPTIONS):
            formatter.write_dl(list(filter(None, (option.get_help_record(ctx) for option in sections.pop(OWN_OPTIONS)))))
        if sections:
            with formatter.section("Options of many commands, which `hlo-inspect help options` describes"):
                formatter.write_dl([(name, " ".join(map(_flag, options))) for name, options in sections.items()])

    def options_by_section(self, ctx: click.Context) -> dict[str, list[click.Option]]:
        """Return the command's own options and those that many commands share, by section."""
        sections: dict[str, list[click.Option]] = {OWN_OPTIONS: []}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and not option.hidden:
                name = option.section if isinstance(option, SectionOption) else OWN_OPTIONS
                sections.setdefault(name, []).append(option)
        return sections


def _flag(option: click.Option) -> str:
    """Return the shortest spelling of an option, which help pages do not break."""
    return min(option.opts, key=len)


def comma_separated(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Return the names of a list with commas."""
    return split_names(text or "")


def split_names(*texts: str) -> tuple[str, ...]:
    """Return the names of lists with commas."""
    return tuple(name for text in texts for name in map(str.strip, text.split(",")) if name)


def _section(name: str) -> Callable[..., Callable[[F], F]]:
    """Decorate like `click.option`, for options that `--help` lists under a heading."""
    return partial(click.option, cls=SectionOption, section=name)


_in_tables, _in_output = map(_section, ("Tables", "Output"))

_TABLES = (
    _in_tables(
        "-n", "--top", type=click.IntRange(min=0), metavar="N", help="Show N rows of each table and sum the rest; 0 shows all."
    ),
    _in_tables(
        "--table",
        metavar="NAME",
        shell_complete=completion.tables,
        help="Show only the table of this name. CSV holds one table.",
    ),
    _in_tables(
        "--columns",
        metavar="NAME,…",
        callback=comma_separated,
        shell_complete=completion.columns,
        help="Show these columns of the command's own table or of --table, in this order.",
    ),
    _in_tables(
        "--sort",
        metavar="NAME,…",
        callback=comma_separated,
        shell_complete=completion.columns,
        help="Sort that table by a column: numbers from the largest, texts from A to Z; -NAME reverses.",
    ),
    _in_tables(
        "--filter",
        "filters",
        metavar="'COLUMN OP VALUE …'",
        multiple=True,
        shell_complete=completion.columns,
        help="Show rows of that table that meet all comparisons, for example 'kind = all-gather bytes >= 1MiB'. OP is "
        "= != < <= > >= or ~ (contains).",
    ),
    _in_tables("--sites", is_flag=True, help="Show one row per instruction instead of merged rows."),
    _in_tables("--bytes", "raw_bytes", is_flag=True, help="Print sizes as plain integers of bytes."),
)

max_chars_option = _in_output(
    "--max-chars",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print at most N characters. The last line says what is left out and which command shows it.",
)
_OUTPUT = (
    _in_output(
        "-o", "--output", metavar="FILE", shell_complete=completion.files, help="Write to FILE instead of standard output."
    ),
    max_chars_option,
    _in_output("-q", "--quiet", is_flag=True, help="Print tables only: no findings, no notes."),
    _in_output("-v", "--verbose", is_flag=True, help="Print all findings, all notes and the names of hidden columns."),
    _in_output("--no-color", is_flag=True, help="Print no color, as the variable NO_COLOR does."),
)


def request_option(name: str) -> Callable[[F], F]:
    """Return the click option of a field of `Request`."""
    return _click_option(option_named(name))


def _click_option(option: Option) -> Callable[[F], F]:
    """Make the option of click that a request's option describes."""
    info = option.info
    settings: dict[str, Any] = {"metavar": info.metavar, "help": info.help, "show_default": info.shows_default}
    if option.type is bool:
        settings |= {"is_flag": True}
    else:
        settings |= {"default": () if option.is_many else option.default, "multiple": option.is_many}
    if option.choices:
        settings["type"] = click.Choice(option.choices)
    elif option.type is int:
        settings["type"] = click.IntRange(min=info.minimum)
    if info.completes:
        settings["shell_complete"] = getattr(completion, info.completes)
    return _section(info.section)(*info.flags, option.name, **settings)


def output_options(*formats: str) -> Callable[[Command], Command]:
    """Add the options of the output, with more formats than those of all commands; the command gets `output`."""
    choice = click.Choice((*FORMATS, *formats))
    option = click.option if formats else _in_output
    format_option = option("--format", type=choice, default="table", help="Output format.", show_default=True)

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
            return command(output=_output(arguments), **arguments)

        return _decorated(run, (*_TABLES, format_option, *_OUTPUT))

    return decorated


def request_options(command_name: str, without: Container[str] = ()) -> Callable[[Command], Command]:
    """Add the options of a request that a command takes, but for those `without`; the command gets `request`."""
    taken = [option for option in options_of(command_name) if option.name not in without]

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
            options = {option.name: arguments.pop(option.name) for option in taken}
            source_of = click.get_current_context().get_parameter_source
            configured = tuple(name for name in options if source_of(name) is ParameterSource.DEFAULT_MAP)
            request = Request(**options, thresholds=current_thresholds(), configured=configured)
            limit_waits(request.remote_timeout)
            return command(request=request, **arguments)

        return _decorated(run, (*map(_click_option, taken), *config_options(_section("Configuration"))))

    return decorated


fail_on_option = click.option(
    "--fail-on", type=click.Choice(SEVERITIES), help="Exit with 1 if a finding has this severity or a higher one."
)


def fail_if_option(help: str) -> Callable[[F], F]:  # noqa: A002 - click calls it so
    """Return the option `--fail-if`, whose values are the argument `conditions` of a command."""
    return click.option("--fail-if", "conditions", metavar="COND", multiple=True, shell_complete=completion.facts, help=help)


def reading_command(
    name: str,
    *formats: str,
    without: Container[str] = (),
    **settings: Any,  # noqa: ANN401 - as above
) -> Callable[[Command], click.Command]:
    """Make a command that reads inputs and renders reports, with the options of both and --fail-on.

    Options of a request `without` which it does are left out.
    """

    def decorated(command: Command) -> click.Command:
        with_options = output_options(*formats)(request_options(name, without)(fail_on_option(command)))
        return click.command(name, cls=SectionedCommand, **settings)(with_options)

    return decorated


def inputs_argument(metavar: str = "INPUT...", *, required: bool = True) -> Callable[[F], F]:
    """Add the argument `inputs`: one input or more."""
    return click.argument("inputs", metavar=metavar, nargs=-1, shell_complete=completion.files, required=required)


def _decorated(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def _output(arguments: dict[str, Any]) -> OutputOptions:
    """Take the output's options out of a command's arguments."""
    selection = TableSelection(*(arguments.pop(name) for name in TableSelection._fields))
    options = {name: arguments.pop(name) for name in OutputOptions._fields if name in arguments}
    return OutputOptions(**options, selection=selection)
