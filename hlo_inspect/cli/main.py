"""The command line's entry point: exit statuses, errors and interruptions.

Exit statuses: 0 done, 1 a check failed or a finding reached `--fail-on`, 2 wrong usage, 130 interrupted. 3 is an unreadable
input, an input without HLO, or an internal error. An error is one message on standard error, never a traceback;
HLO_INSPECT_DEBUG=1 shows the traceback of an internal error.

`_run` imports the slow modules, so that an interruption meanwhile ends as one later does.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from io import StringIO
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from hlo_inspect.cli.command_line import ARGUMENTS, NAME
from hlo_inspect.cli.streams import INTERRUPTED, UNREADABLE, USAGE, reported, silence, tell

if TYPE_CHECKING:
    from hlo_inspect.inspection.source_reports import Watcher

COMPLETION = "_HLO_INSPECT_COMPLETE"
ENDING_SIGNALS = ("SIGTERM", "SIGHUP")
_COLLECT_AFTER = 200_000
"""New objects between two runs of the garbage collector: imports make many that stay, and no cycles."""


class EndedBySignal(BaseException):
    """Signal that ends the process after cleanup."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def main() -> None:
    """Run the command line and exit."""
    gc.set_threshold(_COLLECT_AFTER)
    for name in ENDING_SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        status = run(sys.argv[1:])
    except EndedBySignal as ending:
        signal.signal(ending.number, signal.SIG_DFL)
        os.kill(os.getpid(), ending.number)  # the parent process sees which signal ended it
        status = 128 + ending.number
    gc.freeze()  # saves the interpreter a last visit of all objects at exit
    sys.exit(status)


def _end(number: int, _frame: FrameType | None) -> NoReturn:
    raise EndedBySignal(number)


def run(arguments: list[str], watcher: Watcher | None = None) -> int:
    """Run the command line and return the exit status. `watcher` receives the progress of reading, as the bar does."""
    try:
        return _run(arguments, watcher)
    except KeyboardInterrupt:
        tell("hlo-inspect: interrupted")
        return INTERRUPTED
    except MemoryError:
        tell("hlo-inspect: out of memory; try a command that needs less (`collectives`, `summary --quick`)")
        return UNREADABLE


def _run(arguments: list[str], watcher: Watcher | None) -> int:
    """Run the command line and return the exit status; interruptions and lack of memory pass through."""
    import click

    from hlo_inspect.cli.commands import cli

    try:
        if COMPLETION in os.environ:
            cli.main(arguments, prog_name=NAME)
        # not `main`, which handles pipes and interruptions itself
        with cli.make_context(NAME, arguments, obj=watcher) as context:
            context.meta[ARGUMENTS] = arguments
            status = cli.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.exceptions.Exit as error:  # after the help, or the version
        return error.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except MemoryError:
        raise
    except Exception as error:
        return _status_of(error)
    return status if isinstance(status, int) else 0


def _status_of(error: Exception) -> int:
    """Print an error and return its exit status."""
    import click

    from hlo_inspect.errors import DEBUG, HloInspectError, internal_error_text, printable

    if isinstance(error, OSError) and error.filename is not None:
        tell(f"hlo-inspect: {printable(str(error.filename))}: {error.strerror or error}")
        return UNREADABLE
    if isinstance(error, OSError):  # one of a standard stream, as it has no name
        silence(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            tell(f"hlo-inspect: standard output cannot be written: {error.strerror or error}")
        return 0 if isinstance(error, BrokenPipeError) else USAGE
    if isinstance(error, click.ClickException):
        text = StringIO()
        error.show(file=text)
        tell(text.getvalue().removesuffix("\n"))
        return USAGE
    if isinstance(error, HloInspectError):
        return reported(error)
    if type(error).__name__ == "OutOfMemoryException":  # of DuckDB
        raise MemoryError from error
    if os.environ.get(DEBUG):
        raise error
    tell(f"hlo-inspect: {printable(internal_error_text(error))}")
    return UNREADABLE
