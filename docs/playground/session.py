"""hlo-inspect in the worker of the page: its inputs, command lines, completions, and the files that commands write.

Inputs are links in the folder of the session to files of the browser, which are read piece by piece.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import invalidate_caches
from pathlib import Path
from time import monotonic
from typing import Any

FOLDER = Path("/dumps")
"""Working directory of commands."""

LIMIT_BYTES = 150_000_000
"""Most bytes of text, decompressed: the report takes about 20 bytes for each, and Python has 4 GiB in a browser."""

MOST_COMPLETIONS = 60
_BETWEEN_S = 0.1  # seconds between two messages about progress
_NAME = "hlo-inspect"
_LONGEST_NAME = 200

NO_NUMPY = (
    "this needs numpy, which is not part of this page: neither PyPI nor npm has it for a browser; install hlo-inspect for it"
)


class Progress:
    """Watcher of an inspection that sends at most ten messages a second to the page."""

    def __init__(self, post: Callable[[str, float], object]) -> None:
        self._post = post
        self._last = 0.0

    def reading(self, name: str, read: int) -> None:
        """Send the share of the file that is read."""
        now = monotonic()
        if now - self._last > _BETWEEN_S:
            self._last = now
            size = os.stat(name).st_size if os.path.exists(name) else 0  # noqa: PTH110, PTH116 - names may be invalid paths
            self._post(f"reading {Path(name).name}", read / size if size else -1)

    def analysing(self, module: str) -> None:
        """Send the name of the module; how long its analysis takes is unknown."""
        self._post(f"analyzing {module}", -1)


class NumpyFinder:
    """Importer that fetches numpy when a command first imports it, or says why there is none."""

    def __init__(self, fetch: Callable[[], bool]) -> None:
        self._fetch = fetch

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Fetch numpy and leave the import to the other finders. Raise MissingExtraError if it cannot be had."""
        if name != "numpy":
            return
        from hlo_inspect.errors import MissingExtraError

        if not self._fetch():
            raise MissingExtraError(NO_NUMPY)
        sys.meta_path.remove(self)
        invalidate_caches()


def start(fetch_numpy: Callable[[], bool]) -> None:
    """Prepare the session: its folder, and numpy on demand."""
    FOLDER.mkdir(exist_ok=True)
    os.chdir(FOLDER)
    sys.meta_path.insert(0, NumpyFinder(fetch_numpy))


def open_files(entries: Sequence[tuple[str, str]]) -> str:
    """Replace the inputs by links: pairs of a path as the person named it, and the file of the browser.

    Return JSON: the words of a command line that name the inputs, and an error if their text is too large.
    """
    for path in FOLDER.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    links: list[Path] = []
    for name, target in entries:
        link = FOLDER / _unused(safe_path(name))
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        links.append(link)
    inputs = dict.fromkeys(link.relative_to(FOLDER).parts[0] for link in links)
    words = [name if not name.startswith("-") else f"./{name}" for name in inputs]
    return json.dumps({"words": words, "error": _size_error(links)})


def safe_path(name: str) -> str:
    """Return a relative path inside of the session's folder that is as like `name` as file names allow."""
    parts = [part.replace("\0", "_").strip() for part in name.split("/")]
    kept = [part if len(part) <= _LONGEST_NAME else part[-_LONGEST_NAME:] for part in parts if part not in {"", ".", ".."}]
    return "/".join(kept) or "unnamed"


def _unused(path: str) -> str:
    """Return the path, with a number in front of its name if it is in use."""
    number, unused = 1, path
    while (FOLDER / unused).is_symlink() or (FOLDER / unused).exists():
        number += 1
        folder, _, name = path.rpartition("/")
        unused = f"{folder}/{number}-{name}" if folder else f"{number}-{name}"
    return unused


def _size_error(links: Sequence[Path]) -> str:
    """Return the message for inputs of too much text, else ""."""
    from hlo_inspect.report.units import format_value

    total = 0
    for link in links:
        for size in _sizes(link):
            total += size
            if total > LIMIT_BYTES:
                limit = format_value(LIMIT_BYTES, "bytes")
                return (
                    f"{link.name}: a browser tab has memory for {limit} of text, and this is more: install hlo-inspect for it"
                )
    return ""


def _sizes(link: Path) -> Iterator[int]:
    """Yield the bytes of a file piece by piece, decompressed; those of a damaged file up to the damage."""
    from hlo_inspect.errors import HloInspectError
    from hlo_inspect.hlo.input.source import DECOMPRESSORS, open_source

    with link.open("rb") as stream:
        start = stream.read(6)
    if not any(start.startswith(magic) for magic, _ in DECOMPRESSORS):
        yield link.stat().st_size
        return
    try:
        for piece in open_source(link).decompressed():
            yield len(piece)
    except HloInspectError:
        return  # the command says what is wrong


def split_line(line: str) -> list[str]:
    """Return the words of a command line, without the name of the program. Raise ValueError if a quote is open."""
    words = shlex.split(line)
    return words[1:] if words[:1] == [_NAME] else words


def run_line(line: str, columns: int, post: Callable[[str, float], object]) -> str:
    """Run a command line in a terminal of `columns`, and return its status and the files that it wrote, as JSON."""
    from hlo_inspect.cli.main import run
    from hlo_inspect.cli.streams import USAGE, tell

    os.environ["COLUMNS"] = str(columns)
    before = _written()
    try:
        words = split_line(line)
    except ValueError as error:
        tell(f"{_NAME}: the command line cannot be read: {error}")
        return json.dumps({"status": USAGE, "files": []})
    status = run(words, Progress(post))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    files = [str(path.relative_to(FOLDER)) for path, state in _written().items() if before.get(path) != state]
    return json.dumps({"status": status, "files": files})


def _written() -> dict[Path, tuple[int, int]]:
    """Return the files of the session's folder that are no inputs, with time and size."""
    files = (path for path in FOLDER.rglob("*") if not path.is_symlink() and path.is_file())
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def complete(line: str) -> str:
    """Return the lines that complete a command line, each with a help, as JSON."""
    from click.shell_completion import ShellComplete, split_arg_string

    from hlo_inspect.cli.commands import cli

    text = line.lstrip().removeprefix(f"{_NAME} ")
    words = split_arg_string(text)
    incomplete = "" if not text or text[-1].isspace() else words.pop()
    if not text.endswith(incomplete):  # an escape inside of the last word
        return "[]"
    before = line[: len(line) - len(incomplete)]
    os.environ["COMP_WORDS"] = text
    lines: list[dict[str, Any]] = []
    for item in ShellComplete(cli, {}, _NAME, "").get_completions(words, incomplete):
        if item.type == "file":
            lines += [{"line": f"{before}{shlex.quote(name)}", "help": ""} for name in _inputs() if name.startswith(incomplete)]
        else:
            lines.append({"line": before + item.value, "help": item.help or ""})
    return json.dumps(lines[:MOST_COMPLETIONS])


def _inputs() -> list[str]:
    """Return the paths of all files of the session, as arguments of a command."""
    names = (path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*")) if path.is_symlink() or path.is_file())
    return [name if not name.startswith("-") else f"./{name}" for name in names]
