"""The configuration of a project: `hlo-inspect.toml`, or `[tool.hlo-inspect]` of `pyproject.toml`.

For example:

    [tool.hlo-inspect]
    profile = "h100-sxm"                # options that all commands have, without the dashes
    mesh = "data=4,model=2"

    [tool.hlo-inspect.check]
    policies = ["hlo/training.yaml"]    # relative to this file; `check` reads them unless it gets others

    [tool.hlo-inspect.lint]             # see `lint_config.py`
    fail-on = "warning"

An option of the command line goes before the configuration. Paths in it are relative to its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hlo_inspect.checks.lint_config import LintConfig, beside, lint_config_of
from hlo_inspect.configs import Node
from hlo_inspect.request import OPTIONS, Option
from hlo_inspect.toml_configs import nearest_config, read_config

CONFIGURABLE = {option.flag.removeprefix("--"): option for option in OPTIONS if option.info.flags and not option.info.commands}
"""Options that a configuration can set, by key: those of all commands."""

_FILES = ("custom-calls",)
"""Options whose value is a path."""


class Setting(NamedTuple):
    """An option with its value, as the command line would have it, and the place that sets it."""

    option: Option
    value: Any
    place: str


class Config(NamedTuple):
    """Settings of options, policies for `check`, and the configuration of `lint`; `root` is empty without a file."""

    root: Node | None = None
    settings: tuple[Setting, ...] = ()
    policies: tuple[str, ...] = ()
    lint: LintConfig = LintConfig()

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Values of options by their names in a request."""
        return {setting.option.name: setting.value for setting in self.settings}


def find_config(folder: Path) -> Config:
    """Return the configuration that applies in a folder; an empty one without a file. Raise UsageError for a wrong one."""
    return config_of(nearest_config(folder))


def load_config(path: str) -> Config:
    """Return the configuration of a file. Raise UsageError if it cannot be read or is wrong, with the place."""
    return config_of(read_config(Path(path)))


def config_of(root: Node | None) -> Config:
    """Make a configuration of its table. Raise UsageError with the place of a wrong key, type, value or rule."""
    if root is None:
        return Config()
    fields = root.fields(allowed=(*CONFIGURABLE, "check", "lint"))
    check = fields["check"].fields(allowed=("policies",)) if "check" in fields else {}
    policies = check["policies"].items() if "policies" in check else ()
    return Config(
        root,
        tuple(_settings(fields)),
        tuple(beside(node, node.text()) for node in policies),
        lint_config_of(fields["lint"]) if "lint" in fields else LintConfig(),
    )


def _settings(fields: Mapping[str, Node]) -> Iterator[Setting]:
    for key, node in fields.items():
        if key in CONFIGURABLE:
            yield Setting(CONFIGURABLE[key], _value(key, node), f"{node.location.path}:{node.line}")


def _value(key: str, node: Node) -> Any:  # noqa: ANN401 - as the option has it
    """Return the value of an option. Raise UsageError if it is of another kind."""
    option = CONFIGURABLE[key]
    if option.type is bool:
        if node.kind != "bool":
            raise node.error(f"{key} is true or false")
        return node.scalar == "true"
    if option.type is int:
        least = option.info.minimum or 0
        if node.kind != "number" or not node.scalar.isdigit() or len(node.scalar) > 9 or int(node.scalar) < least:
            raise node.error(f"{key} is a whole number of {least} or more")
        return int(node.scalar)
    if option.choices:
        return node.choice(option.choices)
    if option.is_many:
        values = tuple(element.text() for element in node.items()) if node.kind == "list" else (node.text(),)
        return tuple(_resolved(key, node, value) for value in values)
    return _resolved(key, node, node.text())


def _resolved(key: str, node: Node, value: str) -> str:
    """Return a value; a path is that of the file's folder. A profile is a path if it ends like one."""
    is_path = key in _FILES or (key == "profile" and value.endswith((".yaml", ".yml")))
    return beside(node, value) if is_path else value


def described(config: Config) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and place of each setting, for `--show-config`."""
    for setting in config.settings:
        value = ", ".join(setting.value) if isinstance(setting.value, tuple) else str(setting.value)
        yield setting.option.flag.removeprefix("--"), value, setting.place
    if config.root is None:
        return
    for table in ("check", "lint"):
        fields = {key.scalar: node for key, node in config.root.entries()}
        for key, node in fields[table].entries() if table in fields else ():
            yield f"{table}.{key.scalar}", _shown(node), f"{node.location.path}:{node.line}"


def _shown(node: Node) -> str:
    if node.kind == "list":
        return ", ".join(map(_shown, node.elements))
    if node.kind == "mapping":
        return "; ".join(f"{key.scalar} = {_shown(value)}" for key, value in node.pairs)
    return node.scalar
