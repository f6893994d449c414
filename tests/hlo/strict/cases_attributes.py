"""Attributes: their names, and values of each kind."""

from __future__ import annotations

from tests.hlo.strict.cases import in_entry, with_attribute

NEGATE = "q = f32[2,3] negate(p)"
CALL = 'q = f32[2,3] custom-call(p), custom_call_target="a"'

SIGNATURES = [
    *in_entry(
        "HI011",
        [
            ("q = f32[2,3] copy(p)", "q = f32[2,3] copy(p), »foo=1", "copy has no attribute 'foo'"),
            ("q = f32[2,3] slice(p), slice={}", "q = f32[2,3] copy(p), »slice={}", "copy has no attribute 'slice'"),
            (
                "q = f32[3,2] transpose(p), dimensions={1,0}",
                "q = f32[3,2] »transpose(p)",
                "transpose needs dimensions=",
            ),
            (
                "q = f32[2] reduce(p, s), dimensions={1}, to_apply=add",
                "q = f32[2] »reduce(p, s), dimensions={1}",
                "reduce needs to_apply=",
            ),
            ("q = pred[2,3] compare(p, p), direction=EQ", "q = pred[2,3] »compare(p, p)", "compare needs direction="),
            (
                "q = f32[2,3] all-reduce(p), to_apply=add, channel_id=1",
                "q = f32[2,3] all-reduce(p), to_apply=add, »all_reduce_id=1",
                "no attribute 'all_reduce_id'",
            ),
            (
                "q = f32[2,3] exponential(p), result_accuracy={mode=highest}",
                "q = f32[2,3] negate(p), »result_accuracy={mode=highest}",
                "no attribute 'result_accuracy'",
            ),
            (
                "q = f32[3,2] transpose(p), dimensions={1,0}",
                "q = f32[3,2] transpose(p), dimensions={1,0}, »dimensions={1,0}",
                "dimensions stands twice",
            ),
        ],
    ),
    *in_entry(
        "HI012",
        [
            (NEGATE, "q = f32[2,3] »negate(p, p)", "negate takes 1 operands, not 2"),
            ("q = f32[2,3] add(p, p)", "q = f32[2,3] »add(p)", "add takes 2 operands, not 1"),
            ("q = f32[2,3] select(b, p, p)", "q = f32[2,3] »select(b, p)", "select takes 3 operands, not 2"),
            (
                "q = f32[2] reduce(p, s), dimensions={1}, to_apply=add",
                "q = f32[2] »reduce(p, s, p), dimensions={1}, to_apply=add",
                "reduce takes an even number of operands, not 3",
            ),
            ("q = f32[6] dynamic-reshape(p, i)", "q = f32[6] »dynamic-reshape()", "at least 1 operands, not 0"),
            (
                "q = ((f32[2,3], f32[2,3]), f32[2,3]) add-start(p, p)",
                "q = ((f32[2,3]), f32[2,3]) »add-start(p)",
                "add-start takes at least 2 operands, not 1",
            ),
        ],
    ),
    *in_entry(
        "HI013",
        [
            ("q = f32[3,2] reshape(p)", "q = »reshape(p)", "expected the shape of what reshape gives"),
            ("q = negate(p)", "q = »copy-done(p)", "expected the shape of what copy-done gives"),
        ],
    ),
    *in_entry(
        "HI004",
        [
            (NEGATE, "q = f32[2,3] »frobnicate(p)", "unknown opcode 'frobnicate'"),
            (
                "q = f32[2,3] all-reduce-done(p)",
                "q = f32[2,3] »all-reduce-update(p)",
                "unknown opcode 'all-reduce-update'",
            ),
        ],
    ),
]

VALUES = [
    *with_attribute(
        "HI011",
        NEGATE,
        [
            ("backend_config={a}", "backend_config=»3", "expected a string"),
            ('frontend_attributes={a="b"}', "frontend_attributes={a=»b}", "expected a string"),
            ('frontend_attributes={a="b",c={d}}', 'frontend_attributes={a="b" »c={d}}', "expected '}'"),
            ("statistics={visualizing_index=1,x=0.5}", "statistics={x=»0.5}", "expected an integer"),
            ("control-predecessors={p, %s}", "control-predecessors={»}", "expected an instruction"),
            ('origin={({"a"}, {"b" {0}})}', "origin={{»a}}", "expected a string"),
            ("origin={[synthetic_call]}", 'origin={{"a"}»,{"b"}}', "expected the original values"),
            ('metadata={op_name="a", source_line=3}', 'metadata={op_name="a" »op_name="b"}', "op_name stands twice"),
            ("metadata={op_name='a'}", "metadata={op_name=»a}", "expected a string"),
            ('metadata={op_name="\\303\\251"}', 'metadata={op_name=»"\\q"}', "escape"),
            ("metadata={source_line=2147483647}", "metadata={source_line=»2147483648}", "32 bits"),
            ("metadata={profile_type={1}}", "metadata={profile_type=»{99}}", "no profile type"),
            ("metadata={}", "metadata={»preserve_layout=true}", "preserve_layout is not known here"),
        ],
    ),
    *with_attribute(
        "HI011",
        "q = f32[3,2] transpose(p)",
        [
            ("dimensions={1, 0}", "dimensions=»1", "expected '{'"),
            ("dimensions={}", "dimensions={0,»}", "expected an integer"),
            ("dimensions={1,0}", "dimensions={»a}", "expected an integer"),
            ("dimensions={18446744073709551615}", "dimensions={»18446744073709551616}", "integer of 64 bits"),
        ],
    ),
    *in_entry(
        "HI009",
        [
            ("q = f32[2,3] call(p), to_apply=%f", "q = f32[2,3] call(p), to_apply=»%later", "later is not defined before"),
            ("q = f32[2,3] call(p), to_apply=f", "q = f32[2,3] call(p), to_apply=»e", "e is not defined before its call"),
        ],
    ),
    *with_attribute(
        "HI008",
        NEGATE,
        [("control-predecessors={s}", "control-predecessors={»done}", "done is not defined before its use")],
    ),
]

KINDS = [
    *with_attribute(
        "HI011",
        CALL,
        [
            ("custom_call_has_side_effect=true", "custom_call_has_side_effect=»1", "expected true, false"),
            ("api_version=API_VERSION_TYPED_FFI", "api_version=»API_VERSION_UNSPECIFIED", "expected API_VERSION_ORIGINAL"),
            ("schedule=SCHEDULE_LATEST", "schedule=»LATEST", "expected SCHEDULE_NONE"),
            ("padding_type=PADDING_SAME", "padding_type=»SAME", "expected PADDING_VALID"),
            ("operand_precision={high,default}", "operand_precision={»low}", "expected default"),
            ("output_to_operand_aliasing={{}: (0, {1})}", "output_to_operand_aliasing={{}: »0}", "expected '('"),
            ("called_computations={add, f}", "called_computations=»add", "expected '{'"),
        ],
    ),
    *in_entry(
        "HI011",
        [
            (
                "q = f32[2,3] custom-call(p), custom_call_target='a'",
                "q = f32[2,3] custom-call(p), custom_call_target=»a",
                "string",
            ),
            ("q = pred[2,3] compare(p, p), direction=GE", "q = pred[2,3] compare(p, p), direction=»ge", "expected EQ"),
            (
                "q = pred[2,3] compare(p, p), direction=GE, type=FLOAT",
                "q = pred[2,3] compare(p, p), direction=GE, type=»F32",
                "expected FLOAT",
            ),
            (
                "q = c64[2,3] fft(p), fft_type=RFFT, fft_length={3}",
                "q = c64[2,3] fft(p), fft_type=»FFT2, fft_length={3}",
                "FFT",
            ),
            ("q = f32[] rng(s, s), distribution=rng_normal", "q = f32[] rng(s, s), distribution=»normal", "rng_uniform"),
            ("q = f32[2,3] fusion(p), kind=kLoop, calls=f", "q = f32[2,3] fusion(p), kind=»Loop, calls=f", "expected kLoop"),
            ("q = f32[2,2] dot(p, p), algorithm=dot_f64_f64_f64", "q = f32[2,2] dot(p, p), algorithm=»x", "expected unset"),
            (
                "q = f32[2,3] all-reduce(p), to_apply=add, mode=flattened_id",
                "q = f32[2,3] all-reduce(p), to_apply=add, mode=»all",
                "expected cross_replica",
            ),
            (
                "q = f32[2,3] tanh(p), result_accuracy={tolerance={rtol=0.5, ulps=2}}",
                "q = f32[2,3] tanh(p), result_accuracy={mode=»high}",
                "expected default",
            ),
            ("q = f32[2,3] tanh(p)", "q = f32[2,3] tanh(p), result_accuracy={»0.5}", "expected an attribute"),
            (
                'q = f32[2,3] domain(p), domain={kind="sharding", entry={}, exit={replicated}}',
                'q = f32[2,3] domain(p), domain=»{kind="sharding", entry={}}',
                "expected exit=",
            ),
            (
                "q = f32[2,3] triangular-solve(p, p), transpose_a=ADJOINT",
                "q = f32[2,3] triangular-solve(p, p), transpose_a=»A",
                "expected NO_TRANSPOSE",
            ),
            (
                "q = f32[2,3] batch-norm-inference(p, p, p, p, p), epsilon=1e-3, feature_index=0",
                "q = f32[2,3] batch-norm-inference(p, p, p, p, p), epsilon=»1e99, feature_index=0",
                "out of the range of f32",
            ),
        ],
    ),
]

CONVOLUTION = "q = f32[2,3] convolution(p, p)"
WINDOW = "q = f32[2,3] reduce-window(p, s), to_apply=add"

DIMENSIONS = [
    *with_attribute(
        "HI011",
        WINDOW,
        [
            ("window={size=1x2 pad=0_0x-1_1}", "window={size=1x2», pad=0_0x1_1}", "expected a part of the window"),
            ("window={stride=1x1 size=1x2}", "window=»{size=1x2 stride=1}", "stride and size"),
            ("window={size=1x2 rhs_reversal=0}", "window={size=1x2 »size=1x2}", "size stands twice"),
            ("window={}", "window={»dilate=1x2}", "a window has no 'dilate'"),
            ("window={size=1}", "window={size=»a}", "expected sizes"),
            ("window={size=1 pad=1_1}", "window={size=1 pad=»1_1_0}", "expected low and high padding"),
        ],
    ),
    *with_attribute(
        "HI011",
        CONVOLUTION,
        [
            ("dim_labels=b0f_0io->b0f", "dim_labels=»b0f", "expected labels"),
            ("dim_labels=b?f_?io->b?f", "dim_labels=»00_01->10", "a dimension stands twice in '00'"),
            ("dim_labels=012_012->210", "dim_labels=»012_0123->210", "differ in spatial dimensions"),
            ("dim_labels=b01f_01io->b01f", "dim_labels=»013_0123->210", "a dimension of '013' is out of range"),
        ],
    ),
    *in_entry(
        "HI011",
        [
            ("q = f32[2,2] slice(p), slice={[0:2], [1:3:1]}", "q = f32[2,2] slice(p), slice={[0:2], »[1]}", "expected [start:"),
            ("q = f32[2,2] slice(p), slice={}", "q = f32[2,2] slice(p), slice={»0:2}", "expected '['"),
            ("q = f32[3,5] pad(p, s), padding=0_1x1_1_0", "q = f32[3,5] pad(p, s), padding=»0x1", "expected padding"),
            ("q = f32[3,5] pad(p, s), padding=-1_2", "q = f32[3,5] pad(p, s), padding=»{0_1}", "expected padding"),
        ],
    ),
]
