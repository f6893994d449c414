"""The example in the documentation of each rule makes it fire, and one change makes it silent."""

from __future__ import annotations

from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.findings import RULE_TABLE, RULES, rule_pages
from hlo_inspect.findings.reading_problems import READING_PROBLEMS
from hlo_inspect.findings.workload_problems import WORKLOAD_PROBLEMS

DOT = '"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}'

# rule -> replacements that mend its example
MENDED: dict[str, tuple[str, str]] = {
    "HI001": ("this is no instruction", "q = f32[4]{0} negate(p)"),
    "HI002": ("  p = f32[4]{0} parameter(0)", "  p = f32[4]{0} parameter(0)\n}\n"),
    "HI003": ("many", "2"),
    "HI004": ("negative", "negate"),
    "HI005": ("\\xff", "w"),
    "HI006": ("f99", "f16"),
    "HI007": ("ROOT p", "ROOT n"),
    "HI008": ("negate(q)", "negate(p)"),
    "HI009": ("calls=gone\n}", "calls=gone\n}\n\ngone {\n  ROOT a = f32[4]{0} parameter(0)\n}"),
    "HI010": ("ENTRY f", "f"),
    "HI011": ("%all-reduce.1 = ", "ENTRY e {\n  %p = f32[4]{0} parameter(0)\n}\n//"),
    "HI014": ("\n}", "\n  ROOT t = (f32[4]{0}) tuple(n)\n}"),
    "HI015": ("parameter(1)\n", "parameter(1)\n  ROOT s = f32[] add(x, y)\n"),
    "HI013": ("{1,0}", "{0}"),
    "HI101": ("HloModule step", "HloModule step, input_output_alias={ {}: (0, {}, may-alias) }"),
    "HI102": ("f32[8]{0} negate(x)", 'f32[8]{0} custom-call(x, mask), custom_call_target="masked"'),
    "HI103": ("(3, {}", "(0, {}"),
    "HI104": (
        "f32[4096,2048]{1,0} parameter(1), sharding={replicated}",
        "f32[4096,2048]{1,0} parameter(1), sharding={devices=[2,1]<=[2]}",
    ),
    "HI201": ("[2,4]<=[4]", "[2,2]<=[4]"),
    "HI202": ("{{0,1,2},{3}}", "{{0,1},{2,3}}"),
    "HI203": ("{{0,1},{2,4}}", "{{0,1},{2,3}}"),
    "HI204": ("devices=[2]<=[2]", "devices=[4]<=[4]"),
    "HI207": ('op_name="dynamic_slice"', 'op_name="dot"'),
    "HI208": ("f32[4,1024]{1,0} slice(g), slice={[0:4], [0:1024]}", "f32[1024,1024]{1,0} negate(g)"),
    "HI209": ("bf16[1024,1024]{1,0} convert", "f64[1024,1024]{1,0} convert"),
    "HI210": ("broadcast(z)", 'custom-call(z), custom_call_target="reads"'),
    "HI211": ("add(t, r)", "multiply(t, r)"),
    "HI214": ("tuple(m, p, u)", "tuple(m, q, u)"),
    "HI310": (
        "  s = f32[1024,2048]{1,0} sine(d)",
        "  e = f32[1024,2048]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0},\n"
        '    metadata={op_name="jit(f)/jvp()/dot_general"}\n  s = f32[1024,2048]{1,0} sine(e)',
    ),
    "HI311": ("MoveToHost", "MoveToDevice"),
    "HI401": ("f32[1024,1024]{1,0} convert(w)", "f32[1024,1024]{1,0} negate(w)"),
    "HI403": ("f32[1048576]{0} convert(r)", "bf16[1048576]{0} negate(r)"),
    "HI402": ("f64[4096,1024]{1,0} convert(x)\n  ROOT z = f64", "f32[4096,1024]{1,0} sine(x)\n  ROOT z = f32"),
    "HI508": ("tuple(m, u, c)", "tuple(m, u, q)"),
    "HI510": ("xla_ffi_python_gpu_callback", "fused_kernel"),
    "HI509": ("dynamic-update-slice(c, v, n, z)", "dynamic-update-slice(p, v, n, z)"),
    "HI212": ("b = f32[1024,1024]{1,0} all-gather(p)", "b = f32[1024,1024]{1,0} all-gather(n)"),
    "HI213": ("all-reduce(y)", "all-to-all(y)"),
    "HI301": ("negate(b)", "negate(w)"),
    "HI303": ("[65536,2]", "[1024,128]"),
    "HI304": ("constant({...})", "parameter(1)"),
    "HI305": ("is_scheduled=true", "is_scheduled=false"),
    "HI306": ("copy(w)", "exponential(w)"),
    "HI307": ("custom-call(d, g)", "custom-call(d, y)"),
    "HI308": ("custom-call(i, layer)", "custom-call(i, stack)"),
    "HI309": ("custom-call(y)", "custom-call(y, cache)"),
    "HI313": ("f32[1024,512]{1,0} transpose(w), dimensions={1,0}", "f32[1024,512]{1,0} sine(w)"),
    "HI501": ("many", "3"),
    "HI206": ("[100000,2]<=[2,100000]T(1,0)", "[8,2]<=[2,8]T(1,0)"),
    "HI507": ('body=outer, backend_config={"known_trip_count":{"n":"900000000000000000"}}', "body=outer"),
    "HI502": ("call(x), to_apply=again\n}\n\nENTRY", "negate(x)\n}\n\nENTRY"),
    "HI503": ('"gemm_backend_config":{}', f'"gemm_backend_config":{{{DOT}}}'),
    "HI504": ("subtract(w)", "subtract(w, g)"),
    "HI601": ("\n3\n", "\n2\n"),
    "HI602": ("10.5", "10"),
    "HI603": ("BROADCAST", "ALLREDUCE"),
    "HI604": ("3000000000", "300"),
    "HI605": ("ga: 1", "vpp: 2 ga: 1"),
    "HI606": ("NPU_group: 3", "NPU_group: 2"),
    "HI607": ("ALLGATHER 64", "NONE 0"),
    "HI608": ("checkpoints: 1 0", "checkpoints: 0"),
}
CASES = {
    "HI205": "mesh_mismatch",
    "HI215": "involuntary_rematerialization",
    "HI216": "exposed_collective",
    "HI217": "exposed_collective",
    "HI218": "unsharded_batch",
    "HI312": "exceeded_capacity",
    "HI505": "undonated_optimizer_state",
    "HI506": "replicated_optimizer_state",
    "HI511": "launch_bound_step",
}
"""Rules whose example is not a module, and the file of tests/cases/findings that makes them fire and not fire."""

ELSEWHERE = {"HI302": "findings/test_memory_files", "HI092": "report/test_sarif"}
ELSEWHERE |= dict.fromkeys(("HI090", "HI091"), "checks/test_runner")
ELSEWHERE |= dict.fromkeys(("HI701", "HI702", "HI703"), "passes/test_measured")
"""Other rules whose example is not a module, and the test."""

PAGES = {page.code: page for page in rule_pages()}
PASSES = {rule.code: RULE_TABLE[rule.name].passes for rule in RULES} | {page.code: ("summary",) for page in READING_PROBLEMS}
PASSES |= {page.code: ("workload", "collectives") for page in WORKLOAD_PROBLEMS}


def fired(text: str, command: str) -> set[str]:
    return {finding.rule for finding in hlo_inspect.inspect(text.encode().replace(b"\\xff", b"\xff"), command).findings}


def test_each_rule_is_tested() -> None:
    assert MENDED.keys() | CASES.keys() | ELSEWHERE.keys() == PAGES.keys()
    tests = Path(__file__).parents[1]
    assert all(
        f" FINDING {code} " in (tests / f"cases/findings/{file}.hlo").read_text(encoding="utf-8")
        for code, file in CASES.items()
    )
    assert all(f'"{code}"' in (tests / f"{file}.py").read_text(encoding="utf-8") for code, file in ELSEWHERE.items())


@pytest.mark.parametrize("code", MENDED)
def test_the_example_makes_the_rule_fire(code: str) -> None:
    for command in PASSES[code]:
        assert code in fired(PAGES[code].example, command)


@pytest.mark.parametrize("code", MENDED)
def test_a_mended_example_is_silent(code: str) -> None:
    wrong, right = MENDED[code]
    assert PAGES[code].example.count(wrong) == 1
    for command in PASSES[code]:
        assert code not in fired(PAGES[code].example.replace(wrong, right), command)
