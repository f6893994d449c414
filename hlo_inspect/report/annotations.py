"""Findings of reports as formats for CI show them: worst first, each with a place in the repository and its own fingerprint.

The place is the line of Python if that lies in the repository. Otherwise it is the dump under the name `hlo/MODULE.txt`. That
is the same in each run, whatever directory XLA dumped to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote

from hlo_inspect.errors import printable
from hlo_inspect.report.model import Finding, Report, urgency
from hlo_inspect.report.render_options import RenderOptions, rendered
from hlo_inspect.report.repository import Repository

MAX_NAME = 120


class Annotation(NamedTuple):
    """A finding at a place. `path` is relative to the repository; `in_repository` tells that the file is there.

    `fingerprint` differs from that of every other annotation. `ignored_because` is the reason of an ignored finding.
    """

    finding: Finding
    module: str
    path: str
    line: int
    column: int | None
    in_repository: bool
    fingerprint: str
    ignored_because: str | None = None

    @property
    def title(self) -> str:
        """Code and name of the rule."""
        return f"{self.finding.rule} {self.finding.name}".rstrip()

    @property
    def message(self) -> str:
        """Message of the finding in one line, after the names of module and instruction."""
        subject = self.finding.subject or ""
        names = (self.module,) if self.finding.message.startswith(subject) else self.names
        return printable(": ".join((*names, self.finding.message)))

    @property
    def message_with_place(self) -> str:
        """Message with the source line and the line of the dump behind it, if the source is not in the repository."""
        location = self.finding.location
        places = () if self.in_repository else (self.finding.source, location and str(location))
        stated = printable(", ".join(filter(None, places)))
        return f"{self.message} ({stated})" if stated else self.message

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the module and of the instruction, as far as there are some."""
        return tuple(name for name in (self.module, self.finding.subject) if name)


def annotate(reports: Iterable[Report], options: RenderOptions) -> list[Annotation]:
    """Return the findings and failed checks of all reports, worst first; ignored findings last."""
    repository = Repository(options.root)
    made = rendered(reports, lambda report: list(_annotations(report, repository)), options)
    annotations = list(chain.from_iterable(made))
    annotations.sort(key=lambda annotation: (annotation.ignored_because is not None, urgency(annotation.finding)))
    times: Counter[str] = Counter()
    for number, annotation in enumerate(annotations):
        times[annotation.fingerprint] += 1
        unique = f"{annotation.fingerprint}:{times[annotation.fingerprint]}"
        annotations[number] = annotation._replace(fingerprint=unique)
    return annotations


def _annotations(report: Report, repository: Repository) -> Iterator[Annotation]:
    """Yield the findings of a report, with fingerprints that findings of other modules may have too."""
    module = report.module_name
    findings = [(finding, None) for finding in (*report.failed_checks, *report.findings)]
    for finding, reason in (*findings, *((ignored.finding, ignored.reason) for ignored in report.ignored)):
        fingerprint = finding.fingerprint or _hash(finding.rule, finding.label or module, finding.subject or finding.message)
        yield Annotation(finding, module, *_place(finding, module, repository), fingerprint, reason)


def _place(finding: Finding, module: str, repository: Repository) -> tuple[str, int, int | None, bool]:
    """Return path, line and column of a finding, and True if the file is in the repository."""
    path, _, line = (finding.source or "").rpartition(":")
    inside = repository.relative(path) if line.isascii() and line.isdigit() else None
    if inside is not None:
        return inside, max(int(line[:9]), 1), None, True
    place = finding.location
    if place is not None and not finding.subject and not finding.source:  # such as the place of an entry in a policy
        inside = repository.relative(place.path) if place.path.endswith((".yaml", ".yml", ".toml")) else None
        if inside is not None:
            return inside, place.line or 1, place.column, True
    return stable_name(module), (place and place.line) or 1, place.column if place is not None else None, False


def stable_name(module: str) -> str:
    """Return the name of a module's dump that does not depend on the run, as a path: `hlo/jit_step.txt`."""
    return f"hlo/{quote(module[:MAX_NAME], safe='') or 'module'}.txt"


def _hash(*parts: str) -> str:
    return sha256("\n".join(parts).encode()).hexdigest()[:16]
