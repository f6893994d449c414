"""Workload files of network simulators (ASTRA-sim 1.0, SimAI, and aicb, which writes SimAI's): another source of a report.

A file has a line with a policy and keys, a line with the number of rows, and the rows. A row holds a layer's compute times and
collectives.
"""
