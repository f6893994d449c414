"""`hlo_inspect.watch`: inspect each module that JAX compiles in this process."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import Any, TextIO

from hlo_inspect.checks.policy import Policy, assertion_in, given, read_policy
from hlo_inspect.errors import MissingExtraError, UsageError
from hlo_inspect.request import check_names
from hlo_inspect.watching.watch import OnModule, Watch

_INSTEAD = (
    "set XLA_FLAGS=--xla_dump_to=DIR before it starts, and run `hlo-inspect summary DIR` and `hlo-inspect recompiles DIR`"
)


def watch(
    *checks: str,
    policy: str | PathLike[str] | Sequence[str] = (),
    on_module: OnModule | None = None,
    store: str | None = None,
    stream: TextIO | None = None,
    **options: Any,  # noqa: ANN401 - those of `inspect`
) -> Watch:
    """Inspect each module that JAX compiles from now on: a line each, and a table at the end. JAX 0.11 or newer calls this.

    `checks` are assertions as of `hlo-inspect check --assert`, `policy` is a file of them, or several. Failed ones are printed
    and counted in `failed`. `on_module` receives each report, in another thread. At the end `store` gets the facts of all
    modules, as of `collect`. Lines go to `stream`, by default standard error. The `options` are those of `inspect`: `module=`
    chooses functions.

    The watch ends with its `with` block, with `close()`, or with the program. It initializes JAX's backends: call
    `jax.distributed.initialize` before. Nothing is raised into JAX; a module that cannot be read is one warning.

    Raise UsageError for an older JAX, or a check or option that makes no sense, and MissingExtraError without JAX.
    """
    check_names(list(options))
    files = (policy,) if isinstance(policy, str | PathLike) else policy
    policies = [Policy(tuple(assertion_in(given("watch", text)) for text in checks)), *map(read_policy, map(str, files))]
    watched = Watch(policies, options, on_module, store, stream)
    if find_spec("jax") is None:
        raise MissingExtraError("watch needs jax: pip install jax")
    try:
        xla = import_module("jax.extend.xla")
        register, stage = xla.register_hlo_module_transformation, xla.PipelineStage.POST_SCHEDULER
    except (ImportError, AttributeError) as error:
        message = f"jax {import_module('jax').__version__} does not hand compiled modules to Python, as 0.11 does: {_INSTEAD}"
        raise UsageError(message) from error
    name = f"hlo-inspect-{id(watched):x}"
    try:
        register(watched.take, name=name, stage=stage)
    except Exception as error:  # of a plugin whose compiler takes no callbacks, whatever it raises
        raise UsageError(f"JAX registers no callback for compiled modules: {error}; {_INSTEAD}") from error
    watched.open(lambda: xla.clear_hlo_module_transformation(name, stage))
    atexit.register(watched.close)
    return watched
