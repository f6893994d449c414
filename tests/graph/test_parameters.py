"""Entry parameters and outputs: leaves, aliases, donors, and reasons against donation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hlo_inspect
from hlo_inspect.analysis.context import Context
from hlo_inspect.graph.parameters import ALL_TAKEN, FITS, NO_OUTPUT, OTHER_LAYOUT, OTHER_SHARDING, ParameterLeaf

Entry = Callable[..., Context]

P = "%p = f32[4,2]{1,0} parameter(0)"
Q = "%q = f32[4,2]{1,0} parameter(1)"
TUPLE = "%t = (f32[4]{0}, (s32[], bf16[2]{0}), token[]) parameter(0)"


def leaves(context: Context) -> dict[tuple[int, tuple[int, ...]], ParameterLeaf]:
    return {(leaf.number, leaf.index): leaf for leaf in context.interface.parameters}


def reason(context: Context, number: int = 0) -> str:
    (leaf,) = [leaf for leaf in context.interface.parameters if leaf.number == number]
    return leaf.kept_because


def test_leaves_of_parameters_and_outputs(entry: Entry) -> None:
    """Leaves are in the order of parameter numbers. Tokens and empty tuples are parameters without a leaf."""
    lines = ("%b = u8[3]{0} parameter(2)", TUPLE, "%e = () parameter(1)")
    interface = entry(*lines, "ROOT %o = (u8[3]{0}, (token[], pred[])) tuple(%b, %t)").interface
    assert interface.count == 3
    rows = [(leaf.number, leaf.index, leaf.name, str(leaf.shape), leaf.shape.bytes) for leaf in interface.parameters]
    assert rows == [
        (0, (0,), "t", "f32[4]", 16),
        (0, (1, 0), "t", "s32[]", 4),
        (0, (1, 1), "t", "bf16[2]", 4),
        (2, (), "b", "u8[3]", 3),
    ]
    assert [(out.index, str(out.shape)) for out in interface.outputs] == [((0,), "u8[3]"), ((1, 1), "pred[]")]
    assert interface.complete


def test_a_parameter_has_its_line_of_the_text(entry: Entry) -> None:
    """Ten lines stand before it: header, blank, five of `%add`, two blanks, and the line of the entry."""
    (leaf,) = entry(P, "ROOT %n = f32[4,2]{1,0} negate(%p)").interface.parameters
    assert leaf.line == 11


@pytest.mark.parametrize(
    ("alias", "aliased"),
    [
        ("{1}: (1, {}, may-alias)", {1: (1,)}),
        ("{0}: (1, {}), {1}: (0, {}, must-alias)", {0: (1,), 1: (0,)}),
        ("{ 0 }:(0,{},may-alias)", {0: (0,)}),
    ],
)
def test_aliases_link_parameters_and_outputs(entry: Entry, alias: str, aliased: dict[int, tuple[int, ...]]) -> None:
    root = "ROOT %o = (f32[4,2]{1,0}, f32[4,2]{1,0}) tuple(%p, %q)"
    interface = entry(P, Q, root, header=f", input_output_alias={{ {alias} }}").interface
    assert {leaf.number: leaf.alias.output_index for leaf in interface.parameters if leaf.alias} == aliased
    assert {out.alias.parameter: out.index for out in interface.outputs if out.alias} == aliased
    assert all(leaf.donated == (leaf.number in aliased) for leaf in interface.parameters)
    assert interface.faults == ()


def test_an_output_that_is_no_tuple_has_the_empty_index(entry: Entry) -> None:
    interface = entry(
        P, "ROOT %n = f32[4,2]{1,0} negate(%p)", header=", input_output_alias={ {}: (0, {}, may-alias) }"
    ).interface
    assert interface.parameters[0].donated
    assert interface.outputs[0].index == ()
    assert interface.outputs[0].alias is not None


def test_aliases_and_donors_with_nested_indices(entry: Entry) -> None:
    root = 'ROOT %o = (s32[], (f32[4]{0}, bf16[2]{0})) custom-call(%t), custom_call_target="swap"'
    header = ", input_output_alias={ {1,0}: (0, {0}, may-alias), {0}: (0, {1,0}, may-alias) }, buffer_donor={ (0, {1, 1}) }"
    context = entry(TUPLE, root, header=header)
    donations = {
        index: (leaf.alias.output_index if leaf.alias else None, leaf.donor) for index, leaf in leaves(context).items()
    }
    assert donations == {(0, (0,)): ((1, 0), False), (0, (1, 0)): ((0,), False), (0, (1, 1)): (None, True)}
    assert [out.alias is not None for out in context.interface.outputs] == [True, True, False]


def test_an_alias_of_a_tuple_applies_to_its_elements(entry: Entry) -> None:
    lines = ("%t = (f32[4]{0}, s32[]) parameter(0)", "%u = (f32[4]{0}, s32[]) parameter(1)")
    header = ", input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }"
    interface = entry(*lines, "ROOT %o = (f32[4]{0}, s32[]) tuple(%t, %u)", header=header).interface
    assert [(leaf.alias is not None, leaf.donor) for leaf in interface.parameters] == [(True, False)] * 2 + [(False, True)] * 2
    assert all(out.alias is not None for out in interface.outputs)


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (
            "input_output_alias={ {3}: (0, {}, may-alias) }",
            "input_output_alias names output [3], which the result does not have",
        ),
        ("input_output_alias={ {0}: (7, {}, may-alias) }", "parameter 7, which the entry does not have"),
        ("input_output_alias={ {0}: (0, {1}, may-alias) }", "parameter 0[1], which the entry does not have"),
        ("buffer_donor={ (2, {}) }", "parameter 2, which the entry does not have"),
        ("buffer_donor={ (1, {0,4}) }", "parameter 1[0, 4], which the entry does not have"),
    ],
)
def test_a_dangling_alias_or_donor_is_a_fault(entry: Entry, header: str, fault: str) -> None:
    root = "ROOT %o = (f32[4,2]{1,0}, f32[4,2]{1,0}) tuple(%p, %q)"
    (interface_fault,) = entry(P, Q, root, header=f", {header}").interface.faults
    assert interface_fault.message.endswith(fault)


def test_a_dangling_alias_has_the_bytes_of_its_existing_end(entry: Entry) -> None:
    """f32[4,2] has 32 bytes; a donor has no other end."""
    root = "ROOT %o = (f32[4,2]{1,0}, f32[4,2]{1,0}) tuple(%p, %q)"
    for header, size in (
        ("input_output_alias={ {3}: (0, {}, may-alias) }", 32),
        ("input_output_alias={ {0}: (7, {}, may-alias) }", 32),
        ("buffer_donor={ (2, {}) }", 0),
    ):
        (fault,) = entry(P, Q, root, header=f", {header}").interface.faults
        assert fault.bytes == size


CUT = """HloModule m, is_scheduled=true

ENTRY %main (p.1: f32[4,2], q: (s32[], bf16[8])) -> (f32[4,2], f32[]) {
  %p.1 = f32[4,2]{1,0} parameter(0)
  %n = f32[4,2]{1,0} negate(%p.1)
  %e = f32[4,2]{1,0} expo"""


def test_the_signature_of_a_truncated_entry_has_parameters_and_outputs() -> None:
    """Parameters have 32 + 4 + 16 bytes, outputs 32 + 4. Their users are truncated."""
    report = hlo_inspect.inspect(CUT, "params")
    facts = report.facts
    assert (facts["params.count"], facts["params.leaf_count"], facts["params.bytes"]) == (2, 3, 52)
    assert (facts["outputs.count"], facts["outputs.bytes"]) == (2, 36)
    assert facts["params.unused_count"] is None
    assert report.table("params").records()[0]["unused"] is None


def test_bytes_are_unknown_for_a_truncated_entry_without_signature() -> None:
    report = hlo_inspect.inspect(CUT.replace(" (p.1: f32[4,2], q: (s32[], bf16[8])) -> (f32[4,2], f32[])", ""), "params")
    assert (report.facts["params.bytes"], report.facts["outputs.bytes"]) == (None, None)


@pytest.mark.parametrize(
    ("root", "header", "expected"),
    [
        ("ROOT %o = f32[4,2]{1,0} negate(%p)", "", FITS),
        ("ROOT %o = f32[8]{0} reshape(%p)", "", NO_OUTPUT),
        ("ROOT %o = bf16[4,2]{1,0} convert(%p)", "", NO_OUTPUT),
        ("ROOT %o = f32[4,2]{0,1} copy(%p)", "", OTHER_LAYOUT),
        ("ROOT %o = f32[4,2]{1,0:T(8,128)} copy(%p)", "", OTHER_LAYOUT),
        ("ROOT %o = f32[4,2]{1,0} add(%p, %q)", ", input_output_alias={ {}: (1, {}, may-alias) }", ALL_TAKEN),
        ("ROOT %o = (f32[4,2]{1,0}, f32[4,2]{1,0}) tuple(%p, %q)", ", input_output_alias={ {0}: (1, {}, may-alias) }", FITS),
        ("ROOT %o = f32[4,2]{1,0} add(%p, %q)", ", buffer_donor={ (1, {}) }", ALL_TAKEN),
    ],
)
def test_reasons_why_a_parameter_is_not_donated(entry: Entry, root: str, header: str, expected: str) -> None:
    assert reason(entry(P, Q, root, header=header)) == expected


@pytest.mark.parametrize(
    ("parameter", "output", "expected"),
    [
        ("{devices=[2,1]<=[2]}", "{devices=[1,2]<=[2]}", OTHER_SHARDING),
        ("{devices=[2,1]<=[2]}", "{devices=[2,1]<=[2]}", FITS),
        ("{replicated}", "{devices=[2,1]<=[2]}", OTHER_SHARDING),
    ],
)
def test_a_different_sharding_prevents_donation(entry: Entry, parameter: str, output: str, expected: str) -> None:
    assert reason(entry(f"{P}, sharding={parameter}", f"ROOT %o = f32[4,2]{{1,0}} negate(%p), sharding={output}")) == expected


def test_a_donated_parameter_has_no_reason_against_donation(entry: Entry) -> None:
    context = entry(P, "ROOT %o = f32[8]{0} reshape(%p)", header=", buffer_donor={ (0, {}) }")
    assert reason(context) == ""


def test_a_tuple_sharding_gives_each_element_its_own(entry: Entry) -> None:
    lines = (
        "%t = (f32[4]{0}, s32[]) parameter(0), sharding={{devices=[2]<=[2]}, {replicated}}",
        "%q = f32[8]{0} parameter(1), sharding={replicated}",
        "ROOT %o = (f32[8]{0}, f32[4]{0}) tuple(%q, %t), sharding={{replicated}, {devices=[2]<=[2]}}",
    )
    interface = entry(*lines).interface
    texts = [leaf.sharding.text for leaf in interface.parameters if leaf.sharding]
    assert texts == ["{devices=[2]<=[2]}", "{replicated}", "{replicated}"]
    assert [out.sharding.text for out in interface.outputs if out.sharding] == ["{replicated}", "{devices=[2]<=[2]}"]


@pytest.mark.parametrize(
    ("op_name", "path"),
    [
        (r"state[\'params\'][\'w1\']", "state['params']['w1']"),
        ("x", "x"),
        ("args[0].mu", "args[0].mu"),
        (r"params[\'mlp/~/linear_0\'][\'w\']", "params['mlp/~/linear_0']['w']"),  # haiku names modules like paths
        ("jit(step)/jit(main)/mul", ""),
        ("pjit(step)/add", ""),
        (r"jit(step)/jit(main)/shard_map[mesh=Mesh(axis_names=(\'data\',))]", ""),
    ],
)
def test_the_path_of_a_parameter_comes_from_its_op_name(entry: Entry, op_name: str, path: str) -> None:
    (leaf,) = entry(f'{P}, metadata={{op_name="{op_name}"}}', "ROOT %n = f32[4,2]{1,0} negate(%p)").interface.parameters
    assert leaf.path == path
