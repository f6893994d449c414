"""The options `--config` and `--show-config`: the configuration sets the defaults of a command's options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hlo_inspect.cli import completion
from hlo_inspect.config_files import config_files
from hlo_inspect.errors import printable

if TYPE_CHECKING:
    from hlo_inspect.checks.config import Config

F = TypeVar("F", bound=Callable[..., Any])

_CONFIG, _SHOWS = "hlo_inspect.config", "hlo_inspect.shows_config"
"""Keys of a context's `meta`."""


def current_config() -> Config | None:
    """Return the configuration of the command that runs; None without one."""
    config: Config | None = click.get_current_context().meta.get(_CONFIG)
    return config


def config_above() -> str | None:
    """Return the path of the configuration that applies from a folder above the working directory; None without one."""
    context = click.get_current_context(silent=True)
    config: Config | None = context.meta.get(_CONFIG) if context is not None else None
    path = Path(config.root.file.path) if config is not None and config.root is not None else None
    return str(path) if path is not None and path.parent in Path.cwd().parents else None


def current_thresholds() -> tuple[str, ...]:
    """Return the thresholds of rules in the configuration of the command that runs."""
    config = current_config()
    return config.lint.thresholds if config is not None else ()


def config_options(option: Callable[..., Callable[[F], F]]) -> tuple[Callable[[F], F], ...]:
    """Make the two options by `option`, which is like `click.option`. Click calls them before it reads the others."""
    return (
        option(
            "--config",
            metavar="FILE",
            is_eager=True,
            expose_value=False,
            callback=_load,
            shell_complete=completion.files,
            help="Read the configuration from this TOML file. Default: hlo-inspect.toml, or [tool.hlo-inspect] of "
            "pyproject.toml, in the nearest folder upwards.",
        ),
        option(
            "--show-config",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show,
            help="Print the configuration with the place of each setting, and exit.",
        ),
    )


def _load(context: click.Context, _parameter: click.Parameter, path: str | None) -> None:
    if context.resilient_parsing:  # for completions
        return
    context.meta[_CONFIG] = None
    if path is not None or any(config_files(Path.cwd())):
        from hlo_inspect.checks.config import find_config, load_config

        context.meta[_CONFIG] = config = load_config(path) if path is not None else find_config(Path.cwd())
        context.default_map = {**(context.default_map or {}), **config.defaults}
    _show_if_wanted(context)


def _show(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    context.meta[_SHOWS] = wanted
    _show_if_wanted(context)


def _show_if_wanted(context: click.Context) -> None:
    """Print the configuration and exit, once both options are read: they come in the order of the command line."""
    if not context.meta.get(_SHOWS) or _CONFIG not in context.meta:
        return
    config: Config | None = context.meta[_CONFIG]
    if config is None or config.root is None:
        click.echo("no configuration: no folder upwards has hlo-inspect.toml, or pyproject.toml with [tool.hlo-inspect]")
    else:
        from hlo_inspect.checks.config import described

        rows = list(described(config))
        keys, values = (max((len(row[index]) for row in rows), default=0) for index in (0, 1))
        click.echo(f"# {printable(config.root.file.path)}")
        for key, value, place in rows:
            click.echo(f"{key:<{keys}}  {printable(value):<{values}}  {printable(place)}")
    context.exit()
