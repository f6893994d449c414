"""The findings, in one explicit list: a rule is one file here. Problems of reading and of policies stand in a table each."""

from __future__ import annotations

import re
from functools import cache

from hlo_inspect.errors import UsageError, did_you_mean
from hlo_inspect.rules.base import Rule, RulePage
from hlo_inspect.rules.check_problems import CHECK_PROBLEMS
from hlo_inspect.rules.contradictory_devices import ContradictoryDevices
from hlo_inspect.rules.copied_donated_parameter import CopiedDonatedParameter
from hlo_inspect.rules.dangling_alias import DanglingAlias
from hlo_inspect.rules.differing_memory_files import DifferingMemoryFiles
from hlo_inspect.rules.excessive_runs import ExcessiveRuns
from hlo_inspect.rules.idle_donated_parameter import IdleDonatedParameter
from hlo_inspect.rules.invalid_custom_call_config import InvalidCustomCallConfig
from hlo_inspect.rules.invalid_trip_count import InvalidTripCount
from hlo_inspect.rules.kept_gathered_parameter import KeptGatheredParameter
from hlo_inspect.rules.large_constant import LargeConstant
from hlo_inspect.rules.mesh_mismatch import MeshMismatch
from hlo_inspect.rules.mesh_not_sought import MeshNotSought
from hlo_inspect.rules.reading_problems import READING_PROBLEMS
from hlo_inspect.rules.recursive_computation import RecursiveComputation
from hlo_inspect.rules.replicated_optimizer_state import ReplicatedOptimizerState
from hlo_inspect.rules.saved_activations import SavedActivations
from hlo_inspect.rules.sharding_device_count import ShardingDeviceCount
from hlo_inspect.rules.tile_padding import TilePadding
from hlo_inspect.rules.unaccountable_memory import UnaccountableMemory
from hlo_inspect.rules.undonated_optimizer_state import UndonatedOptimizerState
from hlo_inspect.rules.undonated_parameter import UndonatedParameter
from hlo_inspect.rules.uneven_device_groups import UnevenDeviceGroups
from hlo_inspect.rules.unfollowed_dataflow import UnfollowedDataflow
from hlo_inspect.rules.unreadable_device_groups import UnreadableDeviceGroups
from hlo_inspect.rules.unused_parameter import UnusedParameter
from hlo_inspect.rules.whole_layer_stack import WholeLayerStack
from hlo_inspect.rules.workload_problems import WORKLOAD_PROBLEMS

_CODE = re.compile(r"HI[0-9]{3}", re.ASCII)

RULES: tuple[Rule, ...] = (
    UndonatedParameter(),
    UnusedParameter(),
    DanglingAlias(),
    UnreadableDeviceGroups(),
    UnevenDeviceGroups(),
    ContradictoryDevices(),
    ShardingDeviceCount(),
    MeshMismatch(),
    MeshNotSought(),
    InvalidTripCount(),
    RecursiveComputation(),
    ExcessiveRuns(),
    InvalidCustomCallConfig(),
    UnfollowedDataflow(),
    UndonatedOptimizerState(),
    ReplicatedOptimizerState(),
    UnaccountableMemory(),
    DifferingMemoryFiles(),
    TilePadding(),
    LargeConstant(),
    SavedActivations(),
    CopiedDonatedParameter(),
    KeptGatheredParameter(),
    WholeLayerStack(),
    IdleDonatedParameter(),
)


@cache
def rule_pages() -> tuple[RulePage, ...]:
    """The documentation of every finding that exists, by code."""
    return (*READING_PROBLEMS, *CHECK_PROBLEMS, *(rule.page() for rule in RULES), *WORKLOAD_PROBLEMS)


def find_rule(name: str) -> RulePage:
    """The documentation of the rule of that code or kebab-case name; `UsageError` with the nearest codes and names."""
    pages = rule_pages()
    for page in pages:
        if name in (page.code, page.name):
            return page
    hint = did_you_mean(name, [one for page in pages for one in (page.code, page.name)])
    if _CODE.fullmatch(name):  # the codes of a group are neighbours
        nearest = sorted((page.code for page in pages), key=lambda code: abs(int(code[2:]) - int(name[2:])))[:3]
        hint = did_you_mean(name, nearest, cutoff=0)
    raise UsageError(f"there is no rule {name!r}{hint}; `hlo-inspect rules` lists all")
