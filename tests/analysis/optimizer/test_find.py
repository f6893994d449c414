"""Regions: the entry, and loops over steps."""

from __future__ import annotations

from hlo_inspect.analysis.optimizer.find import find_optimizer
from hlo_inspect.analysis.parameters import find_interface
from tests.analysis.optimizer.reading import changed, entry_of, facts_of, module_of, text_of


def test_a_loop_over_steps_leads_to_the_entry_s_parameters() -> None:
    """The state is (b, w), the counter and two moments of each, in the order of its leaves."""
    module = module_of(text_of("adamw_loop.after"))
    found = find_optimizer(module, find_interface(module))
    assert len(found.matchers) == 2
    assert [found.parameters[weight.site.source] for weight in found.weights] == [(0, ()), (1, ())]


def test_a_module_without_an_entry() -> None:
    text = "HloModule test\n\n%f (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n"
    assert facts_of(text)["name"] == "none"


def test_an_alias_to_a_parameter_that_is_not_there() -> None:
    text = changed(text_of("sgd.before"), r"\{0\}: \(0, \{\}", "{0}: (99, {}")
    assert facts_of(text)["update_count"] == 1


def test_nan_and_infinity() -> None:
    for literal in ("nan", "inf", "-inf"):
        text = changed(text_of("adam.before"), r"constant\(0\.85\)", f"constant({literal})")
        assert facts_of(text)["update_count"] == 2


def test_an_entry_that_gives_its_parameters_back() -> None:
    text = entry_of("ROOT %p = f32[8]{0} parameter(0)", header=", input_output_alias={ {}: (0, {}, may-alias) }")
    assert facts_of(text)["name"] == "none"
