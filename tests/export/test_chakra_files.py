"""The files of an export to Chakra, byte by byte; folders, classes of ranks, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_inspect import atomic_files
from hlo_inspect.cli.main import run
from hlo_inspect.export.written import chakra_export
from hlo_inspect.export.written.chakra_export import MAX_GROUPS, prefix_of
from hlo_inspect.export.written.chakra_nodes import METADATA, delimited, integer, integers, text, varint
from tests.export.exporting import module
from tests.export.test_chakra_plan import LOOPED, MESH, PERMUTE, REDUCE, P
from tests.export.traces import load

KERNEL = "ROOT %user = f32[65536] add(%all, %p)"
STEP = module(P, *MESH, REDUCE.format("all", "data", 3, "{}"), KERNEL, ranks=4)
SYMMETRIC = module(P, REDUCE.format("all", "p", 3, "{}"), KERNEL, ranks=4)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.txt"
    path.write_text(STEP)
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def exported(dump: Path, folder: Path, *options: str, text: str | None = None) -> int:
    if text is not None:
        dump.write_text(text)
    return run(["export", str(dump), "--to", "chakra", "-o", str(folder), *options])


def test_messages_equal_those_of_an_example_of_the_client() -> None:
    """`all_gather.3.et` of astra-sim's `examples/workload/microbenchmarks/all_gather/16npus_1MB`: 84 bytes."""
    attributes = [
        text(10, text(1, "is_cpu_op") + integer(27, 0)),
        text(10, text(1, "comm_type") + integer(9, 2)),
        text(10, text(1, "comm_size") + integer(9, 1 << 20)),
    ]
    node = integer(1, 3) + text(2, "all_gather_16npus_1MB") + integer(3, 7) + b"".join(attributes)
    example = (
        "070a05302e302e34"
        "4b080312" + "15" + b"all_gather_16npus_1MB".hex() + "1807"
        "520e0a0969735f6370755f6f70d80100"
        "520d0a09636f6d6d5f747970654802"
        "520f0a09636f6d6d5f73697a6548808040"
    )
    assert METADATA + delimited(node) == bytes.fromhex(example)
    assert len(bytes.fromhex(example)) == 84


def test_numbers_are_in_base_128() -> None:
    assert [varint(number).hex() for number in (0, 1, 127, 128, 300, 2**32)] == ["00", "01", "7f", "8001", "ac02", "8080808010"]
    assert integers(4, []) == b"", "an empty list is not on the wire"
    assert integers(4, [1, 300]).hex() == "220301ac02"


def test_a_second_run_gives_the_same_bytes_in_the_same_place(dump: Path, tmp_path: Path) -> None:
    assert exported(dump, tmp_path / "out") == 0
    first = content(tmp_path / "out")
    assert list(first) == ["comm_groups.json", *(f"step.{rank}.et" for rank in range(4))]
    assert exported(dump, tmp_path / "out") == 0, "a folder of the same export is replaced"
    assert content(tmp_path / "out") == first
    assert json.loads(first["comm_groups.json"]) == {"1": [0, 1], "2": [2, 3], "3": [0, 2], "4": [1, 3]}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".hlo")] == [], "nothing temporary stays"


def test_equal_ranks_share_a_file(dump: Path, tmp_path: Path) -> None:
    assert exported(dump, tmp_path / "all", text=SYMMETRIC) == 0
    assert {path.stat().st_nlink for path in (tmp_path / "all").glob("*.et")} == {4}, "hard links"
    assert exported(dump, tmp_path / "classes", "--ranks", "classes") == 0
    assert list(content(tmp_path / "classes")) == ["comm_groups.json", "rank_classes.json", "step.0.et"]
    assert json.loads((tmp_path / "classes" / "rank_classes.json").read_text()) == {"0": [0, 1, 2, 3]}
    assert load(tmp_path / "all") == load(tmp_path / "classes")
    assert (tmp_path / "all" / "comm_groups.json").read_text() == "{}\n"


def test_without_hard_links_files_are_copied(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _target: Path) -> None:
        raise OSError

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    assert exported(dump, tmp_path / "out", text=SYMMETRIC) == 0
    assert len(set(content(tmp_path / "out").values())) == 2


def test_an_interruption_leaves_nothing_half_written(dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert exported(dump, tmp_path / "out", text=SYMMETRIC) == 0
    before = content(tmp_path / "out")

    def interrupt(*_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic_files, "_replace_folder", interrupt)
    assert exported(dump, tmp_path / "out", text=STEP) == 130
    assert exported(dump, tmp_path / "new") == 130
    assert content(tmp_path / "out") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.txt", "out"]


def test_the_report_goes_to_standard_output_in_every_format(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exported(dump, tmp_path / "out", "--format", "json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["facts"]["export.all-reduce.executed_count"] == 3
    assert report["facts"]["export.all-reduce.executed_operand_bytes"] == 3 * 262_144
    assert [report["facts"][f"export.{name}"] for name in ("ranks", "files", "nodes")] == [4, 4, 4]
    assert exported(dump, tmp_path / "out", "--format", "csv") == 0
    assert capsys.readouterr().out.splitlines()[0] == "kind,axis,group_size,runs,executed_operand_bytes"


UNSCHEDULED = STEP.replace("is_scheduled=true, ", "")
OPEN = module(
    P,
    REDUCE.format("one", "p", 1, "{}"),
    REDUCE.format("two", "p", 2, "{}"),
    "ROOT %both = (f32[65536], f32[65536]) tuple(%one, %two)",
).replace("is_scheduled=true, ", "")
NO_DEVICES = (
    STEP.replace("num_partitions=4, ", "")
    .replace("replica_groups={{0,1},{2,3}}", "replica_groups={}")
    .replace("replica_groups={{0,2},{1,3}}", "replica_groups={}")
)
UNKNOWN_COUNT = LOOPED.replace(', backend_config={"known_trip_count":{"n":"3"}}', "")
MANY_TIMES = LOOPED.replace('"n":"3"', '"n":"1000000000000"')
RECURSIVE = module(
    P,
    "ROOT %call = f32[] call(%p), to_apply=%a",
    before="%a (q: f32[]) -> f32[] {\n  %q = f32[] parameter(0)\n  ROOT %r = f32[] call(%q), to_apply=%a\n}\n",
)


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (OPEN, 3, "dump.txt:13:"),
        (OPEN, 3, "the text is no schedule, and the order of one and two is open"),
        (NO_DEVICES, 3, "the number of devices is unknown"),
        (STEP.replace("num_partitions=4", "num_partitions=104857600000"), 3, "more than 1,048,576"),
        (RECURSIVE, 3, "a is part of a recursion"),
        (UNKNOWN_COUNT, 3, "the trip count of while"),
        (
            MANY_TIMES,
            2,
            "while runs its body 1,000,000,000,000 times, and a step has more than 500,000 nodes; raise --max-nodes",
        ),
        (STEP[: STEP.index("ROOT %user")], 3, "the text is truncated"),
        (STEP.replace("all-reduce(%p)", "all-reduce(%data)"), 3, "tensor uses a value that a later line defines"),
        (STEP + "\n" + STEP.replace("HloModule step", "HloModule other"), 2, "holds several modules, step and other"),
        ("DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", 3, "is a workload file of a network simulator"),
        ("nothing", 3, "dump.txt"),
    ],
    ids=range(12),
)
def test_bad_input_is_one_line_and_writes_nothing(
    text: str, status: int, message: str, dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exported(dump, tmp_path / "out", text=text) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_text_without_a_schedule_is_exported_as_written(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each collective uses the result of the one before it."""
    assert exported(dump, tmp_path / "out", text=UNSCHEDULED) == 0
    assert "the text is no schedule; nodes are in the order of its lines" in capsys.readouterr().out


def test_control_predecessors_order_collectives_without_a_schedule(dump: Path, tmp_path: Path) -> None:
    ordered = OPEN.replace("channel_id=2,", "control-predecessors={%one}, channel_id=2,")
    assert exported(dump, tmp_path / "out", text=ordered) == 0
    first, second, _ = load(tmp_path / "out").ranks[0]
    assert second.deps == {first.id}


def test_the_limit_of_nodes_is_the_users(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exported(dump, tmp_path / "out", "--max-nodes", "3", text=LOOPED) == 2
    assert "while runs its body 3 times, and a step has more than 3 nodes" in capsys.readouterr().err
    assert exported(dump, tmp_path / "out", "--max-nodes", "7") == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("full", "holds other files: notes.txt, step.x.et; name an empty or a new folder"),
        ("full/notes.txt", "is a file; an export needs a folder"),
        ("empty_job", "has 'empty' in its name: the client then reads no groups; name another folder"),
    ],
)
def test_folders_that_would_lose_something_are_refused(
    name: str, message: str, dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    for other in ("notes.txt", "step.x.et", "step.7.et"):
        (full / other).write_text("mine")
    assert exported(dump, tmp_path / name) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dump.txt", "full"]
    assert len(list(full.iterdir())) == 3


def test_a_module_name_cannot_leave_the_folder() -> None:
    assert prefix_of("../../jit(f)\n") == "_.._jit_f__"
    assert prefix_of("...") == "module"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "out"], "--to"),
        (["--to", "chakra"], "-o"),
        (["--to", "chakra", "-o", "out", "--max-nodes", "0"], "--max-nodes"),
    ],
)
def test_missing_options_are_named(options: list[str], message: str, dump: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", str(dump), *options]) == 2
    assert message in capsys.readouterr().err


def test_too_many_groups_are_refused(
    dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client multiplies numbers of groups by 1,000,000 in 32 bits."""
    assert MAX_GROUPS * 1_000_000 < 2**31 <= (MAX_GROUPS + 1) * 1_000_000
    monkeypatch.setattr(chakra_export, "MAX_GROUPS", 3)
    for ranks, status in ((6, 0), (8, 2)):
        step = module(P, REDUCE.format("all", "p", 1, f"[{ranks // 2},2]<=[{ranks}]"), KERNEL, ranks=ranks)
        assert exported(dump, tmp_path / f"out{ranks}", text=step) == status
    assert "the step has more than 3 groups" in capsys.readouterr().err


def test_too_many_files_are_refused(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = module("ROOT %q = f32[16] parameter(0)", ranks=chakra_export.MAX_FILES + 1)
    assert exported(dump, tmp_path / "out", text=step) == 2
    assert "65,537 ranks are more than 65,536 files; use --ranks classes" in capsys.readouterr().err
    assert exported(dump, tmp_path / "out", "--ranks", "classes") == 0


def test_messages_have_both_ends(dump: Path, tmp_path: Path) -> None:
    step = module(P, PERMUTE.format("all", "p", "{{0,1},{1,0}}"), KERNEL)
    assert exported(dump, tmp_path / "out", "--ranks", "classes", text=step) == 0
    own = load(tmp_path / "out")
    assert [node.attributes.get("comm_dst", node.attributes.get("comm_src")) for node in own.ranks[1][:2]] == [0, 0]
