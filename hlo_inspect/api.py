"""The functions of the package: a report for each module of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import signature
from typing import Protocol, cast

from hlo_inspect.analysis.context import DEPTH, PhasesFrom
from hlo_inspect.analysis.memory.platforms import PlatformName
from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.hlo.source import Openable
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.part_of_module import is_part
from hlo_inspect.report import notebook
from hlo_inspect.report.model import Report, show_with

show_with(notebook.as_text, notebook.as_html)


class HasText(Protocol):
    """Something that has HLO text: `jax.stages.Lowered` and `Compiled`, for example."""

    @property
    def as_text(self) -> Callable[..., str | None]: ...


def inspect_all(  # noqa: PLR0913 - each is an option of its own
    source: Openable | HasText,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | Sequence[str] | None = None,
    what_if: Sequence[str] = (),
    devices_per_node: int | None = None,
    topology: str | None = None,
    mesh: str | None = None,
    custom_calls: str | None = None,
    phases: PhasesFrom = "graph",
    platform: PlatformName | None = None,
    name: str | None = None,
    to: str | None = None,
    depth: int = DEPTH,
    also: Sequence[str] = (),
) -> Iterator[Report]:
    """A report for each module of `source`, in order.

    `source` is a path (compressed or not, a dump directory), `-`, an open file, HLO text itself, or what has `as_text()`, as
    JAX's `lowered` and `compiled`; with the extra `[xla]` also serialized HLO or StableHLO, as a file or as bytes. `passes` are
    names of commands, of which the first names the report. `also` are passes that add to it without tables of their own: their
    facts, findings and notes, and what tables of others show of them (`optimizer` gives `params` its roles, `cost` and
    `optimizer` give `summary` a table each). `module` is a regular expression that a module's name has to match; `stage`
    chooses another file of a dump directory; `profile` is the accelerator to compute times for, of which `time` takes several,
    and `what_if` multiplies figures of it (`links.nvlink.bandwidth=2x`); `devices_per_node` and `topology` (`2x8`) say where
    devices are; `mesh` names the axes of the device mesh (`data=4,model=2`); `custom_calls` is a YAML file with the work of
    custom calls. `phases` says what may decide the phase of an instruction: `names` alone, or also the `graph` of values where
    names leave it open; a first pass without the passes of its command, such as `summary` without `also`, asks names alone.
    `platform` (`cpu`, `gpu`, `tpu`) is what the program was compiled for, where its marks mislead. `name` is the instruction
    that `memory` and `show` are asked about, with `to` another one to which `show` gives the ways, `depth` how many steps
    around it `show` goes. Raises `InputError` for what cannot be read or holds no such module, under `strict` a `ParseError`
    for what XLA's parser refuses,
    `UsageError` for an unknown pass or instruction and for a mesh or rules that cannot be read, and its subclass
    `MissingExtraError` when the extra `[xla]` is needed.
    """
    with Inspection(
        passes,
        module=module,
        stage=stage,
        strict=strict,
        profile=profile,
        what_if=what_if,
        devices_per_node=devices_per_node,
        topology=topology,
        mesh=mesh,
        custom_calls=custom_calls,
        phases=phases,
        platform=platform,
        query={"name": name, "to": to, "depth": depth},
        also=also,
    ) as inspection:
        yield from inspection.reports(_openable(source))


def inspect(  # noqa: PLR0913 - as inspect_all
    source: Openable | HasText,
    passes: str | Sequence[str] = ("summary",),
    *,
    module: str | None = None,
    stage: str | None = None,
    strict: bool = False,
    profile: str | Sequence[str] | None = None,
    what_if: Sequence[str] = (),
    devices_per_node: int | None = None,
    topology: str | None = None,
    mesh: str | None = None,
    custom_calls: str | None = None,
    phases: PhasesFrom = "graph",
    platform: PlatformName | None = None,
    name: str | None = None,
    to: str | None = None,
    depth: int = DEPTH,
    also: Sequence[str] = (),
) -> Report:
    """The report of the only module of `source`, or of the one that `module` names; arguments and errors as `inspect_all`
    has them. Of a module with quoted lines around it, it is the module's.
    """
    reports = list(
        inspect_all(
            source,
            passes,
            module=module,
            stage=stage,
            strict=strict,
            profile=profile,
            what_if=what_if,
            devices_per_node=devices_per_node,
            topology=topology,
            mesh=mesh,
            custom_calls=custom_calls,
            phases=phases,
            platform=platform,
            name=name,
            to=to,
            depth=depth,
            also=also,
        )
    )
    whole = [report for report in reports if not is_part(report)]
    if len(whole) == 1 < len(reports):
        parts = len(reports) - 1
        counted = "1 part of a module is" if parts == 1 else f"{parts} parts of modules are"
        note = f"{counted} in the text beside this module: inspect_all gives all"
        return replace(whole[0], notes=(*whole[0].notes, note))
    if len(reports) > 1:
        names = ", ".join(report.module_name for report in reports[:5])
        raise UsageError(f"{len(reports)} modules ({names}{', …' if len(reports) > 5 else ''}): name one with module=")
    return reports[0]


def _openable(source: Openable | HasText) -> Openable:
    """The source, or its text. JAX's `Lowered` is asked for HLO instead of StableHLO, which would need jaxlib to read."""
    as_text = getattr(source, "as_text", None)
    if as_text is None:
        return cast("Openable", source)
    text = as_text(dialect="hlo") if "dialect" in signature(as_text).parameters else as_text()
    if not isinstance(text, str):
        raise InputError(f"as_text() of {type(source).__name__} gives no text")
    return text
