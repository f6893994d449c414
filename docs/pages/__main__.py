"""Writes the generated pages of `docs`, and the generated parts of the pages of commands.

    python -m docs.pages

Pages of rules and profiles that no longer exist are removed.
"""

from __future__ import annotations

from docs.pages import generated_texts, stale_pages
from docs.pages.commands import DOCS


def main() -> None:
    for path, text in generated_texts().items():
        (DOCS / path).parent.mkdir(exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")
    for page in stale_pages():
        page.unlink()


if __name__ == "__main__":
    main()
