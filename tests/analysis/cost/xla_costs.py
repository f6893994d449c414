"""What XLA says that modules cost: HloCostAnalysis of jaxlib, without compiling. A program of its own, as some texts abort it.

Reads a JSON list of texts on standard input and writes a line of JSON for each: FLOPs, transcendentals, bytes.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

hlo: Any = import_module("jaxlib._hlo")
jax: Any = import_module("jaxlib._jax")

FIGURES = ("flops", "transcendentals", "bytes accessed")


def main() -> None:
    client = jax.get_tfrt_cpu_client(asynchronous=False)
    for text in json.load(sys.stdin):
        found = jax.hlo_module_cost_analysis(client, hlo.hlo_module_from_text(text))
        sys.stdout.write(json.dumps([found.get(figure, 0.0) for figure in FIGURES]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
