"""Input of network simulators and viewers, written from an optimized module.

`plan.step_plan` unrolls a step into nodes with edges and groups; `written.chakra_export` writes it as execution traces of
ASTRA-sim 2. `written.layer_rows` sums the step up by layer; `written.workload_export` writes it in the text dialects of
ASTRA-sim 1.0 and SimAI.
"""
