"""Servers of remote files: the limit of waits for them, their errors and redirects in words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

WEB = frozenset({"http", "https"})

USUAL_SECONDS = 30
_seconds = [USUAL_SECONDS]  # of this process, as the settings of fsspec are

_ENDS: Mapping[str, str] = {
    "TooManyRedirects": "the server redirects more than ten times",
    "NonHttpUrlRedirectClientError": "the server redirects to an address that is no web page",
    "InvalidUrlRedirectClientError": "the server redirects to an address that is no web page",
    "ServerDisconnectedError": "the server ends the connection without an answer",
    "ClientPayloadError": "the server ends the connection before the end of the page",
}
"""Words for errors of aiohttp, by the name of their class."""


def limit_waits(seconds: int) -> None:
    """Limit the waits of this process for a connection and for the next bytes of a server."""
    _seconds[0] = seconds


def limits_of(protocol: str, configured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of fsspec's file system of a protocol that limit its waits.

    They are joined with those of the user's configuration. Web servers send pages as they are: the reader decompresses them,
    with the limits of files.
    """
    seconds = _seconds[0]
    waits = {"connect_timeout": seconds, "read_timeout": seconds}
    match protocol:
        case "s3" | "s3a":
            return {"config_kwargs": {**configured.get("config_kwargs", {}), **waits}}
        case "az" | "abfs" | "abfss":
            return {"connection_timeout": seconds, "read_timeout": seconds}
        case "gs" | "gcs":
            return {"requests_timeout": _client_timeout(seconds)}
        case "http" | "https":
            own = configured.get("client_kwargs", {})
            headers = {"Accept-Encoding": "identity", **own.get("headers", {})}
            page = {"timeout": _client_timeout(seconds), "auto_decompress": False, "headers": headers}
            return {"client_kwargs": {**own, **page}}
        case _:
            return {}


def _client_timeout(seconds: int) -> Any:  # noqa: ANN401 - aiohttp is an extra
    """Return limits of connecting and of waiting for the next bytes; a large object may take longer as a whole."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_connect=seconds, sock_read=seconds)


def words_of(error: BaseException) -> str:
    """Return in one line what happened, with the status if the server answers one."""
    if isinstance(error, TimeoutError):
        return f"the server sends nothing for {_seconds[0]} s; --remote-timeout sets the limit"
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if words := next(filter(None, map(_ENDS.get, kinds)), None):
        return words
    status = getattr(error, "status", None)
    if status is not None:
        is_stated = getattr(error, "headers", None) is not None  # else it is aiohttp's own
        return f"the server answers {status}" if is_stated else "the server's answer breaks HTTP"
    number = getattr(error, "errno", None) or 0
    text = os.strerror(number) if "ClientConnectorError" in kinds and number > 0 else getattr(error, "strerror", None)
    return " ".join(str(text or error or type(error).__name__).split())


def redirect_note(opened: Any) -> str | None:  # noqa: ANN401 - fsspec has no types
    """Return the note that another host than that of the address sends a page; None otherwise."""
    answer = getattr(opened, "r", None)
    history = getattr(answer, "history", ())
    if answer is None or not history or history[0].url.authority == answer.url.authority:
        return None
    return f"{history[0].url.authority} redirects to {answer.url.authority}, which sends this page"
