"""Input of network simulators, written from an optimized module: the plan of a step, and the files of each client.

`step_plan` unrolls a step into nodes with edges and groups; `chakra_files` writes it as execution traces of ASTRA-sim 2.
`layer_rows` sums the step up by layer; `workload_file` writes it in the text dialects of ASTRA-sim 1.0 and SimAI.
"""
