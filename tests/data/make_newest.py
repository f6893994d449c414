"""Makes the dumps of the newest jax in an environment of their own: `python make_newest.py PYTHON FOLDER`.

PYTHON is an interpreter from 3.12, which jax 0.12 needs; FOLDER is where its environment is put. Ends with the figures of XLA's
own parser of that version in `expected.json`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEEDED = ("jax==0.12.0.1", "libtpu==0.0.52")
TARGETS = ("cpu", "tpu", "dump_folder", "forms", "tpu_forms", "elements")
RUNS = (*(("make_dumps.py", target) for target in TARGETS), ("oracle.py",))


def main(python: str, folder: Path) -> None:
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = folder / "bin/python"
    subprocess.run([inside, "-m", "pip", "install", "--quiet", *NEEDED], check=True)
    for run in RUNS:
        subprocess.run([inside, *run], cwd=HERE, check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python make_newest.py PYTHON FOLDER")
    main(sys.argv[1], Path(sys.argv[2]))
