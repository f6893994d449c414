"""The configuration of `lint`: `[tool.hlo-inspect.lint]` of the nearest `pyproject.toml`.

For example:

    [tool.hlo-inspect.lint]
    select = ["HI2*", "large-constant"]
    ignore = ["unused-parameter"]

    [[tool.hlo-inspect.lint.ignores]]
    rule = "wide-collective"
    op_name = "*/embed/*"
    reason = "the embedding stays in f32"
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hlo_inspect.checks.ignores import Ignore, parse_ignore
from hlo_inspect.checks.lint import RuleSelection
from hlo_inspect.configs import Node
from hlo_inspect.errors import UsageError
from hlo_inspect.toml_configs import nearest_section


class LintConfig(NamedTuple):
    """Rules that count, and entries that ignore findings."""

    selection: RuleSelection = RuleSelection()
    ignores: tuple[Ignore, ...] = ()


def find_lint_config(folder: Path) -> LintConfig:
    """Return the configuration that applies in a folder; the default if there is none."""
    section = nearest_section(folder, "lint")
    return lint_config_of(section) if section is not None else LintConfig()


def lint_config_of(section: Node) -> LintConfig:
    """Make the configuration of a table. Raise UsageError with the place of a wrong key, type or rule."""
    fields = section.fields(allowed=("select", "ignore", "ignores"))
    select, ignore = (_rules(fields[name]) if name in fields else () for name in ("select", "ignore"))
    entries = fields["ignores"].items() if "ignores" in fields else ()
    return LintConfig(RuleSelection(select, ignore), tuple(parse_ignore(entry, ("op_name", "source")) for entry in entries))


def _rules(node: Node) -> tuple[str, ...]:
    names = tuple(element.text() for element in node.items())
    try:
        RuleSelection(names).check()
    except UsageError as error:
        raise node.error(error.message) from error
    return names
