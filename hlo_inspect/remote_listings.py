"""Listings of remote folders, page by page: fsspec itself returns a folder as a whole, which may have millions of objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

PAGE_OBJECTS = 1000
"""The most objects of a page."""

Entry = Mapping[str, Any]
"""An entry as `ls` of fsspec has it: `name`, `type`, `size`, and fields of its protocol."""


def listing_pages(files: Any, protocol: str, path: str) -> Iterator[list[Entry]]:  # noqa: ANN401 - fsspec has no types
    """Yield the entries of a folder in pages. All names of a page are before those of the next."""
    pages = _PAGES.get(protocol)
    bucket, _, key = path.strip("/").partition("/")
    if pages is None or not bucket:
        yield list(files.ls(path, detail=True))
    else:
        yield from pages(files, bucket, f"{key}/" if key else "")


def _s3_pages(files: Any, bucket: str, prefix: str) -> Iterator[list[Entry]]:  # noqa: ANN401 - as above
    arguments = {"Bucket": bucket, "Prefix": prefix, "Delimiter": "/", "MaxKeys": PAGE_OBJECTS, **files.req_kw}
    while True:
        page = files.call_s3("list_objects_v2", **arguments)
        yield [
            *(_folder(bucket, folder["Prefix"]) for folder in page.get("CommonPrefixes", ())),
            *(
                {**item, "name": f"{bucket}/{item['Key']}", "type": "file", "size": item["Size"]}
                for item in page.get("Contents", ())
            ),
        ]
        if not page.get("IsTruncated"):
            return
        arguments["ContinuationToken"] = page["NextContinuationToken"]


def _gcs_pages(files: Any, bucket: str, prefix: str) -> Iterator[list[Entry]]:  # noqa: ANN401 - as above
    token = None
    while True:
        page = files.call(
            "GET", "b/{}/o", bucket, delimiter="/", prefix=prefix, maxResults=PAGE_OBJECTS, pageToken=token, json_out=True
        )
        yield [
            *(_folder(bucket, folder) for folder in page.get("prefixes", ())),
            *({**item, "name": f"{bucket}/{item['name']}", "type": "file"} for item in page.get("items", ())),
        ]
        token = page.get("nextPageToken")
        if token is None:
            return


def _folder(bucket: str, prefix: str) -> Entry:
    return {"name": f"{bucket}/{prefix.rstrip('/')}", "type": "directory"}


_PAGES: Mapping[str, Callable[[Any, str, str], Iterator[list[Entry]]]] = {
    "s3": _s3_pages,
    "s3a": _s3_pages,
    "gs": _gcs_pages,
    "gcs": _gcs_pages,
}
