"""HI701 to HI703: contradictions between a recorded profile and the module or the hardware profile."""

from __future__ import annotations

from hlo_inspect.report.rule_page import RulePage

_EXAMPLE = "hlo-inspect measured host.xplane.pb --profile tpu-v5e\n"

FASTER_THAN_BOUND = RulePage(
    "HI701",
    "kernel-faster-than-bound",
    "warning",
    "Kernels whose measured time is below their bound.",
    "Instructions of a recorded profile with a self time below the bound on the hardware profile.",
    "No execution beats a bound. So the program ran on other hardware, or the cost of the instruction is wrong. Then MFU is "
    "wrong too, and the distance from the bound.",
    "Name the hardware of the run with --profile. If it is right, report the instruction.",
    _EXAMPLE,
)
UNKNOWN_INSTRUCTIONS = RulePage(
    "HI702",
    "events-of-unknown-instructions",
    "warning",
    "Events that name instructions which the module lacks.",
    "Events of a recorded profile whose instruction is not in the text of the module.",
    "Their time counts in kernels_s and in no row.",
    "Give the dump of the same compilation, or none: the profile holds the module.",
    _EXAMPLE,
)
UNATTRIBUTED = RulePage(
    "HI703",
    "unattributed-events",
    "info",
    "Device time that belongs to no instruction.",
    "Events of the lines of devices that name no instruction, such as the kernels of command buffers on GPUs.",
    "Their time is in no row, so the rows miss a part of the step.",
    "On GPUs, record with XLA_FLAGS=--xla_gpu_enable_command_buffer= (empty): kernels then name their instructions.",
    _EXAMPLE,
)

MEASURED_PROBLEMS = (FASTER_THAN_BOUND, UNKNOWN_INSTRUCTIONS, UNATTRIBUTED)
