"""Headers, tables, computations and their parameters and results."""

from __future__ import annotations

from tests.hlo.strict.cases import ENTRY, in_entry, in_text

BODY = "ENTRY e {\n  p = (f32[2], f32[3]) parameter(0)\n}\n"


def headers(*rows: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [(f"HloModule {good}\n\n{BODY}", f"HloModule {bad}\n\n{BODY}", message) for good, bad, message in rows]


HEADERS = [
    *in_text("HI003", [(f"HloModule m\n\n{BODY}", f"HloModule\n\n»{BODY}", "expected the module's name")]),
    *in_text(
        "HI003",
        headers(
            ("m, is_scheduled=true", "m, is_scheduled=true, »is_scheduled=true", "is_scheduled stands twice"),
            ("m:", "m, »written_by=1", "a module has no attribute 'written_by'"),
            ("m, input_output_alias={ {0}: (0, {0}, must-alias), {1}: (0, {1}) }", "m, input_output_alias={ {0}: »0 }", "'('"),
            ("m, input_output_alias={ {0}: (0, {0}) }", "m, input_output_alias={ {0}: (»zero, {0}) }", "expected an integer"),
            ("m, input_output_alias={ {0}: (0, {0}), }", "m, input_output_alias={ {0}: (0, {0})»: {0, 1} }", "expected '}'"),
            ("m, input_output_alias={}", "m, input_output_alias={ »{0}: (0, {0}, system) }", "expected may-alias"),
            (
                "m, input_output_alias={ {1}: (7, {}) }",
                "m, input_output_alias={ {1}: (0, {}), »{2}: (0, {}) }",
                "does not have",
            ),
            ("m, input_output_alias={ {1}: (7, {}) }", "m, input_output_alias={ {1}: (»-1, {}) }", "number of a parameter"),
            ("m, buffer_donor={ (0, {0}) }", "m, buffer_donor={ (»zero, {0}) }", "expected an integer"),
            ("m, buffer_donor={ (0, {0}) }", "m, buffer_donor={ »0 }", "expected '('"),
            ("m, entry_computation_layout={(f32[9])->f32[]}", "m, entry_computation_layout={(f32[9])»}", "expected '->'"),
            ('m, origin_recovery_table={{"a"}: {"b"}}', 'm, origin_recovery_table={{"a"}: {"b"}, »b}', "expected a string"),
        ),
    ),
    *in_text(
        "HI011",
        headers(
            ("m, is_scheduled=false", "m, is_scheduled=»1", "expected true, false"),
            ("m, replica_count=2", "m, replica_count=»a", "expected an integer"),
            (
                "m, allow_spmd_sharding_propagation_to_output={true}",
                "m, allow_spmd_sharding_propagation_to_output={»1}",
                "true",
            ),
            ('m, frontend_attributes={a="b"}', "m, frontend_attributes={a=»b}", "expected a string"),
            ("m, input_output_alias={ {0}: (0, {0}) }", "m, input_output_alias={ {0, »a}: (0, {0}) }", "expected an integer"),
            ("m, input_output_alias={ {0}: (0, {0}) }", "m, input_output_alias={ {0 »: (0, {0}) }", "expected '}'"),
            ("m, input_output_alias={ {0}: (0, {0}) }", "m, input_output_alias={ {0}: (0, {0}), »(0, {1}) }", "expected '{'"),
            ("m, buffer_donor={ (0, {0}) }", "m, buffer_donor={ (0, {»a}) }", "expected an integer"),
        ),
    ),
    *in_text(
        "HI013",
        headers(("m, entry_computation_layout={()->f32[9]{0}}", "m, entry_computation_layout={()->f32[9]»{0,1}}", "numbers 2")),
    ),
]

LOCATION = "1 {file_name_id=1 function_name_id=1 line=1 end_line=1 column=1 end_column=2}"
TABLES = f'FileNames\n1 "a"\n\nFunctionNames\n1 "f"\n\nFileLocations\n{LOCATION}\n\nStackFrames\n1 {{file_location_id=1 '
TABLES += f"parent_frame_id=1}}\n\n{BODY}"


def tables(*rows: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    good = f"HloModule m\n\n{TABLES}"
    assert all(text in good for text, _, _ in rows)
    return [(good, good.replace(text, bad, 1), message) for text, bad, message in rows]


STACK_FRAMES = [
    *in_text("HI001", tables(('1 "a"', "1 »a", "expected a computation"))),
    *in_text(
        "HI003",
        [
            (
                f"HloModule m\n\n{TABLES}".replace('1 "a"', "1\n\n 'a' 2 3").replace("{file_n", "\n{file_n"),
                f"HloModule m\n\n{TABLES}".replace("StackFrames", "»FileNames", 1),
                "expected the table StackFrames",
            )
        ],
    ),
    *in_text(
        "HI003",
        tables(
            ('FunctionNames\n1 "f"\n\n', "»", "expected the table FunctionNames"),
            (TABLES[TABLES.index("StackFrames") : TABLES.index("ENTRY")], "»", "expected the table StackFrames"),
        ),
    ),
    *in_text(
        "HI011",
        tables(
            (LOCATION, f"1 »{LOCATION[2:].replace('end_line=1 ', '')}", "expected end_line="),
            (" column=1", " »row=1", "row is not known here"),
        ),
    ),
]

F = "f (x: f32[2,3]) -> f32[2,3] {\n  x = f32[2,3] parameter(0)\n}\n\n"
TEXT = f"HloModule m\n\n{F}{ENTRY}}}\n"

COMPUTATIONS = [
    *in_text(
        "HI016",
        [
            (TEXT, TEXT.replace("-> f32[2,3]", "-> »f32[9]"), "computation f states f32[9], and its root is f32[2,3]"),
            (TEXT, TEXT.replace("parameter(0)", "parameter(»1)", 1), "parameter 1 of 1"),
            (TEXT, TEXT.replace("parameter(0)", "parameter(»-1)", 1), "there is no parameter -1"),
            (TEXT, TEXT.replace("parameter(0)", "parameter(»a)", 1), "expected an integer"),
            (TEXT, TEXT.replace("parameter(0)", "parameter(0)\n  y = f32[] parameter(»0)", 1), "a second parameter 0"),
        ],
    ),
    *in_text(
        "HI016",
        [
            (
                f"HloModule m\n\nENTRY e {{\n  p = (f32[2], token[]) parameter(0), parameter_replication={{true,{good}}}\n}}\n",
                f"HloModule m\n\nENTRY e {{\n  p = (f32[2], token[]) parameter(0), »parameter_replication={{true,{bad}}}\n}}\n",
                "3 values for the 2 leaves of a parameter",
            )
            for good, bad in [("false", "false,true")]
        ],
    ),
    *in_text(
        "HI013",
        [(TEXT, TEXT.replace("(x: f32[2,3])", "(x: f32[2,3]»{0})"), "the layout numbers 1 dimensions of 2")],
    ),
    *in_text("HI007", [(TEXT, TEXT.replace("ENTRY", f"»{F}ENTRY"), "computation f is defined twice")]),
    *in_text("HI010", [(TEXT, f"{TEXT}\n»ENTRY f2 {{\n  x = f32[] parameter(0)\n}}\n", "a second ENTRY computation")]),
    *in_text("HI001", [(TEXT, TEXT.replace(F, "»f {\n}\n\n"), "computation f has no instructions")]),
    *in_entry(
        "HI008",
        [
            (
                "q = f32[2,3] map(p), to_apply={ z = f32[] parameter(0) ROOT w = f32[] negate(z) }",
                "q = f32[2,3] map(p), to_apply={ z = f32[] parameter(0) ROOT w = f32[] negate(»p) }",
                "operand p is not defined before its use",
            )
        ],
    ),
    *in_entry(
        "HI016",
        [
            (
                "q = f32[2,3] map(p), to_apply={ ROOT w = f32[] parameter(0) }",
                "q = f32[2,3] map(p), to_apply={ ROOT w = f32[] parameter(»1) }",
                "parameter 1 of 1",
            )
        ],
    ),
    *in_entry(
        "HI001",
        [("q = f32[2,3] map(p), to_apply={ w = f32[] constant(0) }", "q = f32[2,3] map(p), to_apply={ »}", "expected a name")],
    ),
]
