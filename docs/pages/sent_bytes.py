"""Generated table of sent bytes by kind of collective."""

from __future__ import annotations

from docs.pages.commands import DOCS
from docs.pages.markdown import make_table, with_part
from hlo_inspect.hlo.collective_kinds import KIND_TABLE
from hlo_inspect.hlo.opcodes import Sends

_WORDS: dict[Sends, str] = {
    "2(n-1)/n": "2(n-1)/n × operand",
    "n-1": "(n-1) × operand",
    "(n-1)/n": "(n-1)/n × operand",
    "1": "operand",
    "<=1": "unknown, at most the operand that is sent",
    "?": "unknown",
}


def sent_bytes_texts() -> dict[str, str]:
    """Return the page by its path below `docs`: the text of the file, with a new table."""
    table = make_table(("kind", "sent bytes"), ((f"`{name}`", _WORDS[kind.sends]) for name, kind in KIND_TABLE.items()))
    return {"numbers.md": with_part((DOCS / "numbers.md").read_text(encoding="utf-8"), "sent bytes", table)}
