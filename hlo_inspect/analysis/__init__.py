"""Analyses: numbers without tables, each computed once a module.

Imports `hlo`, `profiler`, `graph`, the overview of `optimizer`, `request` and `configs`. `ANALYSIS` of `tests/test_layers.py`
orders its modules.
"""
