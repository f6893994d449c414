"""What a long reading shows on a terminal: a bar on standard error, by the bytes read of a file and its module."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

from hlo_inspect.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE_S = 1.0  # what is done before needs no bar


class ReadingBar:
    """A bar while a `with` block lasts longer than a second; only on a terminal, and only where it is `wanted`.

    A thread shows it, so that a long analysis of one module does not keep it back; rich is imported then.
    """

    def __init__(self, *, wanted: bool) -> None:
        self._timer = Timer(_PATIENCE_S, self._show) if wanted and _on_terminal() else None
        self._name = self._module = ""
        self._read = 0
        self._is_hidden = False
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingBar:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._bar is not None:
            self._bar.stop()

    @contextmanager
    def out_of_the_way(self) -> Iterator[None]:
        """No bar while something is printed."""
        self._is_hidden = True
        if self._bar is not None:
            self._bar.stop()
        try:
            yield
        finally:
            self._is_hidden = False
            if self._bar is not None:
                self._bar.start()

    def reading(self, name: str, read: int) -> None:
        """`read` bytes of the file are read."""
        if name != self._name:
            self._module = ""
        self._name, self._read = name, read
        self._update()

    def analysing(self, module: str) -> None:
        """The module is read, and what it means is worked out."""
        self._module = module
        self._update()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(bar_width=30), DownloadColumn(binary_units=True), TimeElapsedColumn())
        bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
        self._task = bar.add_task(self._words(), completed=self._read, total=_size(self._name))
        self._bar = bar
        if not self._is_hidden:
            bar.start()

    def _update(self) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=self._words(), completed=self._read, total=_size(self._name))

    def _words(self) -> str:
        return printable(f"{Path(self._name).name}  {self._module}".rstrip())


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _size(name: str) -> int | None:
    """The bytes of a file; `None` for a pipe, whose length is not known."""
    try:
        return Path(name).stat().st_size or None
    except (OSError, ValueError):
        return None
