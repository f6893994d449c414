"""Layouts, strings, modules in quotes, inputs that are one instruction, and text round modules."""

from __future__ import annotations

from tests.hlo.strict.cases import in_entry, in_text, with_attribute


def layouts(*rows: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [(f"q = f32[2,3]{good} copy(p)", f"q = f32[2,3]{bad} copy(p)", message) for good, bad, message in rows]


LAYOUT_FIELDS = [
    *in_entry(
        "HI013",
        layouts(
            ("{1,0:T(8,128}", "»{1,0:T(8;128)}", "the layout makes no sense"),
            ("{1,0:S(}", "»{1,0:S(1)(1)}", "the layout makes no sense"),
            ("{1,0:#(s32)*}", "»{1,0:*(u32)#(u32)}", "the layout makes no sense"),
            ("{1,0:D()SC(0:}", "»{1,0:SC(0:1)S(1)}", "the layout makes no sense"),
            ("{1,0:D(C+~,S)}", "»{1,0:D(C~+,S)}", "the layout makes no sense"),
            ("{/*a*/1,0:/*b*/S(1)}", "{1,»a}", "expected an integer"),
            ("{1,0:L(1)}", "{1,0:L»(0)}", "padded to a multiple of 1 or more"),
            ("{1,0:L(1}", "{1,0:L»(-1)}", "padded to a multiple of 1 or more"),
            ("{1,0:T(*,2)(3)M(4)}", "»{1,0:T(*,2)P}", "only a sparse array"),
        ),
    ),
    *in_entry(
        "HI013",
        [
            ("q = token[] after-all()", "q = token[]»{:S(1)} after-all()", "token[] has no layout"),
            ("q = b(f32[2,3]{0,1}) copy(p)", "q = b(»(f32[2,3])) copy(p)", "a buffer holds an array, not (f32[2,3])"),
            ("q = b(f32[2,3]) copy(p)", "q = b(»b(f32[2,3])) copy(p)", "a buffer holds an array"),
            ("q = b(f32[2,3]) copy(p)", "q = b(»token[]) copy(p)", "a buffer holds an array, not token[]"),
            ("q = f32[9223372036854775807] copy(p)", "q = f32[»9223372036854775808] copy(p)", "larger than 64 bits"),
            (
                "q = (f64[1152921504606846975]) tuple(p)",
                "q = (»f64[1152921504606846976]) tuple(p)",
                "too many elements",
            ),
        ],
    ),
]


def ending(operation: str, shape: str, mark: str = "") -> str:
    """A computation that states `shape` and ends in `operation`."""
    before = "  c = f32[2] parameter(0)\n  k = token[] after-all()\n  r = (f32[2], u32[], token[]) recv(k)\n"
    before += "  s = (f32[2], u32[], token[]) send(c, k)\n"
    return f"HloModule m\n\nENTRY e (c: f32[2]) -> {mark}{shape} {{\n{before}  ROOT q = {operation}\n}}\n"


MADE_SHAPES = in_text(
    "HI016",
    [
        (
            ending(operation, made),
            ending(operation, operation.rpartition(" ")[0] if operation[0] == "(" else operation.split(" ")[0], "»"),
            "root is",
        )
        for operation, made in [
            ("f32[3] after-all(k)", "token[]"),
            ("f32[3] add-dependency(c, k)", "f32[2]"),
            ("f32[3] send(c, k)", "(f32[2], u32[], token[])"),
            ("f32[3] send-done(s)", "token[]"),
            ("f32[3] recv-done(r)", "(f32[2], token[])"),
            ("(f32[3], s32[]) recv(k)", "(f32[3], u32[], token[])"),
            ("(f32[3], s32[]) infeed(k)", "(f32[3], token[])"),
            ("f32[3] outfeed(c, k)", "token[]"),
        ]
    ],
)
"""Opcodes of which XLA works the shape out, whatever is printed."""

STRINGS = with_attribute(
    "HI011",
    "q = f32[2,3] negate(p)",
    [
        ('metadata={op_name="a\nb"}', 'metadata={op_name=»"a\\\nb"}', "expected a string"),
        ("metadata={op_name='a\n'}", 'metadata={op_name=»"\\x123"}', "escape"),
        ('metadata={op_name="\\x0041"}', 'metadata={op_name=»"\\ud800"}', "escape"),
        ('metadata={op_name="\\U0010ffff"}', 'metadata={op_name=»"\\U00110000"}', "escape"),
        ('backend_config={"\\q":"}"}', "backend_config=»{'a':'\"'}", "a brace or a string is not closed"),
    ],
)

QUOTED_MODULE = "HloModule r\n\nENTRY q {\n  z = f32[2] parameter(0)\n}\n"


def quoted(text: str, mark: str = "") -> str:
    table = f'{{\n  {{"a"}} : {{"b"}},\n  {mark}"{text}"\n}}'
    return f"HloModule m, origin_recovery_table={table}\n\nENTRY e {{\n  p = f32[4] parameter(0)\n}}\n"


QUOTED = in_text(
    "HI003",
    [
        (quoted(QUOTED_MODULE), quoted(QUOTED_MODULE.replace("f32[2] p", "f32[2 p"), "»"), "in the quoted module"),
        (quoted(QUOTED_MODULE), quoted(QUOTED_MODULE.replace("(0)", "(1)"), "»"), "parameter 1 of 1"),
        (quoted(f"{QUOTED_MODULE}\n"), quoted(QUOTED_MODULE * 2, "»"), "expected one module in quotes"),
        (
            quoted(QUOTED_MODULE.replace("(0)", '(0), metadata={op_name=\\"a\\"}')),
            quoted(QUOTED_MODULE.replace("(0)", '(0), metadata={op_name=\\"\\\\q\\"}'), "»"),
            "escape",
        ),
        (quoted("z = f32[2] negate(f32[2] y)"), quoted("", "»"), "expected one module in quotes"),
    ],
)

BRACED = "a = f32[2] call(f32[2] x), to_apply=\n{\n  y = f32[2] parameter(0)\n  ROOT z = f32[2] negate("
SINGLE = [
    *in_text("HI001", [("f32[2] add(f32[2] x, f32[2] y)", "add»(f32[2] x, f32[2] y)", "expected '='")]),
    *in_text(
        "HI012",
        [
            ("  /* c */ a = f32[2] add(f32[2], f32[2]{0} y)", "a = f32[2] »add(f32[2])", "add takes 2 operands, not 1"),
            ("a = f32[2] add(f32[2] x, x)", "a = f32[2] add(f32[2] x, »f32[3] x)", "x is printed as f32[3], but it is f32[2]"),
        ],
    ),
    *in_text("HI008", [(f"{BRACED}y)\n}}\n", f"{BRACED}f32[2] »x)\n}}\n", "operand x is not defined before its use")]),
    *in_text(
        "HI012",
        [(f"{BRACED}y)\n}}\n", f"{BRACED}f32[2]»)\n}}\n", "expected an operand")],
    ),
    *in_text("HI016", [("p = f32[2] parameter(0)", "p = f32[2] parameter(»-1)", "there is no parameter -1")]),
    *in_text(
        "HI011",
        [("\nf32[2] negate(f32[2]), metadata={}\n", "\nf32[2] negate(f32[2]), »iota=1\n", "negate has no attribute 'iota'")],
    ),
    *in_text(
        "HI003",
        [
            (
                "ENTRY e (p: f32[2]) -> f32[2] {\n  p = f32[2] parameter(0)\n}\n",
                "»e (p: f32[2]) -> f32[2] {\n  p = f32[2] parameter(0)\n}\n",
                "expected ENTRY or a module's header",
            )
        ],
    ),
]
"""Inputs without a header."""

MODULE = "HloModule m\n\nENTRY e {\n  p = f32[2] parameter(0)\n}\n"
STRAY = in_text(
    "HI001",
    [
        (MODULE, f"{MODULE}»}}\n", "belongs to no computation"),
        (f"{MODULE}// x\n", f"{MODULE}  »ROOT q = f32[2] negate(p)\n}}\n", "belongs to no computation"),
        (f"\n{MODULE}", f"\n  »%q = (f32[2]) tuple(p)\n}}\n{MODULE}", "belongs to no computation"),
        (
            "HloModule m, is_scheduled=true f { a = f32[] constant(1) } ENTRY e { b = f32[] constant(1)\n}/* c */ // c\n",
            f"{MODULE[:-1]} »junk\n",
            "belongs to no computation",
        ),
        (f"{MODULE[:-1]}, execution_thread='a'\n", f"{MODULE[:-1]}», execution_thread=a\n", "belongs to no computation"),
        (
            f"HloModule m\n\nf {{\n  p = f32[] constant(1), metadata={{}}}}%g {{\n  p = f32[] constant(2)\n}}\n{MODULE[13:]}",
            f"{MODULE[:-1]}», execution_thread='a', execution_thread='b'\n",
            "belongs to no computation",
        ),
        (f"/* c */\n{MODULE}", f"rest)\n»}}\n\n{MODULE}", "belongs to no computation"),
    ],
)
"""Parts of computations round a module, which are only refused: other text may stand there."""
