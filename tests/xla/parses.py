"""Says which HLO texts XLA's own parser (jaxlib) takes.

A JSON list of texts comes on standard input, one of truth values goes out. Each text has a process of its own, since some
abort it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any

hlo: Any = import_module("jaxlib._hlo")


def parses(text: str) -> bool:
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            hlo.hlo_module_from_text(text)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


if __name__ == "__main__":
    sys.stdout.write(json.dumps([parses(text) for text in json.load(sys.stdin)]))
