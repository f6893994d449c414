"""A process of calls for tests: `summary` notes the process and never answers, other tools answer at once."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

from hlo_inspect.worker_process import run_tasks


def call(data: bytes, folders: list[str], scratch: str) -> str:
    assert scratch
    name, _ = json.loads(data)
    if name == "summary":
        note = Path(folders[0], "process")
        note.with_suffix(".new").write_text(str(os.getpid()), encoding="ascii")
        note.with_suffix(".new").rename(note)
        threading.Event().wait()
    if name == "top":
        os._exit(7)
    return json.dumps([f"answer of {name}", False])


if __name__ == "__main__":
    run_tasks({"call": call}, lambda: {"error": None})
