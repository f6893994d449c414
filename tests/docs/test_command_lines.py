"""Each command line of the README and the pages runs on files of the repository; examples show its output.

HLO_INSPECT_REWRITE_GOLDEN=1 writes the program's output into the pages.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from hlo_inspect.cli.commands import COMMANDS, find_command
from tests.calling import call_text
from tests.docs.pages import ROOT, Example, examples, inline_command_lines, other_command_lines

EXAMPLES: dict[str, list[Example]] = {}
for example in examples():
    EXAMPLES.setdefault(example.command, []).append(example)

WORKLOAD = "step.workload.txt"
"""File that an example writes and others read."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that has the files of the repository and takes what commands write."""
    folder = tmp_path_factory.mktemp("pages")
    for name in ("tests", "configs"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "dumps").symlink_to(ROOT / "tests/data/recompiles/server")
    (export,) = [command for command in EXAMPLES if command.endswith(f"-o {WORKLOAD}")]
    assert run(export, folder).returncode == 0
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    name, *arguments = shlex.split(command, comments=True)
    assert name == "hlo-inspect"
    return call_text(*arguments, folder=folder)


@pytest.mark.parametrize("command", EXAMPLES)
def test_examples_on_pages_show_real_output(command: str, folder: Path) -> None:
    result = run(command, folder)
    status, output = result.returncode, result.stdout.replace(f"{ROOT}/", "")  # of profiles, which print where they are
    for example in EXAMPLES[command]:
        assert example.status == status
        if os.environ.get("HLO_INSPECT_REWRITE_GOLDEN"):
            text = example.page.read_text(encoding="utf-8")
            example.page.write_text(text.replace(f"$ {command}\n{example.output}", f"$ {command}\n{output}"), encoding="utf-8")
        else:
            assert example.output == output


def test_number_of_examples_on_pages() -> None:
    assert len(EXAMPLES) >= 70


RULES = "rules"
"""Folder of pages whose examples tests/findings/test_examples.py runs."""

CANNOT_RUN = {
    "hlo-inspect collect s3://": "needs a bucket; tests/fleet has a server of S3",
    "hlo-inspect list s3://": "needs a bucket; tests/hlo has servers of object stores",
    "hlo-inspect params 'gs://": "needs a bucket, as above",
    "hlo-inspect summary https://": "needs a host, as above",
    "hlo-inspect list 'zip://": "needs a bucket, as above",
    "hlo-inspect collect dumps --store store --shard": "needs the variables of a job array; tests/fleet has shards",
    "hlo-inspect lint dumps --prove": "its StableHLO has no mesh, as above; tests/compiler has programs",
    "hlo-inspect remesh dumps": "its StableHLO has no mesh; tests/compiler has one",
    "hlo-inspect bisect ": "needs a program with a fault, or a hundred compiles; tests/bisection has them",
    "hlo-inspect compile dumps --on tpu": "needs libtpu",
    "hlo-inspect measured /tmp/trace": "needs a trace of jax.profiler; tests/passes/test_measured.py reads some",
}
"""Beginnings of command lines that files of the repository are no input of, with the reason."""


def runnable_lines() -> Iterator[tuple[Path, str]]:
    """Yield the command lines of blocks without output. Those of rules are of dumps with the fault, and only parsed below."""
    for page, command in other_command_lines():
        if page.parent.name != RULES and not command.startswith(tuple(CANNOT_RUN)):
            yield page, command


def refused_lines(folder: Path, lines: Iterable[tuple[Path, str]]) -> list[tuple[str, str, str]]:
    """Run command lines in a folder, and return those that fail with their pages and messages."""
    refused = []
    for page, command in lines:
        result = run(command, folder)
        if result.returncode:
            refused.append((page.name, command, result.stderr))
    return refused


def test_lines_without_output_run_too(folder: Path) -> None:
    lines = [(page, command) for page, command in runnable_lines() if not command.startswith("hlo-inspect query ")]
    assert refused_lines(folder, lines) == []


@pytest.mark.extras("duckdb")
def test_stores_of_the_pages_can_be_asked(folder: Path) -> None:
    makers_and_questions = ("hlo-inspect collect ", "hlo-inspect query ")
    lines = [(page, command) for page, command in runnable_lines() if command.startswith(makers_and_questions)]
    assert refused_lines(folder, lines) == []


def test_no_reason_is_left_over() -> None:
    commands = [command for _, command in other_command_lines()]
    assert [start for start in CANNOT_RUN if not any(command.startswith(start) for command in commands)] == []


def unknown_options(line: str) -> Iterator[str]:
    """Yield the options of a command line that its command does not take. Other words may stand for any input."""
    words = shlex.split(line, comments=True)[1:]
    command = find_command(words[0] if words and words[0] in COMMANDS else "summary")
    assert command is not None
    options = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    options |= {"-", "--help", "--version"}
    yield from (word for word in words if word.startswith("-") and word.partition("=")[0] not in options)


def test_lines_in_the_middle_of_a_text_have_options_that_exist() -> None:
    lines = [*inline_command_lines(), *((page, line) for page, line in other_command_lines() if page.parent.name == RULES)]
    assert len(lines) > 50
    assert [(page.name, line) for page, line in lines if list(unknown_options(line))] == []
