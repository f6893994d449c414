"""Pictures show what the pages of `report` show now: `python -m docs.pictures` takes them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from docs.pictures import PICTURES, hash_of_file, hash_of_page, hashes_of_reports, recorded_hashes
from tests.docs.pages import PAGES


@pytest.mark.skipif(not all(map(find_spec, ("jinja2", "itables"))), reason="needs the extra [html]")
def test_no_picture_is_older_than_what_it_shows(tmp_path: Path) -> None:
    recorded = recorded_hashes()
    assert {name: hashes["shows"] for name, hashes in recorded.items()} == hashes_of_reports(tmp_path)


def test_each_picture_is_the_file_that_was_taken() -> None:
    recorded = recorded_hashes()
    assert {picture.name: hash_of_file(picture) for picture in PICTURES} == {
        name: hashes["file"] for name, hashes in recorded.items()
    }


def test_each_picture_is_on_a_page() -> None:
    for picture in PICTURES:
        assert any(f"{picture.name}.png)" in text for text in PAGES.values()), picture.name


def test_a_hash_depends_on_what_is_seen_only() -> None:
    page = '<html><body><main>{}</main><script type="application/octet-stream">{}</script><footer>{}</footer>'
    assert hash_of_page(page.format("a", "b", "c")) == hash_of_page(page.format("a", "x", "y"))
    assert hash_of_page(page.format("a", "b", "c")) != hash_of_page(page.format("z", "b", "c"))
