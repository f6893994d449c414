"""The table of what an export leaves out: kinds, runs and bytes, worked out by hand."""

from __future__ import annotations

from tests.export.exporting import module, reported

P = "%p = f32[65536] parameter(0)"
"""An array of 262,144 bytes."""
SMALL = "%small = f32[16] parameter(1)"
"""An array of 64 bytes."""

LOOP = """%condition (state: (s32[], f32[65536])) -> pred[] {
  %state = (s32[], f32[65536]) parameter(0)
  %counter = s32[] get-tuple-element(%state), index=0
  %limit = s32[] constant(3)
  ROOT %less = pred[] compare(%counter, %limit), direction=LT
}

%body (state.1: (s32[], f32[65536])) -> (s32[], f32[65536]) {
  %state.1 = (s32[], f32[65536]) parameter(0)
  %counter.1 = s32[] get-tuple-element(%state.1), index=0
  %array = f32[65536] get-tuple-element(%state.1), index=1
  LINES
  ROOT %next = (s32[], f32[65536]) tuple(%counter.1, %result)
}
"""
LOOPED = (
    "%zero = s32[] constant(0)",
    "%state = (s32[], f32[65536]) tuple(%zero, %p)",
    "%while = (s32[], f32[65536]) while(%state), condition=%condition, body=%body, "
    'backend_config={"known_trip_count":{"n":"3"}}',
    "ROOT %last = f32[65536] get-tuple-element(%while), index=1",
)
COPY = "%inside = (f32[65536], f32[65536], u32[]) copy-start(%array)\n  %result = f32[65536] copy-done(%inside)"
REDUCE = "%{} = f32[65536] all-reduce(%{}), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=%add"
BESIDE = "it runs beside the kernels, and the client has one compute unit"
NOT_REACHED = "it runs in a branch that the step does not take, or in an asynchronous computation"

Row = tuple[object, ...]


TABLES = "not_expressed", "asynchronous_work"


def rows_of(text: str) -> tuple[list[Row], list[str]]:
    """Return name, kind, axis, runs and bytes of each row, and the reasons. The text of a row's line has its name."""
    report = reported(text)[0]
    records = [{"axis": None, **row} for name in TABLES for row in report.table(name).records()]
    lines = text.splitlines()
    for row in records:
        name = str(row["name"]).partition(" ")[0]
        assert f"%{name} = " in lines[int(str(row["line"])) - 1]
    rows: list[Row] = [(row["name"], row["kind"], row["axis"], row["runs"], row["executed_operand_bytes"]) for row in records]
    return rows, [str(row["reason"]) for row in records]


def test_asynchronous_work_is_a_row_for_each_kind() -> None:
    """Two copies in device memory run once and three times: 64 + 3 * 262,144 bytes. A computation has no known bytes."""
    doubled = (
        "%doubled (q: f32[65536]) -> f32[65536] {\n  %q = f32[65536] parameter(0)\n  ROOT %two = f32[65536] add(%q, %q)\n}\n"
    )
    text = module(
        P,
        SMALL,
        "%outside = (f32[16], f32[16], u32[]) copy-start(%small)",
        "%outside-done = f32[16] copy-done(%outside)",
        "%away = (f32[16]{0:S(5)}, f32[16], u32[]) copy-start(%small)",
        "%away-done = f32[16]{0:S(5)} copy-done(%away)",
        "%back = (f32[16], f32[16]{0:S(5)}, u32[]) copy-start(%away-done)",
        "%back-done = f32[16] copy-done(%back)",
        "%beside = ((f32[65536]), f32[65536], u32[]) async-start(%p), calls=%doubled",
        "%beside-done = f32[65536] async-done(%beside)",
        *LOOPED,
        before=LOOP.replace("LINES", COPY) + "\n" + doubled,
    )
    rows, reasons = rows_of(text)
    assert rows == [
        ("outside (+1)", "copy", None, 1 + 3, 64 + 3 * 262_144),
        ("away", "copy to host", None, 1, 64),
        ("back", "copy from host", None, 1, 64),
        ("beside", "asynchronous computation", None, 1, None),
    ]
    assert reasons == [BESIDE] * 4
    report = reported(text)[0]
    assert [len(report.table(name).rows) for name in TABLES] == [0, 4]


def test_a_collective_that_moves_nothing_counts_all_its_runs() -> None:
    alone = REDUCE.format("result", "array", "{{0},{1}}")
    rows, reasons = rows_of(module(P, *LOOPED, before=LOOP.replace("LINES", alone)))
    assert rows == [("result", "all-reduce", "", 3, 3 * 262_144)]
    assert reasons == ["its groups have one device each, which moves nothing"]


def test_runs_in_an_asynchronous_computation_are_those_without_a_node() -> None:
    """Two of three runs have no node. The rows and the facts of the files add up to the module's."""
    before = f"""%sends (q: f32[65536]) -> f32[65536] {{
  %q = f32[65536] parameter(0)
  {REDUCE.format("reduce", "q", "{{0,1}}")}
  ROOT %end = f32[65536] copy(%reduce)
}}

%wrapped (r: f32[65536]) -> f32[65536] {{
  %r = f32[65536] parameter(0)
  %once = f32[65536] call(%r), to_apply=%sends
  ROOT %twice = f32[65536] call(%once), to_apply=%sends
}}
"""
    text = module(
        P,
        "%beside = ((f32[65536]), f32[65536], u32[]) async-start(%p), calls=%wrapped",
        "%beside-done = f32[65536] async-done(%beside)",
        "ROOT %called = f32[65536] call(%beside-done), to_apply=%sends",
        before=before,
    )
    rows, reasons = rows_of(text)
    assert rows == [
        ("reduce", "all-reduce", "d0", 2, 2 * 262_144),
        ("beside", "asynchronous computation", None, 1, None),
    ]
    assert reasons == [NOT_REACHED, BESIDE]
    facts = reported(text)[0].facts
    assert (facts["export.all-reduce.executed_count"], facts["export.all-reduce.executed_operand_bytes"]) == (1, 262_144)


def test_a_collective_of_unknown_size_has_no_bytes() -> None:
    unknown = REDUCE.format("result", "odd", "{{0},{1}}").replace("f32[65536]", "weird[3]")
    text = module(P, '%odd = weird[3] custom-call(%p), custom_call_target="odd"', f"ROOT {unknown}")
    (row,), _ = rows_of(text)
    assert row == ("result", "all-reduce", "", 1, None)
