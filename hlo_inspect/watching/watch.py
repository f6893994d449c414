"""The modules that JAX compiles while a `Watch` is open: a line for each, its failed checks, and a table at the end.

XLA waits while JAX calls `Watch.take`, which only queues the bytes. A thread passes them on to a process, which inspects them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, TextIO

from hlo_inspect.checks.needed_passes import passes_for
from hlo_inspect.checks.policy import Policy
from hlo_inspect.checks.runner import CheckRun
from hlo_inspect.errors import printable
from hlo_inspect.hlo.input.foreign_text import messages
from hlo_inspect.hlo.input.source import open_source
from hlo_inspect.inspection.saved_reports import saved_reports
from hlo_inspect.inspection.source_reports import name_pattern
from hlo_inspect.passes import FINDINGS
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import number_of
from hlo_inspect.report.units import format_value
from hlo_inspect.request import Request
from hlo_inspect.worker_process import WorkerProcess, XlaAbortError, XlaError

PASSES = ("collectives", "memory", FINDINGS)
"""The passes whose facts the line of a module has."""
_WORKER = "hlo_inspect.watching.worker"
_NAMED_RULES = 3
_UNNAMED = "(without a name)"

OnModule = Callable[[Report], object]
Unregister = Callable[[], object]


class Watch:
    """Watch over compiles; `close` ends it, and so does the end of a `with` block. A failed check raises nothing.

    `reports` are those of the modules so far, `failed` counts those in which a check failed. `warnings` has a line for each
    module that could not be read, and for each exception of `on_module`.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        options: Mapping[str, Any],
        on_module: OnModule | None,
        store: str | None,
        stream: TextIO | None,
    ) -> None:
        """Check the options. Raise UsageError if one makes no sense."""
        self._checks = [CheckRun(policy) for policy in policies if policy.assertions or policy.fail_on is not None]
        wanted = Request(options.get("passes", ())).pass_names
        asserted = [Policy(policy.assertions) for policy in policies if policy.assertions]  # all findings are there in any case
        passes = (*PASSES, *wanted, *(name for policy in asserted for name in passes_for(policy)))
        self._options = {**options, "passes": tuple(dict.fromkeys(passes)), "module": None}
        self._pattern = name_pattern(options.get("module"))
        Request(**self._options).check(passes)
        self._on_module, self._store, self._stream = on_module, store, stream
        self._folder = TemporaryDirectory(prefix="hlo-inspect-")
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._worker: WorkerProcess | None = None
        self._count = 0
        self._thread = Thread(target=self._run, name="hlo-inspect", daemon=True)
        self._unregister: Unregister = lambda: None
        self.reports: list[Report] = []
        self.failed = 0
        self.warnings: list[str] = []
        self.is_open = False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, unregister: Unregister) -> None:
        """Begin to inspect modules; `unregister` is called at the end."""
        self._unregister, self.is_open = unregister, True
        self._thread.start()

    def take(self, module: bytes) -> None:
        """Queue an `HloModuleProto`. JAX calls this while XLA waits: it returns no other module, and never raises."""
        if self.is_open:
            self._queue.put(module)

    def close(self) -> None:
        """Wait for the modules that are queued, print the table of all compiles, and collect them into the store."""
        if not self.is_open:
            return
        self.is_open = False
        with suppress(Exception):  # whatever JAX raises: `take` ignores later modules
            self._unregister()
        self._queue.put(None)
        self._thread.join()

    # -- the thread -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (module := self._queue.get()) is not None:
            name = _name_of(module)
            if self._pattern is None or self._pattern.search(name) is not None:
                self._count += 1
                self._guard(f"{self._count} {name}", partial(self._inspect, name, module))
        if self.reports:
            self._guard("the table of compiles", self._finish)
        if self._worker is not None:
            self._worker.close()
        self._folder.cleanup()

    def _guard(self, subject: str, action: Callable[[], None]) -> None:
        """Run an action; an exception becomes a warning, and the program goes on."""
        try:
            action()
        except Exception as error:
            if isinstance(error, XlaAbortError) and self._worker is not None:
                self._worker.close()
                self._worker = None
            self.warnings.append(f"{subject}: {error or type(error).__name__}")
            self._tell(f"warning: {self.warnings[-1]}")

    def _inspect(self, name: str, module: bytes) -> None:
        file = Path(self._folder.name, f"module_{self._count:04d}.{name.replace('/', '_')[:100]}.after_optimizations.txt")
        (report,) = saved_reports(open_source(self._ask("module", module, file=str(file), options=self._options)))
        self.reports.append(report)
        self._tell(f"{self._count} {name}: {', '.join(_facts(report))}")
        results = [result for checks in self._checks for outcome in checks.outcomes([report]) for result in outcome.results]
        failed = [result for result in results if not result.passed]
        self.failed += bool(failed)
        for result in failed:
            self._tell(f"{self._count} {name}: FAILED {result.message}")
        if self._on_module is not None:
            self._on_module(report)

    def _finish(self) -> None:
        print(self._ask("compiles", b"", folder=self._folder.name), end="", file=self._stream or sys.stderr)
        if self._store is not None:
            options = {name: value for name, value in self._options.items() if name != "passes"}
            self._ask("collect", b"", folder=self._folder.name, store=self._store, options=options)

    def _ask(self, task: str, data: bytes, **parameters: Any) -> str:  # noqa: ANN401 - as JSON has it
        if self._worker is None:
            self._worker = WorkerProcess(_WORKER)
        if self._worker.greeting["error"] is not None:
            raise XlaError(f"jaxlib cannot be imported: {self._worker.greeting['error']}")
        return self._worker.ask(task, data, **parameters)

    def _tell(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a stream that somebody closed
            print(f"hlo-inspect: {printable(line)}", file=self._stream or sys.stderr)


def _name_of(module: bytes) -> str:
    """Return the name of an `HloModuleProto`, its field 1."""
    return next((bytes(name).decode(errors="backslashreplace") for name in messages(memoryview(module), 1)), "") or _UNNAMED


def _facts(report: Report) -> Iterable[str]:
    """Yield the facts of a module in words."""
    facts = report.facts
    yield number_of(int(str(facts["collectives.count"] or 0)), "collective")
    yield f"{format_value(facts['collectives.wire_bytes'], 'bytes')} sent"
    yield f"needs {format_value(facts['memory.needed_bytes'], 'bytes')}"
    rules = list(dict.fromkeys(f"{finding.rule} {finding.name}" for finding in report.findings))
    more = [f"{len(rules) - _NAMED_RULES} more"] if len(rules) > _NAMED_RULES else []
    yield number_of(len(report.findings), "finding") + (f": {', '.join(rules[:_NAMED_RULES] + more)}" if rules else "")
