"""The tables that a store can have, with their passes and columns.

A column is its name, followed by its type unless that is text. They are all columns that a report's table can have, with or
without a hardware profile; `tests/fleet/test_schema.py` compares them with reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class StoredTable(NamedTuple):
    """A table of a pass: its columns as `name` or `name:type`, separated by blanks."""

    pass_name: str
    columns: str


TABLE_COLUMNS: Mapping[str, StoredTable] = {
    "params": StoredTable(
        "params",
        """
        number:int index name shape dtype bytes:int padded_bytes:int memory_space:int role sharding
        partition_spec copies:int aliased_output donated:bool not_donated_because unused:bool path line:int
        """,
    ),
    "outputs": StoredTable(
        "params",
        """
        index shape bytes:int aliased_parameter sharding partition_spec
        """,
    ),
    "collectives": StoredTable(
        "collectives",
        """
        name kind runs:int runs_lower_bound:int executed_operand_bytes:int executed_operand_bytes_lower_bound:int
        executed_wire_bytes:int executed_wire_bytes_lower_bound:int bound_s:float bound_s_lower_bound:float
        estimate_s:float estimate_s_lower_bound:float estimate_window_s:float estimate_window_s_lower_bound:float
        estimate_exposed_s:float estimate_exposed_s_lower_bound:float window_s:float window_s_lower_bound:float
        exposed_s:float exposed_s_lower_bound:float bus_bandwidth:float level dtype shape operand_bytes:int
        result_bytes:int wire_bytes:int group_size:int replica_groups source_target_pairs trip_count:int axis
        phase phase_from also_phase channel_id:int reduction is_async:bool form computation loop op_name source
        line:int
        """,
    ),
    "collectives_by_axis": StoredTable(
        "collectives",
        """
        axis sites:int runs:int runs_lower_bound:int executed_operand_bytes:int
        executed_operand_bytes_lower_bound:int executed_wire_bytes:int executed_wire_bytes_lower_bound:int
        bound_s:float bound_s_lower_bound:float estimate_s:float estimate_s_lower_bound:float
        estimate_window_s:float estimate_window_s_lower_bound:float estimate_exposed_s:float
        estimate_exposed_s_lower_bound:float window_s:float window_s_lower_bound:float exposed_s:float
        exposed_s_lower_bound:float bus_bandwidth:float level async_count:int operand_bytes:int wire_bytes:int
        """,
    ),
    "loops": StoredTable(
        "collectives",
        """
        loop parent trip_count:int runs:int runs_lower_bound:int collectives:int collectives_lower_bound:int
        executed_wire_bytes:int executed_wire_bytes_lower_bound:int known_from source line:int
        """,
    ),
    "fusions": StoredTable(
        "fusions",
        """
        name kind root runs:int runs_lower_bound:int flops:int flops_lower_bound:int bytes:int
        bytes_lower_bound:int instructions:int outputs:int operand_bytes:int result_bytes:int computation op_name
        source line:int
        """,
    ),
    "custom_calls": StoredTable(
        "custom-calls",
        """
        target count:int runs:int runs_lower_bound:int flops:int flops_lower_bound:int least_flops:int
        least_flops_lower_bound:int matmul_flops:int matmul_flops_lower_bound:int transcendentals:int
        transcendentals_lower_bound:int bytes:int bytes_lower_bound:int known_by line:int
        """,
    ),
    "optimizer": StoredTable(
        "optimizer",
        """
        weight:int path shape rule first_moment:int second_moment:int master_weight:int learning_rate:float
        beta1:float beta2:float beta3:float alpha:float epsilon:float weight_decay:float l2:float momentum:float
        nesterov:bool clip_norm:float clip rate counter:int bytes:int fusion computation line:int
        """,
    ),
    "optimizer_groups": StoredTable(
        "optimizer",
        """
        rule weights:int bytes:int learning_rate:float beta1:float beta2:float beta3:float alpha:float
        epsilon:float weight_decay:float l2:float momentum:float nesterov:bool clip_norm:float clip rate
        fusions:int
        """,
    ),
    "cost": StoredTable(
        "cost",
        """
        opcode flops:int flops_lower_bound:int transcendentals:int transcendentals_lower_bound:int
        matmul_flops:int matmul_flops_lower_bound:int bytes_accessed:int bytes_accessed_lower_bound:int
        share:float compute_s:float compute_s_lower_bound:float memory_s:float memory_s_lower_bound:float
        """,
    ),
    "cost_by_phase": StoredTable(
        "cost",
        """
        phase flops:int flops_lower_bound:int transcendentals:int transcendentals_lower_bound:int
        matmul_flops:int matmul_flops_lower_bound:int bytes_accessed:int bytes_accessed_lower_bound:int
        share:float compute_s:float compute_s_lower_bound:float memory_s:float memory_s_lower_bound:float bound
        """,
    ),
    "cost_by_source": StoredTable(
        "cost",
        """
        source flops:int flops_lower_bound:int transcendentals:int transcendentals_lower_bound:int
        matmul_flops:int matmul_flops_lower_bound:int bytes_accessed:int bytes_accessed_lower_bound:int
        share:float compute_s:float compute_s_lower_bound:float memory_s:float memory_s_lower_bound:float bound
        """,
    ),
    "matmuls_by_type": StoredTable(
        "cost",
        """
        type flops:int flops_lower_bound:int share_of_flops:float sites:int runs:int runs_lower_bound:int
        """,
    ),
    "kernels": StoredTable(
        "top",
        """
        name kind fusion_kind shape computation runs:int runs_lower_bound:int flops:int flops_lower_bound:int
        matmul_flops:int matmul_flops_lower_bound:int bytes:int bytes_lower_bound:int flop_per_byte:float
        bound_s:float bound_s_lower_bound:float estimate_s:float estimate_s_lower_bound:float
        estimate_exposed_s:float estimate_exposed_s_lower_bound:float compiler_s:float
        compiler_s_lower_bound:float step_share:float share:float bound_by phase phase_from op_name source
        line:int
        """,
    ),
    "live_at_peak": StoredTable(
        "memory",
        """
        name shape_index shape bytes:int padding_bytes:int role live_from:int live_to:int memory_space:int
        of_parameter:int path phase op_name source line:int
        """,
    ),
    "largest_arrays": StoredTable(
        "memory",
        """
        name opcode shape bytes:int padded_bytes:int count:int total_bytes:int of_parameter relation path
        memory_space:int phase op_name source line:int
        """,
    ),
}
"""Tables by name."""
