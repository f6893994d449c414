"""Files and streams: what a report is written to, what is left of it when something goes wrong, and inputs that fail."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hlo_inspect.atomic_files import atomic_writer
from hlo_inspect.errors import UsageError
from hlo_inspect.report.formats import FORMATS
from tests.calling import call_text

DATA = Path(__file__).parents[1] / "data"
COLLECTIVES = DATA / "cpu" / "collectives.after.txt"
ADAMW = DATA / "cpu" / "adamw_step.after.txt"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
COMMAND = f"'{sys.executable}' -m hlo_inspect"
_SHELL = frozenset("|&;<>$~`")
"""Characters that need a shell. The tool itself expands patterns."""
TINY = "HloModule m\n\nENTRY e {\n  a = f32[4]{0} parameter(0)\n  ROOT b = f32[4]{0} negate(a)\n}\n"

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")


def shell(command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell. A plain command of the tool needs neither a shell nor a process."""
    name, *arguments = shlex.split(command)
    if name == "hlo-inspect" and _SHELL.isdisjoint(command) and folder is not None:
        return call_text(*arguments, folder=folder)
    line = command.replace("hlo-inspect ", f"{COMMAND} ")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=ENVIRONMENT, cwd=folder, check=False)


def is_alive(process: int) -> bool:
    """Return True if a process runs; one that ended, and that nobody waited for, does not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


class TestOutput:
    """`-o` replaces a file as a whole or not at all."""

    @pytest.fixture
    def old(self, tmp_path: Path) -> Path:
        path = tmp_path / "report.json"
        path.write_text("old")
        return path

    def test_the_file_is_replaced_and_keeps_its_mode(self, old: Path) -> None:
        old.chmod(0o640)
        assert shell(f"hlo-inspect params '{COLLECTIVES}' --format json -o report.json", old.parent).returncode == 0
        assert json.loads(old.read_text())["command"] == "params"
        assert old.stat().st_mode & 0o777 == 0o640
        assert leftovers(old.parent) == []

    def test_a_new_file_has_the_mode_of_new_files(self, tmp_path: Path) -> None:
        assert shell(f"umask 027; hlo-inspect params '{COLLECTIVES}' -o new.txt", tmp_path).returncode == 0
        assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640

    def test_a_link_stays_one(self, old: Path) -> None:
        (old.parent / "link.json").symlink_to(old.name)
        assert shell(f"hlo-inspect params '{COLLECTIVES}' --format json -o link.json", old.parent).returncode == 0
        assert (old.parent / "link.json").is_symlink()
        assert json.loads(old.read_text())["command"] == "params"

    @pytest.mark.parametrize(
        "arguments",
        [
            f"params '{COLLECTIVES}' --table nothing",
            f"params '{COLLECTIVES}' missing.txt --module nothing",
            "params missing.txt",
            f"collectives '{COLLECTIVES}' --mesh data=3",
            f"collectives '{ADAMW}' '{COLLECTIVES}' --mesh a=8,b=3 --format jsonl",
        ],
    )
    def test_a_failure_leaves_the_old_file(self, old: Path, arguments: str) -> None:
        result = shell(f"hlo-inspect {arguments} -o report.json", old.parent)
        assert result.returncode in {2, 3}
        assert old.read_text() == "old"
        assert leftovers(old.parent) == []

    def test_a_failure_behind_the_first_report_leaves_the_old_file(self, old: Path) -> None:
        (old.parent / "four.txt").write_text(TINY.replace("HloModule m", "HloModule m, num_partitions=4"))
        (old.parent / "two.txt").write_text(TINY.replace("HloModule m", "HloModule m, num_partitions=2"))
        result = shell("hlo-inspect collectives four.txt two.txt --mesh a=4 --format jsonl -o report.json", old.parent)
        assert result.returncode == 2
        assert "the mesh a=4 has 4 devices" in result.stderr
        assert (old.read_text(), leftovers(old.parent)) == ("old", [])

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError(28, "No space left on device")])
    def test_an_interruption_in_the_middle_leaves_the_old_file(self, old: Path, error: BaseException) -> None:
        expected = UsageError if isinstance(error, OSError) else type(error)
        with pytest.raises(expected), atomic_writer(str(old)) as stream:
            stream.write("new")
            stream.flush()
            raise error
        assert (old.read_text(), leftovers(old.parent)) == ("old", [])

    def test_a_disk_that_is_full_at_the_end_leaves_the_old_file(self, old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="No space left on device"), atomic_writer(str(old)) as stream:
            stream.write("new")
        assert (old.read_text(), leftovers(old.parent)) == ("old", [])

    @pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
    def test_a_signal_leaves_the_old_file(self, old: Path, number: signal.Signals, status: int) -> None:
        """The first report is written, and the second input is a pipe that nothing comes from."""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
        pipe = old.parent / "pipe.txt"
        os.mkfifo(pipe)
        arguments = ["summary", "--quick", str(COLLECTIVES), str(pipe), "--format", "jsonl", "-o", str(old)]
        command = [sys.executable, "-m", "hlo_inspect", *arguments]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT) as process, pipe.open("wb"):
            end = time.monotonic() + 30
            while not leftovers(old.parent) and time.monotonic() < end:
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate(timeout=60)
        assert process.returncode == status
        assert (old.read_text(), leftovers(old.parent)) == ("old", [])

    @pytest.mark.parametrize("command", ["params a.txt", "summary *.txt", "params . --quick", "check x.txt --policy a.txt"])
    def test_an_input_is_never_the_output(self, tmp_path: Path, command: str) -> None:
        for name in ("a.txt", "x.txt"):
            (tmp_path / name).write_text(TINY)
        (tmp_path / "link").symlink_to("a.txt")
        policy = "--assert 'params.count == 1'" if "check" in command else ""
        (tmp_path / "a.txt").write_text("checks: {params.count: 1}\n" if "check" in command else TINY)
        before = (tmp_path / "a.txt").read_text()
        for name in ("a.txt", "./a.txt", "link"):
            result = shell(f"hlo-inspect {command} {policy} -o {name}", tmp_path)
            assert result.returncode == 2
            assert "is an input" in result.stderr
            assert (tmp_path / "a.txt").read_text() == before

    @pytest.mark.parametrize(
        ("command", "name"),
        [
            ("normalize .", "module_0001.jit_f.0001.a.after_first.before_b.txt"),
            ("normalize *.txt", "module_0001.jit_f.0000.a.after_pipeline-start.before_first.txt"),
            ("history .", "module_0001.jit_f.0000.a.after_pipeline-start.before_first.txt"),
            ("history . negate", "module_0001.jit_f.0001.a.after_first.before_b.txt"),
            ("report .", "module_0001.jit_f.0000.a.after_pipeline-start.before_first.txt"),
        ],
    )
    def test_a_file_of_an_input_directory_is_never_the_output(self, tmp_path: Path, command: str, name: str) -> None:
        for file, text in (("0000.a.after_pipeline-start.before_first", TINY), ("0001.a.after_first.before_b", TINY + "\n")):
            (tmp_path / f"module_0001.jit_f.{file}.txt").write_text(text)
        before = (tmp_path / name).read_text()
        result = call_text(*command.split(), "-o", name, folder=tmp_path)
        assert (result.returncode, "is an input" in result.stderr) == (2, True)
        assert (tmp_path / name).read_text() == before
        assert call_text(*command.split(), "-o", "new", folder=tmp_path).returncode == 0

    @pytest.mark.parametrize("command", ["memory .", "memory m.txt", "diff m.txt m.txt", "report m.txt m.txt --diff"])
    @pytest.mark.parametrize("neighbour", ["m-buffer-assignment.txt", "m-live-range.txt.gz"])
    def test_xla_s_memory_files_beside_an_input_are_never_the_output(
        self, tmp_path: Path, command: str, neighbour: str
    ) -> None:
        (tmp_path / "m.txt").write_text(TINY)
        (tmp_path / neighbour).write_bytes(b"as XLA wrote it")
        result = call_text(*command.split(), "-o", neighbour, folder=tmp_path)
        assert (result.returncode, "is an input" in result.stderr) == (2, True)
        assert (tmp_path / neighbour).read_bytes() == b"as XLA wrote it"

    def test_an_unreadable_input_is_never_the_output(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text(TINY)
        (tmp_path / "b.txt.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01")
        result = call_text("params", ".", "-o", "b.txt.gz", folder=tmp_path)
        assert (result.returncode, "is an input" in result.stderr) == (2, True)
        assert (tmp_path / "b.txt.gz").read_bytes() == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x01"

    def test_a_device_is_written_to(self) -> None:
        assert shell(f"hlo-inspect params '{COLLECTIVES}' --format csv -o /dev/stdout | head -1").stdout.startswith("number,")


class TestStreams:
    """A standard stream that is closed, full, or a pipe that nobody reads."""

    @pytest.mark.parametrize(
        ("command", "status", "message"),
        [
            (f"hlo-inspect params '{COLLECTIVES}' >&-", 2, "hlo-inspect: standard output is closed\n"),
            ("hlo-inspect params - <&-", 3, "hlo-inspect: <stdin>: cannot be read: standard input is closed\n"),
            (f"hlo-inspect params '{COLLECTIVES}' 2>&- >/dev/null", 0, ""),
            ("hlo-inspect params missing.txt 2>&-", 3, ""),
            ("hlo-inspect --help >&-", 0, ""),
            ("hlo-inspect params missing.txt >&- 2>&- <&-", 3, ""),
        ],
    )
    def test_closed(self, command: str, status: int, message: str) -> None:
        result = shell(command)
        assert (result.returncode, result.stderr) == (status, message)

    @needs_full
    @pytest.mark.parametrize(
        ("command", "status", "message"),
        [
            (f"hlo-inspect params '{COLLECTIVES}' >/dev/full", 2, "standard output cannot be written: No space left on device"),
            ("hlo-inspect --help >/dev/full", 2, "standard output cannot be written: No space left on device"),
            ("hlo-inspect rules --format csv >/dev/full", 2, "standard output cannot be written: No space left on device"),
            ("hlo-inspect params missing.txt 2>/dev/full", 3, ""),
            ("hlo-inspect params 2>/dev/full", 2, ""),
            (f"hlo-inspect params '{COLLECTIVES}' -o /dev/full", 2, "/dev/full: cannot be written: No space left on device"),
        ],
    )
    def test_full(self, command: str, status: int, message: str) -> None:
        result = shell(command)
        assert result.returncode == status
        assert message in result.stderr
        assert "internal" not in result.stderr
        assert "Exception ignored" not in result.stderr

    @pytest.mark.parametrize("arguments", ["--help", "params --help", "rules", "--version", f"summary '{COLLECTIVES}'"])
    def test_a_pipe_without_a_reader_is_no_error(self, arguments: str) -> None:
        result = shell(f"(sleep 0.2; hlo-inspect {arguments}; echo $? >&2) | true")
        assert result.stderr == "0\n"

    def test_an_interruption_during_imports(self, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text(
            "import sys\n"
            "class Interrupting:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            "        if name == 'hlo_inspect.cli.commands':\n"
            "            raise KeyboardInterrupt\n"
            "sys.meta_path.insert(0, Interrupting())\n"
        )
        environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"}
        command = [sys.executable, "-m", "hlo_inspect", "--help"]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (130, "hlo-inspect: interrupted\n")

    def test_a_page_says_that_memory_did_not_suffice(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from hlo_inspect.cli.main import run
        from hlo_inspect.inspection.inspection import Inspection

        def read(*_arguments: object) -> Iterator[object]:
            raise MemoryError

        monkeypatch.setattr(Inspection, "read", read)
        assert run(["params", str(COLLECTIVES)]) == 3
        assert capsys.readouterr().err.startswith("hlo-inspect: out of memory")


class TestInputsThatFail:
    """An input that cannot be read does not stop the others, and is named."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for number in range(1, 6):
            (tmp_path / f"module_{number:04}.x.after_optimizations.txt").write_text(TINY.replace("m\n", f"m{number}\n", 1))
        (tmp_path / "module_0002.x.after_optimizations.txt").write_bytes(b"\0" * 40)
        (tmp_path / "module_0004.x.after_optimizations.txt").write_text("nothing\n")
        return tmp_path

    @pytest.mark.parametrize("jobs", ["", "-j 2"])
    def test_unreadable_files_of_a_directory_leave_the_others_their_answers(self, folder: Path, jobs: str) -> None:
        result = shell(f"hlo-inspect params . --format jsonl {jobs}", folder)
        assert result.returncode == 3
        names = [json.loads(line)["facts"]["module.name"] for line in result.stdout.splitlines()]
        assert names == ["m1", "m3", "m5"]
        first, second = result.stderr.splitlines()
        assert first.startswith("hlo-inspect: module_0002.x.after_optimizations.txt: is a binary file")
        assert second == "hlo-inspect: module_0004.x.after_optimizations.txt: holds no HLO module"

    @pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
    def test_a_folder_without_permission(self, folder: Path) -> None:
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0)
        result = shell("hlo-inspect params closed", folder)
        assert result.returncode == 3
        assert "Permission denied" in result.stderr

    def test_an_empty_name(self, folder: Path) -> None:
        result = shell("hlo-inspect params ''", folder)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr == "hlo-inspect: '': cannot be read: the name of the input is empty\n"


class TestJobs:
    """`-j` changes nothing but the time."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path
        for number in range(1, 8):
            source = (ADAMW, COLLECTIVES)[number % 2].read_bytes()
            (folder / f"module_{number:04}.jit_step.after_optimizations.txt.gz").write_bytes(gzip.compress(source))
        (folder / "module_0009.x.after_optimizations.txt").write_text(TINY * 3)
        return folder

    @pytest.mark.parametrize("form", FORMATS)
    def test_the_output_is_the_same(self, folder: Path, form: str) -> None:
        alone, parallel = (shell(f"hlo-inspect params . --format {form} -j {jobs}", folder) for jobs in (1, 3))
        assert alone.stdout
        assert (alone.returncode, alone.stdout, alone.stderr) == (parallel.returncode, parallel.stdout, parallel.stderr)

    @pytest.mark.parametrize("command", ["summary --quick", "list --quick", "check --assert 'params.count == 2'"])
    def test_every_command_answers_the_same_with_two_processes(self, folder: Path, command: str) -> None:
        alone, parallel = (shell(f"hlo-inspect {command} . missing.txt ./*1.*.gz -j {jobs}", folder) for jobs in (1, 2))
        assert alone.returncode == 3
        assert (alone.returncode, alone.stdout, alone.stderr) == (parallel.returncode, parallel.stdout, parallel.stderr)

    @pytest.mark.parametrize("name", ["-", "/dev/stdin"])
    def test_standard_input(self, folder: Path, name: str) -> None:
        command = f"gzip -dc module_0001.*.gz | hlo-inspect params {name} module_0009.* --format csv -j"
        alone, parallel = (shell(f"{command} {jobs}", folder) for jobs in (1, 2))
        assert (alone.returncode, alone.stderr) == (0, "")
        assert (alone.returncode, alone.stdout, alone.stderr) == (parallel.returncode, parallel.stdout, parallel.stderr)

    def test_an_error_that_ends_the_run_does_so_at_the_same_place(self, folder: Path) -> None:
        """The mesh does not fit the second module of the last file."""
        texts = [TINY.replace("m\n", f"m, num_partitions={number}\n", 1) for number in (8, 4, 8)]
        (folder / "last.txt").write_text("".join(texts))
        arguments = "*.gz last.txt --mesh a=8 --format jsonl"
        alone, parallel = (shell(f"hlo-inspect collectives {arguments} -j {jobs}", folder) for jobs in (1, 2))
        assert alone.stdout.count("\n") == 8
        assert alone.returncode == 2
        assert (alone.returncode, alone.stdout, alone.stderr) == (parallel.returncode, parallel.stdout, parallel.stderr)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
    def test_workers_end_with_their_parent(self, tmp_path: Path, number: signal.Signals) -> None:
        """Each waits for a pipe, and one of them is stopped if the parent can still end it."""
        if shutil.which("pgrep") is None:
            pytest.skip("no pgrep")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background has it ignored
        pipes = [tmp_path / "a.txt", tmp_path / "b.txt"]
        for pipe in pipes:
            os.mkfifo(pipe)
        command = [sys.executable, "-m", "hlo_inspect", "params", *map(str, pipes), "-j", "2"]
        with (
            subprocess.Popen(command, stderr=subprocess.PIPE, env=ENVIRONMENT) as process,
            pipes[0].open("wb"),
            pipes[1].open("wb"),
        ):
            listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout
            workers = list(map(int, listed.split()))
            if number == signal.SIGINT:
                os.kill(workers[-1], signal.SIGSTOP)
            process.send_signal(number)
            _, stderr = process.communicate(timeout=60)
            end = time.monotonic() + 30
            while any(map(is_alive, workers)) and time.monotonic() < end:
                time.sleep(0.02)
        assert len(workers) == 2
        assert not any(map(is_alive, workers))
        assert b"Traceback" not in stderr

    def test_a_process_that_is_killed_is_named(self, tmp_path: Path) -> None:
        """The worker that reads a pipe waits for it, and is ended there; the other input is read."""
        if shutil.which("pkill") is None:
            pytest.skip("no pkill")
        os.mkfifo(tmp_path / "pipe.txt")
        arguments = ["params", str(tmp_path / "pipe.txt"), str(COLLECTIVES), "-j", "2", "--format", "csv"]
        command = [sys.executable, "-m", "hlo_inspect", *arguments]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process,
            (tmp_path / "pipe.txt").open("wb"),
        ):
            time.sleep(0.5)
            children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout
            os.kill(int(children.split()[0]), signal.SIGKILL)
            stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 3
        assert b"pipe.txt: the process that worked on it ended with status -9" in stderr
        assert stdout.startswith(b"number,")
