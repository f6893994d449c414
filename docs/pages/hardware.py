"""Pages of the hardware profiles: every figure with its source, as `hlo-inspect profiles NAME` has them."""

from __future__ import annotations

from dataclasses import replace

from docs.pages.markdown import NOTE, make_table
from docs.pages.reports import markdown_of
from hlo_inspect.analysis.hardware import load_profile, profile_names
from hlo_inspect.configs import shipped_configs
from hlo_inspect.passes.profiles import profile_report
from hlo_inspect.report.model import Report

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
        rows.append((f"[`{name}`]({name}.md)", profile.title, ", ".join(_documents(report))))
        texts[f"hardware/{name}.md"] = _page(report, profile.title)
    table = make_table(("name", "accelerator", "sources"), rows)
    texts["hardware/index.md"] = f"{NOTE}\n\n# Hardware profiles\n\n{_INTRODUCTION}\n{table}"
    texts["hardware/own.md"] = _own_profile()
    return texts


def _own_profile() -> str:
    """Return the description of the format, which the folder of the profiles has."""
    text = (shipped_configs("hardware") / "README.md").read_text(encoding="utf-8")
    return f"{NOTE}\n\n# A profile of your own\n{text.partition(chr(10))[2]}"


def _documents(report: Report) -> list[str]:
    """Return the publishers of the sources, each once."""
    (table,) = (table for table in report.tables if table.name == "sources")
    return list(dict.fromkeys(str(record["publisher"]) for record in table.records()))


def _page(report: Report, title: str) -> str:
    """Return the page of a profile, without the path of its file."""
    tables = tuple(replace(table, title="Figures" if table.name == "profile" else table.title) for table in report.tables)
    _, _, body = markdown_of(replace(report, tables=tables)).partition("\n\n**")
    return f"{NOTE}\n\n# {report.profile}\n\n{title}\n\n**{body}\n[All profiles](index.md)\n"
