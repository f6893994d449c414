"""A limit of the requests of a client that are open: the next are read when answers have been written.

Without it a client that asks and does not read lets answers pile up in memory.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

MOST_OPEN = 32
LAST_SECONDS = 2.0
"""The longest wait for a client that has ended the input and reads no answer."""


@asynccontextmanager
async def limited(
    incoming: Any,  # noqa: ANN401 - streams of the SDK
    outgoing: Any,  # noqa: ANN401
    has_hung_up: Callable[[], bool],
    end: Callable[[], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """Yield streams like these two, of which the first holds requests back while `MOST_OPEN` are open.

    Call `end` if the client has hung up and reads no answer for `LAST_SECONDS`: the end of the input is behind held requests.
    """
    import anyio

    admitted_end, admitted = anyio.create_memory_object_stream[Any](0)
    answers, answers_end = anyio.create_memory_object_stream[Any](0)
    requests = _OpenRequests()
    async with anyio.create_task_group() as group:
        group.start_soon(_admit, incoming, admitted_end, requests)
        group.start_soon(_answer, answers_end, outgoing, requests)
        group.start_soon(_watch, requests, has_hung_up, end)
        yield admitted, answers
        group.cancel_scope.cancel()


class _OpenRequests:
    """Requests without an answer, by their numbers: a client may use one twice."""

    def __init__(self) -> None:
        import anyio

        self._open: Counter[str] = Counter()
        self._changed = anyio.Condition()
        self.writing_since: float | None = None

    async def add(self, number: object) -> None:
        """Note a request, once there is room for it."""
        async with self._changed:
            while self._open.total() >= MOST_OPEN:
                await self._changed.wait()
            self._open[repr(number)] += 1

    async def remove(self, number: object) -> None:
        """Note that a request is answered, or cancelled."""
        async with self._changed:
            self._open -= Counter([repr(number)])
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
            requests.writing_since = time.monotonic()
            await outgoing.send(item)
            requests.writing_since = None
            if getattr(item.message, "method", None) is None:
                await requests.remove(getattr(item.message, "id", None))


async def _watch(requests: _OpenRequests, has_hung_up: Callable[[], bool], end: Callable[[], None]) -> None:
    import anyio

    while True:
        await anyio.sleep(LAST_SECONDS / 4)
        since = requests.writing_since
        if since is not None and time.monotonic() - since > LAST_SECONDS and has_hung_up():
            end()
