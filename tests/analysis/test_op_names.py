"""The line of the user among the frames of an instruction, and scopes in op_names. tests/cases/analysis has both in a text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hlo_inspect.analysis.context import Context
from hlo_inspect.analysis.provenance import Provenances
from hlo_inspect.hlo.values.attributes import Metadata, parse_metadata
from hlo_inspect.hlo.values.op_names import Origin, StackFrames, origin_of, phase_of, scope_of

DATA = Path(__file__).parents[1] / "data"

DOT = "dot_general[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]"


def frames(*tables: str) -> StackFrames:
    stack = StackFrames()
    for table in tables:
        stack.add(table)
    return stack


def from_metadata(metadata: str, *tables: str) -> Origin:
    return origin_of(parse_metadata(f"{{{metadata}}}"), frames(*tables))


SITE = "/venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("files", "source"),  # innermost first, each at the line of its number
    [
        (("/home/me/model.py", "/home/me/train.py"), "/home/me/model.py:2"),
        ((f"{SITE}/flax/linen/linear.py", "/home/me/model.py", "/home/me/train.py"), "/home/me/model.py:2"),
        (("/usr/lib/python3/dist-packages/optax/_src/base.py", "/home/me/train.py"), "/home/me/train.py:1"),
        (("/usr/lib/python3.11/functools.py", "<frozen runpy>", "/home/me/train.py"), "/home/me/train.py:1"),
        # a framework that is installed from its sources, and programs that are named like one
        (("/opt/flax/flax/linen/module.py", "/opt/maxtext/MaxText/layers.py"), "/opt/maxtext/MaxText/layers.py:1"),
        (("/home/me/flax/examples/mnist/train.py", "/home/me/main.py"), "/home/me/flax/examples/mnist/train.py:2"),
        (("train.py", "/home/me/main.py"), "train.py:2"),
        # no user's line
        (("/opt/jax/jax/_src/numpy/ufuncs.py", f"{SITE}/absl/app.py"), "/opt/jax/jax/_src/numpy/ufuncs.py:2"),
        ((f"{SITE}/maxtext/layers.py", f"{SITE}/maxtext/train.py"), f"{SITE}/maxtext/layers.py:2"),
    ],
)
def test_the_line_of_the_user(files: tuple[str, ...], source: str) -> None:
    outermost_first = list(enumerate(reversed(files), 1))
    origin = from_metadata(
        f'op_name="f" stack_frame_id={len(files)}',
        "FileNames\n" + "".join(f'{n} "{file}"\n' for n, file in outermost_first),
        "FileLocations\n" + "".join(f"{n} {{file_name_id={n} line={n}}}\n" for n, _ in outermost_first),
        "StackFrames\n" + "".join(f"{n} {{file_location_id={n} parent_frame_id={n}}}\n" for n, _ in outermost_first),
    )
    assert origin.source == source
    assert origin.innermost == f"{files[0]}:{len(files)}"
    assert [line.place for line in origin.stack] == [f"{file}:{n}" for n, file in reversed(outermost_first)]


def test_a_dump_that_points_into_its_tables(read: Callable[..., Context]) -> None:
    """The line of each instruction as counted by hand in the handmade dump."""
    places = json.loads((DATA / "handmade/expected.json").read_text(encoding="utf-8"))["stack_frames.txt"]["sources"]
    text = (DATA / "handmade/stack_frames.txt").read_text(encoding="utf-8")
    module = read(
        text.replace("%outer = f32[4]{0} negate(%p)", '%outer = f32[4]{0} custom-call(%p), custom_call_target="x"')
    ).module
    sources = {i.name: origin_of(i.attr("metadata"), module.frames).source for i in module.instructions if i.name in places}
    assert sources == {name: f"{file}:{line}" for name, (file, line) in places.items()}


# -- scopes


@pytest.mark.parametrize(
    ("op_name", "parts"),
    [
        ("jit(step)/(jvp()/gather:transpose(jvp(layer_0))/mlp/dot_general:reduce_sum)", ("forward", "backward", "unknown")),
        ("jit(step)/transpose(jvp())/while/body/(mlp/dot_general:attention/reduce_sum)", ("backward", "backward")),
        ("jit(step)/transpose(jvp())/checkpoint/(add:rematted_computation/mul)", ("backward", "recompute")),
        ("jit(step)/mul;jit(step)/jvp(layer_0)/add", ("unknown", "forward")),
        ("jit(step)/jvp(layer_0)/add;reshape", ("forward",)),
        ("jit(step)/(jvp()/a:transpose(jvp())/b);jit(step)/c", ("forward", "backward", "unknown")),
        ("a;b", ()),
        ("jit(step)/jvp(layer_0)/mlp/dot_general", ()),
    ],
)
def test_parts_of_combined_names(op_name: str, parts: tuple[str, ...]) -> None:
    assert scope_of(op_name).parts == parts


def test_a_path_is_cut_outside_of_brackets() -> None:
    scope = scope_of(f"jit(f)/jvp(a/b)/{DOT}")
    assert scope.path == ("jit(f)", "jvp(a/b)", DOT)
    assert scope.primitive == "dot_general"
    assert scope.parameters == "[dimension_numbers=(((2,), (0,)), ((), ())) precision=None]"


@pytest.mark.parametrize(
    ("op_name", "is_bare", "has_name", "names"),
    [
        ("jit(step)/reduce_sum", True, False, ()),
        ("jit(step)/jvp()/reduce_sum", True, False, ()),
        ("parallelize(train_step)/jit(main)/reduce_max[axes=(2,)]", True, False, ()),
        ("jit(<lambda>)/jit(main)/jvp()/reduce_sum", True, False, ()),
        ("reduce_sum", False, False, ()),
        ("jvp(f)/reduce_sum", False, False, ()),
        ("jit(step)/jit(main)/jvp(jit(log_softmax))/reduce_max", False, False, ("log_softmax",)),
        ("jit(step)/jvp(layer_0)/attention/dot_general", False, True, ("layer_0", "attention")),
        ("jit(step)/jvp()/while/body/closed_call/mlp/dot_general", False, True, ("while", "body", "closed_call", "mlp")),
        ("jit(step)/jvp()/shard_map/while/body/psum", False, False, ("shard_map", "while", "body")),
        ("jit(step)/transpose(jvp(Model))/dot_general", False, True, ("Model",)),
        ("jit(step)/jvp(checkpoint)/add", False, False, ("checkpoint",)),
    ],
)
def test_scopes_around_an_operation_are_its_names(op_name: str, is_bare: bool, has_name: bool, names: tuple[str, ...]) -> None:
    scope = scope_of(op_name)
    assert (scope.is_bare, scope.has_name, scope.names) == (is_bare, has_name, names)


@pytest.mark.parametrize("op_name", ["(" * 5000 + ")" * 9000, "/" * 5000, ";" * 5000, "a/(" + ":" * 5000 + ")", "jvp(" * 2000])
def test_senseless_names_are_passed_over(op_name: str) -> None:
    assert scope_of(op_name).phase == "unknown" or op_name.startswith("jvp(")


@pytest.mark.parametrize(
    "name",
    [
        "jit(step)/jvp(layers_12)/attention/dot_general",
        "jit(step)/transpose(jvp(layer_3))/while/body/branch_1_fun/remat2/mul",
        "jit(step)/jvp(block_0)/log_softmax/reduce_sum[axes=(2,)]",
        "jit(step)/optimizer/layer_1x/conv2d_7/mul",
        "jit(step)/(jvp(a_1)/add:transpose(jvp(a_2))/add)",
        "jit(f_1)/jvp(a_1)/add;jit(f_2)/jvp(a_9)/add",
        "jit(step)/branch_2x_fun/layer_0/layer_1/mul",
        "jit(step)/jvp(層_3块)/dot_general",
        "jit(step)/jvp(層_٣)/dot_general",
        "jit(step)/transpose(jvp(Model))/encoder/layer/11/0/attention/dot_general",
        "jit(step)/jvp(Model)/layer/3/3d/4.5/7/7/add",
        "3/4;5/6",
    ],
)
def test_the_number_of_a_layer_tells_nothing(name: str) -> None:
    """The provenance of another layer is that of this one."""
    provenances = Provenances(StackFrames())
    provenances.get(Metadata(re.sub(r"(?<=[_/])\d+", "0", name)))
    provenance, scope = provenances.get(Metadata(name)), scope_of(name)
    assert provenance.origin == Origin(name)
    assert (provenance.phase, provenance.folded) == (phase_of("", scope), "/".join(scope.folded))
    assert (provenance.scope.phase, provenance.scope.parts) == (scope.phase, scope.parts)


def test_one_name_is_of_the_phase_that_its_source_tells() -> None:
    provenances = Provenances(StackFrames())
    files = ("/optax/losses/_classification.py", "/work/train.py")
    assert [provenances.get(Metadata("jit(step)/jvp()/mul", source_file=file)).phase for file in files] == ["loss", "forward"]
