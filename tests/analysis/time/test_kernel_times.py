"""Times of kernels by bounds, both models and the compiler, worked out by hand on devices of round figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import hlo_inspect
from hlo_inspect.report.model import Report
from hlo_inspect.report.table import Value
from tests.tables import columns

PROFILE = """title: Round figures
maker: MAKER
matmul: {bf16: {value: 100 TFLOP/s, source: arithmetic}}
vector: {f32: {value: 10 TFLOP/s, source: arithmetic}}
memory: {capacity: {value: 16 GB, source: arithmetic}, bandwidth: {value: 1 TB/s, source: arithmetic}}
clock: {value: 1 GHz, source: arithmetic}
kernel_overhead: {value: 1 us, source: arithmetic}
cores_per_device: {value: CORES, source: arithmetic}
efficiency: {matmul: {value: 0.8, source: arithmetic}, memory: {value: 0.5, source: arithmetic}}
links:
  host: {topology: host, bandwidth: {value: 10 GB/s, per: device, directions: one, source: arithmetic}}
sources:
  - {id: arithmetic, title: Round figures, publisher: nobody, version: "1", url: "https://example.org", page: "1"}
"""
US = 1e-6
DATA = Path(__file__).parents[2] / "data"
HEADER = "HloModule m, is_scheduled=true, entry_computation_layout={(f32[1024,1024]{1,0})->f32[1024,1024]{1,0}}\n\n"
MATRIX = 4 * 2**20
"""Bytes of f32[1024,1024]: 4.194304 us at 1 TB/s."""
TILED = "{1,0:T(8,128)}"


class Machine:
    """The kernels of an entry of some lines, on a device of a maker."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def report(self, *lines: str, maker: str = "Google", cores: int = 1, header: str = HEADER, before: str = "") -> Report:
        path = self._folder / "round.yaml"
        path.write_text(PROFILE.replace("MAKER", maker).replace("CORES", str(cores)))
        body = "".join(f"  {line}\n" for line in lines)
        return hlo_inspect.inspect(f"{header}{before}ENTRY %main {{\n{body}}}\n", ("top", "cost"), profile=str(path))

    def times(self, *lines: str, maker: str = "Google", cores: int = 1, before: str = "") -> dict[Value, tuple[object, ...]]:
        """By name: bound as far as it is known, estimate and compiler's estimate in seconds, and what it is bound by."""
        return times(self.report(*lines, maker=maker, cores=cores, before=before))


def times(report: Report) -> dict[Value, tuple[object, ...]]:
    name, *values = "name", "bound_s_lower_bound", "estimate_s", "compiler_s", "bound_by"
    return {row[0]: row[1:] for row in columns(report.table("kernels"), name, *values)}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def parameter(shape: str, number: int = 0) -> str:
    return f"%p{number} = {shape} parameter({number})"


def test_memory_and_the_fixed_cost_of_a_kernel(machine: Machine) -> None:
    """Two matrices at 1 TB/s, in the estimate at half of it; 12,000 cycles at 1 GHz."""
    matrix = f"f32[1024,1024]{TILED}"
    config = '{"window_config":{"estimated_cycles":"12000","iteration_bounds":["1"]}}'
    times = machine.times(parameter(matrix), f"ROOT %n = {matrix} negate(%p0), backend_config={config}")
    bound = 2 * MATRIX / 1e12
    assert times == {"n": (pytest.approx(bound), pytest.approx(1 * US + bound / 0.5), pytest.approx(12 * US), "memory")}


def test_tiles(machine: Machine) -> None:
    """f32[1024,2] has 8,192 bytes, and 524,288 with its second dimension filled up to 128; so do both of its arrays."""
    narrow = f"f32[1024,2]{TILED}"
    times = machine.times(parameter(narrow), f"ROOT %n = {narrow} negate(%p0)")
    estimate = 1 * US + 2 * 524_288 / 1e12 / 0.5
    assert times == {"n": (pytest.approx(2 * 8192 / 1e12), pytest.approx(estimate), None, "memory")}


def test_memory_on_the_chip_is_in_the_estimate_alone(machine: Machine) -> None:
    on_chip = "f32[1024,1024]{1,0:T(8,128)S(1)}"
    (time,) = machine.times(parameter(f"f32[1024,1024]{TILED}"), f"ROOT %n = {on_chip} negate(%p0)").values()
    assert time[:2] == (pytest.approx(MATRIX / 1e12), pytest.approx(1 * US + 2 * MATRIX / 1e12 / 0.5))


def test_a_product(machine: Machine) -> None:
    """2 · 1024³ FLOPs at 100 TFLOP/s are 21.5 us; three matrices of bf16 take 6.3."""
    matrix = f"bf16[1024,1024]{TILED}"
    dot = f"ROOT %d = {matrix} dot(%p0, %p0), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    flops = 2 * 2**30 / 100e12
    assert machine.times(parameter(matrix), dot)["d"] == (
        pytest.approx(flops), pytest.approx(1 * US + flops / 0.8), None, "compute"
    )  # fmt: skip


def test_an_output_fusion_waits_for_what_it_multiplies(machine: Machine) -> None:
    """An operand of three is on the chip; there are two factors at most. An equal loop fusion does not wait."""
    on_chip, matrix = "f32[128,128]{1,0:T(8,128)S(1)}", f"f32[128,128]{TILED}"
    body = (
        "%f {\n  %a = f32[128,128]{1,0} parameter(0)\n  %b = f32[128,128]{1,0} parameter(1)\n"
        "  %c = f32[128,128]{1,0} parameter(2)\n  %d = f32[128,128]{1,0} multiply(%a, %b)\n"
        "  ROOT %r = f32[128,128]{1,0} add(%d, %c)\n}\n"
    )
    memory = 4 * 128 * 128 * 4 / 1e12 / 0.5
    for shapes, kind, costs in (
        ((on_chip, on_chip, on_chip), "kOutput", 1),
        ((on_chip, matrix, on_chip), "kOutput", 2),
        ((matrix, matrix, matrix), "kOutput", 3),
        ((matrix, matrix, matrix), "kLoop", 1),
    ):
        lines = [parameter(shape, number) for number, shape in enumerate(shapes)]
        fusion = f"ROOT %k = {matrix} fusion(%p0, %p1, %p2), kind={kind}, calls=%f"
        assert machine.times(*lines, fusion, before=body)["k"][1] == pytest.approx(costs * US + memory)


def test_one_core_of_two(machine: Machine) -> None:
    """A kernel that says nothing of both cores has half of the chip; in the bound it has all of it."""
    matrix = f"f32[1024,1024]{TILED}"
    both = 'backend_config={"megacore_config":{"megacore_split_dim":"0"}}'
    lines = (parameter(matrix), f"%n = {matrix} negate(%p0)", f"ROOT %m = {matrix} negate(%n), {both}")
    times = machine.times(*lines, cores=2)
    bound = 2 * MATRIX / 1e12
    assert times["n"][:2] == (pytest.approx(bound), pytest.approx(1 * US + 2 * bound / 0.5))
    assert times["m"][:2] == (pytest.approx(bound), pytest.approx(1 * US + bound / 0.5))


def test_scalars_have_no_fixed_cost(machine: Machine) -> None:
    """An addition of three numbers of 4 bytes, one in the memory of scalars, and arrays of one number."""
    lines = (parameter("f32[]{:T(128)}"), "%a = f32[]{:T(128)} add(%p0, %p0)", "ROOT %b = f32[]{:T(128)S(6)} negate(%a)")
    times = machine.times(*lines)
    assert times["a"][:2] == (pytest.approx(12e-12), pytest.approx(12e-12))
    assert times["b"][:2] == (pytest.approx(4e-12), pytest.approx(4e-12))
    scalar = "f32[1]{0:T(128)}"
    assert machine.times(parameter(scalar), f"ROOT %n = {scalar} negate(%p0)")["n"][1] == pytest.approx(8e-12)


def test_copies_that_another_engine_makes(machine: Machine) -> None:
    """To the chip at the memory's bandwidth, of what is sliced the slice; to the host at 10 GB/s. None has a fixed cost."""
    matrix, on_chip, of_host = f"f32[1024,1024]{TILED}", "f32[1024,1024]{1,0:T(8,128)S(1)}", "f32[1024,1024]{1,0:T(8,128)S(5)}"
    part = "f32[8,1024]{1,0:T(8,128)S(1)}"
    times = machine.times(
        parameter(matrix),
        f"%c = ({on_chip}, {matrix}, u32[]{{:S(2)}}) copy-start(%p0)",
        f"%cd = {on_chip} copy-done(%c)",
        f"%s = (({matrix}), {part}, u32[]{{:S(2)}}) slice-start(%p0), slice={{[0:8], [0:1024]}}",
        f"%sd = {part} slice-done(%s)",
        f"%h = ({of_host}, {matrix}, u32[]{{:S(2)}}) copy-start(%p0)",
        f"ROOT %hd = {of_host} copy-done(%h)",
    )
    assert times["c"][:2] == (pytest.approx(MATRIX / 1e12), pytest.approx(MATRIX / 1e12 / 0.5))
    assert times["s"][:2] == (pytest.approx(MATRIX / 128 / 1e12), pytest.approx(MATRIX / 128 / 1e12 / 0.5))
    assert times["h"][:2] == (pytest.approx(MATRIX / 10e9), pytest.approx(MATRIX / 10e9))


def test_xlas_model_of_gpus(machine: Machine) -> None:
    """A launch, 26.8 us of the product at 80 %, 12.6 us of memory at 50 %, less 95 % of the shorter."""
    dot = "ROOT %d = bf16[1024,1024]{1,0} dot(%p0, %p0), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    (time,) = machine.times(parameter("bf16[1024,1024]{1,0}"), dot, maker="NVIDIA").values()
    compute, memory = 2 * 2**30 / 100e12 / 0.8, 3 * MATRIX / 2 / 1e12 / 0.5
    assert compute > memory
    assert time[:2] == (pytest.approx(2 * 2**30 / 100e12), pytest.approx(1 * US + compute + 0.05 * memory))


def test_matrix_and_vector_units_work_at_the_same_time(machine: Machine) -> None:
    """A fusion of a product, 21.5 us, and of 64 additions for each of its elements, 6.7 us."""
    fused = "\n".join(f"  %a{i} = f32[1024,1024]{{1,0}} add(%{f'a{i - 1}' if i else 'd'}, %q)" for i in range(63))
    body = (
        "%f {\n  %p = bf16[1024,1024]{1,0} parameter(0)\n  %q = f32[1024,1024]{1,0} parameter(1)\n"
        "  %d = f32[1024,1024]{1,0} dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        f"{fused}\n  ROOT %r = f32[1024,1024]{{1,0}} add(%a62, %q)\n}}\n"
    )
    lines = (parameter("bf16[1024,1024]{1,0}"), parameter("f32[1024,1024]{1,0}", 1))
    fusion = "ROOT %k = f32[1024,1024]{1,0} fusion(%p0, %p1), kind=kOutput, calls=%f"
    (time,) = machine.times(*lines, fusion, before=body).values()
    assert time[0] == pytest.approx(2 * 2**30 / 100e12)


def test_a_running_sum_need_not_add_each_window(machine: Machine) -> None:
    """A window of 1024 from each of 1024 positions: a million additions as XLA counts, and 2,047 at least."""
    line = "f32[1024]{0}"
    add = "%add {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n  ROOT %s = f32[] add(%a, %b)\n}\n"
    window = "window={size=1024 pad=1023_0}, to_apply=%add"
    lines = (parameter(line), "%z = f32[] constant(0)", f"ROOT %w = {line} reduce-window(%p0, %z), {window}")
    report = machine.report(*lines, before=add)
    assert report.facts["cost.executed_flops"] == 1023 * 1024
    assert report.facts["time.compute_s"] == 0
    assert times(report)["w"][3] == "memory"


def test_custom_fusions_of_a_tpu_have_no_estimate(machine: Machine) -> None:
    """Their bytes are a bound all the same; the total says how many kernels it lacks. A GPU's are as other fusions are."""
    body = (
        "%g {\n  %p = f32[1024,1024]{1,0} parameter(0)\n  %i = s32[8,1]{1,0} parameter(1)\n"
        "  ROOT %r = f32[8,1024]{1,0} gather(%p, %i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
        "index_vector_dim=1, slice_sizes={1,1024}\n}\n"
    )
    lines = (parameter("f32[1024,1024]{1,0}"), parameter("s32[8,1]{1,0}", 1))
    fusion = "ROOT %k = f32[8,1024]{1,0} fusion(%p0, %p1), kind=kCustom, calls=%g"
    report = machine.report(*lines, fusion, before=body)
    bound = (2 * 8 * 1024 * 4 + 32) / 1e12
    assert times(report)["k"][:2] == (pytest.approx(bound), None)
    assert report.facts["time.kernels_s"] == pytest.approx(bound)
    assert report.facts["time.estimate_kernels_s"] is None
    assert "time.estimate_kernels_s: there is no model of custom fusions (1 kernel)" in report.notes
    assert "time.compiler_cycles: the text does not state the compiler's own estimates in cycles" in report.notes
    assert machine.times(*lines, fusion, before=body, maker="NVIDIA")["k"][1] is not None


def test_a_fusion_that_waits_for_a_collective_takes_no_time(machine: Machine) -> None:
    body = (
        "%done {\n  %p = f32[1024,1024]{1,0} parameter(0)\n"
        '  ROOT %r = f32[1024,1024]{1,0} custom-call(%p), custom_call_target="AsyncCollectiveDone"\n}\n'
    )
    fusion = "ROOT %k = f32[1024,1024]{1,0} fusion(%p0), kind=kCustom, calls=%done"
    times = machine.times(parameter("f32[1024,1024]{1,0}"), fusion, before=body)
    assert times == {"k": (0.0, 0.0, None, None)}


def test_custom_calls_without_a_rule(machine: Machine) -> None:
    call = 'f32[1024,1024]{1,0} custom-call(%p0), custom_call_target="odd"'
    report = machine.report(parameter("f32[1024,1024]{1,0}"), f"%a = {call}", f"ROOT %b = {call}")
    assert times(report)["a"] == (pytest.approx(2 * MATRIX / 1e12), None, None, None)
    assert (report.facts["time.kernels_s"], report.facts["time.estimate_kernels_s"]) == (None, None)
    assert report.facts["time.kernels_s.lower_bound"] == pytest.approx(4 * MATRIX / 1e12)
    assert "time.kernels_s: there is no rule for odd (2 kernels)" in report.notes
    assert [row["bound_s"] for row in report.table("kernels").records()] == [None, None]


def test_the_compiler_states_the_work_beside_the_compute_stream(machine: Machine) -> None:
    matrix = "f32[1024,1024]{1,0}"
    config = 'backend_config={"window_config":{"estimated_cycles":"12000","iteration_bounds":["1"]}}'
    body = f"%beside {{\n  %q = {matrix} parameter(0)\n  ROOT %k = {matrix} negate(%q), {config}\n}}\n"
    start = f"%s = (({matrix}), {matrix}, u32[]) async-start(%p0), calls=%beside"
    report = machine.report(parameter(matrix), start, f"ROOT %d = {matrix} async-done(%s)", before=body)
    assert times(report)["k"][2] == 12 * US
    assert report.facts["time.compiler_cycles"] == 12_000


GLOBAL = "HloModule m, num_partitions=4, entry_computation_layout={(f32[1024,1024]{1,0})->f32[1024,1024]{1,0}}\n\n"


def test_before_fusion_bytes_are_not_known(machine: Machine) -> None:
    """FLOPs are known: of the whole program over four devices if a sharding splits it, else of one device."""
    dot = "ROOT %d = bf16[1024,1024]{1,0} dot(%p0, %p0), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    flops = 2 * 2**30 / 100e12
    for sharding, devices in ((", sharding={devices=[4,1]<=[4]}", 4), ("", 1)):
        report = machine.report(parameter("bf16[1024,1024]{1,0}") + sharding, dot, header=GLOBAL)
        assert report.facts["time.compute_s"] == pytest.approx(flops / devices)
        assert report.facts["time.memory_s"] is None
        assert any(note.startswith("time.memory_s: the text is from before fusion") for note in report.notes)
        assert times(report)["d"] == (pytest.approx(flops / devices), None, None, "compute")


def test_a_profile_without_the_fixed_cost_of_a_kernel() -> None:
    """No document states it of a TPU v2: what a model expects is a lower bound."""
    vector = "f32[1024]{0:T(1024)}"
    text = f"{HEADER}ENTRY %main {{\n  {parameter(vector)}\n  ROOT %n = {vector} copy(%p0)\n}}\n"
    report = hlo_inspect.inspect(text, ("top", "cost"), profile="tpu-v2")
    assert times(report)["n"][1] is None
    assert report.facts["time.estimate_kernels_s"] is None
    assert "time.estimate_kernels_s: the profile tpu-v2 states no kernel_overhead (1 kernel)" in report.notes


def test_the_compilers_cycles_of_all_runs(machine: Machine) -> None:
    """Ten runs of a kernel of 2,000 cycles, and one copy of which nothing was estimated."""
    vector, state = "f32[1024]{0:T(1024)}", "(s32[], f32[1024]{0:T(1024)})"
    cycles = 'backend_config={"window_config":{"estimated_cycles":"%d","iteration_bounds":["%d"]}}'
    loop = (
        f"%body {{\n  %s = {state} parameter(0)\n  %i = s32[] get-tuple-element(%s), index=0\n"
        f"  %x = {vector} get-tuple-element(%s), index=1\n  %n = {vector} negate(%x), {cycles % (2000, 1)}\n"
        f"  ROOT %t = {state} tuple(%i, %n)\n}}\n"
        f"%condition {{\n  %s = {state} parameter(0)\n  ROOT %c = pred[] constant(true)\n}}\n"
    )
    report = machine.report(
        parameter(vector),
        "%zero = s32[] constant(0)",
        f"%t = {state} tuple(%zero, %p0)",
        f'%w = {state} while(%t), condition=%condition, body=%body, backend_config={{"known_trip_count":{{"n":"10"}}}}',
        f"%x = {vector} get-tuple-element(%w), index=1",
        f"ROOT %copy = {vector} copy(%x), {cycles % (500, 5)}",
        before=loop,
    )
    assert report.facts["time.compiler_cycles"] == 20_000
    assert times(report)["n"][2] == pytest.approx(20 * US)
    assert times(report)["copy"][2] is None


@pytest.mark.parametrize("dump", sorted((DATA / "tpu").glob("*.after.txt")) + sorted((DATA / "memory").glob("tpu_*.hlo")))
def test_the_compilers_estimates_of_a_dump(dump: Path) -> None:
    """Every estimate of a loop or output fusion that runs on a TPU v5e is read; no bound exceeds one by over 5 %.

    On-chip memory is free in bounds, and costs in the model.
    """
    text = dump.read_text(encoding="utf-8")
    stated = re.findall(r'kind=k(?:Loop|Output).*"estimated_cycles":"(\d+)"', text)
    report = hlo_inspect.inspect(dump, "top", profile="tpu-v5e")
    rows = report.table("kernels").records()
    fusions = [row for row in rows if row["fusion_kind"] in ("kLoop", "kOutput")]
    cycles = [round(number(row["compiler_s"]) / number(row["runs"] or 1) * 1.5e9) for row in fusions]
    assert sorted(cycles) == sorted(map(int, stated))
    assert all(number(row["bound_s"]) <= 1.05 * number(row["compiler_s"]) for row in rows if row["compiler_s"])


def number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)
