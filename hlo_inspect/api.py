"""Functions of the package: a report for each module of a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, update_wrapper
from inspect import Parameter, Signature, cleandoc, signature
from typing import Concatenate, Literal, ParamSpec, TypeVar, cast

from hlo_inspect.errors import InputError, UsageError
from hlo_inspect.hlo.input.source import Openable
from hlo_inspect.inspection.inspection import Inspection
from hlo_inspect.passes.partial_modules import is_partial_report
from hlo_inspect.report.displayable import show_with
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Table
from hlo_inspect.request import OPTIONS, HasText, Request, check_names

P = ParamSpec("P")
R = TypeVar("R")


def _page(form: Literal["text", "HTML"], shown: Report | Table) -> str:
    """Format a report or table for a Python session (text) or a notebook (HTML)."""
    from hlo_inspect.report.formats import notebook

    return notebook.as_text(shown) if form == "text" else notebook.as_html(shown)


show_with(partial(_page, "text"), partial(_page, "HTML"))


Inspectable = Openable | HasText


def _with_options_of(
    request: Callable[P, Request],
) -> Callable[[Callable[[Inspectable, Request], R]], Callable[Concatenate[Inspectable, P], R]]:
    """Return a decorator that replaces the argument `request` of a function by a keyword for each option."""

    def decorated(function: Callable[[Inspectable, Request], R]) -> Callable[Concatenate[Inspectable, P], R]:
        def with_keywords(source: Inspectable, *arguments: P.args, **keywords: P.kwargs) -> R:
            if keywords:
                check_names(list(keywords))
            return function(source, request(*arguments, **keywords))

        update_wrapper(with_keywords, function)
        first, *_ = signature(function).parameters.values()
        taken = [parameter.replace(annotation=Parameter.empty) for parameter in signature(Request).parameters.values()]
        with_keywords.__signature__ = Signature([first, *taken])  # type: ignore[attr-defined]  # for `help` and IDEs
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

    `source` holds one module, or `module` names it. Partial modules around it are left out, and a note counts them. The
    arguments and errors are as in `inspect_all`.
    """
    reports = list(_reports(source, request))
    if len(reports) == 1:
        return reports[0]
    whole = [report for report in reports if not is_partial_report(report)]
    if len(whole) == 1:
        parts = len(reports) - 1
        counted = "1 partial module" if parts == 1 else f"{parts} partial modules"
        note = f"the text also holds {counted}; inspect_all returns a report for each"
        return replace(whole[0], notes=(*whole[0].notes, note))
    names = ", ".join(report.module_name for report in reports[:5])
    raise UsageError(
        f"the input has {len(reports)} modules ({names}{', …' if len(reports) > 5 else ''}); choose one with module="
    )


def _reports(source: Inspectable, request: Request) -> Iterator[Report]:
    if request.lowered is not None:
        request = replace(request, lowered=str(_text_of(request.lowered)))
    with Inspection(request) as inspection:
        yield from inspection.reports(_text_of(source))


def _text_of(source: Inspectable) -> Openable:
    """Return the text of an object that returns one, and all else as it is."""
    as_text = getattr(source, "as_text", None)
    if as_text is None:
        return cast("Openable", source)
    # the text of JAX's `Lowered` is HLO instead of StableHLO, which only jaxlib can read
    text = as_text(dialect="hlo") if "dialect" in signature(as_text).parameters else as_text()
    if not isinstance(text, str):
        raise InputError(f"as_text() of {type(source).__name__} returned no text; pass HLO text or a file")
    return text
