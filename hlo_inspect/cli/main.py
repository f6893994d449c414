"""The command line's entry point: commands, and what an error becomes on the way out.

Exit statuses: 0 done, 1 a check failed or a finding reached `--fail-on`, 2 wrong usage, 3 an input that cannot be read or
holds no HLO, 130 interrupted. An error is one message on standard error, never a traceback; HLO_INSPECT_DEBUG=1 shows
where an internal error came from.
"""

from __future__ import annotations

import os
import sys

import click

from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.cli.output import silence
from hlo_inspect.errors import HloInspectError, UsageError, printable
from hlo_inspect.version import __version__

USAGE, UNREADABLE, INTERRUPTED = 2, 3, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name="hlo-inspect")
def cli() -> None:
    """Read XLA's HLO text dumps and answer in tables.

    INPUT is a file (.gz, .bz2, .xz and .zst too), - for standard input, a directory of dumps or other HLO texts, or a pattern
    in quotes. Text around modules, as in a log or an issue, is skipped. With the extra [xla], serialized HLO (.pb) and
    StableHLO are inputs too.
    """


for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Runs the command line and exits."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs the command line; returns the exit status."""
    try:
        status = cli.main(arguments, prog_name="hlo-inspect", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USAGE
    except HloInspectError as error:
        click.echo(f"hlo-inspect: {error}", err=True)
        return USAGE if isinstance(error, UsageError) else UNREADABLE
    except BrokenPipeError:
        silence()
        return 0
    except (click.Abort, KeyboardInterrupt):
        click.echo("hlo-inspect: interrupted", err=True)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("HLO_INSPECT_DEBUG"):
            raise
        message = printable(f"{type(error).__name__}: {error}")
        click.echo(f"hlo-inspect: internal error, please report it: {message} (HLO_INSPECT_DEBUG=1 shows where)", err=True)
        return UNREADABLE
    return status if isinstance(status, int) else 0
