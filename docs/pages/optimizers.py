"""Generated table of the optimizers: names, source and constants of each rule."""

from __future__ import annotations

from docs.pages.commands import DOCS
from docs.pages.markdown import make_table, with_part
from hlo_inspect.optimizer.rules import RULES


def optimizer_texts() -> dict[str, str]:
    """Return the page by its path below `docs`: the text of the file, with a new table."""
    rows = (
        (", ".join(f"`{name}`" for name in rule.names), rule.title, rule.paper, ", ".join(rule.hyperparameters))
        for rule in sorted(RULES, key=lambda rule: rule.name)
    )
    table = make_table(("name", "optimizer", "source", "constants"), rows)
    return {"optimizers.md": with_part((DOCS / "optimizers.md").read_text(encoding="utf-8"), "optimizers", table)}
