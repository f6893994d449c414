"""Trees of hlo-inspect, and the answers of each, which are kept in a file by the content of the tree's code."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Any

from benchmarks.answer_lines import Input, Line, filled

WORKER = Path(__file__).with_name("answer_worker.py")
CODE = ("hlo_inspect", "configs")
Answer = dict[str, Any]


def tree_of(name: str, kept: Path) -> Path:
    """Return the folder of a tree: `name` itself, or the unpacked code of the commit of this repository that it names."""
    if Path(name, "hlo_inspect").is_dir():
        return Path(name).resolve()
    git = ("git", "-C", str(Path(__file__).parents[1]))
    verify = [*git, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    commit = subprocess.run(verify, capture_output=True, text=True, check=False)
    if commit.returncode:
        raise SystemExit(f"{name} is neither a checkout of hlo-inspect nor a commit of this repository")
    folder = kept / "trees" / commit.stdout.strip()
    if not folder.is_dir():
        archive = subprocess.run([*git, "archive", commit.stdout.strip(), *CODE], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(folder, filter="data")
    return folder


def code_hash(tree: Path) -> str:
    """Return the hash of the code of a tree, changes without a commit included, and of the Python that runs it."""
    digest = hashlib.sha256(sys.version.encode())
    for part in CODE:
        for file in sorted(tree.joinpath(part).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(tree)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


class Worker:
    """A process that answers with the code of one tree. It starts with the first question, and again after it has died."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self._process: subprocess.Popen[str] | None = None

    def answers(self, folder: Path, lines: Sequence[Sequence[str]]) -> list[Answer]:
        process = self._process or self._start()
        stdin, stdout = process.stdin, process.stdout
        assert stdin and stdout  # noqa: S101 - both are pipes
        stdin.write(json.dumps({"folder": str(folder), "lines": lines}) + "\n")
        stdin.flush()
        reply = stdout.readline()
        if reply:
            answers: list[Answer] = json.loads(reply)
            return answers
        self._process = None
        died = f"the process ended with {process.wait()}"
        if len(lines) == 1:
            return [{"status": None, "output": "", "errors": died, "files": {}}]
        return [answer for line in lines for answer in self.answers(folder, [line])]

    def _start(self) -> subprocess.Popen[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HLO_INSPECT")}
        environment |= {"PYTHONPATH": str(self.tree), "PYTHONHASHSEED": "0", "COLUMNS": "120", "NO_COLOR": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        return self._process

    def close(self) -> None:
        if self._process is not None:
            pipe: IO[str] | None = self._process.stdin
            assert pipe  # noqa: S101
            pipe.close()
            self._process.wait()


class Store:
    """The answers of one tree: a table from the hash of an input's files and a command line to the packed answer."""

    def __init__(self, tree: Path, kept: Path) -> None:
        self.tree = tree
        self._lock = Lock()
        kept.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(kept / f"{code_hash(tree)}.sqlite", check_same_thread=False, timeout=60)
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS lines (question TEXT, line TEXT, packed BLOB, PRIMARY KEY (question, line))"
        )
        self.asked = 0
        """Command lines that the tree answered in this run."""

    def packed(self, input_: Input, lines: Sequence[Line], worker: Worker) -> list[bytes]:
        """Return the packed answers to command lines about an input. The tree answers only those that the table lacks."""
        question = question_of(input_)
        names = {line: json.dumps(line) for line in lines}
        with self._lock:
            rows = self._database.execute("SELECT line, packed FROM lines WHERE question = ?", [question]).fetchall()
        answers = dict(rows)
        missing = [line for line in lines if names[line] not in answers]
        if missing:
            asked = worker.answers(input_.path.parent, [filled(line, input_) for line in missing])
            new = {names[line]: zlib.compress(json.dumps(answer).encode()) for line, answer in zip(missing, asked, strict=True)}
            with self._lock, self._database:
                values = [(question, line, packed) for line, packed in new.items()]
                self._database.executemany("INSERT OR REPLACE INTO lines VALUES (?, ?, ?)", values)
                self.asked += len(new)
            answers |= new
        return [answers[names[line]] for line in lines]


def question_of(input_: Input) -> str:
    """Return the hash of all files that the answers about an input may depend on: those of its folder."""
    files = _content_hash(input_.path if input_.path.is_dir() else input_.path.parent, is_whole=input_.path.is_dir())
    return hashlib.sha256(json.dumps([input_.path.name, input_.next, files]).encode()).hexdigest()


@cache
def _content_hash(folder: Path, *, is_whole: bool) -> str:
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*") if is_whole else folder.iterdir()):
        if file.is_file():
            digest.update(f"{file.relative_to(folder)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def unpacked(packed: bytes) -> Answer:
    answer: Answer = json.loads(zlib.decompress(packed))
    return answer
