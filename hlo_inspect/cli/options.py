"""The options that all commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar

import click

from hlo_inspect.cli import completion
from hlo_inspect.report import FORMATS, RenderOptions
from hlo_inspect.report.model import SEVERITIES
from hlo_inspect.report.selection import TableSelection

F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[..., int]
"""What runs with the options and gives the exit status."""


class OutputOptions(NamedTuple):
    """How and where a report is printed. Except for `selection` the names are those of options, here and in `ReadOptions`."""

    format: str = "table"
    output: str | None = None
    top: int | None = None
    table: str | None = None
    raw_bytes: bool = False
    no_color: bool = False
    quiet: bool = False
    verbose: bool = False
    sites: bool = False
    selection: TableSelection = TableSelection()

    def rendering(self, *, width: int | None, color: bool) -> RenderOptions:
        return RenderOptions(self.top, self.table, self.raw_bytes, width, color, self.verbose, self.quiet, self.sites)


class ReadOptions(NamedTuple):
    """What is read, and how strictly. `query` is what is asked about an instruction, as `InstructionQuery` has it, of commands
    that take one; `cost_model` the model of `--cost-model` with its options.
    """

    module: str | None = None
    stage: str | None = None
    profile: tuple[str, ...] = ()
    what_if: tuple[str, ...] = ()
    devices_per_node: int | None = None
    topology: str | None = None
    mesh: str | None = None
    custom_calls: str | None = None
    phases: str = "graph"
    platform: str | None = None
    strict: bool = False
    jobs: int = 1
    cost_model: Mapping[str, str | None] | None = None
    query: Mapping[str, str | int | None] = {}


class SectionOption(click.Option):
    """An option that `--help` lists under the heading `section`."""

    def __init__(self, *arguments: Any, section: str, **settings: Any) -> None:  # noqa: ANN401 - those of click.Option
        super().__init__(*arguments, **settings)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose `--help` lists its own options first, then those that many commands share, by section."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                name = parameter.section if isinstance(parameter, SectionOption) else "Options"
                sections.setdefault(name, []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def _comma_separated(_context: click.Context, _option: click.Parameter, text: str | None) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, (text or "").split(",")) if name)


def _section(name: str) -> Callable[..., Callable[[F], F]]:
    """`click.option`, for options that `--help` lists under a heading."""
    return partial(click.option, cls=SectionOption, section=name)


_in_tables, _in_output, _in_input, _in_program = map(_section, ("Tables", "Output", "Input", "Program and hardware"))

_TABLES = (
    _in_tables(
        "-n", "--top", type=click.IntRange(min=0), metavar="N", help="Rows of each table, the rest summed; 0 shows all."
    ),
    _in_tables(
        "--table", metavar="NAME", shell_complete=completion.tables, help="Only the table of this name; CSV holds one table."
    ),
    _in_tables(
        "--columns",
        metavar="NAME,…",
        callback=_comma_separated,
        shell_complete=completion.columns,
        help="Columns of the command's own table or of --table, in this order.",
    ),
    _in_tables(
        "--sort",
        metavar="NAME,…",
        callback=_comma_separated,
        shell_complete=completion.columns,
        help="Sort that table: numbers from the largest, texts from A to Z; -NAME the other way round.",
    ),
    _in_tables(
        "--filter",
        "filters",
        metavar="'COLUMN OP VALUE …'",
        multiple=True,
        shell_complete=completion.columns,
        help="Rows of that table that meet all comparisons, as 'kind = all-gather bytes >= 1MiB'; OP is = != < <= > >= or ~ "
        "(contains).",
    ),
    _in_tables("--sites", is_flag=True, help="One row for each instruction where pages show groups of equal ones."),
    _in_tables("--bytes", "raw_bytes", is_flag=True, help="Sizes as plain integers of bytes."),
)
_OUTPUT = (
    _in_output(
        "-o", "--output", metavar="FILE", shell_complete=completion.files, help="Write to FILE instead of standard output."
    ),
    _in_output("-q", "--quiet", is_flag=True, help="Tables only: no findings, no notes."),
    _in_output("-v", "--verbose", is_flag=True, help="All findings, notes and the names of hidden columns."),
    _in_output("--no-color", is_flag=True, help="No colour, as with the variable NO_COLOR."),
)
_READ = (
    _in_input("--module", metavar="REGEX", help="Only modules whose name matches."),
    _in_input("--stage", metavar="TEXT", help="In a dump directory, read the files of this stage, or with TEXT in their name."),
    _in_input(
        "--strict",
        is_flag=True,
        help="Refuse what XLA's parser refuses, instead of reading on (extra [xla]). That parser does not verify: a wrong "
        "result shape is accepted.",
    ),
    _in_input(
        "-j",
        "--jobs",
        type=click.IntRange(min=1),
        default=1,
        metavar="N",
        help="Read files in N processes; 1 by default, and where standard input is an input.",
    ),
    _in_program("--mesh", metavar="NAME=N,…", help="Names of the mesh's axes with their sizes, as data=4,model=2."),
    _in_program(
        "--phases",
        type=click.Choice(("graph", "names")),
        default="graph",
        show_default=True,
        help="What decides the phase (forward, backward, …) where op_names leave it open: the graph of values, or nothing. "
        "With --quick always names.",
    ),
    _in_program(
        "--platform",
        type=click.Choice(("cpu", "gpu", "tpu")),
        help="What the program was compiled for, if marks in the text mislead: device memory depends on it.",
    ),
    _in_program(
        "--custom-calls", "custom_calls", metavar="FILE", help="YAML with the work of custom calls of your own, by target."
    ),
    _in_program(
        "--profile",
        metavar="NAME|FILE",
        multiple=True,
        shell_complete=completion.profiles,
        help="Hardware profile to compute times for; `profiles` lists them, `time` compares several. By default the "
        "accelerator that the dump names, if it does.",
    ),
    _in_program(
        "--what-if",
        metavar="FIGURE=Nx",
        multiple=True,
        help="Multiply a figure of the profile, as links.nvlink.bandwidth=2x or peak.bf16=2x.",
    ),
    _in_program(
        "--devices-per-node",
        type=click.IntRange(min=1),
        metavar="N",
        help="Devices that the nearest links join, instead of the profile's number. Needs a profile.",
    ),
    _in_program(
        "--topology",
        metavar="AxB",
        help="Where devices are: 2x8 is 2 nodes of 8, or the axes of a torus; 2x8T(1,0) numbers along the first axis "
        "first. Needs a profile.",
    ),
)


def output_options(*formats: str) -> Callable[[Command], Command]:
    """Adds the options of the output, with formats beside those of all commands; the command gets them as `output`."""
    choice = click.Choice((*FORMATS, *formats))
    option = _in_output("--format", type=choice, default="table", help="Output format.", show_default=True)

    def decorated(command: Command) -> Command:
        @wraps(command)
        def run(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
            return command(output=_output(arguments), **arguments)

        return _decorated(run, (*_TABLES, option, *_OUTPUT))

    return decorated


def read_options(command: Command) -> Command:
    """Adds the options of the input; the command gets them as `read`. With its option --quick the graph of values is left
    aside.
    """

    @wraps(command)
    def run(**arguments: Any) -> int:  # noqa: ANN401 - click hands over all options
        return command(read=_read(arguments), **arguments)

    return _decorated(run, _READ)


def cost_model_options(models: Iterable[str]) -> Callable[[F], F]:
    """The options of a command that shows costs by a model; they are among those of `read_options`."""
    options = (
        click.option("--cost-model", type=click.Choice(tuple(models)), help="Add Alpa's costs, which have no unit."),
        click.option("--alpha", metavar="AXIS=A,…", help="Alpa's alpha by mesh axis, as d0=1,d1=1."),
        click.option("--beta", metavar="AXIS=B,…", help="Alpa's beta by mesh axis, as d0=1,d1=0.1."),
    )
    return lambda function: _decorated(function, options)


fail_on_option = click.option(
    "--fail-on", type=click.Choice(SEVERITIES), help="Exit with 1 when a finding of this severity or above is reported."
)


def reading_command(name: str, *formats: str, **settings: Any) -> Callable[[Command], click.Command]:  # noqa: ANN401 - as above
    """A command that reads inputs and renders reports, with the options of both and --fail-on beside its own."""

    def decorated(command: Command) -> click.Command:
        with_options = output_options(*formats)(read_options(fail_on_option(command)))
        return click.command(name, cls=SectionedCommand, **settings)(with_options)

    return decorated


def inputs_argument(metavar: str = "INPUT...", *, required: bool = True) -> Callable[[F], F]:
    """The argument `inputs`: one input or more."""
    return click.argument("inputs", metavar=metavar, nargs=-1, shell_complete=completion.files, required=required)


def _decorated(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def _output(arguments: dict[str, Any]) -> OutputOptions:
    """The output's options out of a command's arguments."""
    selection = TableSelection(*(arguments.pop(name) for name in TableSelection._fields))
    options = {name: arguments.pop(name) for name in OutputOptions._fields if name in arguments}
    return OutputOptions(**options, selection=selection)


def _read(arguments: dict[str, Any]) -> ReadOptions:
    """The input's options out of a command's arguments."""
    options = {name: arguments.pop(name) for name in ReadOptions._fields if name in arguments}
    models = {name: arguments.pop(name, None) for name in ("alpha", "beta")}
    model = options.pop("cost_model", None)
    if model is not None:
        options["cost_model"] = {"name": model, **models}
    elif any(models.values()):
        raise click.UsageError("--alpha and --beta are of a --cost-model.")
    if arguments.get("quick"):
        options["phases"] = "names"
    return ReadOptions(**options)
