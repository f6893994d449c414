"""Small programs of public reports and of newer compilers, each with its right figure: by hand, by XLA or by its own words.

Other tests hold each kind on other shapes. Profiles of AMD are in tests/profiler/test_platforms.py.
"""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from tests.calling import call_text

SHARED = Path(__file__).parents[2] / "shared" / "dumps" / "newest"
MIB = 2**20
CUBE = 2 * 4096**3
"""FLOPs of a product of two matrices of 4096 x 4096."""
SCHEDULED = "HloModule m, is_scheduled=true"
SUM = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


def entry(*lines: str, header: str = SCHEDULED, before: str = "") -> str:
    return "\n".join((header, "", before, "ENTRY main {", *(f"  {line}" for line in lines), "}", ""))


def inspect(text: str | Path, *passes: str, profile: str | None = None) -> Report:
    return hlo_inspect.inspect(text, passes, profile=profile)


def least(report: Report, fact: str) -> float:
    """Return the lower bound of a fact, which is itself if it is known."""
    value = report.facts[fact]
    value = report.facts[f"{fact}.lower_bound"] if value is None else value
    assert isinstance(value, int | float)
    return value


# -- times --------------------------------------------------------------------------------------------------------------------

EXCHANGE = entry(
    "p = f32[16,1048576]{1,0} parameter(0)",
    "ROOT e = f32[16,1048576]{1,0} all-to-all(p), replica_groups=[1,16]<=[16], dimensions={0}, channel_id=1",
    header=f"{SCHEDULED}, num_partitions=16",
)


def test_an_exchange_over_two_hosts() -> None:
    """8 of 16 parts of 64 MiB leave the host, over one adapter of 25 GB/s a device."""
    report = inspect(EXCHANGE, "time", profile="a100-sxm-80gb")
    assert least(report, "time.estimate_step_s") >= 33_554_432 / 25e9
    assert least(report, "time.step_s") == pytest.approx(1.342e-3, rel=1e-3)


def product(operand: str, result: str) -> str:
    lines = [f"{name} = {operand}[4096,4096]{{1,0}} parameter({number})" for number, name in enumerate("xy")]
    dimensions = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    return entry(*lines, f"ROOT d = {result}[4096,4096]{{1,0}} dot(x, y), {dimensions}")


@pytest.mark.parametrize(
    ("operand", "result", "profile", "seconds", "is_known"),
    [
        ("f8e4m3fn", "bf16", "a100-sxm-80gb", CUBE / 312e12, True),  # 440.5 us, the rate of bf16
        ("f8e4m3fn", "bf16", "tpu-v5e", CUBE / 197e12, True),  # 697.7 us
        ("s32", "s32", "h100-sxm", 3 * 64 * MIB / 3352e9, False),  # three matrices in memory; FLOPs without a rate
        ("s32", "s32", "tpu-v5p", 3 * 64 * MIB / 2765e9, False),
        ("c64", "c64", "a100-sxm-80gb", 4 * CUBE / 156e12, True),  # 3.52 ms: four products of f32
    ],
)
def test_products_of_types_without_a_rate(operand: str, result: str, profile: str, seconds: float, is_known: bool) -> None:
    report = inspect(product(operand, result), "time", profile=profile)
    assert least(report, "time.step_s") == pytest.approx(seconds, rel=1e-3)
    for fact in ("time.step_s", "time.estimate_step_s"):
        assert (report.facts[fact] is not None) == is_known
        assert least(report, fact) >= seconds * 0.999


MATRIX = "bf16[4096,4096]{1,0}"
MULTIPLIED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BESIDE = (
    f'other {{\n  p = {MATRIX} parameter(0)\n  ROOT d = {MATRIX} dot(p, p), {MULTIPLIED}\n}}, execution_thread="explicit"\n'
)
SECOND_STREAM = entry(
    f"x = {MATRIX} parameter(0)",
    f'start = (({MATRIX}), {MATRIX}) call-start(x), async_execution_thread="explicit", to_apply=other',
    f"d = {MATRIX} dot(x, x), {MULTIPLIED}",
    f"done = {MATRIX} call-done(start)",
    f"ROOT t = ({MATRIX}, {MATRIX}) tuple(done, d)",
    before=BESIDE,
)


def test_nothing_runs_beside_the_matrix_unit_for_free() -> None:
    report = inspect(SECOND_STREAM, "time", profile="h100-sxm")
    for fact in ("time.step_s", "time.estimate_step_s"):
        assert least(report, fact) >= 2 * CUBE / 989.4e12 * (1 - 1e-9)  # 277.8 us
    assert least(report, "time.step_s") == pytest.approx(277.8e-6, rel=1e-3)


IDS = "channel_id=1, use_global_device_ids=true"
QUERY = "bf16[1,4096,8,128]{3,2,1,0}"
WINDOW = entry(
    "x = f32[4194304]{0} parameter(0)",
    f"q = {QUERY} parameter(1)",
    f"s = f32[4194304]{{0}} all-reduce-start(x), replica_groups=[1,8]<=[8], {IDS}, to_apply=add",
    f'k = {QUERY} custom-call(q, q, q), custom_call_target="attention"',
    "d = f32[4194304]{0} all-reduce-done(s)",
    f"ROOT t = (f32[4194304]{{0}}, {QUERY}) tuple(d, k)",
    header=f"{SCHEDULED}, num_partitions=8",
    before=SUM,
)


def test_a_window_of_unknown_length() -> None:
    """The call hides between 11.0 of 86.0 us, the time of its bytes, and all."""
    report = inspect(WINDOW, "time", profile="h100-sxm")
    for fact, most in (("estimate_exposed_collective_s", 75.0e-6), ("exposed_collective_s", 27.3e-6)):
        assert (report.facts[f"time.{fact}"], f"time.{fact}.lower_bound" in report.facts) == (None, False)
        assert report.facts[f"time.{fact}.upper_bound"] == pytest.approx(most, rel=2e-3)
    assert [row["share"] for row in report.table("step").records() if "exposed collectives" in str(row["part"])] == [None]


def test_a_check_of_it_says_its_bounds_in_their_unit(tmp_path: Path) -> None:
    dump = tmp_path / "dump.hlo"
    dump.write_text(WINDOW)
    for limit, status in (("80 us", 0), ("70 us", 1)):
        assertion = f"time.estimate_exposed_collective_s <= {limit}"
        done = call_text("check", dump, "--profile", "h100-sxm", "--assert", assertion)
        assert done.returncode == status
        assert "<= 75.0 µs" in done.stdout
        assert "e-05" not in done.stdout


HOST, DEVICE, NUMBERS = "f32[8192,8192]{1,0:S(5)}", "f32[8192,8192]{1,0}", "bf16[4096,4096]{1,0}"
FETCH = entry(
    f"h = {HOST} parameter(0)",
    f"y = {NUMBERS} parameter(1)",
    f"cs = ({DEVICE}, {HOST}, u32[]) copy-start(h)",
    f"d = {NUMBERS} dot(y, y), {MULTIPLIED}",
    f"cd = {DEVICE} copy-done(cs)",
    f"ROOT t = ({DEVICE}, {NUMBERS}) tuple(cd, d)",
)


def test_an_exposed_copy_of_the_host() -> None:
    """256 MiB at 64 GB/s, 4.19 ms, behind one product; one kernel has the fixed cost of 1 us."""
    rows = {row["part"]: row for row in inspect(FETCH, "time", profile="h100-sxm").table("step").records()}
    copy = 256 * MIB / 64e9
    assert float(str(rows["exposed copies, host link"]["estimate_s"])) == pytest.approx(copy - CUBE / 989.4e12, rel=1e-2)
    assert rows["fixed costs of kernels"]["estimate_s"] == pytest.approx(1e-6)
    assert all(float(str(row["estimate_s"])) >= 0 for row in rows.values())


@pytest.mark.skipif(not SHARED.is_dir(), reason="without the folder of shared dumps")
def test_a_published_step() -> None:
    """20 B parameters on 256 v5e: 13.6 s were published."""
    report = inspect(SHARED / "v5e_16b.txt.xz", "time")
    assert report.profile == "tpu-v5e"
    assert least(report, "time.estimate_step_s") == pytest.approx(13.6, rel=0.05)
    names = {row["part"] for row in report.table("step").records()}
    assert "longer kernels or exposed work" not in names  # which is a rest of rounding there


# -- memory -------------------------------------------------------------------------------------------------------------------

PAGE = "f32[4096,4096]{1,0}"
LAYOUT = f"entry_computation_layout={{(f32[4096,4096]{{1,0:S(5)}}, {PAGE})->{PAGE}}}"
PAGED = (f"m = {PAGE} parameter(0)", f"g = {PAGE} parameter(1)", f"ROOT n = {PAGE} add(m, g)")


@pytest.mark.parametrize("header", [SCHEDULED, "HloModule m"])
def test_a_parameter_that_the_header_puts_on_the_host(header: str) -> None:
    """64 MiB on the host, 64 of arguments and 64 of the output on the device; an output on it cannot take `m`."""
    text = entry(*PAGED, header=f"{header}, {LAYOUT}")
    report = inspect(text, "memory", "params", "summary")
    assert report.facts["memory.argument_bytes"] == 64 * MIB
    assert [finding.rule for finding in report.findings if finding.subject == "m"] == []
    if header == SCHEDULED:
        assert (report.facts["memory.peak_bytes"], report.facts["memory.host_bytes"]) == (128 * MIB, 64 * MIB)
        assert {row["bytes"] for row in report.table("live_bytes").records()} == {128 * MIB}


REMATERIALIZATION = (
    "2026-08-19 09:15:10.544797: W external/xla/xla/hlo/transforms/simplifiers/hlo_rematerialization.cc:3183] Can't reduce "
    "memory use below 12.00GiB (12884901888 bytes) by rematerialization; only reduced to 40.00GiB (42949672960 bytes), "
    "down from 48.50GiB (52076478464 bytes) originally\n"
)
VMEM = "Ran out of memory in memory space vmem. Used 16.31M of 16.00M vmem. Exceeded vmem capacity by 320.0K.\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            REMATERIALIZATION,
            "needs 40.0 GiB after rematerialization, 48.5 GiB before; the limit is 12.0 GiB, 28.0 GiB too much",
        ),
        (VMEM, "ran out of vmem: 16.3 MiB of 16.0 MiB, 320.0 KiB too much"),  # not 317.4, the difference of two rounded figures
    ],
)
@pytest.mark.parametrize("command", ["memory", "summary"])
def test_the_excess_is_that_of_xla_s_words(log: str, words: str, command: str) -> None:
    assert words in " ".join(call_text(command, "-", given=log).stdout.split())


CACHE, LAYER = "f32[2,512,8,32,64]{4,3,2,1,0}", "f32[512,8,32,64]{3,2,1,0}"
SLICED = "f32[1,512,8,32,64]{4,3,2,1,0}"
WHOLE = "[0:512], [0:8], [0:32], [0:64]"
CACHE_STEP = entry(
    f"c = {CACHE} parameter(0)",
    "n = f32[1,8,1,64]{3,2,1,0} parameter(1)",
    "i = s32[] parameter(2)",
    "z = s32[] constant(0)",
    f"k = {SLICED} slice(c), slice={{[0:1], {WHOLE}}}",
    f"v = {SLICED} slice(c), slice={{[1:2], {WHOLE}}}",
    f"r = {LAYER} reshape(k)",
    f"u = {LAYER} dynamic-update-slice(r, n, i, z, z, z)",
    f"b = {SLICED} reshape(u)",
    f"ROOT out = {CACHE} concatenate(b, v), dimensions={{0}}",
    header="HloModule m",
)


def test_a_cache_that_is_sliced_updated_and_concatenated() -> None:
    (finding,) = inspect(CACHE_STEP, "params").findings
    assert (finding.rule, finding.stake) == ("HI101", 64 * MIB)


# -- texts that are no plain dumps --------------------------------------------------------------------------------------------

GATHER = (
    "HloModule jit_fit, is_scheduled=true, num_partitions=2",
    "",
    "ENTRY %main (x: f32[8,16]) -> f32[16,16] {",
    '  %x = f32[8,16]{1,0} parameter(0), metadata={op_name="x"}',
    f"  ROOT %g = f32[16,16]{{1,0}} all-gather(%x), replica_groups={{{{0,1}}}}, dimensions={{0}}, {IDS}",
    "}",
)
PYTHON_STRINGS = "".join(['_HLO = "\\n".join([\n', *(f"    {line!r},\n" for line in GATHER), "])\n"])
OUTPUT = {"name": "stdout", "output_type": "stream", "text": [f"{line}\n" for line in GATHER]}
NOTEBOOK = json.dumps({"cells": [{"cell_type": "code", "execution_count": 3, "outputs": [OUTPUT], "source": ["print(x)"]}]})


@pytest.mark.parametrize("text", [PYTHON_STRINGS, NOTEBOOK], ids=["strings", "notebook"])
def test_lists_of_strings_are_read(text: str) -> None:
    """They hold an all-gather of 8 x 16 f32 over two devices."""
    facts = hlo_inspect.inspect(BytesIO(text.encode()), ("summary",)).facts
    assert (facts["collectives.all-gather.count"], facts["collectives.wire_bytes"], facts["module.devices"]) == (1, 512, 2)
    assert call_text("check", "-", "--assert", "collectives.all-gather.count == 0", given=text).returncode == 1


# -- counts, bytes, FLOPs -----------------------------------------------------------------------------------------------------

TO_ROOT = entry(
    "x = f32[1024]{0} parameter(0)",
    "who = s32[1]{0} parameter(1)",
    "ROOT c = f32[1024]{0} collective-reduce(x, who), replica_groups={{0,1},{2,3}}, has_dynamic_root=true, to_apply=add",
    header="HloModule m, replica_count=4",
    before=SUM,
)
IN_PLACE = entry(
    "x = f32[128,32]{0,1} parameter(0)",
    "one = f32[] constant(1)",
    "out = f32[128,128]{0,1} broadcast(one), dimensions={}",
    "z = s32[] constant(0)",
    "from = (s32[], s32[]) tuple(z, z)",
    "k = s32[] constant(64)",
    "to = (s32[], s32[]) tuple(z, k)",
    "ROOT r = f32[128,128]{0,1} collective-permute(x, out, from, to), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}, "
    "slice_sizes={{64,32}}",
    header="HloModule m, replica_count=4",
)


def test_a_reduction_to_a_root_counts() -> None:
    facts = inspect(TO_ROOT, "collectives").facts
    assert (facts["collectives.count"], facts["collectives.group_size.2.count"]) == (1, 1)
    assert facts["collectives.operand_bytes"] == 4096
    assert call_text("check", "-", "--assert", "collectives.count == 0", given=TO_ROOT).returncode == 1


def test_a_permute_sends_its_slice() -> None:
    assert inspect(IN_PLACE, "collectives").facts["collectives.wire_bytes"] == 8 * 1024


TOKENS, BUFFER, SIZES = "bf16[1024,256]{1,0}", "bf16[2048,256]{1,0}", ", ".join(["s32[8]{0}"] * 4)
TYPES = [TOKENS, BUFFER, *["s32[8]{0}"] * 4]
PARAMETERS = [f"p{number} = {type_} parameter({number})" for number, type_ in enumerate(TYPES)]
NAMES = ", ".join(f"p{number}" for number in range(6))
INNER = "\n".join(
    ("inner {", *PARAMETERS, f"ROOT a = {BUFFER} ragged-all-to-all({NAMES}), channel_id=3, replica_groups=[1,8]<=[8]", "}\n")
)
ROUTE = entry(
    *PARAMETERS,
    f"s = (({TOKENS}, {BUFFER}, {SIZES}), {BUFFER}) async-start({NAMES}), calls=inner",
    f"ROOT d = {BUFFER} async-done(s)",
    header=f"{SCHEDULED}, num_partitions=8",
    before=INNER,
)


def test_a_ragged_exchange_is_called_by_its_kind() -> None:
    """At most operand 0, 1024 x 256 bf16, is sent; operand 1 is the output's buffer."""
    report = inspect(ROUTE, "summary", "collectives")
    assert report.headline[0].parts[:2] == ("one ragged-all-to-all", " on ")
    assert report.facts["collectives.operand_bytes"] == 512 * 1024
    most = report.facts["collectives.wire_bytes.upper_bound"]
    assert (report.facts["collectives.wire_bytes"], most) == (None, 512 * 1024)


@pytest.mark.parametrize("rows", [1024, 2048])
def test_a_scan_is_a_loop(rows: int) -> None:
    body = "body {\n  l = f32[64] parameter(0)\n  r = f32[64] parameter(1)\n  a = f32[64] add(l, r)\n"
    body += "  ROOT t = (f32[64], f32[64]) tuple(a, a)\n}\n"
    text = entry(
        f"x = f32[{rows},64]{{1,0}} parameter(0)",
        "i = f32[64]{0} parameter(1)",
        f"ROOT s = (f32[{rows},64]{{1,0}}, f32[64]{{0}}) scan(x, i), dimensions={{0}}, num_carries=1, is_reverse=true, "
        "to_apply=body",
        header="HloModule m",
        before=body,
    )
    assert inspect(text, "cost").facts["cost.executed_flops"] == rows * 64


def test_a_ragged_product() -> None:
    """Each of 128 rows has one group; XLA's own figure forgets the ragged dimension."""
    text = entry(
        "x = f32[128,32]{1,0} parameter(0)",
        "w = f32[4,32,64]{2,1,0} parameter(1)",
        "s = s32[4]{0} parameter(2)",
        "ROOT r = f32[128,64]{1,0} ragged-dot(x, w, s), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
        "lhs_ragged_dims={0}, rhs_group_dims={0}",
        header="HloModule m",
    )
    facts = inspect(text, "cost").facts
    assert (facts["cost.executed_matmul_flops"], facts["cost.flops"]) == (2 * 128 * 32 * 64, 4096)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_element_of_a_tuple_has_four_bytes(count: int) -> None:
    """As of jaxlib 0.11: 4 bytes an element of a `tuple`, beside what its negations read and write."""
    lines = [f"n{number} = f32[16]{{0}} negate(p)" for number in range(count)]
    types, names = ", ".join(["f32[16]{0}"] * count), ", ".join(f"n{number}" for number in range(count))
    text = entry("p = f32[16]{0} parameter(0)", *lines, f"ROOT t = ({types}) tuple({names})")
    assert inspect(text, "cost").facts["cost.bytes_accessed"] == count * (2 * 64 + 4)


# -- findings -----------------------------------------------------------------------------------------------------------------

CALLBACK = entry(
    "x = f32[1024,1024]{1,0} parameter(0)",
    "tok = token[] after-all()",
    'cb = (token[]) custom-call(tok, x), custom_call_target="xla_ffi_python_gpu_callback", custom_call_has_side_effect=true, '
    'metadata={op_name="jit(step)/debug_callback" source_file="/w/t.py" source_line=9}',
    "ROOT n = f32[1024,1024]{1,0} negate(x)",
)


def test_a_forgotten_print() -> None:
    (finding,) = [finding for finding in inspect(CALLBACK, "custom-calls").findings if finding.rule == "HI510"]
    assert (finding.stake, finding.source) == (4 * MIB, "/w/t.py:9")
    assert "calls Python on the host once" in finding.message


BODIES = entry(
    "x = f32[64,3]{1,0} parameter(0)",
    "v = f32[64,3]{1,0} parameter(1)",
    "c = f32[] constant(0.01)",
    "dt = f32[64,3]{1,0} broadcast(c), dimensions={}",
    "m = f32[64,64]{1,0} parameter(2)",
    f"f = f32[64,3]{{1,0}} dot(m, x), {MULTIPLIED}",
    "a = f32[64,3]{1,0} multiply(dt, f)",
    "w = f32[64,3]{1,0} subtract(v, a)",
    "s = f32[64,3]{1,0} multiply(dt, w)",
    "y = f32[64,3]{1,0} add(x, s)",
    "ROOT t = (f32[64,3]{1,0}, f32[64,3]{1,0}) tuple(y, w)",
    header="HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }",
)


def test_leapfrog_is_no_optimizer() -> None:
    """The force is linear in the positions; velocities and positions are updated from each other."""
    assert inspect(BODIES, "optimizer").facts["optimizer.update_count"] == 0


# -- of the same kinds --------------------------------------------------------------------------------------------------------


def test_a_synchronous_copy_keeps_the_link_to_the_host_busy() -> None:
    """64 MiB from the host, and 64 MiB back behind it, at 64 GB/s."""
    text = entry(
        "m = f32[4096,4096]{1,0:S(5)} parameter(0)",
        f"c = {PAGE} copy(m)",
        f"a = {PAGE} negate(c)",
        "ROOT h = f32[4096,4096]{1,0:S(5)} copy(a)",
    )
    report = inspect(text, "time", profile="h100-sxm")
    rows = {row["resource"]: row["busy_s"] for row in report.table("resources").records()}
    assert rows["host link"] == pytest.approx(2 * 64 * MIB / 64e9)
    assert "host link" in str(next(row.parts for row in report.headline if row.label == "bottleneck"))


def test_what_is_donated_on_the_host_saves_no_device_memory() -> None:
    """The state `m` stays on the host; `n` of 64 MiB could take the buffer of `g`."""
    host = "f32[4096,4096]{1,0:S(5)}"
    text = entry(
        f"g = {PAGE} parameter(0)",
        f"m = {host} parameter(1)",
        f"c = {PAGE} copy(m)",
        f"a = {PAGE} add(c, g)",
        f"h = {host} copy(a)",
        f"n = {PAGE} negate(a)",
        f"ROOT t = ({host}, {PAGE}) tuple(h, n)",
        header=f"{SCHEDULED}, entry_computation_layout={{({PAGE}, {host})->({host}, {PAGE})}}",
    )
    (finding,) = [finding for finding in inspect(text, "params").findings if finding.rule == "HI101"]
    assert (finding.subject, finding.stake) == ("g", 64 * MIB)


def test_products_whose_unit_no_profile_has_take_at_least_the_fastest_rate() -> None:
    """H100s multiply no f4: 2 * 4096^3 FLOPs at 1978.9 TFLOP/s, the rate of f8."""
    lines = [f"{name} = f4e2m1fn[4096,4096]{{1,0:E(4)}} parameter({number})" for number, name in enumerate("xy")]
    text = entry(*lines, f"ROOT d = bf16[4096,4096]{{1,0}} dot(x, y), {MULTIPLIED}")
    report = inspect(text, "time", profile="h100-sxm")
    assert report.facts["time.estimate_step_s"] is None
    assert least(report, "time.estimate_step_s") >= CUBE / 1978.9e12


UNREAD = """E       AssertionError: assert 'HloModule ji...' == 'HloModule ji...'
E           HloModule jit_f, num_partitions=2
E
E           ENTRY %main (x: f32[8,16]) -> f32[16,16] {
E             %x = f32[8,16]{1,0} parameter(0)
E         -   ROOT %ag = f32[16,16]{1,0} all-gather(%x), channel_id=1, replica_groups={{0,1}}, dimensions={0}
E           }
"""


def test_a_line_that_cannot_be_read_is_not_nothing() -> None:
    """The root may be in it, so that the output is that of the signature: 16 x 16 f32."""
    report = inspect(UNREAD, "summary")
    assert report.facts["outputs.bytes"] == 16 * 16 * 4
    assert report.facts["collectives.count"] is None
    text = call_text("summary", "-", given=UNREAD).stdout
    assert "0 B accessed" not in text
    assert "without matrix multiplications" not in text


def test_pairs_of_partitions_are_of_a_partitioned_program() -> None:
    text = entry(
        "x = f32[8,8]{1,0} parameter(0)",
        "ROOT r = f32[8,8]{1,0} collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0}}",
        header="HloModule m, num_partitions=2",
    )
    assert inspect(text, "collectives").facts["module.shapes"] == "per_device"


def test_before_partitioning_no_table_says_that_there_are_no_collectives() -> None:
    text = entry(
        "x = f32[64,8]{1,0} parameter(0), sharding={devices=[8,1]<=[8]}",
        'ROOT c = f32[64,8]{1,0} custom-call(x), custom_call_target="Sharding", sharding={devices=[1,8]<=[8]}',
        header="HloModule m, num_partitions=8",
    )
    page = call_text("collectives", "-", given=text).stdout
    assert "? before partitioning" in page
    assert "none" not in page
