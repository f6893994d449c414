from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from io import StringIO

import pytest
from click import Choice

from hlo_inspect.cli.commands import find_command
from hlo_inspect.errors import UsageError
from hlo_inspect.report.formats import FORMATS, RenderOptions
from hlo_inspect.report.model import Report


class ClosedPipe(StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError

    def writelines(self, _lines: object) -> None:
        raise BrokenPipeError


def test_the_formats_of_the_command_line() -> None:
    """The contract's, and those that `--format` offers."""
    assert {"table", "json", "csv", "markdown"} <= FORMATS.keys()
    command = find_command("summary")
    assert command is not None
    (option,) = [option for option in command.params if option.name == "format"]
    assert isinstance(option.type, Choice)
    assert list(option.type.choices) == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_closed_pipe_is_left_to_the_caller(name: str, sample: Report) -> None:
    with pytest.raises(BrokenPipeError):
        FORMATS[name]([sample], ClosedPipe(), RenderOptions())


class Events(StringIO):
    """A stream that notes in `order` that something was written."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.order = order

    def write(self, text: str) -> int:
        self.order.append("written")
        return super().write(text)


@pytest.mark.parametrize("name", FORMATS)
def test_a_report_is_written_as_soon_as_it_is_there(name: str, sample: Report) -> None:
    """JSON and CSV look for a second report before they write the first: several reports are written in another way."""
    order: list[str] = []

    def coming() -> Iterator[Report]:
        for _ in range(5):
            order.append("made")
            yield sample

    stream = Events(order)
    FORMATS[name](coming(), stream, RenderOptions())
    alternating = "".join(event[0] for event in order)
    assert alternating.startswith("mmww" if name in {"json", "csv", "tsv"} else "mwmw")
    assert "www" not in alternating.rstrip("w")
    once = StringIO()
    FORMATS[name]([sample] * 5, once, RenderOptions())
    assert stream.getvalue() == once.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_is_written_of_a_report_that_cannot_be_rendered(name: str, sample: Report) -> None:
    stream = StringIO()
    with pytest.raises(UsageError):
        FORMATS[name]([sample], stream, RenderOptions(table="nothing"))
    assert stream.getvalue() == ""


def test_choosing_a_format_does_not_import_rich() -> None:
    code = "import sys, hlo_inspect.report; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
