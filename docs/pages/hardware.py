"""Pages of the hardware profiles: every figure with its source, as `hlo-inspect profiles NAME` has them."""

from __future__ import annotations

from collections.abc import Mapping

from docs.pages.markdown import NOTE, make_table
from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.configs import shipped_configs
from hlo_inspect.passes.profiles import profile_report
from hlo_inspect.report.formats.markdown import escape
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value

_INTRODUCTION = """\
A hardware profile has the figures of one accelerator: `--profile NAME` computes [times](../times.md) with it. Each figure names
the document that states it. `hlo-inspect profiles` prints this table, and [`profiles NAME`](../commands/profiles.md) one page.

Rates are dense peaks of one device. [A profile of your own](own.md) extends one of these.
"""


def hardware_texts() -> dict[str, str]:
    """Return the pages by their paths below `docs`."""
    rows = []
    texts = {}
    for name in profile_names():
        report = profile_report(name)
        profile = load_profile(name)
        rows.append((f"[`{name}`]({name}.md)", profile.title, ", ".join(_publishers(report))))
        texts[f"hardware/{name}.md"] = _page(report, profile.title)
    table = make_table(("name", "accelerator", "sources"), rows)
    texts["hardware/index.md"] = f"{NOTE}\n\n# Hardware profiles\n\n{_INTRODUCTION}\n{table}"
    texts["hardware/own.md"] = _own_profile()
    return texts


def _own_profile() -> str:
    """Return the description of the format, which the folder of the profiles has."""
    text = (shipped_configs("hardware") / "README.md").read_text(encoding="utf-8")
    return f"{NOTE}\n\n# A profile of your own\n{text.partition(chr(10))[2]}"


_CONFIDENCE: dict[Value, str] = {"secondary": "not from the maker", "inferred": "computed from other figures"}


def _publishers(report: Report) -> list[str]:
    """Return the publishers of the sources, each once."""
    return list(dict.fromkeys(str(record["publisher"]) for record in report.table("sources").records()))


def _page(report: Report, title: str) -> str:
    figures = map(_figure_cells, report.table("profile").records())
    sources = map(_source_cells, report.table("sources").records())
    parts = [
        NOTE,
        f"# {report.profile}",
        f"{title}. `hlo-inspect profiles {report.profile}` prints these figures; `?` is not stated.",
        "## Figures",
        make_table(("figure", "stated", "basis", "source", "note"), figures),
        "## Sources",
        make_table(("id", "document", "place", "address"), sources),
        "[All profiles](index.md)",
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _figure_cells(record: Mapping[str, Value]) -> list[str]:
    name = ".".join(str(record[part]) for part in ("level", "quantity") if record[part])
    notes = filter(None, (text(record["note"]), _CONFIDENCE.get(record["confidence"], "")))
    return [f"`{name}`", text(record["stated"]) or "?", text(record["basis"]), text(record["source"]), "; ".join(notes)]


def _source_cells(record: Mapping[str, Value]) -> list[str]:
    document = ", ".join(text(record[name]) for name in ("title", "publisher", "version"))
    return [text(record["id"]), document, text(record["page"]), f"<{record['url']}>"]


def text(value: Value) -> str:
    """Return a value as a cell; empty if there is none."""
    return "" if value is None else escape(str(value))
