"""An extension server of Perfetto as static files: macros and an SQL module for the traces that hlo-inspect writes.

Its protocol: https://perfetto.dev/docs/visualization/extension-server-protocol. `docs.site` writes the files into the site.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NAMESPACE = "hlo_inspect"
MODULE = f"{NAMESPACE}.step"
_STREAMS = "compute|collectives|point-to-point|copies|to host|from host|device|transfers"
_SELECT = f"INCLUDE PERFETTO MODULE {MODULE}; SELECT * FROM"


def sql() -> str:
    """Return the text of the SQL module."""
    return (Path(__file__).parent / "step.sql").read_text(encoding="utf-8")


def macros() -> list[dict[str, Any]]:
    """Return the macros: an id, a name, and the commands that they run."""
    kernels = f"{_SELECT} hlo_kernels ORDER BY coalesce(measured_dur, estimated_dur) DESC"
    return [
        _macro("PinStep", "pin the streams of the step", "PinTracksByRegex", f"^({_STREAMS})\\b"),
        _macro("Waits", "what the step waits for", "RunQueryAndShowTab", f"{_SELECT} hlo_waits ORDER BY dur DESC"),
        _macro("Kernels", "kernels, estimated and measured", "RunQueryAndShowTab", kernels),
    ]


def _macro(key: str, name: str, command: str, argument: str) -> dict[str, Any]:
    run = [{"id": f"dev.perfetto.{command}", "args": [argument]}]
    return {"id": f"{NAMESPACE}.{key}", "name": f"hlo-inspect: {name}", "run": run}


def files() -> dict[str, object]:
    """Return the documents of the server by their paths."""
    features = [{"name": "macros"}, {"name": "sql_modules"}]
    modules = [{"id": "default", "name": "Default"}]
    return {
        "manifest": {"name": "hlo-inspect", "namespace": NAMESPACE, "features": features, "modules": modules},
        "modules/default/macros": {"macros": macros()},
        "modules/default/sql_modules": {"sql_modules": [{"name": MODULE, "sql": sql()}]},
    }


def write(folder: Path) -> None:
    """Write the files into a folder."""
    for name, document in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
