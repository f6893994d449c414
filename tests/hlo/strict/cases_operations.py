"""Names, shapes and operands of instructions, and what single opcodes ask for."""

from __future__ import annotations

from tests.hlo.strict.cases import in_entry

NEGATE = "q = f32[2,3] negate(p)"
WRAPPER = "((f32[2,3]), f32[2,3], s32[])"
START = f"a = {WRAPPER} async-start(p), calls=f"

NAMES = [
    *in_entry(
        "HI001",
        [
            ("%q=f32[2,3] negate(p)", "»q=f32[2,3] negate(p)", "expected a name"),
            ("__xla_q = f32[2,3] negate(p)", "»__q = f32[2,3] negate(p)", "can be called __q"),
            ("%s8. = f32[2,3] negate(p)", "»%s8 = f32[2,3] negate(p)", "can be called s8"),
            (
                "q = f32[2,3] transpose(p), dimensions= {0,1}",
                "q = f32[2,3] transpose(p), »dimensions ={0,1}",
                "expected an attr",
            ),
            (NEGATE, "q = f32[2,3] »Negate(p)", "expected an opcode and '('"),
            (NEGATE, "q = f32[2,3] negate(p) »metadata={}", "expected ','"),
            ("c = f32[1] constant({1})", "c = f32[1] constant(»}{1})", "'}' does not close '('"),
        ],
    ),
    *in_entry("HI007", [("q = f32[2,3] negate(p)", "»p = f32[2,3] negate(p)", "p is defined twice")]),
    *in_entry(
        "HI010",
        [("ROOT q = f32[2,3] negate(p)", "ROOT q = f32[2,3] negate(p)\n  »ROOT r = f32[2,3] copy(q)", "the first is q")],
    ),
]

OPERANDS = [
    *in_entry(
        "HI008",
        [
            ("q = f32[2,3] add(p, p)", "q = f32[2,3] add(p, »r)", "operand r is not defined before its use"),
            (NEGATE, "q = f32[2,3] negate(»r)\n  r = f32[2,3] copy(p)", "operand r is not defined before its use"),
            (NEGATE, "q = f32[2,3] negate(»null)", "operand null is not defined"),
            (NEGATE, "q = f32[2,3] negate(f32[2,3] »x)", "operand x is not defined"),
            ("q = f32[2,3] negate(f32[2,3] copy(p))", "q = f32[2,3] negate(f32[2,3] copy(»r))", "operand r is not defined"),
        ],
    ),
    *in_entry(
        "HI012",
        [
            (
                "q = f32[2,3] negate(f32[2,3]{0,1} p)",
                "q = f32[2,3] negate(»f32[2,5] p)",
                "printed as f32[2,5], but it is f32[2,3]",
            ),
            ("q = f32[2,3] negate(f32[?,<=3] p)", "q = f32[2,3] negate(»s32[2,3] p)", "printed as s32[2,3]"),
            (NEGATE, "q = f32[2,3] negate(»(f32[2,3]) p)", "printed as (f32[2,3])"),
            (NEGATE, "q = f32[2,3] negate(f32[2,3]»)", "expected an operand"),
            ("q = f32[2,3] add(p,,p,)", "q = f32[2,3] add(p »p)", "expected ',' or ')'"),
        ],
    ),
]
ELEMENTS = in_entry(
    "HI012",
    [
        ("q = f32[2,3] negate(f32[2,3] t#0)", "q = f32[2,3] negate(t»#2)", "(f32[2,3], s32[]) has no element 2"),
        ("q = s32[] negate(t#1)", "q = s32[] negate(p»#0)", "only a tuple has elements, not f32[2,3]"),
        ("q = s32[] negate(s32[] t#1)", "q = s32[] negate(»f32[] t#1)", "printed as f32[], but it is s32[]"),
        ("q = s32[] negate(t#1)", "q = s32[] negate(t»#a)", "expected an integer behind #"),
    ],
)
"""Of the newer `name#1`, which this jaxlib does not have."""

SHAPES = [
    *in_entry(
        "HI013",
        [
            ("q = f32[2,3]{0,1:T(8,128)} copy(p)", "q = f32[2,3]»{0} copy(p)", "the layout numbers 1 dimensions of 2"),
            ("q = f32[]{:T(128)} copy(s)", "q = f32[]»{0} copy(s)", "the layout numbers 1 dimensions of 0"),
            ("q = f32[2,3]{1,0:T(8,128)E(32)} copy(p)", "q = f32[2,3]»{1,0:E(32)T(8,128)} copy(p)", "layout makes no sense"),
            ("q = f32[2,3]{1,0:D(D,C)} copy(p)", "q = f32[2,3]»{1,0:D(X,C)} copy(p)", "the layout makes no sense"),
            ("q = f32[2,3]{1,0:T(8,128)} copy(p)", "q = f32[2,3]»{1,0:P(f32[2,3])} copy(p)", "only a sparse array"),
            ("q = f32[2,3] copy(p)", "q = f32[»2,-3] copy(p)", "is no dimension"),
            ("q = f32[2,3] copy(p)", "q = f32[»2,99999999999999999999] copy(p)", "is no dimension"),
            ("q = (f32[2,3]{0,1}) tuple(p)", "q = (»f32[2,3]{0,0}) tuple(p)", "does not number each dimension"),
            ("q = (f32[2,3]) tuple(p)", "q = (»f32[4611686018427387904,16]) tuple(p)", "too many elements"),
            ("q = (f32[2,3], s32[]) tuple(p, i)", "q = (f32[2,3] »s32[]) tuple(p, i)", "expected ')'"),
            ("q = b(f32[2,3]) copy(p)", "q = b(f32[2,3]», f32[]) copy(p)", "expected ')' behind a buffer"),
            ("q = token[] after-all()", "q = token»[3] after-all()", "token has no dimensions"),
        ],
    ),
    *in_entry("HI006", [("q = f32[2,3] copy(p)", "q = »g32[2,3] copy(p)", "unknown element type 'g32'")]),
]

ASYNC = [
    *in_entry(
        "HI017",
        [
            (START, "a = (f32[2,3], f32[2,3]) »async-start(p), calls=f", "async-start gives ((operands)"),
            (START, "a = ((f32[2,3])) »async-start(p), calls=f", "async-start gives ((operands)"),
            (START, f"{START}\n  b2 = {WRAPPER} async-start(p), »calls=f", "f is called by a second async-start"),
            (f"{START}\n  d = f32[2,3] async-done(a)", "d = f32[2,3] »async-done(t)", "takes what an async-start"),
            (
                f"{START}\n  u = {WRAPPER} async-update(a)\n  d = f32[2,3] async-done(u)",
                f"{START}\n  d = f32[2,3] async-done(a)\n  c = f32[2,3] »async-done(d)",
                "takes what an async-start or async-update gives",
            ),
            (
                f"{START}\n  d = f32[2,3] async-done(a), calls=%f",
                f"{START}\n  d = f32[2,3] async-done(a), »calls=%g",
                "calls another computation than its start",
            ),
            (
                f'{START}, async_execution_thread="host"\n  d = f32[2,3] async-done(a), async_execution_thread="host"',
                f'{START}\n  d = f32[2,3] async-done(a), »async_execution_thread="host"',
                "on another thread than its start",
            ),
            (
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] negate-done(a)",
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] »abs-done(a)",
                "abs-done ends a negate-start",
            ),
        ],
    ),
    *in_entry(
        "HI017",
        [
            (
                f"{START}\n  u = {WRAPPER} async-update(a)",
                f"{START}\n  u = ((f32[2,3]), f32[2,3]) »async-update(a)",
                "has the shape of its operand",
            )
        ],
    ),
    *in_entry(
        "HI012",
        [
            (f"{START}\n  d = f32[2,3] async-done(a)", "d = f32[2,3] »async-done()", "async-done takes 1 operands, not 0"),
            (
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] negate-done(a)",
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] »negate-done(a, a)",
                "negate-done takes 1 operands, not 2",
            ),
        ],
    ),
    *in_entry(
        "HI011",
        [
            (
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] negate-done(a)",
                f"a = {WRAPPER} negate-start(p)\n  d = f32[2,3] negate-done(a), »calls=f",
                "negate-done has no attribute 'calls'",
            ),
            (START, f"a = {WRAPPER} »async-start(p)", "async-start needs calls="),
        ],
    ),
]

CONDITIONALS = [
    *in_entry(
        "HI011",
        [
            (
                "q = f32[2,3] conditional(b, p, p), true_computation=f, false_computation=g",
                "q = f32[2,3] »conditional(b, p, p), branch_computations={f, g}",
                "needs true_computation=",
            ),
            (
                "q = f32[2,3] conditional(i, p, p), branch_computations={f, %g}",
                "q = f32[2,3] conditional(i, p, p), branch_computations={f, g}, »true_computation=f",
                "has no attribute 'true_computation'",
            ),
        ],
    ),
    *in_entry(
        "HI012",
        [
            (
                "q = f32[2,3] conditional(i, p, p), branch_computations={f, g}",
                "q = f32[2,3] »conditional(s, p, p), branch_computations={f, g}",
                "the first operand of a conditional is pred[] or s32[], not f32[]",
            ),
            (
                "q = f32[2,3] conditional(i, p), branch_computations={{ ROOT z = f32[2,3] parameter(0) }}",
                "q = f32[2,3] »conditional(p, p, p), branch_computations={f, g}",
                "not f32[2,3]",
            ),
            (
                "q = f32[2,3] conditional(i, p), branch_computations={f}",
                "q = f32[2,3] »conditional(i, p, p), branch_computations={f}",
                "of 1 branches takes 2 operands, not 3",
            ),
        ],
    ),
]

OPCODES = [
    *in_entry(
        "HI011",
        [
            ("q = f32[2,6] concatenate(p, p), dimensions={1}", "q = f32[2,6] concatenate(p, p), »dimensions={0,1}", "one dim"),
            ("q = f32[2,3] all-gather(p), dimensions={0,1}", "q = f32[2,3] all-gather(p), »dimensions={}", "needs a dimension"),
            ("q = f32[2,3] all-to-all(p)", "q = f32[2,3] all-to-all(p), »dimensions={}", "exactly one dimension"),
            ("q = f32[4,2,3] broadcast(s)", "q = f32[4,2,3] »broadcast(p)", "broadcast needs dimensions="),
            ("q = s32[] get-dimension-size(p), dimensions={1}", "q = s32[] get-dimension-size(p), »dimensions={}", "needs a"),
            (
                'q = f32[] custom-call(p), custom_call_target="a", operand_layout_constraints={f32[2,3]{0,1}}',
                'q = f32[] custom-call(p), custom_call_target="a", »operand_layout_constraints={}',
                "layouts for 0 operands of 1",
            ),
            (
                'q = f32[] custom-call(p), custom_call_target="a", operand_layout_constraints={f32[2,3]}',
                'q = f32[] custom-call(p), custom_call_target="a", »operand_layout_constraints={f32[3,2]}',
                "the layout of operand 0 is for f32[3,2], not f32[2,3]",
            ),
            (
                "q = f32[2,3] scan(p, s), to_apply=add, dimensions={0}, num_carries=1",
                "q = f32[2,3] scan(p, s), to_apply=add, dimensions={0}, »num_carries=3",
                "carries at most its 2 operands",
            ),
        ],
    ),
    *in_entry(
        "HI012",
        [
            ("q = (f32[2,3]) tuple(p)", "q = (f32[2,3]) »tuple(p, p)", "a tuple of 1 elements has 2 operands"),
            ("q = f32[2,3] dot(p, p)", "q = f32[2,3] »dot(p)", "dot takes 2 operands, not 1"),
            (
                "q = f32[1,1] dynamic-slice(p, i, i), dynamic_slice_sizes={1,1}",
                "q = f32[1,1] »dynamic-slice(p, i), dynamic_slice_sizes={1,1}",
                "takes 3 operands for f32[2,3], not 2",
            ),
            ("q = f32[2,3] dynamic-update-slice(p, p, i, i)", "q = f32[2,3] »dynamic-update-slice(p)", "at least 2 operands"),
            (
                "q = f32[2,3] collective-permute(p, p, i, i), source_target_pairs={{0,1}}, slice_sizes={{1}}",
                "q = f32[2,3] »collective-permute(p, p), source_target_pairs={{0,1}}, slice_sizes={{1}}",
                "in place takes 4 operands, not 2",
            ),
            (
                "q = f32[2,3] scan(p, s), to_apply=add, dimensions={0}, num_carries=1",
                "q = f32[2,3] scan(p), »to_apply=add, dimensions={0}, num_carries=1",
                "what it applies 2 parameters",
            ),
            (
                "r = (f32[], u32[], token[]) recv(k)\n  q = (f32[], token[]) recv-done(r)",
                "q = (f32[], token[]) »recv-done(s)",
                "recv-done takes a tuple, not f32[]",
            ),
        ],
    ),
    *in_entry(
        "HI013",
        [
            ("q = (f32[2,3]) tuple(p)", "q = f32[2,3] »tuple(p)", "a tuple has the shape of one"),
            ("q = u32[]{:T(128)} partition-id()", "q = u64[] »partition-id()", "partition-id gives u32[]"),
            ("q = u32[] replica-id()", "q = f32[2,3] »replica-id()", "replica-id gives u32[], not f32[2,3]"),
            ("q = (pred[], token[]) infeed(k)", "q = pred[] »infeed(k)", "infeed gives a tuple of something, not pred[]"),
            ("q = (f32[], u32[], token[]) recv(k)", "q = () »recv(k)", "recv gives a tuple of something, not ()"),
        ],
    ),
    *in_entry(
        "HI015",
        [
            (
                "q = f32[2,3] collective-permute(p), source_target_pairs={{0,1},{1,0}}",
                "q = f32[2,3] collective-permute(p), »source_target_pairs={{0,1,2}}",
                "expected pairs of devices",
            ),
            (
                "q = f32[2,3] all-reduce(p), to_apply=add, channel_id=1, use_global_device_ids=true",
                "q = f32[2,3] all-reduce(p), to_apply=add, »use_global_device_ids=true",
                "global device ids need a channel_id",
            ),
            (
                "r = (f32[], u32[], token[]) recv(k), channel_id=1\n  q = (f32[], token[]) recv-done(r), channel_id=1",
                "r = (f32[], u32[], token[]) recv(k), channel_id=1\n  q = (f32[], token[]) recv-done(r), »channel_id=2",
                "of another channel than recv",
            ),
        ],
    ),
]
