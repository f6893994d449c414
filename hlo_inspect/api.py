"""Functions of the package: a report for each module of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, update_wrapper
from inspect import Parameter, Signature, cleandoc, signature
from typing import Concatenate, Literal, ParamSpec, Protocol, TypeVar, cast

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.partial_modules import is_partial_report
from hlo_inspect.report.displayable import show_with
from hlo_inspect.report.model import Report, Table
from hlo_inspect.request import OPTIONS, Request, check_names

P = ParamSpec("P")
R = TypeVar("R")


def _page(form: Literal["text", "HTML"], shown: Report | Table) -> str:
    """Return a report or table as a Python session or a notebook shows it."""
    from hlo_inspect.report import notebook

    return notebook.as_text(shown) if form == "text" else notebook.as_html(shown)


show_with(partial(_page, "text"), partial(_page, "HTML"))


class HasText(Protocol):
    """Object with HLO text: `jax.stages.Lowered` and `Compiled`, for example."""

    @property
    def as_text(self) -> Callable[..., str | None]: ...


Inspectable = Openable | HasText


def _with_options_of(
    request: Callable[P, Request],
) -> Callable[[Callable[[Inspectable, Request], R]], Callable[Concatenate[Inspectable, P], R]]:
    """Give a function of a source and a request the options of the request as keywords."""

    def decorated(function: Callable[[Inspectable, Request], R]) -> Callable[Concatenate[Inspectable, P], R]:
        def with_keywords(source: Inspectable, *arguments: P.args, **keywords: P.kwargs) -> R:
            check_names(list(keywords))
            return function(source, request(*arguments, **keywords))

        update_wrapper(with_keywords, function)
        first, *_ = signature(function).parameters.values()
        taken = [parameter.replace(annotation=Parameter.empty) for parameter in signature(Request).parameters.values()]
        with_keywords.__signature__ = Signature([first, *taken])  # type: ignore[attr-defined]  # which `help` and IDEs show
        described = [f"  {option.name}: {option.info.help}" for option in OPTIONS]
        with_keywords.__doc__ = "\n".join([cleandoc(function.__doc__ or ""), "", "Options:", *described])
        return with_keywords  # type: ignore[return-value]  # the source may be named, too

    return decorated


@_with_options_of(Request)
def inspect_all(source: Inspectable, request: Request) -> Iterator[Report]:
    """Yield a report for each module of `source`, in order.

    `source` is a path (a file, compressed or not, or a dump directory), `-`, an open file, or HLO text itself. It can be an
    object with `as_text()`, such as JAX's `lowered` and `compiled`, and with the extra `[xla]` serialized HLO or StableHLO.
    A report depends on the module and the options, never on other passes of the request.

    Raise InputError if the input cannot be read or holds no such module. Raise UsageError for an unknown pass, instruction or
    option, and MissingExtraError if the extra `[xla]` is needed. Under `strict`, raise ParseError if XLA's parser refuses it.
    """
    return _reports(source, request)


@_with_options_of(Request)
def inspect(source: Inspectable, request: Request) -> Report:
    """Inspect one module and return its report.

    `source` holds one module, or `module` names it; instruction lines quoted around it are left out. Arguments and errors are
    those of `inspect_all`.
    """
    reports = list(_reports(source, request))
    whole = [report for report in reports if not is_partial_report(report)]
    if len(whole) == 1 < len(reports):
        parts = len(reports) - 1
        counted = "1 partial module stands" if parts == 1 else f"{parts} partial modules stand"
        note = f"{counted} beside this module: inspect_all yields all"
        return replace(whole[0], notes=(*whole[0].notes, note))
    if len(reports) > 1:
        names = ", ".join(report.module_name for report in reports[:5])
        raise UsageError(f"{len(reports)} modules ({names}{', …' if len(reports) > 5 else ''}): name one with module=")
    return reports[0]


def _reports(source: Inspectable, request: Request) -> Iterator[Report]:
    with Inspection(request) as inspection:
        yield from inspection.reports(_openable(source))


def _openable(source: Inspectable) -> Openable:
    """Return the source, or its text: of JAX's `Lowered` HLO, since StableHLO would need jaxlib to read."""
    as_text = getattr(source, "as_text", None)
    if as_text is None:
        return cast("Openable", source)
    text = as_text(dialect="hlo") if "dialect" in signature(as_text).parameters else as_text()
    if not isinstance(text, str):
        raise InputError(f"as_text() of {type(source).__name__} did not return text")
    return text
