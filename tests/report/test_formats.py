from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from click import Choice

from hlo_inspect.cli.commands import COMMANDS
from hlo_inspect.report import FORMATS, RenderOptions
from hlo_inspect.report.model import Report


class ClosedPipe(StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError

    def writelines(self, _lines: object) -> None:
        raise BrokenPipeError


def test_the_formats_of_the_command_line() -> None:
    """The contract's, and those that `--format` offers."""
    assert {"table", "json", "csv", "markdown"} <= FORMATS.keys()
    (option,) = [option for option in COMMANDS[0].params if option.name == "format_"]
    assert isinstance(option.type, Choice)
    assert list(option.type.choices) == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_closed_pipe_is_left_to_the_caller(name: str, sample: Report) -> None:
    with pytest.raises(BrokenPipeError):
        FORMATS[name]([sample], ClosedPipe(), RenderOptions())


def test_choosing_a_format_does_not_import_rich() -> None:
    code = "import sys, hlo_inspect.report; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
