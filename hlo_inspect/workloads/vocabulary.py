"""The words of a workload file: policies, header keys, collectives, and what the clients make of them.

Sources: `Workload::decode_parallelsim`, `decode_involved_dimensions` and `initialize_workload` in
astra-sim/workload/Workload.cc of ASTRA-sim 1.0 and of SimAI, which reads the same rows and other headers.
"""

from __future__ import annotations

PASSES = ("forward", "input_gradient", "weight_gradient")
"""The passes of a row in its order: each a compute time, a collective and the size of that."""

NONE = "NONE"
"""The word of a cell without a collective."""

FORWARD_IN_BACKWARD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD"
"""The policy that SimAI computes times of, and the one that aicb writes for training."""

TRANSFORMERS = frozenset({"HYBRID_TRANSFORMER", FORWARD_IN_BACKWARD})
DLRM = frozenset({"HYBRID_DLRM", "HYBRID_DLRM_ENHANCED"})
CUSTOMIZED = "HYBRID_CUSTOMIZED"
"""The policy whose rows end in a policy of their own."""
MICRO = "MICRO"
"""The policy of benchmarks; ASTRA-sim runs their first row alone."""

_GRADIENTS = frozenset({"weight_gradient"})
_ACTIVATIONS = frozenset({"forward", "input_gradient"})
_ALL = frozenset(PASSES)
POLICIES: dict[str, frozenset[str]] = {
    "DATA": _GRADIENTS,
    "MODEL": _ACTIVATIONS,
    "HYBRID_DATA_MODEL": _ALL,
    "HYBRID_MODEL_DATA": _ALL,
    "HYBRID_TRANSFORMER": _ALL,
    FORWARD_IN_BACKWARD: _ALL,
    "HYBRID_DLRM": _GRADIENTS,
    "HYBRID_DLRM_ENHANCED": _GRADIENTS,
    CUSTOMIZED: _ALL,
    MICRO: _GRADIENTS,
    "DISTRIBUTED_INFERENCE": _ACTIVATIONS,
}
"""Policies with the passes whose collectives use some dimension of the network; those of other passes move nothing."""

KINDS = {
    "ALLREDUCE": "allreduce",
    "ALLGATHER": "allgather",
    "REDUCESCATTER": "reducescatter",
    "ALLTOALL": "alltoall",
    "ALLREDUCEALLTOALL": "allreducealltoall",
}
"""The collectives that a client knows, each with its name in facts."""

HLO_KINDS = {"allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter", "alltoall": "all-to-all"}
"""The opcodes of HLO that mean the same."""

_SUFFIXES = {"EP": "ep", "DP_EP": "dp_ep"}
GROUPS = ("tp", "dp", "ep", "dp_ep")
"""The groups of devices that collectives run in: tensor, data and expert parallel, and the data parallel ones of an expert."""


def kind_of(word: str) -> str | None:
    """The collective that a word names, with or without a suffix for its group; `None` where no client knows it."""
    return KINDS.get(word.partition("_")[0])


def suffix_of(word: str) -> str:
    """What follows the collective: `EP` of `ALLTOALL_EP`."""
    return word.partition("_")[2]


def group_of(word: str, pass_name: str) -> str | None:
    """The group that SimAI runs a collective in; `None` where it knows the word and gives it none, so that it takes no time.

    Without a suffix activations are exchanged by tensor parallel devices, and gradients of weights by data parallel ones.
    ALLREDUCEALLTOALL is taken for an ALLREDUCE with a suffix that means nothing.
    """
    if word.startswith("ALLREDUCEALLTOALL"):
        return None
    suffix = suffix_of(word)
    if suffix:
        return _SUFFIXES.get(suffix)
    return "dp" if pass_name == "weight_gradient" else "tp"
