"""Internal errors of single reports, after their modules were read: such a report is lost, and the others follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hlo_inspect.errors import HloInspectError, InternalError, Location
from hlo_inspect.report.model import Report

S = TypeVar("S")
T = TypeVar("T")

Failed = Callable[[S, Exception], None]
"""Callback that receives a thing that is lost, and the unexpected exception."""


def answers(things: Iterable[S], work: Callable[[S], T], failed: Failed[S] | None) -> Iterator[T]:
    """Yield the result of `work` for each thing. Without `failed`, raise unexpected exceptions."""
    for thing in things:
        try:
            made = work(thing)
        except (HloInspectError, MemoryError):
            raise
        except Exception as error:
            if failed is None:
                raise
            failed(thing, error)
        else:
            yield made


def with_last(things: Iterable[T], change: Callable[[T], T]) -> Iterator[T]:
    """Yield the things; the last one as `change` returns it, which is called when no other follows."""
    last: list[T] = []
    for thing in things:
        yield from last
        last = [thing]
    yield from map(change, last)


def internal_error(report: Report, error: Exception) -> InternalError:
    """Describe an unexpected exception that was met while a report was judged or rendered."""
    return InternalError.from_exception(error, Location(report.input.path, report.input.first_line), report.module_name)
