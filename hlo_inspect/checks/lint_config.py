"""The configuration of `lint`: the table `[tool.hlo-inspect.lint]`.

For example:

    [tool.hlo-inspect.lint]
    select = ["HI2*", "large-constant"]
    ignore = ["unused-parameter"]
    fail-on = "warning"
    baseline = "lint.json"
    thresholds = { small-collectives = "4 MiB" }

    [[tool.hlo-inspect.lint.ignores]]
    rule = "wide-collective"
    op_name = "*/embed/*"
    reason = "the embedding stays in f32"

The baseline is relative to the file. Thresholds hold for the findings of all commands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from hlo_inspect.checks.ignores import Ignore, parse_ignore
from hlo_inspect.configs import Node
from hlo_inspect.errors import UsageError
from hlo_inspect.findings import find_rule, rule_pages
from hlo_inspect.findings.thresholds import parse_thresholds
from hlo_inspect.report.model import SEVERITIES, Finding, Severity

if TYPE_CHECKING:
    from hlo_inspect.report.rule_page import RulePage


class RuleSelection(NamedTuple):
    """The rules that count: those that fit a glob of `select`, all if there is none, and no glob of `ignore`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise UsageError for a code or name without a rule, with the nearest ones."""
        for pattern in (*self.select, *self.ignore):
            if not any(_fits(page, pattern) for page in rule_pages()):
                find_rule(pattern)

    def has(self, page: RulePage) -> bool:
        """Return True if findings of this rule count."""
        chosen = not self.select or any(_fits(page, pattern) for pattern in self.select)
        return chosen and not any(_fits(page, pattern) for pattern in self.ignore)

    def of_findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings of the rules that count."""
        codes = {page.code for page in rule_pages() if self.has(page)}
        return [finding for finding in findings if finding.rule in codes]


def _fits(page: RulePage, pattern: str) -> bool:
    return fnmatchcase(page.code, pattern) or fnmatchcase(page.name, pattern)


class LintConfig(NamedTuple):
    """Rules that count, ignore entries, the least severity that fails, a baseline, and thresholds of the form RULE=SIZE."""

    selection: RuleSelection = RuleSelection()
    ignores: tuple[Ignore, ...] = ()
    fail_on: Severity | None = None
    baseline: str | None = None
    thresholds: tuple[str, ...] = ()


KEYS = ("select", "ignore", "ignores", "fail-on", "baseline", "thresholds")


def lint_config_of(section: Node) -> LintConfig:
    """Make the configuration of a table. Raise UsageError with the place of a wrong key, type, unit or rule."""
    fields = section.fields(allowed=KEYS)
    select, ignore = (_rules(fields[name]) if name in fields else () for name in ("select", "ignore"))
    entries = fields["ignores"].items() if "ignores" in fields else ()
    return LintConfig(
        RuleSelection(select, ignore),
        tuple(parse_ignore(entry, ("op_name", "source")) for entry in entries),
        cast("Severity", fields["fail-on"].choice(SEVERITIES)) if "fail-on" in fields else None,
        beside(section, fields["baseline"].text()) if "baseline" in fields else None,
        tuple(_thresholds(fields["thresholds"])) if "thresholds" in fields else (),
    )


def beside(node: Node, path: str) -> str:
    """Return a path of a configuration, which is relative to the folder of its file."""
    return str(Path(node.file.path).parent / path)


def _thresholds(node: Node) -> Iterator[str]:
    for rule, size in node.entries():
        text = f"{rule.scalar}={size.text()}"
        try:
            parse_thresholds([text])
        except UsageError as error:
            raise size.error(error.message.removeprefix("--threshold ")) from error
        yield text


def _rules(node: Node) -> tuple[str, ...]:
    names = tuple(element.text() for element in node.items())
    with node.located():
        RuleSelection(names).check()
    return names
