from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import hlo_inspect
from hlo_inspect.report.model import Report

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "configs/custom_calls/example.yaml"

KERNELS = """HloModule kernels

ENTRY %main (x: f32[4,8], y: f32[8,2]) -> f32[4,2] {
  %x = f32[4,8]{1,0} parameter(0)
  %y = f32[8,2]{1,0} parameter(1)
  %n = f32[4,8]{1,0} custom-call(%x), custom_call_target="__gpu$xla.gpu.triton", backend_config={name = "rms_norm"}
  %k = f32[4,8]{1,0} custom-call(%n), custom_call_target="__gpu$xla.gpu.triton", backend_config={name = "other", grid = 4 : i32}
  ROOT %m = f32[4,2]{1,0} custom-call(%k, %y), custom_call_target="my_matmul_f32"
}
"""
"""Bytes of the three: twice 2 · 128, and 128 + 64 + 32."""


def inspect(text: str | Path, rules: Path | None = None) -> Report:
    return hlo_inspect.inspect(text, "custom-calls", custom_calls=str(rules) if rules is not None else None)


def test_unknown_kernels_have_only_bytes() -> None:
    facts = inspect(KERNELS).facts
    assert (facts["custom_calls.flops"], facts["custom_calls.flops.lower_bound"]) == (None, 0)
    assert facts["custom_calls.bytes"] == 2 * 256 + 224
    assert facts["custom_calls.unknown_count"] == 3


def test_unknown_kernels_are_listed_by_name() -> None:
    rows = inspect(KERNELS).table("unknown_custom_calls").rows
    assert [row[:3] for row in rows] == [
        ("__gpu$xla.gpu.triton", "rms_norm", 1),
        ("__gpu$xla.gpu.triton", "other", 1),
        ("my_matmul_f32", "m", 1),
    ]


def test_a_kernel_whose_instruction_has_no_name_of_its_own_is_called_by_its_scope() -> None:
    line = 'custom-call(%x), custom_call_target="mosaic_gpu_v2", metadata={op_name="jit(f)/jit(my_kernel)/pallas_call"}'
    text = f"HloModule m\n\nENTRY %e {{\n  %x = f32[8] parameter(0)\n  ROOT %pallas_call.3 = f32[8] {line}\n}}\n"
    assert [row[:2] for row in inspect(text).table("unknown_custom_calls").rows] == [("mosaic_gpu_v2", "my_kernel")]


def test_the_rules_of_the_example() -> None:
    """4 · 32 FLOPs and 32 / 8 reciprocal roots; 2 · 4 · 8 · 2."""
    report = inspect(KERNELS, EXAMPLE)
    facts = report.facts
    assert facts["custom_calls.flops.lower_bound"] == 128 + 128
    assert facts["custom_calls.matmul_flops.lower_bound"] == 128
    assert facts["custom_calls.transcendentals.lower_bound"] == 4
    assert facts["custom_calls.unknown_count"] == 1
    assert [row[1] for row in report.table("unknown_custom_calls").rows] == ["other"]


def test_the_printed_template_is_a_readable_file(tmp_path: Path) -> None:
    """With the formulas that stand there nothing is unknown."""
    (passage,) = inspect(KERNELS).passages
    (tmp_path / "mine.yaml").write_text(passage.text, encoding="utf-8")
    facts = inspect(KERNELS, tmp_path / "mine.yaml").facts
    assert (facts["custom_calls.unknown_count"], facts["custom_calls.flops"]) == (0, 0)
    assert inspect(DATA / "handmade/custom_calls.txt").passages == ()


def test_transfers_to_the_host_have_a_line_of_their_own() -> None:
    report = inspect(DATA / "handmade/custom_calls.txt")
    assert report.table("host_transfers").records() == [
        {"target": "MoveToHost", "count": 1, "runs": 1, "runs_lower_bound": 1, "bytes": 131_072, "bytes_lower_bound": 131_072}
    ]


def test_a_kernel_of_which_only_the_estimate_is_known() -> None:
    """The FLOPs of matrix multiplications are unknown, not 0."""
    estimate = '{"custom_call_config":{"cost_estimate":{"flops":"2048","transcendentals":"0","bytes_accessed":"96"}}}'
    line = f'ROOT %k = f32[8] custom-call(%p), custom_call_target="tpu_custom_call", backend_config={estimate}'
    report = hlo_inspect.inspect(f"HloModule m\n\nENTRY %e {{\n  %p = f32[8] parameter(0)\n  {line}\n}}\n", "cost")
    assert (report.facts["custom_calls.flops"], report.facts["custom_calls.unknown_count"]) == (2048, 0)
    assert (report.facts["custom_calls.matmul_flops"], report.facts["custom_calls.matmul_flops.lower_bound"]) == (None, 0)
    assert report.facts["cost.executed_matmul_flops"] is None
    assert report.facts["cost.executed_flops"] == 2048


@pytest.mark.parametrize(
    ("formula", "message", "column"),
    [
        ("2 * speed", "unknown name 'speed'", 20),
        ("1 / 0", "divides by zero", 16),
        ("2 *", "expected a number, found the end", 19),
        ("(1 + 2", "expected ')', found the end", 22),
        ("2 $ 3", "'$ 3' is no part of a formula", 18),
        ("1 2", "'2' does not fit here", 18),
        ("1 + " * 2500 + "1", "at most 1,000 characters, this one 10,001", 16),
        ("(" * 60 + "1" + ")" * 60, "deeper than 50", 67),
    ],
)
def test_a_formula_that_cannot_be_read(tmp_path: Path, formula: str, message: str, column: int) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text(f'custom_calls:\n  - target: "k*"\n    flops:     {formula}\n', encoding="utf-8")
    with pytest.raises(hlo_inspect.UsageError, match=r".") as caught:
        inspect(KERNELS, rules)
    location = caught.value.location
    assert message in caught.value.message
    assert location is not None
    assert (location.path, location.line, location.column) == (str(rules), 3, column)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("flops: 1", "missing key: target"),
        ("target: k", "no formula"),
        ("{target: k, flop: 1}", "did you mean 'flops'"),
        ("{target: k, flops: [1]}", "expected a formula"),
    ],
)
def test_an_entry_that_cannot_be_read(tmp_path: Path, entry: str, message: str) -> None:
    rules = tmp_path / "mine.yaml"
    rules.write_text(f"custom_calls:\n  - {entry}\n", encoding="utf-8")
    with pytest.raises(hlo_inspect.UsageError, match=r"mine\.yaml:2") as caught:
        inspect(KERNELS, rules)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("formula", "fault"),
    [
        ("operands[7].elements", "operand 7 is missing"),
        ("operands[0].dims[9]", "dimension 9"),
        ("results[3].bytes", "it has no results[3]"),
        ("config.speed", "no speed"),
        ("1 / (config.grid - 4)", "divides by zero"),
        ("0 - result.elements", "makes no sense"),
    ],
)
def test_a_formula_that_a_call_does_not_fit(tmp_path: Path, formula: str, fault: str) -> None:
    """The work of that call is unknown, and a finding says why."""
    rules = tmp_path / "mine.yaml"
    rules.write_text(f'custom_calls:\n  - target: "__gpu$*"\n    kernel: other\n    flops: {formula}\n', encoding="utf-8")
    report = inspect(KERNELS, rules)
    assert report.facts["custom_calls.unknown_count"] == 3
    (finding,) = [candidate for candidate in report.findings if candidate.rule == "HI503"]
    assert fault in finding.message
    assert f"{rules}:2" in finding.message


ATTENTION = DATA / "handmade/attention_in_a_loop.txt"


def test_a_bound_uses_the_pairs_that_the_mask_lets_through() -> None:
    """126 times 2,199,291,691,008 FLOPs at 989.4 TFLOP/s, and one addition and comparison a layer."""
    facts = hlo_inspect.inspect(ATTENTION, "cost", profile="h100-sxm").facts
    assert facts["time.compute_s"] == pytest.approx(126 * 2_199_291_691_008 / 989.4e12, rel=1e-3)
    assert facts["cost.executed_matmul_flops"] == 126 * 4_398_046_511_104


def test_the_first_lines_say_what_is_attention() -> None:
    (compute,) = [row for row in hlo_inspect.inspect(ATTENTION, "summary").headline if row.label == "compute"]
    amounts = [part.value for part in compute.parts if not isinstance(part, str)]
    assert amounts[:3] == [126 * 4_398_046_511_104] * 2 + [126 * (4_398_046_511_104 - 2_199_291_691_008)]
    assert " of it attention" in compute.parts


def test_scores_of_a_backward_are_recomputation() -> None:
    """A fifth of a backward kernel that is the whole program: one of five multiplications."""
    shape = '"intermediate_tensor_shape":{"dimensions":["2","8","512","512"]}'
    config = f'backend_config={{"cudnn_fmha_backend_config":{{{shape}}}}}'
    operand = "bf16[2,512,8,64]"
    line = f'ROOT %b = ({operand}, u8[0]) custom-call(%p, %p, %p), custom_call_target="__cudnn$fmhaSoftmaxBackward", {config}'
    report = hlo_inspect.inspect(f"HloModule m\n\nENTRY %e {{\n  %p = {operand} parameter(0)\n  {line}\n}}\n", "cost")
    (note,) = [note for note in report.notes if "is recomputation" in note]
    assert note.endswith("20 % or more is recomputation; 2.15 GFLOP or less without it")


def test_the_printed_template_is_yaml_for_any_target() -> None:
    """XLA prints a target's text with escapes; a damaged dump may hold the bytes themselves."""
    text = 'HloModule m\n\nENTRY e {\n  ROOT a = f32[] custom-call(), custom_call_target="t\x10 \\"x"\n}\n'
    report = hlo_inspect.inspect(text, "custom-calls")
    assert "\x10" not in repr(report)
    (passage,) = report.passages
    assert yaml.safe_load(passage.text)["custom_calls"][0]["target"] == 't\x10 "x'


def test_markers_are_one_row_of_a_page() -> None:
    """Two places for arrays and a sharding compute nothing; scripts see each target."""
    calls = ("a", "AllocateBuffer"), ("b", "AllocateBuffer"), ("c", "Sharding"), ("d", "__cublas$gemm")
    lines = "\n".join(f'  {name} = f32[4,4]{{1,0}} custom-call(p, p), custom_call_target="{target}"' for name, target in calls)
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[4,4]{{1,0}} parameter(0)\n{lines}\n  ROOT r = f32[4,4]{{1,0}} copy(d)\n}}\n"
    report = hlo_inspect.inspect(text, ("custom-calls", "fusions"))
    assert {row[:2] for row in report.table("custom_calls").rows} == {
        ("AllocateBuffer", 2),
        ("Sharding", 1),
        ("__cublas$gemm", 1),
    }
    for name in ("custom_call_groups", "custom_call_target_groups"):
        assert {row[:2] for row in report.table(name).rows} == {("[2 marker targets]", 3), ("__cublas$gemm", 1)}
    assert (report.facts["custom_calls.count"], report.facts["custom_calls.marker_count"]) == (4, 3)


@pytest.mark.parametrize(
    ("target", "is_callback"),
    [
        ("xla_python_cpu_callback", True),
        ("xla_python_gpu_callback", True),
        ("xla_ffi_python_gpu_callback", True),
        ("xla_ffi_partitioned_python_cpu_callback", True),
        ("my_python_callback", False),
        ("xla_ffi_sort", False),
    ],
)
def test_calls_of_python_on_the_host_count_by_their_runs(target: str, is_callback: bool) -> None:
    """A loop calls it six times, with 64 bytes to the host and 64 back."""
    text = f"""HloModule m, is_scheduled=true, entry_computation_layout={{(f32[16]{{0}})->(s32[], f32[16]{{0}})}}

%body (t: (s32[], f32[16])) -> (s32[], f32[16]) {{
  %t = (s32[], f32[16]{{0}}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %v = f32[16]{{0}} get-tuple-element(%t), index=1
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %c = f32[16]{{0}} custom-call(%v), custom_call_target="{target}"
  ROOT %n = (s32[], f32[16]{{0}}) tuple(%j, %c)
}}

%cond (u: (s32[], f32[16])) -> pred[] {{
  %u = (s32[], f32[16]{{0}}) parameter(0)
  %k = s32[] get-tuple-element(%u), index=0
  %six = s32[] constant(6)
  ROOT %lt = pred[] compare(%k, %six), direction=LT
}}

ENTRY %main (x: f32[16]) -> (s32[], f32[16]) {{
  %x = f32[16]{{0}} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[16]{{0}}) tuple(%zero, %x)
  ROOT %w = (s32[], f32[16]{{0}}) while(%start), condition=%cond, body=%body
}}
"""
    report = hlo_inspect.inspect(text, "custom-calls")
    facts = [report.facts[f"custom_calls.host_callback_{name}"] for name in ("count", "bytes")]
    assert facts == ([6, 6 * 128] if is_callback else [0, 0])
    tables = {table.name: table.records() for table in report.tables}
    rows = [(row["target"], row["runs"], row["bytes"]) for row in tables.get("host_transfers", [])]
    assert rows == ([(target, 6, 6 * 128)] if is_callback else [])
