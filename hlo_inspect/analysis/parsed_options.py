"""The options of a request whose text means more than itself, parsed once for all modules of an inspection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hlo_inspect.request import Request

if TYPE_CHECKING:
    from hlo_inspect.analysis.alpa import CostModel
    from hlo_inspect.analysis.cost.custom_calls.user_rules import UserRules
    from hlo_inspect.analysis.time.profiles import AskedMachine
    from hlo_inspect.hlo.values.device_groups import NamedMesh


@dataclass(frozen=True)
class ParsedOptions:
    """The machine, the mesh, the rules for custom calls and the cost model of a request; None if it names none."""

    machine: AskedMachine | None = None
    mesh: NamedMesh | None = None
    custom_calls: UserRules | None = None
    cost_model: CostModel | None = None


def parse_options(request: Request) -> ParsedOptions:
    """Parse the options of a request. Raise UsageError if one makes no sense or if its file is unreadable."""
    return ParsedOptions(_machine(request), _mesh(request.mesh), _custom_calls(request.custom_calls), _cost_model(request))


def _machine(request: Request) -> AskedMachine | None:
    if not (request.profiles or request.changes or request.topology is not None or request.devices_per_node is not None):
        return None
    from hlo_inspect.analysis.hardware import load_profile
    from hlo_inspect.analysis.time.placement import given_placement
    from hlo_inspect.analysis.time.profiles import AskedMachine, given_change

    placement = given_placement(request.topology, request.devices_per_node)
    return AskedMachine(tuple(map(load_profile, request.profiles)), tuple(map(given_change, request.changes)), placement)


def _mesh(text: str | None) -> NamedMesh | None:
    if text is None:
        return None
    from hlo_inspect.analysis.mesh_axes import given_mesh

    return given_mesh(text)


def _custom_calls(path: str | None) -> UserRules | None:
    if path is None:
        return None
    from hlo_inspect.analysis.cost.custom_calls.user_rules import load_user_rules

    return load_user_rules(path)


def _cost_model(request: Request) -> CostModel | None:
    if request.cost_model is None:
        return None
    from hlo_inspect.analysis.alpa import given_cost_model

    return given_cost_model(request.cost_model, request.alpha, request.beta)
