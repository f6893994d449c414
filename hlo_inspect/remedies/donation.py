"""Donation of all arguments whose new value is an output."""

from __future__ import annotations

from hlo_inspect.analysis.context import Context
from hlo_inspect.compiler.meshes import Description
from hlo_inspect.graph.parameters import fitting
from hlo_inspect.remedies.remedy import CannotBeTriedError, Remedy, argument_numbers, argument_of


def donation(context: Context, description: Description) -> Remedy:
    """Return the donation of weights and state together: it is one option of `jax.jit`, and both findings ask for it."""
    interface = context.interface
    succeeded = context.optimizer.succeeded_parameters(interface)
    candidates = (leaf for leaf in interface.parameters if leaf.could_be_donated and (leaf.number, leaf.index) in succeeded)
    arguments = [argument_of(leaf, description) for leaf in fitting(candidates, interface.outputs)]
    if not arguments:
        raise CannotBeTriedError("no argument is left that an output could take")
    numbers = argument_numbers(arguments, description)
    line = f"jax.jit(…, donate_argnums={numbers})" if numbers else "jax.jit(…, donate_argnums=…)"
    words = f"donate {', '.join(map(str, arguments))}"
    return Remedy(words, ({"kind": "donate", "arguments": [own.number for own in arguments]},), line)
