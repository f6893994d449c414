"""A limit of the requests of a client that are open: the next are read when answers have been written.

Without it a client that asks and does not read lets answers pile up in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

MOST_OPEN = 32


@asynccontextmanager
async def limited(incoming: Any, outgoing: Any) -> AsyncIterator[tuple[Any, Any]]:  # noqa: ANN401 - streams of the SDK
    """Yield streams like these two, of which the first holds requests back while `MOST_OPEN` are open."""
    import anyio

    admitted_end, admitted = anyio.create_memory_object_stream[Any](0)
    answers, answers_end = anyio.create_memory_object_stream[Any](0)
    requests = _OpenRequests()
    async with anyio.create_task_group() as group:
        group.start_soon(_admit, incoming, admitted_end, requests)
        group.start_soon(_answer, answers_end, outgoing, requests)
        yield admitted, answers
        group.cancel_scope.cancel()


class _OpenRequests:
    """Numbers of requests without an answer."""

    def __init__(self) -> None:
        import anyio

        self._open: set[Any] = set()
        self._changed = anyio.Condition()

    async def add(self, number: object) -> None:
        """Note a request, once there is room for it."""
        async with self._changed:
            while len(self._open) >= MOST_OPEN:
                await self._changed.wait()
            self._open.add(number)

    async def remove(self, number: object) -> None:
        """Note that a request is answered, or cancelled."""
        async with self._changed:
            self._open.discard(number)
            self._changed.notify_all()


async def _admit(incoming: Any, admitted: Any, requests: _OpenRequests) -> None:  # noqa: ANN401 - as above
    async with incoming, admitted:
        async for item in incoming:
            message: Any = getattr(item, "message", None)
            number, method = getattr(message, "id", None), getattr(message, "method", None)
            if method == "notifications/cancelled":
                await requests.remove((message.params or {}).get("requestId"))
            elif method is not None and number is not None:
                await requests.add(number)
            await admitted.send(item)


async def _answer(answers: Any, outgoing: Any, requests: _OpenRequests) -> None:  # noqa: ANN401 - as above
    async with answers, outgoing:
        async for item in answers:
            await outgoing.send(item)
            if getattr(item.message, "method", None) is None:
                await requests.remove(getattr(item.message, "id", None))
