"""XLA's own cost of modules: HloCostAnalysis of jaxlib, without compiling. A separate program, because some texts abort it.

It reads a JSON list of texts from standard input and writes a line of JSON for each. A line holds FLOPs, transcendentals,
bytes, and the number of instructions of each opcode.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
oracle: Any = import_module("oracle")
hlo: Any = import_module("jaxlib._hlo")
jax: Any = import_module("jaxlib._jax")

FIGURES = ("flops", "transcendentals", "bytes accessed")


def opcodes_of(data: bytes) -> Iterator[str]:
    """Yield the opcode of every instruction, by the numbers of the fields in XLA's hlo.proto."""
    for computation in oracle.decode(data)[3]:
        for instruction in oracle.decode(computation).get(2, []):
            yield oracle.first(oracle.decode(instruction), 2).decode()


def main() -> None:
    client = jax.get_tfrt_cpu_client(asynchronous=False)
    for text in json.load(sys.stdin):
        module = hlo.hlo_module_from_text(text)
        costs = jax.hlo_module_cost_analysis(client, module)
        opcodes = Counter(opcodes_of(module.as_serialized_hlo_module_proto()))
        sys.stdout.write(json.dumps([*(costs.get(figure, 0.0) for figure in FIGURES), opcodes]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
