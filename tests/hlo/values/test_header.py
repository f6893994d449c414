"""The `HloModule` line and the stack-frame tables behind it."""

from __future__ import annotations

import pytest

from hlo_inspect.hlo import tokens
from hlo_inspect.hlo.read.cursor import TextSource
from hlo_inspect.hlo.read.reader import read_modules
from hlo_inspect.hlo.values.header import Alias, Donor, Header, scan_header
from hlo_inspect.hlo.values.op_names import MAX_FRAMES, TABLE, SourceLine, StackFrames
from hlo_inspect.hlo.wants import Wants

RECOVERY = """{
  {"a"} : {"b"},
  "
HloModule r

ENTRY e {
  x = f32[] add(y)
}
"
}"""


def header(text: str) -> Header:
    return scan_header(text, 0, final=True)[0]


@pytest.mark.parametrize(
    ("text", "name", "attributes"),
    [
        ("HloModule m\n", "m", {}),
        ("HloModule m:\n", "m", {}),
        ("HloModule %a-b.c_1, is_scheduled=true\n", "a-b.c_1", {"is_scheduled": "true"}),
        ("HloModule , num_partitions=8\n", "", {"num_partitions": "8"}),
        ("HloModule /* n */ m /* a */, /* b */ is_scheduled=true // c }\n", "m", {"is_scheduled": "true"}),
        ("HloModule m,\n  a={\n {}\n },\n  b=2\n", "m", {"a": "{\n {}\n }", "b": "2"}),
        ("HloModule m\n, a=1\n", "m", {"a": "1"}),
        ("HloModule m, a=1,\n\nbody {\n", "m", {"a": "1"}),
        ("HloModule m, a=1\n\n{\n  x = f32[] constant(1)\n}\n", "m", {"a": "1"}),
        ("HloModule m, a=1, flag, b=2\n", "m", {"a": "1", "flag": "", "b": "2"}),
        ("HloModule m, last_flag\n", "m", {"last_flag": ""}),
        ("HloModule m, a=1, a=2\n", "m", {"a": "1"}),
        ('HloModule m, by="a tool { of } 2031", l={1,{2,3}}\n', "m", {"by": '"a tool { of } 2031"', "l": "{1,{2,3}}"}),
        (
            'HloModule m, frontend_attributes={note="a } {",x.y={"k":"{[("}}, a=1\n',
            "m",
            {"frontend_attributes": '{note="a } {",x.y={"k":"{[("}}', "a": "1"},
        ),
        (
            f"HloModule m, origin_recovery_table={RECOVERY}, a=1\n",
            "m",
            {"origin_recovery_table": RECOVERY, "a": "1"},
        ),
        (
            'HloModule m,\ndebug_attributes={\n  {"p"}:({op_id=3}),\n}\n',
            "m",
            {"debug_attributes": '{\n  {"p"}:({op_id=3}),\n}'},
        ),
        (
            "HloModule m, allow_spmd_sharding_propagation_to_output=true\n",
            "m",
            {"allow_spmd_sharding_propagation_to_output": "true"},
        ),
    ],
)
def test_headers_have_name_and_attributes(text: str, name: str, attributes: dict[str, str]) -> None:
    parsed = header(text)
    assert (parsed.name, parsed.attributes, parsed.faults) == (name, attributes, ())


@pytest.mark.parametrize(
    ("marked"),
    [
        "HloModule m^\n\n%f (",
        "HloModule m, a={1}^\n",
        "HloModule m, a=1,^\n\nbody {\n",
        "HloModule m^ ENTRY e {\n",
        "HloModule ^{\n",
    ],
)
def test_end_of_a_header(marked: str) -> None:
    assert scan_header(marked.replace("^", ""), 0, final=True)[1] == marked.index("^")


@pytest.mark.parametrize("words", [["HloModule", "m", ",", "a=", "{1", "}", ", b=2", ", flag", ",\n c=3"]])
def test_a_header_truncated_at_a_line_end_may_continue(words: list[str]) -> None:
    for count in range(1, len(words) + 1):
        with pytest.raises(tokens.IncompleteError):
            scan_header("\n".join(words[:count]) + "\n", 0, final=False)
    parsed, _ = scan_header("\n".join(words) + "\n\nENTRY e {", 0, final=False)
    assert parsed.attributes == {"a": "{1\n}", "b": "2", "flag": "", "c": "3"}


@pytest.mark.parametrize(
    ("text", "attributes", "fault"),
    [
        ("HloModule m, a=1, b={1\n\nENTRY e {\n", {"a": "1"}, "'{' is not closed"),
        ("HloModule m, a=1, b={(1}, c=2\n", {"a": "1"}, "'}' does not close '('"),
        ("HloModule m, a=1, b=, c=2\n", {"a": "1"}, "expected a value"),
        ('HloModule m, a=1, b="open\n', {"a": "1"}, "expected a value"),
    ],
)
def test_a_malformed_header_is_kept_up_to_its_fault(text: str, attributes: dict[str, str], fault: str) -> None:
    parsed = header(text)
    assert (parsed.name, parsed.attributes, parsed.fault) == ("m", attributes, fault)
    assert parsed.faults == (f"the header cannot be read to its end: {fault}",)


def test_device_counts_and_schedule_of_a_header() -> None:
    parsed = header("HloModule m, is_scheduled=true, replica_count=4, num_partitions=8\n")
    assert (parsed.is_scheduled, parsed.replica_count, parsed.num_partitions, parsed.states_devices) == (True, 4, 8, True)
    bare = header("HloModule m\n")
    assert (bare.is_scheduled, bare.replica_count, bare.num_partitions, bare.states_devices) == (False, 1, 1, False)
    assert not header("HloModule m, is_scheduled=false\n").is_scheduled


def test_device_counts_that_are_no_numbers_are_faults() -> None:
    parsed = header("HloModule m, replica_count=two, num_partitions=99999999999999999999\n")
    assert (parsed.replica_count, parsed.num_partitions) == (1, 1)
    assert parsed.faults == (
        "replica_count is not a number: 'two'",
        "num_partitions is not a number: '99999999999999999999'",
    )


def test_aliases() -> None:
    text = "{ {0,0}: (0, {0}, must-alias), {0, 1}: (12, {1,0}, may-alias), /*index=5*/{ }: ( 2 , { } ) , {3}:(4,{}) }"
    parsed = header(f"HloModule m, input_output_alias={text}\n")
    assert parsed.aliases == (
        Alias((0, 0), 0, (0,), "must-alias"),
        Alias((0, 1), 12, (1, 0), "may-alias"),
        Alias((), 2, (), "may-alias"),
        Alias((3,), 4, (), "may-alias"),
    )
    assert parsed.faults == ()


def test_donors() -> None:
    parsed = header("HloModule m, buffer_donor={ (1, {}), (0, {1, 1}),(7,{2}) }\n")
    assert parsed.donors == (Donor(1, ()), Donor(0, (1, 1)), Donor(7, (2,)))
    assert parsed.faults == ()


def test_no_aliases_and_no_donors() -> None:
    assert header("HloModule m\n").aliases == ()
    assert header("HloModule m, input_output_alias={}, buffer_donor={ }\n").aliases == ()
    assert header("HloModule m, input_output_alias={}, buffer_donor={ }\n").donors == ()


@pytest.mark.parametrize(
    ("attribute", "rest"),
    [
        ("input_output_alias={ {0}: (0, {}), {1}: 2 }", "{1}: 2"),
        ("input_output_alias={ {0}: (x, {}) }", "{0}: (x, {})"),
        ("input_output_alias={ {0}: (0, {}, no-alias-at-all) }", "{0}: (0, {}, no-alias-at-all)"),
        ("buffer_donor={ (0, {}), 3 }", "3"),
    ],
)
def test_unreadable_aliases_and_donors_are_faults(attribute: str, rest: str) -> None:
    faults = header(f"HloModule m, {attribute}\n").faults
    assert len(faults) == 1
    assert faults[0].startswith(f"{attribute.partition('=')[0]} has an unreadable entry")
    assert rest.strip("{}, ") in faults[0]


def test_the_entry_layout_is_read() -> None:
    text = "{(f32[8]{0}, /*index=1*/(s32[], bf16[2,2]{0,1:T(8,128)}))->(f32[8]{0}, token[])}"
    layout = header(f"HloModule m, entry_computation_layout={text}\n").entry_layout
    assert layout is not None
    assert [str(shape) for shape in layout] == ["(f32[8], (s32[], bf16[2,2]))", "(f32[8], token[])"]


@pytest.mark.parametrize("text", ["{}", "{(f32[8])}", "{(f32[8)->f32[]}", "{(f99[8])->f32[]}", "true"])
def test_a_malformed_or_missing_entry_layout_is_none(text: str) -> None:
    assert header(f"HloModule m, entry_computation_layout={text}\n").entry_layout is None
    assert header("HloModule m\n").entry_layout is None


FILES = 'FileNames\n1 "/train/a.py"\n2 "/train/odd \\"name\\" {1}.py"\n'
FUNCTIONS = 'FunctionNames\n1 "main"\n2 "f.<locals>.<lambda>"\n'
LOCATIONS = (
    "FileLocations\n"
    "1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=4 end_column=20}\n"
    "2 {file_name_id=2 function_name_id=2 line=27 end_line=29 column=8 end_column=9}\n"
    "3 {file_name_id=9 function_name_id=1 line=1}\n"
    "4 {file_name_id=1 function_name_id=9 line=5}\n"
)
FRAMES = (
    "StackFrames\n"
    "1 {file_location_id=1 parent_frame_id=1}\n"
    "2 {file_location_id=2 parent_frame_id=2}\n"
    "3 {file_location_id=3 parent_frame_id=1}\n"
    "4 {file_location_id=4 parent_frame_id=1}\n"
    "5 {file_location_id=8 parent_frame_id=1}\n"
)


@pytest.mark.parametrize(
    ("frame", "lines"),
    [
        (1, [SourceLine("/train/a.py", 10, "main", 4)]),
        (2, [SourceLine('/train/odd "name" {1}.py', 27, "f.<locals>.<lambda>", 8), SourceLine("/train/a.py", 10, "main", 4)]),
        (3, []),  # no such file
        (4, [SourceLine("/train/a.py", 5, "")]),  # no such function
        (5, []),  # no such location
        (0, []),
        (6, []),
        (-1, []),
    ],
)
def test_stack_frames(frame: int, lines: list[SourceLine]) -> None:
    frames = StackFrames()
    for table in (FILES, FUNCTIONS, LOCATIONS, FRAMES):
        frames.add(table)
    assert frames.stack(frame) == tuple(lines)


def test_frames_are_unknown_without_tables() -> None:
    assert StackFrames().stack(1) == ()


def test_deep_and_circular_stacks_end() -> None:
    """Frame 3 is its own caller, and the caller of frame 4 comes later. XLA numbers callers first."""
    frames = StackFrames()
    frames.add('FileNames\n1 "a.py"\n')
    frames.add("FileLocations\n" + "".join(f"{n} {{file_name_id=1 line={n}}}\n" for n in range(1, 6)))
    rows = ((1, 1), (2, 2), (3, 4), (4, 6), (5, 4))
    frames.add("StackFrames\n" + "".join(f"{n} {{file_location_id={n} parent_frame_id={parent}}}\n" for n, parent in rows))
    assert [[line.line for line in frames.stack(n)] for n in (5, 4, 3, 2, 1)] == [[5, 3], [4], [3], [2, 1], [1]]
    deep = StackFrames()
    deep.add('FileNames\n1 "a.py"\n')
    deep.add("FileLocations\n1 {file_name_id=1 line=7}\n")
    deep.add("StackFrames\n" + "".join(f"{n} {{file_location_id=1 parent_frame_id={n}}}\n" for n in range(1, 20_001)))
    assert len(deep.stack(20_000)) == MAX_FRAMES


def test_a_stack_frame_table_ends_at_a_blank_line() -> None:
    match = TABLE.match(FRAMES + "\nENTRY e {\n")
    assert match is not None
    assert match[0] == FRAMES
    assert TABLE.match("FileNamesX\n1 a\n") is None


@pytest.mark.parametrize("rows", [3, 5000])
def test_stack_frame_tables_may_have_blank_lines_between_rows(rows: int) -> None:
    """Some mails have a blank line after each line. Long tables come in several pieces."""
    files = "".join(f'{number} "/train/file_{number}.py"\n' for number in range(1, rows + 1))
    tables = f'FileNames\n{files}\nFunctionNames\n1 "f"\n\n'
    text = f"HloModule m\n\n{tables}ENTRY %e {{\n  ROOT %p = f32[] parameter(0)\n}}\n".replace("\n", "\n\n")
    pieces = (text[start : start + 997] for start in range(0, len(text), 997))
    (parsed,) = read_modules(TextSource("m", pieces), Wants(graph=True))
    assert (parsed.unparsed_lines, list(parsed.computations), list(parsed.problems)) == (0, ["e"], [])
